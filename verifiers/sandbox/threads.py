"""Work shared by threads; the host may allow fewer threads than requested."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from verifiers.core import Completion, Problem, Verdict


@contextlib.contextmanager
def threads(work: Callable[[], None], most: int) -> Iterator[None]:
    """Context with up to `most` threads in addition to the caller's; they have ended when the block has."""
    started = []
    for _ in range(most):
        thread = threading.Thread(target=work, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # the user's limit of processes, or of memory: fewer threads suffice
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
    """Returns verdicts in order, up to `most` at a time. An item's exception takes the place of its verdict."""
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
            except Exception as error:  # a failing item never stops the others
                found[number] = error

    with threads(work, min(most, len(items)) - 1):
        try:
            work()
        finally:  # if interrupted, no further item is started
            with turn:
                collections.deque(numbers, maxlen=0)
    return [verdict for verdict in found if verdict is not None]
