"""The final comparison: one row per model, and whether the expected differences are observed."""

from __future__ import annotations

import dataclasses
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from r1lite.config.pipeline import PipelineConfig
from r1lite.evaluation.comparison import read_rows
from r1lite.evaluation.intervals import mean_rate, paired
from r1lite.nano import model_place
from r1lite.pipeline.graph import Graph
from r1lite.pipeline.steps import StepFiles
from r1lite.run.files import read_json
from verifiers import Completion, Problem, resolve

# A measure counts as kept if the lower end of its interval is at least this.
KEPT_WITHIN = 0.03
# Least share of the problems with a completion of enough words. With fewer, the language is that of a few remarks.
_WORDY = 0.5
_HEADINGS = {
    "accuracy": "accuracy (T=1)",
    "greedy": "greedy",
    "pass_at_k": "pass@k",
    "format": "format (T=1)",
    "language": "language (T=1)",
    "tokens": "tokens",
    "parameters": "parameters",
    "cpu_s": "CPU s",
    "cpu_s_in_all": "CPU s in all",
}
_SAMPLED = "Format is a rate of the sampled completions."
_SAMPLED_LANGUAGE = (
    "Format and language are rates of the sampled completions (language: of those whose form allows to find the "
    "thinking, and only where most problems have one of a few words or more)."
)
_NOTHING = "-"

Values = dict[str, dict[str, float]]  # measure -> problem -> value in [0, 1]


def compare(config: PipelineConfig, graph: Graph, folder: Path) -> dict[str, Any]:
    """The results and the cost of every row, and the observations."""
    values = {label: _values(StepFiles(folder, step).run) for label, step in graph.rows.items()}
    rows = {label: _row(graph, folder, label, values[label]) for label in graph.rows}
    observations = {label: _observe(given, values) for label, given in config.observations.items()}
    return {"rows": rows, "observations": observations, "intervals": "95 %, over problems"}


def markdown(results: Mapping[str, Any]) -> str:
    """The comparison as a Markdown page."""
    rows = results["rows"]
    columns = [key for key in _HEADINGS if any(_cell(key, row.get(key)) != _NOTHING for row in rows.values())]
    lines = [
        "# Comparison",
        "",
        "| | " + " | ".join(_HEADINGS[key] for key in columns) + " |",
        "|---|" + "---|" * len(columns),
        *(
            f"| {label} | " + " | ".join(_cell(key, row.get(key)) for key in columns) + " |"
            for label, row in rows.items()
        ),
        "",
        f"Rates in % with their 95 % intervals over problems: {_span(rows, 'problems')} answered greedily, "
        f"{_span(rows, 'sampled_problems')} sampled. "
        f"{_SAMPLED_LANGUAGE if 'language' in columns else _SAMPLED} "
        "CPU s: the row's own stage; in all: with all stages that it builds on.",
    ]
    if results["observations"]:
        lines += ["", "## Observations", ""]
        lines += [f"- **{label}**: {observed['text']}" for label, observed in results["observations"].items()]
    return "\n".join(lines) + "\n"


def _values(run: Path) -> Values:
    """One value per problem of each measure; none of the language if few completions have words."""
    language = resolve("language")
    wordy = 0
    values: Values = {"accuracy": {}, "greedy": {}, "format": {}, "language": {}}
    for rows in read_rows(run).values():
        for row in rows:
            at = row["problem"]
            problem = Problem(prompt=row["question"], answer=row["gold"], language="en", id=row["problem_id"])
            if row["greedy"] is not None and row["greedy"]["correct"] is not None:
                values["greedy"][at] = float(row["greedy"]["correct"])
            samples = [sample for sample in row["samples"] if sample["correct"] is not None]
            if samples:
                values["accuracy"][at] = fmean(float(sample["correct"]) for sample in samples)
                if formed := [sample["well_formed"] for sample in samples if sample["well_formed"] is not None]:
                    values["format"][at] = fmean(formed)
                verdicts = [language(problem, Completion(sample["text"])) for sample in samples]
                wordy += any(verdict.score is not None and verdict.reason != "short" for verdict in verdicts)
                if judged := [verdict.score for verdict in verdicts if verdict.score is not None]:
                    values["language"][at] = fmean(judged)
    return values if wordy >= _WORDY * len(values["accuracy"]) else {**values, "language": {}}


def _row(graph: Graph, folder: Path, label: str, values: Values) -> dict[str, Any]:
    step = graph.steps[graph.rows[label]]
    run = StepFiles(folder, step.name).run
    summary = read_json(run / "summary.json")
    (measured,) = summary["tasks"].values()
    source = step.inputs["model"]
    made = [name for name in graph.ancestors(source) if name in graph.steps]
    costs = {name: (StepFiles(folder, name).record() or {}).get("cpu_s", 0.0) for name in made}
    return {
        **{name: _rate(values[name]) for name in ("accuracy", "greedy", "format", "language")},
        "pass_at_k": [measured["pass_at_k"], *(measured["pass_at_k_interval"] or (None, None))],
        "k": measured["k"],
        "tokens": measured["mean_tokens"],
        "parameters": parameters(summary["model"]),
        "cpu_s": costs.get(source),
        "cpu_s_in_all": round(sum(costs.values()), 1) if costs else None,
        "model": source,
        "problems": measured["problems"],
        "sampled_problems": measured["sampled_problems"],
    }


def _observe(given: Mapping[str, str], values: Mapping[str, Values]) -> dict[str, Any]:
    """The paired difference `row` - `than` of a measure, and whether it is as wanted."""
    measure, wanted = given["measure"], given["wanted"]
    base, other = values[given["than"]][measure], values[given["row"]][measure]
    both = [problem for problem in base if problem in other]
    if not both:
        return {**given, "seen": None, "text": f"unknown: {measure} was not measured on the same problems"}
    before, after = [base[problem] for problem in both], [other[problem] for problem in both]
    found = paired(before, after)
    seen = {
        "higher": found.low > 0,
        "lower": found.high < 0,
        "kept": found.low >= -KEPT_WITHIN,
    }[wanted]
    text = (
        f"{'seen' if seen else '**not seen**'}: {measure} of {given['row']} {fmean(after):.1%}, of {given['than']} "
        f"{fmean(before):.1%}, difference {100 * found.difference:+.1f} points "
        f"({100 * found.low:+.1f} to {100 * found.high:+.1f}); wanted: {wanted}"
        + (f" within {KEPT_WITHIN:.0%}" if wanted == "kept" else "")
    )
    return {**given, "seen": seen, **dataclasses.asdict(found), "text": text}


def parameters(model: str) -> int | None:
    """Number of parameters in a folder's safetensors files, tied ones once; None if there are no such files."""
    folder = Path(model_place(model))
    total = 0
    for path in folder.glob("*.safetensors"):
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        total += sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    return total or None


def _rate(values: dict[str, float]) -> list[float] | None:
    if not values:
        return None
    rate = mean_rate(list(values.values()))
    return [rate.mean, rate.low, rate.high]


def _span(rows: Mapping[str, Any], key: str) -> str:
    """The number of problems of all rows, or the smallest and the largest number."""
    counts = [row[key] for row in rows.values()]
    return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else "none"


def _cell(key: str, value: Any) -> str:
    if value is None or value == [None, None, None]:
        return _NOTHING
    if isinstance(value, list):
        mean, low, high = value
        return f"{100 * mean:.1f} ({100 * low:.1f}-{100 * high:.1f})"
    if key == "parameters":
        return f"{value:,}"
    return f"{value:,.1f}" if key == "tokens" else f"{value:,.0f}"
