"""Tasks that can't be loaded, and code of a user that ends the program."""

import sys

from r1lite.tasks import Problems, Task


def _broken(source):
    raise FileNotFoundError("no such place")


class EndsWhenMade:
    def __init__(self):
        sys.exit(0)

    def __call__(self, problem, completion):
        return 1.0


class EndsWhenPrepared:
    def prepare(self):
        sys.exit(0)

    def __call__(self, problem, completion):
        return 1.0


class NeverPrepared(EndsWhenPrepared):
    def prepare(self):
        while True:
            pass


def ends(problem, completion):
    sys.exit(0)


EMPTY = Task(name="empty", load=lambda source: Problems([], [], "nowhere"), reward="math")
BROKEN = Task(name="broken", load=_broken, reward="math")
ENDING = Task(name="ending", load=lambda source: sys.exit(0), reward="math")
