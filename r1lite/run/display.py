"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import collections
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from r1lite.run.console import make_console
from r1lite.run.metrics import BY_NAME, RIGHT, columns
from r1lite.run.progress import REPORTER
from verifiers.registry import VERIFIERS
from verifiers.terminal import one_line

_PLAIN_EVERY_S = 10.0  # between plain lines, unless --verbose
_ROWS = 10  # of the live table, in addition to the newest row
_BARS = "▁▂▃▄▅▆▇█"
_SAME = 1e-9  # a reward component this close to the accuracy is the same verdict and gets no column
_LEFT_STEPS = 20  # the latest steps, which the remaining time is estimated from


class Display:
    """Prints to standard output.

    Args:
        loudness: -1 quiet, 0 normal, 1 verbose.
        silent: print nothing at all; with several ranks only one prints.
    """

    def __init__(self, *, loudness: int = 0, silent: bool = False) -> None:
        self.loudness = loudness
        self.console = make_console(quiet=silent)
        self.live = self.console.is_terminal and loudness == 0 and not silent
        self._view: Live | None = None
        self._bar: Progress | None = None
        self._task: Any = None
        self._what, self._total, self._began = "", 1, 0.0  # the current phase
        self._since: list[dict[str, float]] = []  # metrics of the steps since the last row
        self._rows: list[tuple[str, dict[str, float]]] = []
        self._course: dict[str, list[float]] = {}  # metrics shown as sparklines: one value per step
        self._seconds: collections.deque[float] = collections.deque(maxlen=_LEFT_STEPS)
        self._own: set[str] = set()  # reward components that are neither the accuracy nor the format
        self._headed: list[str] = []  # columns that have been explained
        self._printed_at = self._scored_at = 0.0

    def line(self, label: str, text: str) -> None:
        """Prints a labelled line of the header, such as a chosen setting."""
        if self.loudness >= 0:
            self.console.print(_labelled(label, text))

    def say(self, text: str = "") -> None:
        """Prints a line."""
        if self.loudness >= 0:
            self.console.print(text)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Starts a phase with a progress bar."""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn() if total > 1 else TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._what, self._total, self._began = what, total, time.monotonic()
        REPORTER.note(what, done, total)
        self._task = self._bar.add_task(one_line(what), total=total, completed=done)
        if self.live:
            self._view = Live(self._bar, console=self.console, refresh_per_second=4)
            self._view.start()
        elif self.loudness >= 0:
            self.console.print(f"{what} ...")
        self._printed_at = time.monotonic()

    def progress(self, done: float) -> None:
        """Updates the progress bar; without a terminal, prints a line every ten seconds."""
        self._move(done)
        now, total = time.monotonic(), self._total
        if not self.live and self.loudness >= 0 and done and now - self._printed_at >= _PLAIN_EVERY_S:
            left = (now - self._began) * (total - done) / done
            self.console.print(f"{self._what}: {done / total:.0%}, {duration(left)} left")
            self._printed_at = now

    def scored(self, done: int, total: int) -> None:
        """Shows how many completions have their verdicts, while the phase waits for the others."""
        text = f"{self._what}: scoring, {done:,} of {total:,} completions"
        if self.live and self._bar is not None:
            self._bar.update(self._task, description=one_line(text))
            return
        now = time.monotonic()
        if self.loudness >= 0 and now - max(self._printed_at, self._scored_at) >= _PLAIN_EVERY_S:
            self._scored_at = now
            self.console.print(text)

    def _move(self, done: float) -> None:
        assert self._bar is not None
        self._bar.update(self._task, completed=done, description=one_line(self._what))
        REPORTER.note(self._what, done, self._total)

    def step(self, step: int, total: int, metrics: dict[str, Any]) -> None:
        """Shows the metrics of a step; a row shows means over the steps that it names."""
        self._move(step)
        values = self._shown(metrics)
        self._since.append(values)
        self._seconds.append(float(metrics.get("step_s") or 0.0))
        for name in ("reward", "accuracy", "token_loss"):
            if name in values:
                self._course.setdefault(name, []).append(values[name])
        first = step - len(self._since) + 1
        named = (f"{first}-{step}" if first < step else f"{step}", _over(self._since))
        self._explain(list(named[1]))
        if self._view is not None:
            self._view.update(self._table([*self._rows, named], metrics))
            if step % max(1, total // _ROWS) == 0 or step == 1:
                self._rows.append(named)
                self._since = []
            return
        due = time.monotonic() - self._printed_at >= _PLAIN_EVERY_S or step in (1, total)
        if self.loudness > 0 or (self.loudness == 0 and due):
            self._printed_at = time.monotonic()
            self._since = []
            cells = [f"{_heading(name)} {_cell(name, value)}" for name, value in named[1].items()]
            left = f"left {duration(statistics.fmean(self._seconds) * (total - step))}"
            steps = f"{'step' if first == step else 'steps'} {named[0]}/{total}"
            self.console.print(Text(one_line("  ".join((steps, *cells, left, *_told(metrics))))))

    def finish(self) -> None:
        """Ends the current phase, if any."""
        if self._view is not None:
            self._view.stop()
            self._view = None
        self._bar = None

    def summary(self, summary: dict[str, Any], where: Sequence[tuple[str, str]]) -> None:
        """Prints results before and after, examples and file locations, also with --quiet."""
        before, after = summary.get("eval_before"), summary["eval_after"]
        if after is not None:
            self._evaluations(before, after)
            if self.loudness >= 0 and summary.get("learnt"):
                self.learnt(summary["learnt"])
            elif self.loudness >= 0:
                self.examples(before, after)
        for label, text in where:
            self.console.print(_labelled(label, text))

    def _evaluations(self, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
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
        for label, key in (("format (greedy)", "format_rate"), ("format (T=1)", "sampled_format_rate")):
            if all(e.get(key) is not None for e in shown):
                table.add_row(label, *(percent(e[key]) for e in shown))
        table.add_row("tokens per completion", *(f"{e['mean_tokens']:.1f}" for e in shown))
        self.console.print(table)

    def learnt(self, pairs: Sequence[dict[str, Any]]) -> None:
        """Prints answers to some problems before and after training."""
        self.console.print()
        for pair in pairs:
            self.console.print(_labelled("Problem", " ".join(pair["question"].split())))
            for name in ("before", "after"):
                self._example(name, pair[name])
        self.console.print()

    def _example(self, name: str, answer: dict[str, Any]) -> None:
        mark = ("right", "green") if answer["correct"] else ("wrong", "red")
        text = " ".join(answer["text"].split())
        text = text if len(text) <= 600 else f"{text[:400]} [...] {text[-150:]}"
        self.console.print(Text.assemble(f"  {name} (", mark, f"): {one_line(text)}"))

    def examples(self, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
        """Prints the answers to the first problem."""
        self.console.print()
        self.console.print(_labelled("One problem ", " ".join(after["examples"]["question"].split())))
        for name, evaluation in (("before", before), ("after" if before else "measured", after)):
            for example in evaluation["examples"]["completions"] if evaluation else []:
                self._example(f"{name}, {example['sampling']}", example)
        self.console.print()

    def _shown(self, metrics: Mapping[str, Any]) -> dict[str, float]:
        """Returns the metrics of the step that have a column: those of METRICS, and the reward's components."""
        found = {one.name: metrics[one.name] for one in columns() if metrics.get(one.name) is not None}
        known = [metrics.get("accuracy"), metrics.get("format_rate")]
        for name, value in (metrics.get("parts") or {}).items():
            if value is not None and not any(other is not None and abs(value - other) < _SAME for other in known):
                self._own.add(name)
            if value is not None and name in self._own:
                found[f"parts.{name}"] = value
        return found

    def _explain(self, names: list[str]) -> None:
        """Explains each column once."""
        new = [name for name in names if name not in self._headed]
        if new and self.loudness >= 0:
            pairs = "margin" in names  # of the chosen and the rejected answer
            said = "; ".join(f"{_heading(name)}: {BY_NAME[name].explained(pairs)}" for name in new if name in BY_NAME)
            start = "means over the steps of a row; " if not self._headed else ""
            if said:
                self.line("columns", start + said)
        self._headed += new

    def _table(self, rows: Sequence[tuple[str, dict[str, float]]], metrics: Mapping[str, Any]) -> RenderableType:
        table = Table(box=None, pad_edge=False)
        table.add_column("steps", justify="right")
        names = list(dict.fromkeys(name for _, values in rows for name in values))
        for name in names:
            table.add_column(one_line(_heading(name)), justify="right")
        for steps, values in rows:
            table.add_row(steps, *(_cell(name, values[name]) if name in values else "" for name in names))
        lines = [f"{_heading(name)} {_sparkline(values)}" for name, values in self._course.items()]
        assert self._bar is not None
        return Group(table, Text(), Text(one_line("  ".join((*lines, *_told(metrics))))), self._bar)


