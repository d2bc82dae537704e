"""What is to be scored on other nodes: cut into calls, made again where they are lost, put back into order."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verifiers.core import Completion, Problem
from verifiers.worker import Result

_CALL_S = 0.5  # that a call is to take: short enough to be balanced, long enough to hide what a call costs
_FIRST_ITEMS, _MOST_ITEMS, _MOST_CHARS = 16, 512, 1 << 20  # of a call
_OPEN = 64  # calls that may be finished before the oldest one is: what bounds the memory
_TRIES = 3  # of a call whose actors are lost

Items = list[tuple[Problem, Completion]]


@dataclass(eq=False, slots=True)
class Call:
    number: int  # among the calls
    items: Items
    tries: int = 0
    began: float = 0.0


class Work:
    """What is to be scored: cut into calls of about half a second, given out, and put back into order."""

    def __init__(self, pairs: Iterator[tuple[Problem, Completion]]) -> None:
        self._pairs, self._again = pairs, collections.deque[Call]()
        self._done: dict[int, list[Result]] = {}
        self._next = self._turn = self._out = 0
        self._ended = False
        self._size: float = _FIRST_ITEMS

    @property
    def is_done(self) -> bool:
        return self._ended and not self._out and not self._done

    def next_call(self) -> Call | None:
        """None while nothing may be given out."""
        if self._again:
            return self._again.popleft()
        if self._ended or self._next >= self._turn + _OPEN:
            return None
        items: Items = []
        size = 0
        while len(items) < self._size and size < _MOST_CHARS:
            pair = next(self._pairs, None)
            if pair is None:
                self._ended = True
                break
            items.append(pair)
            size += len(pair[1].text) + 200
        if not items:
            return None
        call = Call(self._next, items)
        self._next += 1
        self._out += 1
        return call

    def finished(self, call: Call, results: tuple[list[Result], float]) -> None:
        """Keeps results; the next calls are as long as this one's time says."""
        self._done[call.number], seconds = results
        self._out -= 1
        fitting = len(call.items) * _CALL_S / max(seconds, 1e-4)
        fitting = min(max(fitting, self._size / 4), self._size * 2)  # one call's time is not that of all
        self._size = min(max(fitting, 1.0), _MOST_ITEMS)

    def again(self, calls: Iterable[Call], why: str) -> None:
        """Calls to be made once more; the items of one that was lost too often are unscored."""
        for call in calls:
            call.tries += 1
            if call.tries < _TRIES:
                self._again.append(call)
                continue
            error = f"VerifierError: no verdict from {_TRIES} actors: {why}"
            self._done[call.number] = [(None, [], error)] * len(call.items)
            self._out -= 1

    def in_turn(self) -> Iterator[list[Result]]:
        """What is finished, as far as nothing before it is open."""
        while self._turn in self._done:
            yield self._done.pop(self._turn)
            self._turn += 1
