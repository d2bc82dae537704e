"""The families, a module per theme. Importing this package registers all of them."""

from r1lite.tasks.word_problems.families import comparing, counting, held_out, home, money, pace, sharing
from r1lite.tasks.word_problems.story import held_out_names

THEMES = (comparing, counting, home, money, pace, sharing, held_out)
HELD_OUT = held_out_names()

__all__ = ["HELD_OUT", "THEMES"]
