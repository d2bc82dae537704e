"""`r1lite forecast RUN...`: extrapolates accuracy from the evaluations of runs."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1lite.errors import UserError
from r1lite.evaluation.intervals import trials_of
from r1lite.report.read import Run, read_run
from r1lite.run.files import is_number
from r1lite.run.places import numbered_checkpoints
from verifiers.terminal import one_line

if TYPE_CHECKING:
    from r1lite.evaluation.sigmoid import Curve, Point

UNITS = ("tokens", "seconds", "flops")
METRICS = ("sampled_accuracy", "pass_at_1", "pass_at_k", "maj_at_k")
FEWEST = 6  # equals sigmoid.FEWEST, which can't be imported without numpy
_RESAMPLES, _MOST_POINTS = 1000, 400


@dataclass(frozen=True, slots=True)
class Forecast:
    """The curve of one run, or of several runs that only differ in their seed."""

    runs: tuple[str, ...]
    metric: str
    against: str
    points: tuple[tuple[Point, int, int], ...]  # (point, step, index of the run)
    curve: Curve

    def as_dict(self) -> dict[str, Any]:
        """Returns the forecast for JSON and the page."""
        points = [
            {**dataclasses.asdict(point), "error": point.error, "step": step, "run": run}
            for point, step, run in self.points
        ]
        return {
            "runs": list(self.runs),
            "metric": self.metric,
            "against": self.against,
            **dataclasses.asdict(self.curve),
            "points": points,
        }


def main(argv: Sequence[str]) -> int:
    """Prints the forecast of runs. Returns 0. Raises UserError if a path holds no run, or evaluations are missing."""
    parser = argparse.ArgumentParser(
        prog="r1lite forecast",
        description="Extrapolates accuracy: fits ScaleRL's curve R = R0 + (A - R0) / (1 + (C_mid / C)^B) to the "
        "evaluations of runs with --eval-every, with 95 % bootstrap intervals (arXiv:2510.13786). Runs that only "
        "differ in their seed are pooled.",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's directory, finished or not")
    parser.add_argument("--against", choices=UNITS, default="tokens", help="unit of compute (tokens)")
    parser.add_argument(
        "--metric", choices=METRICS, help=f"metric to fit ({METRICS[0]}, or {METRICS[1]} if that is missing)"
    )
    parser.add_argument("--each", action="store_true", help="fit each run separately")
    parser.add_argument(
        "--parameters", type=int, metavar="N", help="number of parameters of the model, for flops (from its checkpoint)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (0)")
    parser.add_argument("--json", action="store_true", help="print forecasts as JSON, one per line")
    options = parser.parse_args(argv)
    if options.parameters is not None and options.parameters < 1:
        raise UserError(f"--parameters must be >= 1, got {options.parameters}")
    if options.parameters is not None and options.against != "flops":
        raise UserError("--parameters is only used with --against flops: add it, or omit --parameters")
    if options.seed < 0:
        raise UserError(f"--seed must be >= 0, got {options.seed}")
    runs = [read_run(path) for path in options.runs]
    for group in [[run] for run in runs] if options.each else alike(runs):
        found = forecast(group, options.against, options.metric, parameters=options.parameters, seed=options.seed)
        print(json.dumps(found.as_dict()) if options.json else _text(found))
    return 0


def alike(runs: Sequence[Run]) -> list[list[Run]]:
    """Groups runs whose configurations only differ in the seed."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.like, []).append(run)
    return list(groups.values())


