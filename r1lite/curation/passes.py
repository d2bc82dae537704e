"""Numbered jobs for a set, done by processes of this machine or by actors on a cluster. Their results are files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from r1lite.curation.near import Comparing, Pairing
from r1lite.curation.scan import Plan, Scanner
from r1lite.curation.sources import Block

Job = Block | Pairing | Comparing
Numbered = tuple[int, Any]
Do = Callable[[Sequence[Numbered]], Iterator[int]]  # does jobs, and yields the number of each finished job


class Doer(Protocol):
    """Does jobs, in this process or in each worker process or actor."""

    def __call__(self, number: int, job: Any, /) -> None:
        """Does the job and writes its results."""

    def close(self) -> None:
        """Ends the processes that it started."""


# Opens workers for the jobs of a doer, which write to the folder.
Open = Callable[[Callable[[], Doer], Path], AbstractContextManager[Do]]


class Passes:
    """Does the jobs of all passes over a source."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder

    @functools.cached_property
    def _scanner(self) -> Scanner:
        return Scanner(self._plan, self._folder)

    def __call__(self, number: int, job: Job) -> None:
        if isinstance(job, Pairing | Comparing):
            job(self._folder)
        else:
            self._scanner(number, job)

    def close(self) -> None:
        """Ends the verifiers' processes."""
        if "_scanner" in self.__dict__:
            self._scanner.close()
