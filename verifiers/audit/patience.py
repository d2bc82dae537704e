"""Keeps an audit finite for any verifier: a clock for the whole audit, and an end to calls that hang."""

from __future__ import annotations

import collections
import time
from collections.abc import Sequence

from verifiers.audit.cases import Case
from verifiers.pool import LATE, Pool
from verifiers.reward import Score

HANGS = 3  # in one family; further ones show nothing new


class Clock:
    """The audit's time limit, in seconds of wall time."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._end = time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._end


def is_late(score: Score) -> bool:
    """True if the call was ended at its deadline."""
    return LATE in score.error


def scores(pool: Pool, cases: Sequence[Case], clock: Clock) -> list[Score | None]:
    """Returns a score for every case in order; None for cases that were skipped because the time was up or too many
    cases of their family hung. A call that was ended at its deadline is made once more."""
    found: list[Score | None] = [None] * len(cases)
    families: dict[str, list[int]] = collections.defaultdict(list)
    for place, case in enumerate(cases):
        families[case.family].append(place)
    for places in families.values():
        if clock.is_over:
            break
        late: list[int] = []
        stream = pool.map([cases[place].pair for place in places])
        for place, score in zip(places, stream, strict=True):
            found[place] = score
            late += [place] if is_late(score) else []
            if len(late) >= HANGS or clock.is_over:
                break
        stream.close()
        for place in late:  # the machine may have stood still; what hangs does so again
            if clock.is_over:
                break
            (found[place],) = pool.map([cases[place].pair])
    return found
