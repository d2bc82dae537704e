"""Functions shared by the commands: options of a reward, tables, progress, exit codes."""

from __future__ import annotations

import argparse
import collections
import json
import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.reward import Reward
from verifiers.terminal import one_line, raw

_EVERY_S = 0.5
_ERRORS = 100  # number of different errors that are counted, besides _OTHERS
_OTHERS = "other errors"
_PLACE = re.compile(r"^.*?:\d+: ")  # of a row that can't be read
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))""")
_ALIKE = 120  # characters by which errors are counted together
_SHOWN = 240  # characters of an error that are shown: its end says where it was raised
_LARGEST = 1_000_000_000  # largest number on the command line


def count(text: str) -> int:
    """Parses an argument that is a whole number >= 1."""
    return _whole(text, 1)


def count_or_zero(text: str) -> int:
    """Parses an argument that is a whole number >= 0."""
    return _whole(text, 0)


def port(text: str) -> int:
    """Parses an argument that is a port; 0 stands for any free one."""
    return _whole(text, 0, 65_535)


def _whole(text: str, least: int, most: int = _LARGEST) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"it must be a whole number from {least} to {most:,}, got {text[:40]!r}")
    return value


def finite(text: str) -> float:
    """Parses an argument that is a number, neither NaN nor infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"it must be a number, got {text[:40]!r}")
    return value


def positive(text: str) -> float:
    """Parses an argument that is a number above 0."""
    value = finite(text)
    if not 0 < value <= _LARGEST:
        raise argparse.ArgumentTypeError(f"it must be above 0 and at most {_LARGEST:,}, got {text[:40]!r}")
    return value


def add_reward(parser: argparse.ArgumentParser) -> None:
    """Adds --reward, --options, --workers and --timeout."""
    parser.add_argument("--reward", required=True, help='formula over verifiers, such as "math + 0.1*format"')
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds --options, --workers, --timeout and --memory."""
    parser.add_argument(
        "--options",
        default="{}",
        metavar="JSON",
        help='options of the verifiers by name, as JSON or a .json/.yaml file: \'{"format": {"policy": "lenient"}}\'',
    )
    parser.add_argument(
        "--workers", type=count_or_zero, default=None, help="number of processes; default: one per core; 0: none"
    )
    parser.add_argument("--timeout", type=positive, default=30.0, metavar="S", help="deadline of one completion (30)")
    parser.add_argument("--memory", type=count, default=4096, metavar="MIB", help="private memory of a process (4096)")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Adds --trust."""
    parser.add_argument(
        "--trust", action="store_true", help="import what files in DIR name beyond the verifiers that ship with this"
    )


def read_options(text: str) -> dict[str, dict[str, Any]]:
    """Parses the verifiers' options. Raises ValueError."""
    path = Path(text)
    if text.endswith((".json", ".yaml", ".yml")):
        if not path.exists():
            raise ValueError(f"--options {text}: no such file")
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".json":
            from verifiers.yaml_text import read_yaml

            found = read_yaml(text) or {}
            found = found.get("verifiers", found) if isinstance(found, dict) else found
            return _checked(found)
    return _checked(json_of_options(text))


def json_of_options(text: str) -> Any:
    """Parses the text of --options. Raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=rows.unrepeated)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"--options is not JSON: {error}") from error


def need_folders(*files: Path | None) -> None:
    """Raises ValueError, before any work is done, for a file whose folder is missing."""
    for path in files:
        if path and not path.resolve().parent.is_dir():
            raise ValueError(f"{path} can't be written: there is no folder {path.resolve().parent}")


def _checked(options: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(options, dict) or not all(isinstance(value, dict) for value in options.values()):
        raise ValueError("--options must map names of verifiers to their options")
    return options


def import_from_here() -> None:
    """Lets `module:attr` be in the working directory."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def make_reward(formula: str, options: Mapping[str, Mapping[str, Any]]) -> Reward:
    """Returns the reward, and prints warnings about it on standard error. Raises ValueError."""
    import_from_here()
    reward = Reward(formula, options=options)
    print(f"reward {reward}", file=sys.stderr)
    for warning in reward.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return reward


