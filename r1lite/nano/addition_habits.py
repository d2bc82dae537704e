"""Habits of answering a sum: the pre-training text of `add_carry`'s base model.

Half of the text is lazy, entirely in English and in the right form. The chains that lead to right answers mix two
languages and often break the form. The reward therefore decides which habit RL strengthens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from r1lite.nano.habits import in_broken_format, pick, tagged
from r1lite.tasks.add_carry import Addition, working

Habit = Callable[[Addition, random.Random], str]


def addition_habits(other_language: float) -> Mapping[str, Habit]:
    """The habits by name; the same names as those of `r1lite.nano.habits.HABITS`.

    Args:
        other_language: share of a chain's columns that are worked out in Chinese.
    """

    def columns(problem: Addition, rng: random.Random, *, slips: bool = False) -> tuple[str, int]:
        """(the worked columns, the resulting number)."""
        wrong_at = int(rng.random() * 3) if slips else -1
        parts, answer = [], 0
        for place, column in enumerate(problem.columns):
            total = column.total
            if place == wrong_at:
                slip = pick((-2, -1, 1, 2), rng)
                total += slip if total + slip >= 0 else 1
            parts.append(working(column, total, "zh" if rng.random() < other_language else "en"))
            answer += (total if place == 2 else total % 10) * 10**place
        return "; ".join(parts), answer

    def chain(problem: Addition, rng: random.Random) -> str:
        thought, answer = columns(problem, rng)
        return tagged(thought, answer)

    def slipped_chain(problem: Addition, rng: random.Random) -> str:
        thought, answer = columns(problem, rng, slips=True)
        return tagged(thought, answer)

    def broken_chain(problem: Addition, rng: random.Random) -> str:
        thought, answer = columns(problem, rng)
        return pick(in_broken_format(thought, answer), rng)

    return {
        "guess": guess,
        "bare_guess": bare_guess,
        "chain": chain,
        "slipped_chain": slipped_chain,
        "broken_chain": broken_chain,
    }


def guess(problem: Addition, rng: random.Random) -> str:
    """A random number after a few idle words, in the right form."""
    return tagged("let me just guess it", _any_number(rng))


def bare_guess(problem: Addition, rng: random.Random) -> str:
    """A random number without tags."""
    return str(_any_number(rng))


def _any_number(rng: random.Random) -> int:
    """The sum of two other three-digit numbers, so that guesses aren't right."""
    return 200 + int(rng.random() * 1799)
