"""`arrivals.jsonl` of a run directory: the groups that were sampled ahead, in the order in which they were finished.

A line is written to disk before its group can be learnt from, so a killed run resumes with the same groups in the same
order. Lines that no checkpoint needs any more are removed.
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

    number: int  # position in the order in which groups were finished, from 0
    ticket: int  # position in the order in which groups were requested, from 0
    problem: str  # its id
    completions: tuple[Completion, ...]

    @property
    def version(self) -> int:
        """The policy version of its oldest token."""
        return min(completion.policy_version for completion in self.completions)


class Arrivals:
    """Reads and writes the file. From `begin` on, only one process writes to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, number: int) -> list[Arrival]:
        """Returns the arrivals from `number` on; `append` continues after them.

        Truncated lines, and lines that are not consecutive up to `number`, are removed from the file. Raises OSError.
        """
        kept: list[Arrival] = []
        for line in self._path.read_bytes().split(b"\n")[:-1] if self._path.exists() else ():
            arrival = _read(line)
            if arrival is None or (kept and arrival.number != kept[-1].number + 1):
                break
            kept.append(arrival)
        if kept and not kept[0].number <= number <= kept[-1].number + 1:
            kept = []
        self._rewrite(kept)
        return [arrival for arrival in kept if arrival.number >= number]

    def append(self, arrival: Arrival) -> None:
        """Appends an arrival and syncs the file to disk. Raises OSError."""
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(_line(arrival))
            file.flush()
            os.fsync(file.fileno())

    def forget(self, number: int) -> None:
        """Removes the arrivals before `number`. Raises OSError."""
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
    """Parses a line; returns None if it is damaged."""
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
