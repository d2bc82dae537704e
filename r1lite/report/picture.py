"""Draws the curves of runs as one SVG image, for a README or a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.report import series
from r1lite.report.read import Run, read_run
from r1lite.run.files import plausible, replaced_file
from r1lite.run.metrics import BY_NAME, METRICS, Metric

# The most useful panels; a run without one skips it.
_PANELS = ("Reward", "Accuracy", "Length", "Entropy", "Loss", "Margin")
_SMOOTHING = 0.8  # weight of the past in the moving average
_WIDTH, _HEIGHT, _GAP = 300, 190, 16
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 30, 8, 24  # inside a panel
_COLORS = ("#2f62cf", "#cf7417", "#16895c", "#b23a88", "#7553cc", "#3a8fa3")
_POINTS = 600  # maximum number of points per line


def write_svg(run_paths: Sequence[Path], out: Path) -> None:
    """Writes the image. Raises UserError if no run has a step."""
    runs = [read_run(place) for place in run_paths]
    text = picture(runs)
    try:
        with replaced_file(out, alone=False) as aside:  # a run that ends may write it too
            aside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out}: can't be written: {error.strerror or error}") from error


def picture(runs: Sequence[Run]) -> str:
    """Returns an SVG with up to four columns of panels. Raises UserError if no run has a step."""
    curves = [series.columns(run.record.metrics) for run in runs]
    found = [(title, names) for title in _PANELS if (names := _names(title, curves))]
    if not found:
        raise UserError(f"{runs[0].path}: no step was recorded yet, so there is nothing to draw")
    across = min(4, len(found))
    down = math.ceil(len(found) / across)
    legend = 22 if len(runs) > 1 else 0
    width, height = across * (_WIDTH + _GAP) - _GAP, down * (_HEIGHT + _GAP) - _GAP + legend
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="11">',
        # Legible on white and on black: GitHub shows images on both.
        "<style>text{fill:#7b8490}.t{font-size:13px;font-weight:600}.a{stroke:#7b849055;fill:none}</style>",
    ]
    for number, (title, names) in enumerate(found):
        x, y = number % across * (_WIDTH + _GAP), number // across * (_HEIGHT + _GAP)
        parts.append(f'<g transform="translate({x},{y})">{_panel(title, names, runs, curves)}</g>')
    for number, run in enumerate(runs if legend else ()):
        x = _LEFT + number * 160
        parts.append(
            f'<rect x="{x}" y="{height - 13}" width="12" height="4" fill="{_COLORS[number % len(_COLORS)]}"/>'
            f'<text x="{x + 18}" y="{height - 7}">{_safe(run.name[:22])}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def smoothed(values: Sequence[float | None], weight: float = _SMOOTHING) -> list[float | None]:
    """Returns the moving average (sum of w^k v) / (sum of w^k) over the values so far; missing values are skipped."""
    total = norm = 0.0
    found: list[float | None] = []
    for value in values:
        if value is not None:
            total, norm = weight * total + (1 - weight) * value, weight * norm + (1 - weight)
        found.append(total / norm if norm else None)
    return found


def _names(title: str, curves: Sequence[dict[str, Any]]) -> list[str]:
    names = [one.name for one in METRICS if one.panel == title]
    return [name for name in names if any(name in one["series"] for one in curves)]


def _panel(title: str, names: Sequence[str], runs: Sequence[Run], curves: Sequence[dict[str, Any]]) -> str:
    lines: list[tuple[str, str, bool, Sequence[int], Sequence[float | None]]] = []  # color, dashes, smooth?, points
    for number, curve in enumerate(curves):
        for place, name in enumerate(names):
            values = curve["series"].get(name)
            if values is None:
                continue
            color = _COLORS[(number if len(runs) > 1 else place) % len(_COLORS)]
            dashes = ' stroke-dasharray="4 3"' if place and len(runs) > 1 else ""
            is_smooth = BY_NAME[name].smooth and len(values) > 12
            lines.append((color, dashes, is_smooth, curve["steps"], values))
    marks = _evaluations(runs) if title == "Accuracy" else []
    known = [value for *_, values in lines for value in values if value is not None] + [
        y for _, _, *ys in marks for y in ys
    ]
    steps = [step for *_, xs, _ in lines for step in (xs[0], xs[-1])]
    low, high = min(known), max(known)
    metric = BY_NAME[names[0]]
    if metric.unit == "share":
        low, high = (min(0.0, low) if low < 0.3 else low), (max(1.0, high) if high > 0.85 else high)
    if high - low < 1e-12:
        low, high = low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    first, last = min(steps), max(max(steps), min(steps) + 1)

    def x(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (step - first) / (last - first)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * (value - low) / (high - low)

    unit = {"tokens": ", tokens", "nats": ", nats per token", "s": ", s"}.get(metric.unit, "")
    parts = [f'<text class="t" x="0" y="14" fill="#7b8490">{_safe(title)}{unit}</text>']
    for tick in ticks(low, high):
        parts.append(f'<path class="a" d="M{_LEFT},{y(tick):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y(tick) + 4:.1f}" text-anchor="end">{_label(metric, tick)}</text>')
    for tick in ticks(first, last):
        if tick == int(tick):
            parts.append(f'<text x="{x(tick):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{tick:,.0f}</text>')
    for color, dashes, is_smooth, xs, values in lines:
        if is_smooth:
            parts.append(_line(xs, values, x, y, f'stroke="{color}" stroke-opacity=".3" stroke-width="1"'))
        drawn = smoothed(values) if is_smooth else values
        parts.append(_line(xs, drawn, x, y, f'stroke="{color}" stroke-width="2"{dashes}'))
    for step, color, value, lowest, highest in marks:
        parts.append(f'<path d="M{x(step):.1f},{y(lowest):.1f}V{y(highest):.1f}" stroke="{color}" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3.5" fill="{color}"/>')
    return "".join(parts)


def _evaluations(runs: Sequence[Run]) -> list[tuple[int, str, float, float, float]]:
    """Returns greedy accuracy on the test problems with its interval: (step, color, value, low, high)."""
    found = []
    for number, run in enumerate(runs):
        color = _COLORS[number % len(_COLORS)] if len(runs) > 1 else _COLORS[1]
        for one in run.evaluations:
            interval = one.get("pass_at_1_interval")
            if not isinstance(interval, list) or len(interval) != 2 or not run.record.metrics:
                continue
            numbers = plausible([one["step"], one.get("pass_at_1"), *interval])
            if all(isinstance(number, int | float) for number in numbers):
                step, value, low, high = numbers
                found.append((max(step, 1), color, value, low, high))
    return found


def _line(xs: Sequence[float], values: Sequence[float | None], x: Any, y: Any, style: str) -> str:
    """Returns a path of at most about _POINTS points: the lowest and highest value of each interval of steps."""
    width = max(1, math.ceil(len(xs) / (_POINTS // 2)))
    points = []
    for start in range(0, len(xs), width):
        known = [
            (value, step)
            for step, value in zip(xs[start : start + width], values[start : start + width], strict=True)
            if value is not None
        ]
        points += sorted({min(known)[::-1], max(known)[::-1]}) if known else []
    path = "".join(f"{'L' if place else 'M'}{x(step):.1f},{y(value):.1f}" for place, (step, value) in enumerate(points))
    return f'<path d="{path}" fill="none" stroke-linejoin="round" {style}/>' if path else ""


def ticks(low: float, high: float) -> list[float]:
    """Returns three to five round numbers in [low, high]."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 4.5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _label(metric: Metric, value: float) -> str:
    return f"{100 * value:.0f}%" if metric.unit == "share" else f"{value:,.4g}"


def _safe(text: str) -> str:
    return escape("".join(char if char.isprintable() else "?" for char in text))
