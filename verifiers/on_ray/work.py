"""Work for actors: split into calls, which are repeated if they are lost."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.core import Completion, Problem, VerifierError
from verifiers.pool import OF_COMPLETION, OF_PROBLEM
from verifiers.worker import Result

_CALL_S = 0.5  # intended time of a call: short enough for balance, long enough to hide the cost of a call
_CALLS_S = 400  # calls submitted per second, at most: each costs the command a millisecond, and rows need the rest
_FIRST_ITEMS, _MOST_ITEMS, _MOST_CHARS = 16, 512, 1 << 20  # of a call
# Rows in flight, or finished while the oldest call is not; `_OPEN_EACH` counts for each of very many actors. The limit
# bounds memory and keeps actors busy while one call waits for programs that run into their deadline of ten seconds.
_OPEN, _OPEN_EACH = 1 << 17, 1 << 9
_TRIES = 3  # for a call whose actors are lost while they execute it

Row = tuple[tuple[Any, ...], tuple[Any, ...]]  # the fields of a problem and of a completion


@dataclass(eq=False, slots=True)
class Call:
    """One request to an actor."""

    number: int  # index of the call
    job: Any
    size: int = 1  # items of the job
    limit_s: float = math.inf  # time after which it counts as lost
    tries: int = 0
    alone: bool = False  # its actor may have no other call
    began: float = 0.0


def lost(calls: Sequence[Call]) -> Iterator[tuple[Call, bool]]:
    """Yields each call of a lost actor, and whether it was lost too often; only the first call was in progress.

    A result can be lost with its actor, so the first call may have been finished, and the next one may have ended the
    actor. Each call is repeated alone, so that the one at fault becomes known.
    """
    for index, call in enumerate(calls):
        call.alone = True
        call.tries += index == 0
        yield call, call.tries == _TRIES


class Jobs:
    """Jobs of one call each, whose results are taken as they arrive."""

    def __init__(self, jobs: Iterator[Any]) -> None:
        self._jobs = enumerate(jobs)
        self._again = collections.deque[Call]()
        self._done = list[tuple[int, Any]]()
        self._out, self._ended = 0, False

    @property
    def is_done(self) -> bool:
        return self._ended and not self._out

    def next_call(self, *, beside: bool = False) -> Call | None:
        """See `Work`."""
        if self._again:
            return None if beside else self._again.popleft()
        found = None if self._ended else next(self._jobs, None)
        if found is None:
            self._ended = True
            return None
        self._out += 1
        return Call(*found)

    def finished(self, call: Call, result: Any) -> None:
        """Keeps a result."""
        self._out -= 1
        self._done.append((call.number, result))

    def again(self, calls: Sequence[Call], why: str) -> None:
        """Raises VerifierError for a job that was lost too often."""
        for call, is_over in lost(calls):
            if is_over:
                raise VerifierError(f"job {call.number + 1} was lost with {_TRIES} actors, one after the other: {why}")
            self._again.append(call)

    def taken(self) -> Iterator[tuple[int, Any]]:
        """Yields (number of the job, result) for the jobs that were finished since the last call."""
        while self._done:
            yield self._done.pop()


class Scoring:
    """Completions to score, split into calls; the results are returned in order.

    A call takes half a second, or longer if very many actors would need too many calls per second.

    Args:
        number: index of the reward.
        timeout_s: deadline of an item.
        actors: number of actors.
    """

    def __init__(
        self, pairs: Iterator[tuple[Problem, Completion]], number: int = 0, timeout_s: float = math.inf, actors: int = 1
    ) -> None:
        self._call_s = max(_CALL_S, actors / _CALLS_S)
        self._most_open = max(_OPEN, actors * _OPEN_EACH)
        self._pairs, self._number, self._timeout_s = pairs, number, timeout_s
        self._again = collections.deque[Call]()
        self._done: dict[int, list[Result]] = {}
        self._next = self._turn = self._out = self._open = 0
        self._ended = False
        self._size: float = _FIRST_ITEMS

    @property
    def is_done(self) -> bool:
        return self._ended and not self._out and not self._done

    def next_call(self, *, beside: bool = False) -> Call | None:
        """See `Work`."""
        if self._again:
            return None if beside else self._again.popleft()
        if self._ended or self._open >= self._most_open:
            return None
        rows: list[Row] = []
        size = 0
        while len(rows) < self._size and size < _MOST_CHARS:
            pair = next(self._pairs, None)
            if pair is None:
                self._ended = True
                break
            rows.append((OF_PROBLEM(pair[0]), OF_COMPLETION(pair[1])))
            size += len(pair[1].text) + 200
        if not rows:
            return None
        call = Call(self._next, (self._number, rows), len(rows), len(rows) * self._timeout_s)
        self._next += 1
        self._out += 1
        self._open += len(rows)
        return call

    def finished(self, call: Call, results: tuple[list[Result], float]) -> None:
        """Stores results; the size of the next calls follows from this one's time."""
        self._done[call.number], seconds = results
        self._out -= 1
        fitting = call.size * self._call_s / max(seconds, 1e-4)
        fitting = min(max(fitting, self._size / 4), self._size * 2)  # one call's time is not that of all
        self._size = min(max(fitting, 1.0), _MOST_ITEMS)

    def again(self, calls: Sequence[Call], why: str) -> None:
        """Takes back lost calls; the items of one that was lost too often are unscored."""
        for call, is_over in lost(calls):
            if not is_over:
                self._again.append(call)
                continue
            error = f"VerifierError: no verdict from {_TRIES} actors: {why}"
            self._done[call.number] = [(None, [], error)] * call.size
            self._out -= 1

    def in_turn(self) -> Iterator[list[Result]]:
        """Yields finished results, up to the first call that is not finished."""
        while self._turn in self._done:
            results = self._done.pop(self._turn)
            self._open -= len(results)
            self._turn += 1
            yield results
