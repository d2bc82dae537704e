"""trackio: W&B's API with a local store; `trackio show` displays it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r1lite.trackers import About


class Trackio:
    """A run of trackio, identified by the run directory's name and id."""

    def start(self, about: About) -> int | None:
        import trackio
        from trackio.sqlite_storage import SQLiteStorage

        name = f"{about.name}-{about.id}"
        held: int | None = SQLiteStorage.get_max_step_for_run(about.project, name)
        self._library, self._last = trackio, held or 0
        config = {key: value for key, value in about.config.items() if not key.startswith("_")}
        self._run: Any = trackio.init(
            project=about.project,
            name=name,
            config=config,
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        return held

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(metrics=dict(metrics), step=step)
        self._last = step

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        table = self._library.Table(columns=list(columns), data=[list(row) for row in rows], allow_mixed_types=True)
        self._run.log(metrics={"completions": table}, step=step)

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        if summary:
            self._run.log(metrics={f"end/{key}": value for key, value in summary.items()}, step=self._last)
        if findings:
            self._run.log(metrics={"findings": self._library.Markdown("\n\n".join(findings))}, step=self._last)
        self._run.finish()