def forecast(
    runs: Sequence[Run],
    against: str = "tokens",
    metric: str | None = None,
    *,
    parameters: int | None = None,
    seed: int = 0,
) -> Forecast:
    """Fits a curve to the evaluations of these runs. Raises UserError if there are too few."""
    names = ", ".join(run.name for run in runs)
    if metric is None:
        metric = next((name for name in METRICS[:2] if all(_rates(run, name) for run in runs)), METRICS[0])
    measured: list[tuple[float, float, float, int, int]] = []  # compute, rate, trials, step, run
    for number, run in enumerate(runs):
        rates, compute = _rates(run, metric), _compute(run, against, parameters)
        measured += [(compute[step], *rate, step, number) for step, rate in rates.items() if step in compute]
    if len(measured) > _MOST_POINTS:
        measured = [measured[i * len(measured) // _MOST_POINTS] for i in range(_MOST_POINTS)]
    if (amounts := len({one[0] for one in measured})) < FEWEST:
        raise UserError(
            f"{names}: {amounts} evaluations of {metric}, but {FEWEST} are needed, including those before and after "
            "training: train with --eval-every N"
        )
    from r1lite.evaluation import sigmoid  # imported here, since it needs numpy

    points = [(sigmoid.Point(*one[:3]), *one[3:]) for one in measured]
    curve = sigmoid.fit([point for point, _, _ in points], resamples=_RESAMPLES, seed=seed)
    return Forecast(tuple(run.name for run in runs), metric, against, tuple(points), curve)


def _rates(run: Run, metric: str) -> dict[int, tuple[float, float]]:
    """Returns step -> (rate, number of trials); malformed entries are ignored."""
    found: dict[int, tuple[float, float]] = {}
    for one in run.evaluations:
        rate, interval, step = one.get(metric), one.get(f"{metric}_interval"), one.get("step")
        if not (isinstance(interval, list) and len(interval) == 2 and isinstance(step, int) and step >= 0):
            continue
        low, high = interval
        with contextlib.suppress(ValueError):
            if is_number(rate) and is_number(low) and is_number(high):
                found[step] = float(rate), trials_of(low, high, rate)
    return found


def _compute(run: Run, against: str, parameters: int | None) -> dict[int, float]:
    """Returns step -> cumulative compute."""
    key = "step_s" if against == "seconds" else "tokens"
    factor = _flops_a_token(run, parameters) if against == "flops" else 1.0
    lines = [line for line in run.record.metrics if isinstance(line["step"], int)]
    costs = [max(0.0, float(line[key])) * factor if key in line else 0.0 for line in lines]
    return {0: 0.0, **{line["step"]: sum_ for line, sum_ in zip(lines, itertools.accumulate(costs), strict=True)}}


def _flops_a_token(run: Run, parameters: int | None) -> float:
    """Returns FLOPs per sampled token: 2 N, 6 N per use in learning (arXiv:2001.08361, sec. 2.1), 2 N for a reference.

    Attention, prompts, a critic and evaluations are not counted. Groups without signal count as learnt from.
    """
    size = parameters or _num_parameters(run)
    config = run.record.config
    times = config.get("updates_per_rollout")
    passes = times if isinstance(times, int) and times > 0 else 1
    reference = isinstance(config.get("kl_coef"), int | float) and config["kl_coef"] > 0
    return float(size) * (2 + 6 * passes + 2 * reference)


def _num_parameters(run: Run) -> int:
    """Returns the number of parameters of the newest checkpoint, from the shapes in its files. Raises UserError."""
    from safetensors import SafetensorError, safe_open

    numbered = numbered_checkpoints(run.path / "checkpoints")
    files = sorted(numbered[-1][1].glob("model*.safetensors")) if numbered else []
    size = 0
    try:
        for file in files:
            with safe_open(file, framework="numpy") as weights:
                size += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UserError(f"{run.path}: its checkpoint can't be read ({error}): pass --parameters N") from error
    if size == 0:
        raise UserError(f"{run.path} has no checkpoint to count the model's parameters in: pass --parameters N")
    return size


def _text(made: Forecast) -> str:
    curve, unit = made.curve, _amounts(made)
    pooled = f" ({len(made.runs)} runs)" if len(made.runs) > 1 else ""
    last = max(point.compute for point, _, _ in made.points)
    names = one_line(", ".join(made.runs))
    lines = [
        f"{names}{pooled}: {made.metric}, {len(made.points)} evaluations up to {unit(last)}",
        f"  R0     before      {_percent(curve.start)}",
    ]
    if curve.end is None or curve.midpoint is None or curve.exponent is None:
        lines += [f"  A      not named: {curve.missing}", f"  C_mid  at least    {unit(curve.midpoint_at_least)}"]
    else:
        middle = curve.midpoint
        lines += [
            f"  A      ends at     {_percent(curve.end)}",
            f"  C_mid  half way    {unit(middle.value)} ({unit(middle.low)} to {unit(middle.high)})",
            f"  B      steepness   {curve.exponent.value:.3g} ({curve.exponent.low:.3g} to {curve.exponent.high:.3g})",
            *(f"         at {unit(amount):<16} {_percent(rate)}" for amount, rate in curve.ahead),
        ]
    if curve.scatter > 1.5:
        lines.append(
            f"  points scatter {curve.scatter:.1f} x their own noise about this curve; the intervals include this"
        )
    return "\n".join(lines)


def _amounts(made: Forecast) -> Any:
    unit = {"tokens": "tokens", "seconds": "s", "flops": "FLOPs"}[made.against]

    def text(amount: float) -> str:
        for size, letter in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if amount >= size and (made.against == "flops" or size <= 1e9):
                return f"{amount / size:.3g} {letter} {unit}"
        return f"{amount:.3g} {unit}"

    return text


def _percent(rate: Any) -> str:
    return f"{rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%})"
