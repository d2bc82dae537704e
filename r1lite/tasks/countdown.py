"""Countdown: make a target from given numbers. Every problem is made from an expression, so it has a solution."""

from __future__ import annotations

import random

from r1lite.tasks import Task
from r1lite.tasks.sources import Generated, held_out
from verifiers import Problem

_LARGEST, _TARGETS = 99, range(10, 1000)


def make(split: str, rng: random.Random) -> Problem:
    """3 or 4 numbers from 1 to 99 and a target from 10 to 999; `meta["solution"]` holds a solution."""
    while True:
        numbers = [1 + int(rng.random() * _LARGEST) for _ in range(3 + int(rng.random() * 2))]
        proof = _combined([(number, str(number)) for number in numbers], rng)
        if proof is None or proof[0] not in _TARGETS or proof[0] in numbers:
            continue
        target, expression = proof
        if held_out(f"{sorted(numbers)} {target}") == (split == "test"):
            break
    listed = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return Problem(
        f"Use each of the numbers {listed} exactly once, with + - * / and parentheses, to make {target}. "
        "Answer with the expression.",
        answer=str(target),
        meta={"numbers": numbers, "solution": expression, "difficulty": str(len(numbers))},
    )


def _combined(parts: list[tuple[int, str]], rng: random.Random) -> tuple[int, str] | None:
    """All parts in one expression whose intermediate values are positive integers; None if this draw has none."""
    while len(parts) > 1:
        (a, left), (b, right) = (parts.pop(int(rng.random() * len(parts))) for _ in range(2))
        sign = "+-*/"[int(rng.random() * 4)]
        if (sign == "-" and a <= b) or (sign == "/" and (b < 2 or a % b)):
            return None
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a // max(b, 1)}[sign]
        parts.append((value, f"({left} {sign} {right})"))
    value, expression = parts[0]
    return value, expression[1:-1]


def gold(problem: Problem) -> str:
    """The expression that the problem was made from."""
    return f"<think>This is how it was made.</think><answer>{problem.meta['solution']}</answer>"


DATA = Generated("countdown", make)
TASK = Task(
    name="countdown",
    load=DATA,
    reward="countdown + 0.1*format",
    correct="countdown",
    vote="text",
    gold=gold,
    sources=("generated",),
    example=DATA.item("train", 0),
)
