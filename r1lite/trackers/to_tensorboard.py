"""TensorBoard: writes event files to `tensorboard` in the run directory; `tensorboard --logdir RUNS` shows them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from r1lite.trackers import About

FOLDER = "tensorboard"


class TensorBoard:
    """Writes event files without TensorFlow and torch."""

    def start(self, about: About) -> int | None:
        from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._tensor, self._types = event_pb2, summary_pb2, tensor_pb2, types_pb2
        self._last = about.last_step or 0
        self._writer: Any = EventFileWriter(str(about.path / FOLDER))
        if about.last_step is not None:
            # Tells readers to drop events of a killed process from this step on.
            session = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._writer.add_event(self._made(about.last_step + 1, session_log=session))
        else:
            self._text("config", json.dumps(dict(about.config), indent=2, default=str), 0)
        return None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        values = [self._summary.Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._writer.add_event(self._made(step, summary=self._summary.Summary(value=values)))
        self._last = step

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._text("completions", json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1), step)

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        if summary:
            self.log(self._last, {f"end/{key}": value for key, value in summary.items()})
        for number, finding in enumerate(findings):
            self._text(f"findings/{number}", finding, self._last)
        self._writer.close()

    def _text(self, tag: str, text: str, step: int) -> None:
        """Adds a text, indented so that Markdown shows it as plain text."""
        indented = "\n".join(f"    {line}" for line in text.splitlines())
        about = self._summary.SummaryMetadata(plugin_data=self._summary.SummaryMetadata.PluginData(plugin_name="text"))
        tensor = self._tensor.TensorProto(
            dtype=self._types.DT_STRING, string_val=[indented.encode("utf-8", "backslashreplace")]
        )
        value = self._summary.Summary.Value(tag=f"{tag}/text_summary", metadata=about, tensor=tensor)
        self._writer.add_event(self._made(step, summary=self._summary.Summary(value=[value])))

    def _made(self, step: int, **what: Any) -> Any:
        return self._event.Event(wall_time=time.time(), step=step, **what)
