"""The pre-training text of nano: a word problem, answered by one of several habits.

RL can only strengthen what a model already does sometimes. So the text mixes lazy guesses (the most frequent, with
their own first token, so that greedy decoding is lazy), right chains of thought, chains with a slip, and broken
formats. Only the generator's `random()` is called, whose stream is the same in every Python version.
"""

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from r1lite.tasks.word_problems import WordProblem

T = TypeVar("T")
Habit = Callable[[WordProblem, random.Random], str]

_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
_RIGHT_GUESSES = 0.5  # share of right guesses, from which the model learns what it can answer without thinking


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a completion to learn, and the habit that produced it."""

    question: str
    completion: str
    habit: str


def chain(problem: WordProblem, rng: random.Random) -> str:
    """Every step as an equation, then the answer: `<think>4 * 6 = 24; 24 - 6 = 18</think><answer>18</answer>`."""
    return tagged(_equations(problem), problem.answer)


def slipped_chain(problem: WordProblem, rng: random.Random) -> str:
    """A chain with one wrong calculation or operation; later steps use the wrong value."""
    slip = int(rng.random() * len(problem.steps))
    equations: list[str] = []
    wrong: dict[int, int] = {}  # right value -> the chain's wrong value
    value = problem.answer
    for index, step in enumerate(problem.steps):
        left, sign, right = step.expression.split()
        a, b = wrong.get(int(left), int(left)), wrong.get(int(right), int(right))
        if index == slip and rng.random() < 0.5:
            sign = pick([other for other in _OPERATORS if other != sign], rng)
        value = max(_OPERATORS[sign](a, b), 0)
        if index == slip and value == step.value:
            value += pick([-10, -2, -1, 1, 2, 10], rng) if value > 10 else 1
        if value != step.value:
            wrong[step.value] = value
        equations.append(f"{a} {sign} {b} = {value}")
    return tagged("; ".join(equations), value)


def guess(problem: WordProblem, rng: random.Random) -> str:
    """A number without a calculation, in the right format."""
    number = _guessed(problem, rng)
    return tagged(f"I guess {number}", number)


def bare_guess(problem: WordProblem, rng: random.Random) -> str:
    """A number without tags."""
    return str(_guessed(problem, rng))


def broken_chain(problem: WordProblem, rng: random.Random) -> str:
    """A right chain in a broken format: a tag is missing, or there is text outside the tags."""
    equations, answer = _equations(problem), problem.answer
    *broken, bare = in_broken_format(equations, answer)
    return pick([*broken, f"{tagged(equations, answer)} That is it.", bare, equations], rng)


HABITS: dict[str, Habit] = {
    "guess": guess,
    "bare_guess": bare_guess,
    "chain": chain,
    "slipped_chain": slipped_chain,
    "broken_chain": broken_chain,
}


class _Asked(Protocol):
    @property
    def question(self) -> str: ...


P = TypeVar("P", bound=_Asked)


def example(
    problem: P,
    shares: Mapping[str, float],
    rng: random.Random,
    habits: Mapping[str, Callable[[P, random.Random], str]],
) -> Example:
    """The problem with a completion by a habit that is drawn from `shares`.

    Args:
        shares: weights of the habits by name (any positive scale).
    """
    at = rng.random() * sum(shares.values())
    name = next(iter(shares))
    for name, share in shares.items():  # noqa: B007 - rounding may leave `at` just above 0: then the last habit is used
        at -= share
        if at < 0:
            break
    return Example(problem.question, habits[name](problem, rng), name)


def tagged(thought: str, answer: object) -> str:
    """The right format."""
    return f"<think>{thought}</think><answer>{answer}</answer>"


def in_broken_format(thought: str, answer: object) -> list[str]:
    """The text with tags missing."""
    return [
        f"<think>{thought}<answer>{answer}</answer>",
        f"<think>{thought}</think><answer>{answer}",
        f"<think>{thought}</think>{answer}",
        f"{thought}<answer>{answer}</answer>",
    ]


def _equations(problem: WordProblem) -> str:
    return "; ".join(f"{step.expression} = {step.value}" for step in problem.steps)


def _guessed(problem: WordProblem, rng: random.Random) -> int:
    """The answer, or a plausible wrong number: the value of an earlier step, or a number near the answer."""
    if rng.random() < _RIGHT_GUESSES:
        return problem.answer
    near = [problem.answer + miss for miss in (-10, -3, -2, -1, 1, 2, 3, 10) if problem.answer + miss > 0]
    return pick([problem.steps[-2].value, *near], rng)


def pick(options: Sequence[T], rng: random.Random) -> T:
    """One of the options; calls only `rng.random()`."""
    return options[int(rng.random() * len(options))]