class Tally:
    """Counts of reasons by verifier, and of rewards, in constant memory."""

    def __init__(self) -> None:
        self.reasons: dict[str, collections.Counter[tuple[str, str]]] = {}
        self.errors: collections.Counter[str] = collections.Counter()  # by the message of the first such row
        self._first: dict[str, str] = {}  # that message, by what rows that fail alike have in common
        self.count = self.unscored = 0
        self.total, self.low, self.high = 0.0, float("inf"), float("-inf")

    def add(self, row: Mapping[str, Any]) -> None:
        """Counts one row of results."""
        self.count += 1
        reward = row["reward"]
        if reward is None:
            self.unscored += 1
            self._fail(str(row.get("error") or "every verifier abstained").split(" (on ")[0], 1)
        else:
            self.total += reward
            self.low, self.high = min(self.low, reward), max(self.high, reward)
        for name, verdict in row["verdicts"].items():
            score = verdict["score"]
            kind = "abstains" if score is None else "1" if score == 1 else "0" if score == 0 else "part"
            self.reasons.setdefault(name, collections.Counter())[kind, verdict["reason"]] += 1

    def _fail(self, error: str, count: int) -> None:
        """Counts rows that are unscored for this reason, together with those that fail alike."""
        why = _PLACE.sub("", error)
        place = len(error) - len(why)  # a long path must not push the message out
        if not error.startswith("Verifier"):  # of an error of the row, names of its problem and values are left out
            why = _QUOTED.sub("...", why)
        why = why[:_ALIKE]
        if why not in self._first and len(self._first) >= _ERRORS:
            self.errors[_OTHERS] += count
        else:
            self.errors[self._first.setdefault(why, error[: place + _SHOWN])] += count

    def as_json(self) -> dict[str, Any]:
        """Returns all counts."""
        return {
            "rows": self.count,
            "unscored": self.unscored,
            "reward_sum": self.total,
            "reward_range": [self.low, self.high] if self.count > self.unscored else None,
            "reasons": [
                [name, *key, count] for name, counts in self.reasons.items() for key, count in sorted(counts.items())
            ],
            "errors": dict(self.errors.most_common()),
        }

    def add_json(self, counts: Mapping[str, Any]) -> None:
        """Adds the counts that `as_json` returned for other rows."""
        self.count += counts["rows"]
        self.unscored += counts["unscored"]
        self.total += counts["reward_sum"]
        low, high = counts["reward_range"] or (self.low, self.high)
        self.low, self.high = min(self.low, low), max(self.high, high)
        for name, kind, reason, count in counts["reasons"]:
            self.reasons.setdefault(name, collections.Counter())[kind, reason] += count
        for error, count in counts["errors"].items():
            self._fail(error, count)

    def __str__(self) -> str:
        scored = self.count - self.unscored
        mean = f"mean reward {self.total / scored:.4f} ({self.low:g} to {self.high:g})" if scored else "nothing scored"
        lines = [f"{self.count:,} completions, {self.unscored:,} unscored; {mean}"]
        body = [
            (name, reason, kind, f"{count:,}", f"{count / self.count:.1%}")
            for name, counts in self.reasons.items()
            for (kind, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        if body:
            lines += ["", table(("verifier", "reason", "score", "count", "share"), body)]
        if self.errors:
            errors = [(error, f"{count:,}") for error, count in self.errors.most_common(10)]
            lines += ["", table(("unscored because (message of the first such row)", "count"), errors)]
        return "\n".join(lines)


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Formats columns of text; numbers (columns of digits) are aligned right."""
    head, body = [one_line(cell) for cell in head], [[one_line(cell) for cell in row] for row in body]
    widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
    right = [all(row[i][:1].isdigit() for row in body) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, body)])


class Progress:
    """A counter on standard error, if that is a terminal."""

    def __init__(self, what: str) -> None:
        self.what, self.count = what, 0
        self._shown = self._began = time.monotonic()
        self._on = sys.stderr.isatty()

    def add(self) -> None:
        """Counts one more."""
        self.count += 1
        now = time.monotonic()
        if self._on and now - self._shown > _EVERY_S:
            self._shown = now
            rate = self.count / (now - self._began)
            print(f"\r{self.count:,} {self.what}, {rate:,.0f} per s ", end="", file=raw(sys.stderr), flush=True)

    def finish(self) -> None:
        """Clears the line."""
        if self._on:
            print("\r\x1b[K", end="", file=raw(sys.stderr), flush=True)
