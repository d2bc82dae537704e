"""Draws problems for a split and writes the bundled files."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from r1lite.tasks.word_problems.core import WordProblem
from r1lite.tasks.word_problems.families import HELD_OUT
from r1lite.tasks.word_problems.split import in_test
from r1lite.tasks.word_problems.story import FAMILIES

Split = Literal["train", "test", "test_hard"]
SPLIT_SIZES: dict[Split, int] = {"train": 7_000, "test": 1_000, "test_hard": 500}
DEFAULT_SEED = 0

_MAX_TRIES = 10_000


def family_names(split: Split) -> list[str]:
    """Sorted names of a split's families: the held-out ones for `test_hard`, all others for `train` and `test`.

    Raises: ValueError for an unknown split.
    """
    if split not in get_args(Split):
        raise ValueError(f"unknown split {split!r}; known: {', '.join(get_args(Split))}")
    return sorted(HELD_OUT if split == "test_hard" else FAMILIES.keys() - HELD_OUT)


def sample(split: Split, rng: random.Random) -> WordProblem:
    """One problem of a random family of the split, with a masked form that belongs to the split."""
    names = family_names(split)
    return _sample_family(names[int(rng.random() * len(names))], split, rng)


def generate(split: Split, count: int, seed: int) -> list[WordProblem]:
    """`count` problems without repeated questions; all families have the same share to within one problem.

    The result is the same on every platform and Python version. A larger `count` only appends problems.
    """
    rng = random.Random(f"r1lite word problems/{split}/{seed}")
    names = family_names(split)
    seen: set[str] = set()
    problems: list[WordProblem] = []
    while len(problems) < count:
        for name in _shuffled(names, rng)[: count - len(problems)]:
            problem = _unseen(name, split, rng, seen)
            seen.add(problem.question)
            problems.append(problem)
    return problems


def write(problems: Iterable[WordProblem], path: Path, id_prefix: str) -> None:
    """Writes JSON lines with id, question, answer (GSM8K's worked solution) and family; LF ends on all platforms."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for index, problem in enumerate(problems):
            row = {
                "id": f"{id_prefix}-{index:05d}",
                "question": problem.question,
                "answer": problem.solution,
                "family": problem.family,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _sample_family(name: str, split: Split, rng: random.Random) -> WordProblem:
    for _ in range(_MAX_TRIES):
        problem = FAMILIES[name](rng)
        if split == "test_hard" or in_test(problem.question) == (split == "test"):
            return problem
    raise RuntimeError(f"family {name!r} has no wording for the split {split!r}")


def _unseen(name: str, split: Split, rng: random.Random, seen: set[str]) -> WordProblem:
    for _ in range(_MAX_TRIES):
        problem = _sample_family(name, split, rng)
        if problem.question not in seen:
            return problem
    raise RuntimeError(f"family {name!r} has no further question for {split!r}; request fewer problems")


def _shuffled(names: list[str], rng: random.Random) -> list[str]:
    """A shuffled copy. Doesn't use `shuffle`, because Python guarantees a stable stream only for `random()`."""
    return [name for _, name in sorted((rng.random(), name) for name in names)]
