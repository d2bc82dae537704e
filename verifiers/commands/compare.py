"""`python -m verifiers compare A B`: shows where two results of `score --out`, of two rewards or versions, disagree."""

from __future__ import annotations

import argparse
import collections
import itertools
from pathlib import Path
from typing import Any

from verifiers.commands import results
from verifiers.commands.shared import count_or_zero, finite, table
from verifiers.terminal import one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("a", type=Path, metavar="A", help="results of `score --out`")
    parser.add_argument("b", type=Path, metavar="B", help="results of the same rows under another reward or version")
    parser.add_argument(
        "--show", type=count_or_zero, default=10, metavar="N", help="number of disagreements shown (10)"
    )
    parser.add_argument("--tolerance", type=finite, default=1e-9, help="largest difference of rewards that agree")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: they agree everywhere; 1: they don't; 2: they are not results of the same rows."""
    for path in (options.a, options.b):
        if not path.is_file():
            raise ValueError(f"{path}: no such file; A and B are results of `python -m verifiers score --out`")
    same = count = 0
    kinds: collections.Counter[tuple[str, str]] = collections.Counter()
    reasons: collections.Counter[tuple[str, str, str]] = collections.Counter()
    shown: list[str] = []
    a: Any
    b: Any
    for a, b in itertools.zip_longest(results.read(options.a), results.read(options.b)):
        for path, row in ((options.a, a), (options.b, b)):
            if row is None:
                raise ValueError(f"{path} ends after {count} rows; finish it with the same `score` command")
        if (a["row"], a["id"]) != (b["row"], b["id"]):
            raise ValueError(
                f"row {a['row']} (id {a['id']}) of {options.a} corresponds to row {b['row']} (id {b['id']})"
            )
        count += 1
        kinds[_kind(a["reward"]), _kind(b["reward"])] += 1
        if agree(a["reward"], b["reward"], options.tolerance):
            same += 1
            continue
        why = differing(a["verdicts"], b["verdicts"])
        reasons.update(why)
        if len(shown) < options.show:
            parts = ", ".join(f"{name}: {x} | {y}" for name, x, y in why) or a.get("error") or b.get("error") or ""
            shown.append(one_line(f"  row {a['row']} (id {a['id']}): {a['reward']} | {b['reward']}   {parts}"))
    print(f"{count:,} rows, {same:,} with the same reward, {count - same:,} differ")
    if count != same:
        body = [(x, y, f"{n:,}") for (x, y), n in kinds.most_common() if n]
        print("\n" + table((f"A {options.a.name}", f"B {options.b.name}", "rows"), body))
        print("\n" + table(("verifier", "A", "B", "rows"), [(*key, f"{n:,}") for key, n in reasons.most_common(20)]))
        print("\nfor example\n" + "\n".join(shown))
    return 0 if count == same else 1


def agree(a: float | None, b: float | None, tolerance: float) -> bool:
    """True if the rewards are equal within the tolerance, or both are None."""
    return a is b or (a is not None and b is not None and abs(a - b) <= tolerance)


def differing(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Returns (verifier, A's score and reason, B's) for each verifier that differs."""
    found = []
    for name in {**a, **b}:
        x, y = (f"{v[name]['score']} {v[name]['reason']}" if name in v else "-" for v in (a, b))
        if x != y:
            found.append((name, x, y))
    return found


def _kind(reward: float | None) -> str:
    return "unscored" if reward is None else f"{reward:.2g}"
