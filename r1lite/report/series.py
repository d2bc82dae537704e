"""Curves: the metrics of a run as columns, averaged and rounded for the page."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from r1lite.run.files import plausible
from r1lite.run.metrics import BY_NAME, METRICS

_POINTS = 4000  # maximum per curve; a longer run is shown by means over equal intervals of steps
_DIGITS = 5


def columns(metrics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns `steps`, `series` by metric (including `parts.NAME`), cumulative `tokens` and `seconds`, and `reasons` by
    verifier and reason. A missing value is None."""
    width = math.ceil(len(metrics) / _POINTS) if metrics else 1
    stretches = [metrics[start : start + width] for start in range(0, len(metrics), width)]
    names = [one.name for one in METRICS if not one.derived and any(one.name in line for line in metrics)]
    parts = dict.fromkeys(name for line in metrics for name in _parts(line))
    series = {name: [_mean([line.get(name) for line in part]) for part in stretches] for name in names}
    series |= {
        f"parts.{name}": [_mean([_parts(line).get(name) for line in part]) for part in stretches] for name in parts
    }
    if "tokens" in series and "step_s" in series:
        series["tokens_per_s"] = [_speed(part) for part in stretches]
    flat = [name for name, values in series.items() if all(value is None for value in values)]
    return {
        "steps": [part[-1]["step"] for part in stretches],
        "width": width,
        "series": {name: values for name, values in series.items() if name not in flat},
        "tokens": _running([sum(line.get("tokens") or 0 for line in part) for part in stretches]),
        "seconds": _running([sum(line.get("step_s") or 0.0 for line in part) for part in stretches]),
        "reasons": _reasons([(line["step"], line["reasons"]) for line in metrics if "reasons" in line], width),
    }


def described() -> dict[str, dict[str, Any]]:
    """Returns the description of each metric for the page."""
    keys = ("label", "unit", "means", "panel", "better", "smooth", "scale")
    return {name: {key: getattr(one, key) for key in keys} for name, one in BY_NAME.items()}


def _parts(line: dict[str, Any]) -> dict[str, Any]:
    parts = line.get("parts")
    return parts if isinstance(parts, dict) else {}


def _mean(values: Sequence[Any]) -> float | None:
    known = [value for value in values if isinstance(value, int | float)]
    return _short(statistics.fmean(known)) if known else None


def _speed(part: Sequence[dict[str, Any]]) -> float | None:
    seconds = sum(line.get("step_s") or 0.0 for line in part)
    speed = plausible(sum(line.get("tokens") or 0 for line in part) / seconds) if seconds else None
    return None if speed is None else _short(speed)


def _running(values: Sequence[float]) -> list[float]:
    return [_short(total, 7) for total in itertools.accumulate(values)]


def _short(value: float, digits: int = _DIGITS) -> float:
    number = float(f"{value:.{digits}g}")
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def _reasons(reasons: Sequence[tuple[int, dict[str, dict[str, int]]]], width: int) -> dict[str, Any]:
    width = max(width, math.ceil(len(reasons) / 400) if reasons else 1)
    stretches = [reasons[start : start + width] for start in range(0, len(reasons), width)]
    names = dict.fromkeys(name for _, by_name in reasons for name in by_name)
    found: dict[str, Any] = {"steps": [part[-1][0] for part in stretches], "by": {}}
    for verifier in names:
        kinds = dict.fromkeys(reason for _, by_name in reasons for reason in by_name.get(verifier, {}))
        found["by"][verifier] = {
            reason: [sum(by_name.get(verifier, {}).get(reason, 0) for _, by_name in part) for part in stretches]
            for reason in kinds
        }
    return found
