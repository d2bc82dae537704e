"""What `r1lite eval` prints: a table of tasks, parts by difficulty and source, and a comparison."""

from __future__ import annotations

from typing import Any

from rich.table import Table

_MOST_PARTS = 15  # values of difficulty or source shown; more stand in summary.json


def results(tasks: dict[str, dict[str, Any]], temperature: float) -> Table:
    """A row a task: rates in percent with their 95 % intervals."""
    table = _table("Test problems")
    every = list(tasks.values())
    columns = [("greedy", "pass_at_1"), (f"T={temperature:g}", "sampled_accuracy")]
    columns += [(_headed("pass", every, "k"), "pass_at_k"), (_headed("maj", every, "votes"), "maj_at_k")]
    for name in ("task", "problems", *(name for name, _ in columns), "format", "tokens", "unscored"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for task, found in tasks.items():
        counts = f"{found['problems']:,}"
        if found["sampled_problems"] != found["problems"]:
            counts += f" / {found['sampled_problems']:,}"
        rates = (_rate(found, key) for _, key in columns)
        tail = (f"{found['format_rate']:.1%}", f"{found['mean_tokens']:.1f}", str(found["unscored"]))
        table.add_row(task, counts, *rates, *tail)
    return table


def parts(task: str, found: dict[str, Any]) -> list[Table]:
    """By difficulty and by source, where the problems say which they are."""
    tables = []
    for key in ("difficulty", "source"):
        rows = found[f"by_{key}"]
        if not 1 < len(rows) <= _MOST_PARTS:
            continue
        table = _table(f"{task} by {key}")
        for name in (key, "problems", "greedy", "sampled"):
            table.add_column(name, justify="left" if name == key else "right")
        for value, part in rows.items():
            table.add_row(value, str(part["problems"]), _rate(part, "pass_at_1"), _rate(part, "sampled_accuracy"))
        tables.append(table)
    return tables


def comparison(against: str, found: dict[str, dict[str, Any]]) -> Table:
    """This model beside the other one, on the same problems."""
    table = _table(f"Compared with {against}, problem by problem")
    for name in ("task", "", "that", "this", "difference", "p", "better on", "worse on", "test"):
        table.add_column(name, justify="left" if name in ("task", "", "test") else "right")
    for task, both in found.items():
        for kind in ("greedy", "sampled"):
            one = both[kind]
            if one is not None:
                table.add_row(
                    task,
                    kind,
                    f"{one['against']:.1%}",
                    f"{one['this']:.1%}",
                    f"{100 * one['difference']:+.1f} ({100 * one['low']:+.1f} to {100 * one['high']:+.1f})",
                    f"{one['p_value']:.2g}",
                    str(one["b_only"]),
                    str(one["a_only"]),
                    one["test"],
                )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def _headed(name: str, every: list[dict[str, Any]], key: str) -> str:
    sizes = {found[key] for found in every}
    return f"{name}@{sizes.pop()}" if len(sizes) == 1 else f"{name}@k"


def _rate(found: dict[str, Any], key: str) -> str:
    if found[key] is None:
        return "-"
    low, high = found[f"{key}_interval"]
    return f"{found[key]:.1%} ({100 * low:.1f}-{100 * high:.1f})"
