"""The families by theme; importing this package registers all of them."""

from r1lite.word_problems.families import held_out, money, sharing
from r1lite.word_problems.story import held_out_names

THEMES = (money, sharing, held_out)
HELD_OUT = held_out_names()

__all__ = ["HELD_OUT", "THEMES"]
