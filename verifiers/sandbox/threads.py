"""Work shared by threads, of which the host may give fewer than are wanted."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from verifiers.core import Completion, Problem, Verdict


@contextlib.contextmanager
def threads(work: Callable[[], None], most: int) -> Iterator[None]:
    """As many threads beside the caller's as are wanted and available; they have ended when the block has."""
    started = []
    for _ in range(most):
        thread = threading.Thread(target=work, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # the user's limit of processes, or of memory: fewer will do
            break
        started.append(thread)
    try:
        yield
    finally:
        for thread in started:
            thread.join()


def verdicts(
    verify: Callable[[Problem, Completion], Verdict], pairs: Iterable[tuple[Problem, Completion]], most: int
) -> list[Verdict | Exception]:
    """Verdicts in order, up to `most` at one time. The exception of an item takes the place of its verdict."""
    items = list(pairs)
    found: list[Verdict | Exception | None] = [None] * len(items)
    numbers = iter(range(len(items)))
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                number = next(numbers, None)
            if number is None:
                return
            try:
                found[number] = verify(*items[number])
            except Exception as error:  # one item never ends the others
                found[number] = error

    with threads(work, min(most, len(items)) - 1):
        try:
            work()
        finally:  # interrupted: what was not begun is not begun any more
            with turn:
                collections.deque(numbers, maxlen=0)
    return [verdict for verdict in found if verdict is not None]
