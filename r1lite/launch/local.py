"""`--on local`: runs ranks and engines as processes of this machine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from r1lite.launch.commands import Job, environment_of, rank_environment
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.process import LocalProcess, free_ports
from r1lite.launch.running import Running

_HOST = "127.0.0.1"


class LocalLauncher:
    """Starts the processes of a job.

    Args:
        folder: folder of the logs.
    """

    def __init__(self, job: Job, specs: Sequence[ProcessSpec], folder: Path) -> None:
        self._job, self._folder = job, folder
        self._ranks = [spec for spec in specs if spec.kind == "rank"]
        self.engines = [spec for spec in specs if spec.kind == "engine"]
        # Passed in the environment, because other users can see arguments.
        self.token = secrets.token_urlsafe(32) if self.engines else ""
        self._ports = dict(zip(self.engines, free_ports(len(self.engines)), strict=True))

    def start_engine(self, spec: ProcessSpec) -> tuple[Running, str]:
        """See `Launcher.start_engine`."""
        port = self._ports[spec]
        words = self._job.engine_words(_HOST, port)
        return self._start(spec, words, environment_of(spec, self.token)), f"http://{_HOST}:{port}"

    def start_ranks(self, urls: Sequence[str], *, again: bool) -> list[Running]:
        """See `Launcher.start_ranks`."""
        words = self._job.rank_words(urls, resume=again and self._job.has_begun())
        (port,) = free_ports(1)
        size = len(self._ranks)
        return [self._start(spec, words, rank_environment(spec, size, _HOST, port, self.token)) for spec in self._ranks]

    def _start(self, spec: ProcessSpec, words: Sequence[str], variables: dict[str, str]) -> Running:
        log = self._folder / spec.log
        return Running.begun(spec, log, lambda: LocalProcess(words, variables, log))

    def close(self) -> None:
        """Does nothing: the processes have ended, or end with this one."""
