"""The types of a word problem and the limits of its numbers.

A problem is a question, two to four steps with one binary operation each, and the value of the last step.
"""

from dataclasses import dataclass

MAX_VALUE = 200  # given and intermediate values lie in 1..MAX_VALUE, since a model of 1-3 M parameters computes them
MAX_PRODUCT = 144
MAX_FACTOR = 12  # limit of a product's smaller factor and of divisors: the multiplication table learnt at school


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence of the worked solution; `text` contains `"{expression} = {value}"` once."""

    text: str
    expression: str  # such as "4 * 6": two integers and one of + - * /, with single spaces
    value: int


@dataclass(frozen=True, slots=True)
class WordProblem:
    """A question with its worked solution; `answer` is the value of the last step."""

    question: str
    steps: tuple[Step, ...]
    answer: int
    family: str

    @property
    def solution(self) -> str:
        """The solution in GSM8K's format: a line per step with the annotation `<<4*6=24>>`, then `#### 24`."""
        return "\n".join([*map(_annotated, self.steps), f"#### {self.answer}"])


def _annotated(step: Step) -> str:
    calculator = f"<<{step.expression.replace(' ', '')}={step.value}>>"
    return step.text.replace(f"{step.expression} = ", f"{step.expression} = {calculator}", 1)
