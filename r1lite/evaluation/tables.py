"""The tables that `r1lite eval` prints: tasks, breakdowns by difficulty and source, and a comparison."""

from __future__ import annotations

from typing import Any

from rich.table import Table

_FEWEST = 10  # fewest problems for which an interval of a difference is shown
_MOST_PARTS = 15  # values of difficulty or source shown; summary.json has all


def results(summary: dict[str, Any]) -> Table:
    """A column per task of an evaluation: rates in percent with their 95 % intervals."""
    tasks, temperature = summary["tasks"], summary["temperature"]
    table = _table(f"Test problems, {summary['model']}")
    for name in ("", *tasks):
        table.add_column(name, justify="right" if name else "left")
    every = list(tasks.values())
    sampled = f"T={temperature:g}"
    for label, key in (
        ("greedy", "pass_at_1"),
        (f"accuracy, {sampled}", "sampled_accuracy"),
        (f"{_headed('pass', every, 'k')}, {sampled}", "pass_at_k"),
        (f"{_headed('maj', every, 'votes')}, {sampled}", "maj_at_k"),
    ):
        table.add_row(label, *(_rate(found, key) for found in every))
    table.add_row("format", *(f"{found['format_rate']:.1%}" for found in every))
    table.add_row("tokens", *(f"{found['mean_tokens']:.1f}" for found in every))
    table.add_row("problems", *(f"{found['problems']:,}" for found in every))
    table.add_row("... sampled", *(f"{found['sampled_problems']:,}" for found in every))
    table.add_row("unscored completions", *(str(found["unscored"]) for found in every))
    return table


def parts(task: str, measured: dict[str, Any]) -> list[Table]:
    """Results by difficulty and by source, if the problems have them."""
    tables = []
    for key in ("difficulty", "source"):
        rows = measured[f"by_{key}"]
        if not 1 < len(rows) <= _MOST_PARTS:
            continue
        table = _table(f"{task} by {key}")
        for name in (key, "problems", "greedy", "sampled"):
            table.add_column(name, justify="left" if name == key else "right")
        for value, part in rows.items():
            table.add_row(value, str(part["problems"]), _rate(part, "pass_at_1"), _rate(part, "sampled_accuracy"))
        tables.append(table)
    return tables


def comparison(against: str, compared: dict[str, dict[str, Any]]) -> Table:
    """This model compared with the other one on the same problems: a column per task and way of sampling."""
    shown = [
        (task, kind, both[kind]) for task, both in compared.items() for kind in ("greedy", "sampled") if both[kind]
    ]
    table = _table(f"Compared with {against}, problem by problem")
    for name in ("", *(f"{task}, {kind}" for task, kind, _ in shown)):
        table.add_column(name, justify="right" if name else "left")
    every = [one for *_, one in shown]
    table.add_row("that one", *(f"{one['against']:.1%}" for one in every))
    table.add_row("this one", *(f"{one['this']:.1%}" for one in every))
    table.add_row("difference", *(f"{100 * one['difference']:+.1f}" for one in every))
    table.add_row("... 95 %", *map(_interval, every))
    table.add_row("better / worse on", *(f"{one['b_only']} / {one['a_only']} of {one['problems']}" for one in every))
    table.add_row("p", *(f"{one['p_value']:.2g}" for one in every))
    table.add_row("test", *(one["test"] for one in every))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def _headed(name: str, every: list[dict[str, Any]], key: str) -> str:
    sizes = {found[key] for found in every}
    return f"{name}@{sizes.pop()}" if len(sizes) == 1 else f"{name}@k"


def _rate(measured: dict[str, Any], key: str) -> str:
    if measured[key] is None:
        return "-"
    low, high = measured[f"{key}_interval"]
    return f"{measured[key]:.1%} ({100 * low:.1f}-{100 * high:.1f})"


def _interval(measured: dict[str, Any]) -> str:
    """The interval as text, unless there are too few or only equal differences: then a bootstrap is too narrow."""
    if measured["problems"] < _FEWEST or measured["low"] == measured["high"]:
        return "too few"
    return f"{100 * measured['low']:+.1f} to {100 * measured['high']:+.1f}"
