"""Multi-step word problems in GSM8K's format, made by a seeded generator; standard library only.

>>> import random
>>> from r1lite.tasks.word_problems import sample
>>> problem = sample("train", random.Random(0))
>>> problem.steps[-1].value == problem.answer
True
"""

from r1lite.tasks.word_problems.core import Step, WordProblem
from r1lite.tasks.word_problems.families import HELD_OUT
from r1lite.tasks.word_problems.generator import DEFAULT_SEED, SPLIT_SIZES, Split, family_names, generate, sample
from r1lite.tasks.word_problems.split import in_test, masked
from r1lite.tasks.word_problems.story import FAMILIES

__all__ = [
    "DEFAULT_SEED",
    "FAMILIES",
    "HELD_OUT",
    "SPLIT_SIZES",
    "Split",
    "Step",
    "WordProblem",
    "family_names",
    "generate",
    "in_test",
    "masked",
    "sample",
]
