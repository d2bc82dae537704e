"""Reads a run of any stage, finished or not, from its directory. The content of its files is untrusted: every value may
have the wrong type."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from r1lite.doctor import Record, diagnose
from r1lite.doctor import read as read_record
from r1lite.run.environment import read_environment
from r1lite.run.files import check_links, is_locked, json_or_empty
from r1lite.run.records import read_records

_OWN = ("seed", "out", "threads", "quiet", "verbose")  # settings that don't affect results


@dataclass(slots=True)
class Run:
    """One run directory."""

    path: Path
    name: str
    stage: str
    status: str  # "finished", "running", "stopped"
    record: Record
    summary: dict[str, Any]  # for a data set, its manifest; {} if there is none yet
    evaluations: list[dict[str, Any]]  # all evaluations, each with its `step`
    findings: list[dict[str, str]]
    environment: dict[str, Any]

    @property
    def like(self) -> str:
        """A key that is equal for runs whose configurations only differ in seed, path and display."""
        config = {key: value for key, value in self.record.config.items() if value is not None and key not in _OWN}
        return hashlib.sha256(repr(sorted(config.items(), key=str)).encode()).hexdigest()[:12]

    @property
    def last_step(self) -> int:
        """Number of finished steps."""
        return int(self.record.metrics[-1]["step"]) if self.record.metrics else 0


def is_pipeline(path: Path) -> bool:
    """Returns True for a folder of `r1lite r1`."""
    return (path / "stages").is_dir() and not (path / "config.yaml").exists()


def read_run(path: Path, name: str | None = None) -> Run:
    """Reads the directory of a finished, running or killed run. Raises UserError if it holds none, or a link leads out
    of it."""
    check_links(path)
    record = read_record(path)
    environment = json_or_empty(path / "environment.json")
    stage = str(read_environment(path).get("stage") or "run")
    manifest = json_or_empty(path / "manifest.json")
    summary = manifest or json_or_empty(path / "summary.json")
    before, after = json_or_empty(path / "eval_before.json"), json_or_empty(path / "eval_after.json")
    lines = [(line["step"], line) for line in read_records(path / "evaluations.jsonl")]
    found = [(0, before), *lines, (int(record.metrics[-1]["step"]) if record.metrics else 0, after)]
    return Run(
        path=path,
        name=name or path.name,
        stage=stage,
        status="finished" if summary else "running" if is_locked(path) else "stopped",
        record=record,
        summary=summary,
        evaluations=[{**evaluation, "step": step} for step, evaluation in found if evaluation],
        findings=[asdict(finding) for finding in diagnose(record)] if record.metrics else [],
        environment=environment,
    )


def command_of(run: Run) -> str:
    """Returns the command line that started the run."""
    argv = run.environment.get("argv")
    if not isinstance(argv, list) or not argv:
        return ""
    return shlex.join([Path(str(argv[0])).name, *map(str, argv[1:])])