def _over(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the metrics of a row: means over its steps, or the value after the last one."""
    names = sorted(dict.fromkeys(name for step in steps for name in step), key=lambda name: name == "step_s")
    values = {name: [step[name] for step in steps if name in step] for name in names}
    last = {name for name in names if name in BY_NAME and BY_NAME[name].last}
    return {name: of[-1] if name in last else statistics.fmean(of) for name, of in values.items()}


def _heading(name: str) -> str:
    return BY_NAME[name].column or BY_NAME[name].label if name in BY_NAME else name.removeprefix("parts.")


def _cell(name: str, value: float) -> str:
    return BY_NAME[name].text(value) if name in BY_NAME else f"{value:.3g}"


def _told(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the speed and the most frequent reasons of wrong answers."""
    said = []
    if metrics.get("tokens") and metrics.get("step_s"):
        said.append(f"{metrics['tokens'] / metrics['step_s']:,.0f} tokens/s")
    if metrics.get("unscored"):
        said.append(f"unscored {metrics['unscored']:.1%}")
    counted: Mapping[str, Mapping[str, int]] = metrics.get("reasons") or {}
    names = sorted(counted, key=lambda name: name not in VERIFIERS)  # the meaning of other verifiers' words is unknown
    every = [{reason: n for reason, n in counted[name].items() if reason not in RIGHT} for name in names]
    if wrong := next(filter(None, every), None):
        most = sorted(wrong.items(), key=lambda item: -item[1])[:3]
        said.append("wrong: " + ", ".join(f"{reason} {count}" for reason, count in most))
    return said


def _sparkline(values: Sequence[float], width: int = 20) -> str:
    """Draws a metric over time: means over at most `width` intervals, scaled from lowest to highest."""
    size = math.ceil(len(values) / width)
    means = [statistics.fmean(values[start : start + size]) for start in range(0, len(values), size)]
    low, high = min(means), max(means)
    if high - low < _SAME:
        return _BARS[0] * len(means)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in means)


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{one_line(label):<9} ", "bold"), one_line(text))


def _rate(evaluation: dict[str, Any], key: str) -> str:
    low, high = evaluation[f"{key}_interval"]
    return f"{evaluation[key]:.1%} ({100 * low:.1f}-{100 * high:.1f})"


def percent(rate: float | None) -> str:
    """Formats a rate, which is None if nothing was judged."""
    return "-" if rate is None else f"{rate:.1%}"


def duration(seconds: float) -> str:
    """Formats a duration as minutes and seconds, or with hours: "1:05", "2:00:07"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
