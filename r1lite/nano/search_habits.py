"""Habits of searching: the pre-training text of `nano-countdown`, the base of the task `countdown_small`.

The base can make and check attempts and doesn't repeat them, but usually gives up after a wrong attempt. The
probability of giving up is that of one token, which RL changes a little in each step, so thinking grows gradually.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from r1lite.nano.habits import pick, tagged
from r1lite.tasks.countdown_small import LARGEST_NUMBER, LARGEST_VALUE, SIGNS, Search

Habit = Callable[[Search, random.Random], str]
RIGHT, WRONG = " yes", " no; "


def search_habits(give_up: Sequence[float]) -> Mapping[str, Habit]:
    """The habits by name; a subset of the names in `r1lite.nano.habits.HABITS`.

    Args:
        give_up: probabilities that a wrong attempt is the last one; each text uses one of them.
    """

    def chain(problem: Search, rng: random.Random) -> str:
        return tagged(*search(problem, rng, pick(give_up, rng)))

    def guess(problem: Search, rng: random.Random) -> str:
        return tagged(*search(problem, rng, 1.0))

    def broken_chain(problem: Search, rng: random.Random) -> str:
        thought, answer = search(problem, rng, pick(give_up, rng))
        broken = (
            f"<think>{thought}<answer>{answer}</answer>",
            f"<think>{thought}</think>{answer}",
            f"<think>{thought}</think><answer>{answer}",
        )
        return pick(broken, rng)

    return {"chain": chain, "guess": guess, "broken_chain": broken_chain}


def search(problem: Search, rng: random.Random, give_up: float) -> tuple[str, str]:
    """(thought, answer): attempts in random order, without repeats, until one is right or the search gives up.

    `(10-3)*2=14 no; (10+2)-3=9 no; ...`; the answer is the last attempt, right or not.
    """
    order = sorted(problem.attempts, key=lambda _: rng.random())
    parts: list[str] = []
    for attempt in order:
        right = attempt.value == problem.target
        parts.append(f"{attempt.expression}={attempt.value}{RIGHT if right else WRONG}")
        if right or rng.random() < give_up:
            break
    return "".join(parts), attempt.expression


def words() -> list[str]:
    """The tokens of question and search. An attempt has five, `(10` `-3` `)*2` `=14` ` no; `, so that the model has
    little to learn about notation."""
    numbers = range(1, LARGEST_NUMBER + 1)
    return [
        *("Use ", ", ", " and ", " to make ", ".\n", RIGHT, WRONG),
        *(str(number) for number in range(1, LARGEST_VALUE + 1)),
        *(f"({number}" for number in numbers),
        *(f"{sign}{number}" for sign in SIGNS for number in numbers),
        *(f"){sign}{number}" for sign in SIGNS for number in numbers),
        *(f"={value}" for value in range(1, LARGEST_VALUE + 1)),
    ]
