"""The types of a word problem and the limits its numbers keep.

A problem is a question, two to four steps of one binary operation each, and the value of the last step.
"""

from dataclasses import dataclass

MAX_VALUE = 200  # every given or intermediate value lies in 1..MAX_VALUE: a model of 1-3 M parameters has to compute it
MAX_PRODUCT = 144
MAX_FACTOR = 12  # the smaller factor of a product, and every divisor: the multiplication table a child learns


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence of the worked solution; `text` holds `"{expression} = {value}"` once."""

    text: str
    expression: str  # "4 * 6": two integers and one of + - * /, single spaces
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
        """GSM8K's format: a line a step with the calculator annotation `<<4*6=24>>`, then `#### 24`."""
        return "\n".join([*map(_annotated, self.steps), f"#### {self.answer}"])


def _annotated(step: Step) -> str:
    calculator = f"<<{step.expression.replace(' ', '')}={step.value}>>"
    return step.text.replace(f"{step.expression} = ", f"{step.expression} = {calculator}", 1)
