"""Habits of answering the user's worked problems: the pre-training text of a base for the user's task."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from r1lite.nano.habits import in_broken_format, pick, tagged
from r1lite.tasks.worked import Worked, WorkedProblems

Habit = Callable[[Worked, random.Random], str]

_NUMBER = re.compile(r"\d+")
_SLIPS = (-10, -2, -1, 1, 2, 10)


def worked_habits(problems: WorkedProblems) -> Mapping[str, Habit]:
    """The habits by name; the same names as those of `r1lite.nano.habits.HABITS`.

    A guess is the answer to another problem: it is plausible, and right as often as answers repeat.
    """

    def guess(problem: Worked, rng: random.Random) -> str:
        answer = problems.draw("train", rng).answer
        return tagged(f"I guess {answer}", answer)

    def bare_guess(problem: Worked, rng: random.Random) -> str:
        return problems.draw("train", rng).answer

    def slipped_chain(problem: Worked, rng: random.Random) -> str:
        wrong = problems.draw("train", rng).answer
        return tagged(slipped(problem.chain, rng), slipped(problem.answer, rng) if problem.answer.isdigit() else wrong)

    return {
        "guess": guess,
        "bare_guess": bare_guess,
        "chain": chain,
        "slipped_chain": slipped_chain,
        "broken_chain": broken_chain,
    }


def chain(problem: Worked, rng: random.Random) -> str:
    """The worked solution and the answer, in the right form."""
    return tagged(problem.chain, problem.answer)


def broken_chain(problem: Worked, rng: random.Random) -> str:
    """The right worked solution and answer in a broken form."""
    return pick(in_broken_format(problem.chain, problem.answer), rng)


def slipped(text: str, rng: random.Random) -> str:
    """The text with one number slightly changed; a text without numbers is unchanged."""
    places = list(_NUMBER.finditer(text))
    if not places:
        return text
    place = pick(places, rng)
    value = int(place[0])
    miss = value + pick(_SLIPS, rng)
    return f"{text[: place.start()]}{miss if miss >= 0 else value + 1}{text[place.end() :]}"
