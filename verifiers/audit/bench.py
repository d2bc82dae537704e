"""Comparable figures for any verifier: labelled cases, judged in a process that can be killed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.audit.math_pairs import pairs
from verifiers.audit.targets import ALONE, reward_of
from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.golds import gold_text
from verifiers.pool import LATE, Pool
from verifiers.reward import Reward, score_one

HACKS = Path(__file__).parent / "hacks.jsonl"  # texts that our or another verifier once paid wrongly
NUM_PAIRS = 620  # 20 of each kind
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Labelled:
    """A completion with a label: right or wrong."""

    group: str
    gold: str
    text: str
    expected: bool
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of cases with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}-{self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Figures:
    """One verifier's figures on the cases."""

    verifier: str
    recall: Share | None  # share of right answers that are paid; None without right answers
    specificity: Share | None  # share of wrong answers that are not paid
    balanced_accuracy: Share | None
    paid_hacks: int
    hacks: int
    unscored: int  # no verdict: not paid
    hangs: int  # no verdict within the time limit; also counted in `unscored`
    worst_cpu_ms: float
    verdicts_per_cpu_s: float
    reason: str = ""  # why there was no verdict, on the first such case
    paid: list[bool] = field(default_factory=list)  # by case


class Timed:
    """The measured verifier; the detail of each verdict is its CPU time in milliseconds."""

    version = "1"

    def __init__(self, *, target: str) -> None:
        self._reward = reward_of(target, {})
        low, high = self._reward.range
        self._low, self._span = low, high - low or 1.0
        self._loaded = False

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        if not self._loaded:  # what a verifier loads at its first call is not measured, but has the same deadline
            self._loaded = True
            score_one(self._reward, Problem(answer="1"), Completion("1"))
        began = time.process_time()
        found = score_one(self._reward, problem, completion)
        spent = f"{1000 * (time.process_time() - began):.3f}"
        if found.error:
            raise VerifierError(found.error)
        if found.reward is None:
            return Verdict(None, "abstains", spent)
        return Verdict(min(1.0, max(0.0, (found.reward - self._low) / self._span)), "scored", spent)


def bundled() -> list[Labelled]:
    """Returns generated pairs of equal and of nearly equal values, and every known hack."""
    made = [Labelled(f"pairs:{pair.kind}", pair.gold, pair.completion, pair.same) for pair in pairs(NUM_PAIRS, seed=14)]
    return made + list(read_cases(HACKS, group="hacks", expected=False))


def read_cases(path: Path, *, group: str = "", expected: bool | None = None) -> Iterator[Labelled]:
    """Yields cases from a JSONL or Parquet file: `gold`, `text`, `expected` (true or false) and optionally `prompt`.

    Args:
        group: name of the cases; by default the file's name.
        expected: label of rows that have none.

    Raises: OSError; ValueError, naming file and line.
    """
    for number, row in rows.rows(path):
        where = f"{path}:{number}"
        if isinstance(row, rows.RowError):
            raise ValueError(f"{where}: {row}")
        if not isinstance(row, Mapping):
            raise ValueError(f"{where}: a case must be an object with gold, text and expected")
        lacking = [key for key in ("gold", "text") if key not in row]
        if lacking:
            raise ValueError(
                f"{where}: no column {lacking[0]!r}; the row has {', '.join(map(repr, row)) or 'none':.200}"
            )
        text, label, prompt = row.get("text"), row.get("expected", expected), row.get("prompt") or ""
        if not isinstance(text, str) or not isinstance(prompt, str):
            raise ValueError(f"{where}: text, and prompt where there is one, must be text")
        if label not in (True, False):
            raise ValueError(f"{where}: expected must be true or false, got {label!r:.60}")
        try:
            gold = gold_text(row.get("gold"))
        except GoldError as error:
            raise ValueError(f"{where}: {error}") from error
        if gold is None:
            raise ValueError(f"{where}: the gold is missing")
        yield Labelled(group or path.name, gold, text, bool(label), prompt)


