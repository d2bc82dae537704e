"""Tasks that can't be loaded."""

from r1lite.tasks import Problems, Task


def _broken(source):
    raise FileNotFoundError("no such place")


EMPTY = Task(name="empty", load=lambda source: Problems([], [], "nowhere"), reward="math")
BROKEN = Task(name="broken", load=_broken, reward="math")
