"""`arrivals.jsonl` of a run directory: the groups that were sampled ahead, in the order in which they were finished.

A line is on the disk before its group can be learnt from, so a run that was killed goes on with the same groups in the
same order. Lines that no checkpoint needs any more are removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from r1lite.run.files import write_text
from verifiers import Completion

ARRIVALS = "arrivals.jsonl"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A finished group."""

    number: int  # in the order in which groups were finished, from 0
    ticket: int  # in the order in which they were asked for, from 0
    problem: str  # id
    completions: tuple[Completion, ...]

    @property
    def version(self) -> int:
        """Of its oldest token."""
        return min(completion.policy_version for completion in self.completions)


class Arrivals:
    """The file. Only one process writes to it, from `begin` on."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, number: int) -> list[Arrival]:
        """Those from this number on; the next one that is appended follows on them.

        Lines that were cut short, or don't follow on one another up to this number, are removed. Raises OSError.
        """
        found: list[Arrival] = []
        for line in self._path.read_bytes().split(b"\n")[:-1] if self._path.exists() else ():
            arrival = _read(line)
            if arrival is None or (found and arrival.number != found[-1].number + 1):
                break
            found.append(arrival)
        if found and not found[0].number <= number <= found[-1].number + 1:
            found = []
        self._rewrite(found)
        return [arrival for arrival in found if arrival.number >= number]

    def append(self, arrival: Arrival) -> None:
        """Adds one; it is on the disk afterwards. Raises OSError."""
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(_line(arrival))
            file.flush()
            os.fsync(file.fileno())

    def forget(self, number: int) -> None:
        """Removes those before this number. Raises OSError."""
        lines = self._path.read_bytes().split(b"\n")[:-1]
        self._rewrite(arrival for arrival in map(_read, lines) if arrival is not None and arrival.number >= number)

    def _rewrite(self, arrivals: Iterable[Arrival]) -> None:
        write_text(self._path, "".join(map(_line, arrivals)))


def _line(arrival: Arrival) -> str:
    completions = [
        [c.text, c.token_ids, c.logprobs, c.finish_reason, c.policy_version, c.inserted, c.stretches]
        for c in arrival.completions
    ]
    return json.dumps([arrival.number, arrival.ticket, arrival.problem, completions], allow_nan=False) + "\n"


def _read(line: bytes) -> Arrival | None:
    """None for a line that was damaged."""
    try:
        number, ticket, problem, rows = json.loads(line)
        completions = tuple(
            Completion(
                text,
                tuple(ids),
                tuple(logprobs),
                reason,
                version,
                inserted=(start, end),
                stretches=tuple((first, of) for first, of in stretches),
            )
            for text, ids, logprobs, reason, version, (start, end), stretches in rows
        )
        return Arrival(int(number), int(ticket), str(problem), completions) if completions else None
    except (ValueError, TypeError, RecursionError):
        return None
