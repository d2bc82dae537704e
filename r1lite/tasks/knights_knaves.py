"""Knights and knaves: who tells the truth? Every problem has one solution, proved by trying all 2^n."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from r1lite.tasks import Task
from r1lite.tasks.sources import Generated, held_out
from verifiers import Problem

_NAMES = (
    *("Ada", "Boris", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ivy", "Jonas", "Karla", "Liam"),
    *("Mona", "Nora", "Oscar", "Paula", "Quinn", "Rosa", "Samuel", "Tina", "Ugo", "Vera", "Walter", "Zoe"),
)
_LARGEST = 5
Statement = tuple[str, Callable[[Sequence[bool]], bool]]  # its text; its truth under an assignment (True = knight)


def make(split: str, rng: random.Random) -> Problem:
    """A random problem with 2 to 5 people who make one statement each."""
    while True:
        count = 2 + int(rng.random() * (_LARGEST - 1))
        names = _drawn(_NAMES, count, rng)
        said = [_statement(speaker, names, rng) for speaker in range(count)]
        solutions = solve([true for _, true in said])
        spoken = " ".join(f'{name} says: "{text}."' for name, (text, _) in zip(names, said, strict=True))
        if len(solutions) == 1 and held_out(spoken) == (split == "test"):
            break
    kinds = [f"{name} is a {'knight' if knight else 'knave'}" for name, knight in zip(names, solutions[0], strict=True)]
    return Problem(
        "On an island live knights, who always tell the truth, and knaves, who always lie. "
        f"You meet {_listed(names)}. {spoken} Who is a knight and who is a knave?",
        answer=f"{_listed(kinds)}.",
        meta={"difficulty": str(count)},
    )


def solve(statements: Sequence[Callable[[Sequence[bool]], bool]]) -> list[tuple[bool, ...]]:
    """All assignments (True = knight) under which exactly the knights' statements are true."""
    return [
        knights
        for knights in itertools.product((True, False), repeat=len(statements))
        if all(true(knights) == knight for true, knight in zip(statements, knights, strict=True))
    ]


def _statement(speaker: int, names: Sequence[str], rng: random.Random) -> Statement:
    others = [person for person in range(len(names)) if person != speaker]
    x = others[int(rng.random() * len(others))]
    y = [speaker, *(person for person in others if person != x)][int(rng.random() * (len(names) - 1))]
    kind = rng.random() < 0.5
    word = "knight" if kind else "knave"
    you = "I am" if y == speaker else f"{names[y]} is"
    forms: list[Statement] = [
        (f"{names[x]} is a {word}", lambda k: k[x] == kind),
        (f"{names[x]} is a {word} and {you} a knight", lambda k: k[x] == kind and k[y]),
        (f"{names[x]} is a {word} or {you} a knave", lambda k: k[x] == kind or not k[y]),
        (f"If {names[x]} is a {word}, then {you} a knight", lambda k: k[x] != kind or k[y]),
        (f"{names[x]} is a {word} if and only if {you} a knight", lambda k: (k[x] == kind) == k[y]),
    ]
    return forms[int(rng.random() * len(forms))]


def _drawn(names: Sequence[str], count: int, rng: random.Random) -> list[str]:
    left = list(names)
    return [left.pop(int(rng.random() * len(left))) for _ in range(count)]


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


DATA = Generated("knights_knaves", make)
TASK = Task(
    name="knights_knaves",
    load=DATA,
    reward="knights_knaves + 0.1*format",
    correct="knights_knaves",
    sources=("generated",),
    example=DATA.item("train", 0),
)
