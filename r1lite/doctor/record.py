"""Reads a run's directory: metrics by step, smoothed over windows, with the uncertainty of rates."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.run.files import plausible, read_bytes
from r1lite.run.metrics import BY_NAME, OTHER_KEYS
from r1lite.run.records import read_records
from verifiers.yaml_text import read_yaml


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that was found."""

    name: str  # short fixed word: "no_signal", "truncated", ...
    what: str  # one sentence
    evidence: str  # numbers, with their steps
    change: str  # suggested change

    def __str__(self) -> str:
        return f"{self.name}: {self.what}\n  evidence  {self.evidence}\n  change    {self.change}"


_WINDOW = 10  # steps, at most; a quarter of a short run
_NUMBERS = ("group_size", "prompts_per_step", "kl_coef", "kl_target", "eval_problems", "max_completion_tokens")
_SURE = 3.0  # standard errors
_KNOWN = {*BY_NAME, *OTHER_KEYS}
_ALIKE = 0.4  # correlation of two completions of a problem; nano's is 0.16 early in a run and 0.44 late


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive steps."""

    lines: Sequence[dict[str, Any]]
    known: Mapping[str, float | None] = field(default_factory=dict)  # means that were computed before

    def mean(self, key: str) -> float | None:
        """Mean of a metric over the steps that have it; "parts.math" reads a nested value."""
        assert key.partition(".")[0] in _KNOWN, key
        if key in self.known:
            return self.known[key]
        values = [value for line in self.lines if (value := _at(line, key)) is not None]
        return statistics.fmean(values) if values else None

    def highest(self, key: str) -> float | None:
        """Maximum of a metric over the steps that have it."""
        return max((value for line in self.lines if (value := _at(line, key)) is not None), default=None)

    @property
    def steps(self) -> str:
        """The steps as text."""
        first, last = self.lines[0]["step"], self.lines[-1]["step"]
        return f"step {first}" if first == last else f"steps {first}-{last}"


@dataclass(frozen=True, slots=True)
class Record:
    """The known data of a run."""

    path: Path
    config: dict[str, Any]
    metrics: list[dict[str, Any]]
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    _noise: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def width(self) -> int:
        """Number of steps in a window."""
        return max(1, min(_WINDOW, len(self.metrics) // 4))

    @property
    def first(self) -> Window:
        """The first steps."""
        return Window(self.metrics[: self.width])

    @property
    def last(self) -> Window:
        """The last steps."""
        return Window(self.metrics[-self.width :])

    @property
    def whole(self) -> Window:
        """All steps."""
        return Window(self.metrics)

    def windows(self) -> list[Window]:
        """The run as windows; the last one is `last`."""
        width = self.width
        starts = range(len(self.metrics) % width, len(self.metrics), width)
        return [Window(self.metrics[start : start + width]) for start in starts]

    def means_to_end(self, key: str) -> list[float | None]:
        """The metric's mean from each step to the last one, in one pass."""
        total, count, found = 0.0, 0, []
        for line in reversed(self.metrics):
            if (value := _at(line, key)) is not None:
                total, count = total + value, count + 1
            found.append(total / count if count else None)
        return found[::-1]

    def error_of_rate(self, rate: float, steps: int | None = None) -> float:
        """Standard error of a rate over `steps` (default: a window's), given that a group's completions correlate."""
        group = max(1, int(self.config.get("group_size") or 1))
        completions = max(1, int(self.config.get("prompts_per_step") or 16)) * group * (steps or self.width)
        effective = completions / (1 + (group - 1) * _ALIKE)
        rate = min(max(rate, 0.0), 1.0)
        return math.sqrt(max(rate * (1 - rate), 0.01) / effective)

    def noise(self, key: str) -> float:
        """Standard deviation of a metric's noise from step to step, without its trend over many steps.

        1.4826 median(|x_t+1 - x_t|) / sqrt(2): equals the standard deviation for white noise, and is robust against a
        few jumps (Rousseeuw and Croux 1993, doi:10.1080/01621459.1993.10476408, sec. 1).
        """
        if key not in self._noise:  # asked for again at each step that may be a fall
            values = [value for line in self.metrics if (value := _at(line, key)) is not None]
            steps = [abs(b - a) for a, b in itertools.pairwise(values)]
            self._noise[key] = 1.4826 * statistics.median(steps) / math.sqrt(2) if steps else 0.0
        return self._noise[key]

    def error(self, key: str, *windows: Window) -> float:
        """Standard error of the difference of a rate or the reward between windows (for one window: of its mean).

        The larger of the sampling error for the number of completions and the noise between steps.
        """
        noise, total = self.noise(key), 0.0
        for window in windows:
            steps = len(window.lines)
            mean = window.mean(key)
            total += max(self.error_of_rate(0.0 if mean is None else mean, steps) ** 2, noise**2 / max(1, steps))
        return math.sqrt(total)

    def fell(self, key: str) -> bool:
        """True if the metric is lower in the last window than in the first one, beyond noise."""
        change = self.changed(key)
        return change is not None and change[0] - change[1] > _SURE * self.error(key, self.first, self.last)

    def rose(self, key: str) -> bool:
        """True if the metric is higher in the last window than in the first one, beyond noise."""
        change = self.changed(key)
        return change is not None and change[1] - change[0] > _SURE * self.error(key, self.first, self.last)

    def changed(self, key: str) -> tuple[float, float] | None:
        """A metric's means over the first and the last window; None if the run is too short to compare them."""
        if len(self.metrics) < 8:
            return None
        before, after = self.first.mean(key), self.last.mean(key)
        return None if before is None or after is None else (before, after)


