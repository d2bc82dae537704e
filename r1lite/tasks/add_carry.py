"""Three-digit sums with carries, for a base model that thinks in two languages: shows the effect of a language reward.

`r1lite pretrain recipes/add_carry_base.yaml` trains the base; README.md compares reward formulas on it.
"""

from __future__ import annotations

import random

from r1lite.tasks import Task
from r1lite.tasks.additions import sample
from r1lite.tasks.sources import Generated
from verifiers import Problem


def make(split: str, rng: random.Random) -> Problem:
    """A random problem. Difficulty is the number of columns that carry; the language of the thinking is English."""
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
