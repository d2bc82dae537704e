"""What one sees while a run goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from r1lite.run.console import make_console
from verifiers.terminal import one_line

_PLAIN_EVERY_S = 10.0  # between plain lines, unless --verbose
_SMOOTHING = 0.8  # of the numbers on the live table

_COLUMNS = [
    ("token_loss", "loss", "{:.4f}"),
    ("epoch", "epoch", "{:.2f}"),
    ("reward", "reward", "{:.3f}"),
    ("accuracy", "accuracy", "{:.1%}"),
    ("format_rate", "format", "{:.1%}"),
    ("completion_tokens", "tokens", "{:.1f}"),
    ("entropy", "entropy", "{:.3f}"),
    ("groups_without_signal", "no signal", "{:.0%}"),
    ("step_s", "s/step", "{:.2f}"),
]


class Display:
    """Prints to standard output.

    Args:
        loudness: -1 quiet, 0 normal, 1 verbose.
    """

    def __init__(self, *, loudness: int = 0) -> None:
        self.loudness = loudness
        self.console = make_console()
        self.live = self.console.is_terminal and loudness == 0
        self._view: Live | None = None
        self._bar: Progress | None = None
        self._task: Any = None
        self._smooth: dict[str, float] = {}
        self._history: list[tuple[int, dict[str, Any]]] = []
        self._printed_at = 0.0

    def line(self, label: str, text: str) -> None:
        """One line of the head: what was chosen."""
        if self.loudness >= 0:
            self.console.print(_labelled(label, text))

    def say(self, text: str = "") -> None:
        """A line for the reader."""
        if self.loudness >= 0:
            self.console.print(text)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Begins a stretch of work with a progress bar."""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn() if total > 1 else TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._task = self._bar.add_task(one_line(what), total=total, completed=done)
        if self.live:
            self._view = Live(self._bar, console=self.console, refresh_per_second=4)
            self._view.start()
        elif self.loudness >= 0:
            self.console.print(f"{what} ...")
        self._printed_at = time.monotonic()

    def progress(self, done: float) -> None:
        """Moves the bar."""
        assert self._bar is not None
        self._bar.update(self._task, completed=done)

    def step(self, step: int, total: int, metrics: dict[str, Any]) -> None:
        """Shows a step's metrics."""
        self.progress(step)
        for key, _, _ in _COLUMNS:
            if metrics.get(key) is not None:
                before = self._smooth.get(key, metrics[key])
                self._smooth[key] = _SMOOTHING * before + (1 - _SMOOTHING) * metrics[key]
        if self._view is not None:
            every = max(1, total // 10)
            if step % every == 0 or step == 1:
                self._history.append((step, dict(self._smooth)))
            self._view.update(self._table(step))
            return
        due = time.monotonic() - self._printed_at >= _PLAIN_EVERY_S or step in (1, total)
        if self.loudness > 0 or (self.loudness == 0 and due):
            self._printed_at = time.monotonic()
            left = self._smooth.get("step_s", 0.0) * (total - step)
            cells = [
                f"{name} {form.format(metrics[key])}" for key, name, form in _COLUMNS if metrics.get(key) is not None
            ]
            self.console.print(f"step {step}/{total}  {'  '.join(cells)}  left {_duration(left)}")

    def finish(self) -> None:
        """Ends the stretch of work; safe to call when none is under way."""
        if self._view is not None:
            self._view.stop()
            self._view = None
        self._bar = None

    def summary(self, summary: dict[str, Any], where: Sequence[tuple[str, str]]) -> None:
        """Before and after, examples, and where everything lies; --quiet shows this too."""
        before, after = summary.get("eval_before"), summary["eval_after"]
        table = Table(title="Test problems", title_justify="left", title_style="bold")
        for heading in ("", *(["before"] if before else []), "after" if before else "measured"):
            table.add_column(heading, justify="left" if not heading else "right")
        shown = [evaluation for evaluation in (before, after) if evaluation]
        k = after["k"]
        table.add_row(f"accuracy (greedy, {after['problems']} problems)", *(_rate(e, "pass_at_1") for e in shown))
        table.add_row(f"pass@{k} (T=1, {after['sampled_problems']} problems)", *(_rate(e, "pass_at_k") for e in shown))
        if after["maj_at_k"] is not None:
            table.add_row(f"maj@{after['votes']} (T=1)", *(_rate(e, "maj_at_k") for e in shown))
        table.add_row("accuracy (T=1)", *(_rate(e, "sampled_accuracy") for e in shown))
        table.add_row("format", *(f"{e['format_rate']:.1%}" for e in shown))
        table.add_row("tokens a completion", *(f"{e['mean_tokens']:.1f}" for e in shown))
        self.console.print(table)
        if self.loudness >= 0:
            self.examples(before, after)
        for label, text in where:
            self.console.print(_labelled(label, text))

    def examples(self, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
        """What the model says to the first problem."""
        self.console.print()
        self.console.print(_labelled("One problem ", " ".join(after["examples"]["question"].split())))
        for name, evaluation in (("before", before), ("after" if before else "measured", after)):
            for example in evaluation["examples"]["completions"] if evaluation else []:
                mark = ("right", "green") if example["correct"] else ("wrong", "red")
                text = " ".join(example["text"].split())
                text = text if len(text) <= 600 else f"{text[:400]} [...] {text[-150:]}"
                self.console.print(Text.assemble(f"  {name} ({example['sampling']}, ", mark, f"): {one_line(text)}"))
        self.console.print()

    def _table(self, step: int) -> RenderableType:
        table = Table(box=None, pad_edge=False)
        table.add_column("step", justify="right")
        columns = [column for column in _COLUMNS if column[0] in self._smooth]
        for _, name, _ in columns:
            table.add_column(name, justify="right")
        newest = [] if self._history and self._history[-1][0] == step else [(step, self._smooth)]
        for at, values in [*self._history, *newest]:
            table.add_row(str(at), *(form.format(values[key]) if key in values else "" for key, _, form in columns))
        assert self._bar is not None
        return Group(table, Text(), self._bar)


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{one_line(label):<9} ", "bold"), one_line(text))


def _rate(evaluation: dict[str, Any], key: str) -> str:
    low, high = evaluation[f"{key}_interval"]
    return f"{evaluation[key]:.1%} ({100 * low:.1f}-{100 * high:.1f})"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