def read(path: Path) -> Record:
    """The record of a run directory. Raises UserError if it contains no run."""
    if not (path / "config.yaml").exists():
        runs = sorted(place.parent for inside in ("*", "stages/*") for place in path.glob(f"{inside}/config.yaml"))
        hint = f"; name one of those in it, such as {runs[0]}" if runs else ""
        raise UserError(f"{path} contains no run (no config.yaml){hint}")
    try:
        config = read_yaml(read_bytes(path / "config.yaml"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}/config.yaml can't be read: {error}") from error
    metrics, evaluations = _numbers_of(path / "metrics.jsonl"), _numbers_of(path / "evaluations.jsonl", depth=0)
    metrics = [{key: value for key, value in line.items() if _has_its_form(key, value)} for line in metrics]
    return Record(path, _believed(config) if isinstance(config, dict) else {}, metrics, evaluations)


def _believed(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without invalid numbers and names, which get their defaults."""
    return {
        key: value
        for key, value in plausible(config).items()
        if (key not in _NUMBERS or _is_number(value)) and (key != "model" or isinstance(value, str))
    }


def _numbers_of(path: Path, depth: int = 3) -> list[dict[str, Any]]:
    """The numbers in the lines of a file of records, and in objects of this depth."""
    return [_numbers(line, depth) for line in read_records(path) if _is_number(line["step"])]


def _has_its_form(key: str, value: Any) -> bool:
    """True for `reasons` with numbers by name for each verifier, `parts` with numbers by name, and other numbers."""
    depth = {"reasons": 2, "parts": 1}.get(key, 0)
    values = [value]
    for _ in range(depth):
        if not all(isinstance(one, dict) for one in values):
            return False
        values = [inner for one in values for inner in one.values()]
    return not any(isinstance(one, dict) for one in values)


def _numbers(values: dict[str, Any], depth: int) -> dict[str, Any]:
    found = {}
    for key, value in values.items():
        if isinstance(value, dict) and depth:
            found[key] = _numbers(value, depth - 1)
        elif _is_number(value):
            found[key] = value
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and plausible(value) is not None


def _at(line: dict[str, Any], key: str) -> float | None:
    value: Any = line
    for part in key.split(".", 1):
        value = value.get(part) if isinstance(value, dict) else None
    return value if _is_number(value) else None
