"""Does a formula pay for the style of wrong answers? A weak model then learns the style and gives up thinking."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from verifiers.audit.cases import FORMS, LEAD_INS, WRONG, Case, near_misses, rights, write
from verifiers.audit.report import Finding, Report
from verifiers.core import Problem
from verifiers.pool import Pool
from verifiers.reward import Reward

_FEW = 5  # problems
_THOUGHTS = ("So it is.", *LEAD_INS.values())


def check(report: Report, reward: Reward, problems: Sequence[Problem], pool: Pool, bests: Mapping[str, float]) -> None:
    """Adds a finding for each part that is paid without a right answer, with the wrong answer that it pays most.

    Args:
        pool: computes scores of `reward`.
        bests: reward of the right answer, by the problem's id.
    """
    if len(reward.verifiers) < 2:
        return
    family = report.family("gating")
    family.total = family.passed = sum(getattr(v, "needs_gate", False) for v in reward.verifiers.values())
    if not reward.ungated:
        return
    cases = [case for problem in problems[:_FEW] for case in _wrong(problem)]
    found = [
        (case, score) for case, score in zip(cases, pool.map(c.pair for c in cases), strict=True) if not score.error
    ]
    for name, warning in reward.ungated.items():
        family.passed -= 1
        paid = [(c, s) for c, s in found if s.reward is not None and s.verdicts[name].score]
        if not paid:
            report.notes.append(warning)
            continue
        case, score = max(paid, key=lambda pair: (pair[1].reward or 0.0, -len(pair[0].text)))
        right = bests.get(case.problem.id)
        beside = f"; the right answer gets {right:g}" if right is not None else ""
        report.findings.append(Finding.of("high", case, score.reward, f"{warning}{beside}"))


def _wrong(problem: Problem) -> Iterator[Case]:
    """Yields wrong answers after almost no thinking."""
    misses = near_misses(problem, [], random.Random(0)) if rights(problem) else []
    answer = misses[0][1] if misses else "something else"
    for name in ("answer_tag", "think_box"):
        for thought in _THOUGHTS:
            yield Case("gating", WRONG, "a wrong answer's style", problem, write(FORMS[name], answer, thought))
