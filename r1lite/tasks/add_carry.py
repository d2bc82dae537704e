"""Three-digit sums with carries, for a base model that thinks in two languages: what a language reward does.

The base is made by `r1lite pretrain recipes/add_carry_base.yaml`; README.md compares reward formulas on it.
"""

from __future__ import annotations

import random

from r1lite.tasks import Task
from r1lite.tasks.additions import sample
from r1lite.tasks.sources import Generated
from verifiers import Problem


def make(split: str, rng: random.Random) -> Problem:
    """Difficulty is the number of columns that carry; the thinking is wanted in English."""
    found = sample(split, rng)
    return Problem(found.question, str(found.answer), language="en", meta={"difficulty": str(found.carries)})


DATA = Generated("add_carry", make)
TASK = Task(
    name="add_carry",
    load=DATA,
    reward="math * (0.5 + 0.5*language) + 0.1*format",
    sources=("generated",),
    example=DATA.item("train", 0),
)