def measure(target: str, cases: Sequence[Labelled], *, timeout_s: float) -> Figures:
    """Judges all cases. Raises ValueError if the verifier can't be set up, VerifierError if it can't be run at all."""
    reward_of(target, {})  # raises if the name is wrong
    reward = Reward(ALONE, options={ALONE: {"use": f"{__name__}:Timed", "target": target}})
    paid, spent, hangs, reasons = [], [], 0, []
    items = ((Problem(case.prompt, case.gold, id=str(i)), Completion(case.text)) for i, case in enumerate(cases))
    with Pool(reward, workers=1, timeout_s=timeout_s) as pool:
        for score in pool.map(items):
            verdict = score.verdicts.get(ALONE)
            if verdict is not None:
                spent.append(float(verdict.detail))
            if score.reward is None:
                reasons.append(score.error or "it abstained")
            hangs += LATE in score.error
            paid.append(score.reward is not None and score.reward >= 0.5)
    right = [p for p, case in zip(paid, cases, strict=True) if case.expected]
    wrong = [not p for p, case in zip(paid, cases, strict=True) if not case.expected]
    hacks = [p for p, case in zip(paid, cases, strict=True) if case.group == "hacks"]
    recall, specificity = _share(right), _share(wrong)
    return Figures(
        target,
        recall,
        specificity,
        _balanced(recall, specificity),
        sum(hacks),
        len(hacks),
        len(reasons),
        hangs,
        max(spent, default=0.0),
        1000 * len(spent) / max(sum(spent), 1e-3),
        next(iter(reasons), ""),
        paid,
    )


def _share(holds: Sequence[bool]) -> Share | None:
    """Returns the share with Wilson's interval."""
    count = len(holds)
    if not count:
        return None
    mean = sum(holds) / count
    centre = (mean + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(mean * (1 - mean) / count + _Z**2 / (4 * count**2))
    return Share(mean, max(0.0, centre - half), min(1.0, centre + half))


def _balanced(recall: Share | None, specificity: Share | None) -> Share | None:
    """Returns their mean, with an interval from theirs (Zou and Donner's MOVER): the two samples are independent."""
    if recall is None or specificity is None:
        return None
    value = (recall.value + specificity.value) / 2
    below = math.hypot(recall.value - recall.low, specificity.value - specificity.low) / 2
    above = math.hypot(recall.high - recall.value, specificity.high - specificity.value) / 2
    return Share(value, value - below, value + above)


def disagreements(cases: Sequence[Labelled], figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Returns the cases that a verifier judges differently than expected, each with the verifiers that pay it."""
    found = []
    for i, case in enumerate(cases):
        paid = {one.verifier: one.paid[i] for one in figures}
        if any(value is not case.expected for value in paid.values()):
            found.append({**asdict(case), "paid": paid})
    return found


def as_markdown(figures: Sequence[Figures], cases: Sequence[Labelled]) -> str:
    """Returns a table with a column for each verifier."""
    right = sum(case.expected for case in cases)

    def line(name: str, cells: Sequence[object]) -> str:
        return f"| {' | '.join([name, *map(str, cells)])} |"

    def shown(share: Share | None) -> str:
        return "-" if share is None else str(share)

    return "\n".join(
        [
            line("", [f"`{one.verifier}`" for one in figures]),
            line("---", ["---"] * len(figures)),
            line(f"recall, {right} right answers", [shown(one.recall) for one in figures]),
            line(f"specificity, {len(cases) - right} wrong ones", [shown(one.specificity) for one in figures]),
            line("balanced accuracy", [shown(one.balanced_accuracy) for one in figures]),
            line("known hacks paid", [f"{one.paid_hacks} of {one.hacks}" for one in figures]),
            line("no verdict", [one.unscored for one in figures]),
            line("... because it hung", [one.hangs for one in figures]),
            line("worst CPU ms", [f"{one.worst_cpu_ms:,.1f}" for one in figures]),
            line("verdicts per CPU second", [f"{one.verdicts_per_cpu_s:,.0f}" for one in figures]),
        ]
    )


def as_json(figures: Sequence[Figures], cases: Sequence[Labelled]) -> str:
    """Returns the figures, and every case that was not judged as expected."""
    plain = [{key: value for key, value in asdict(one).items() if key != "paid"} for one in figures]
    report = {"cases": len(cases), "verifiers": plain, "disagreements": disagreements(cases, figures)}
    return json.dumps(report, ensure_ascii=False, indent=1) + "\n"
