"""MLflow: sends to the tracking server or store of MLFLOW_TRACKING_URI."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from r1lite.trackers import About

_PARAM_CHARS = 500  # maximum length of a parameter's value on older MLflow servers
_BATCH = 100  # MLflow's limit of parameters per request


class MLflow:
    """A run in the experiment named by the project; a tag with the run directory's id identifies it."""

    def start(self, about: About) -> int | None:
        import mlflow
        from mlflow.entities import Metric, Param

        self._metric = Metric
        self._client: Any = mlflow.MlflowClient()
        experiment = self._client.get_experiment_by_name(about.project)
        where = experiment.experiment_id if experiment else self._client.create_experiment(about.project)
        known = self._client.search_runs([where], f"tags.`r1lite.id` = '{about.id}'", max_results=1)
        if known:
            self._id = known[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
            held = self._client.get_metric_history(self._id, "step_s")
            return max((metric.step for metric in held), default=None)
        made = self._client.create_run(where, run_name=about.name, tags={"r1lite.id": about.id, "stage": about.stage})
        self._id = made.info.run_id
        params = [Param(key, str(value)[:_PARAM_CHARS]) for key, value in about.config.items()]
        for start in range(0, len(params), _BATCH):
            self._client.log_batch(self._id, params=params[start : start + _BATCH])
        return None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        self._client.log_batch(self._id, [self._metric(name, value, now, step) for name, value in metrics.items()])

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        rows_ = [dict(zip(columns, row, strict=True)) for row in rows]
        self._client.log_dict(self._id, {"completions": rows_}, f"completions/step-{step:06d}.json")

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        if summary:
            self.log(0, {f"end/{key}": value for key, value in summary.items()})
        if findings:
            self._client.log_text(self._id, "\n\n".join(findings), "findings.txt")
        self._client.set_terminated(self._id, "FINISHED" if summary else "KILLED")
