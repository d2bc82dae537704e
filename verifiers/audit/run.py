"""Runs an audit: every case in worker processes with a deadline, several times over."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verifiers.audit.cases import (
    ANY,
    FILLS,
    FORMS,
    RIGHT,
    WRONG,
    Case,
    answer_cases,
    long_text,
    rights,
    style_cases,
    write,
)
from verifiers.audit.growth import measure
from verifiers.audit.report import FamilyResult, Finding, Report
from verifiers.audit.samples import sample
from verifiers.audit.targets import target_of
from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.reward import Reward, Score

SIZES = (4_000, 16_000, 64_000, 256_000)
_HUGE = 200_000
_PAID = 0.5  # a score above it says "right"
_MAX_PROBLEMS = 40
_PAIRS = 300
_TYPED_FORMS = ("box", "think_box", "answer_tag")


def audit(
    target: str,
    problems: Sequence[Problem] = (),
    *,
    options: Mapping[str, Any] | None = None,
    timeout_s: float = 10.0,
    workers: int | None = None,
    sizes: Sequence[int] = SIZES,
    maths: bool | None = None,
    seed: int = 0,
) -> Report:
    """Audits a verifier.

    Args:
        target: as `resolve` takes it, or `trl:NAME`, `verl:module:function`, `math-verify`.
        problems: with golds; `meta["right"]` and `meta["wrong"]` may list answers. None = samples that fit the target.
        options: of the verifier.
        timeout_s: deadline of one call.
        sizes: lengths, in characters, at which time and memory are measured.
        maths: also try typed pairs of mathematical answers; None = where golds are numbers.

    Raises: ValueError if the target can't be set up, or a problem has no gold.
    """
    spec, given = target_of(target)
    given = {**given, **(options or {})}
    reward = Reward("v", options={"v": {"use": spec, **given}})
    kind = "style" if getattr(reward.verifiers["v"], "kind", "") == "style" else "answer"
    problems = list(problems or sample(target))[:_MAX_PROBLEMS]
    report = Report(target, reward.versions["v"], kind, [])
    with Pool(reward, workers=workers, timeout_s=timeout_s) as pool:
        cases = list(_cases(pool, report, problems, kind, maths, random.Random(seed)))
        scores = list(pool.map(case.pair for case in cases))
    _judge(report, cases, scores)
    _determinism(report, reward, cases, scores, timeout_s)
    _bad_problem(report, reward, problems[0], timeout_s)
    report.growth = measure(spec, given, problems[0], sizes, timeout_s)
    _growth(report, problems[0])
    report.cpu_ms = _cpu_ms(spec, given, cases)
    return report


def _cases(
    pool: Pool, report: Report, problems: list[Problem], kind: str, maths: bool | None, rng: random.Random
) -> Iterator[Case]:
    for fill in FILLS:
        yield Case("huge", WRONG if kind == "answer" else ANY, fill, problems[0], long_text(fill, _HUGE))
    if kind == "style":
        for problem in problems:
            yield from style_cases(problem)
        return
    for problem in problems:
        if not rights(problem):
            name = problem.id or problem.prompt[:60]
            raise ValueError(f"problem {name!r} has no gold: give it an answer, or a list `right` of right answers")
    report.forms = _forms(pool, report, problems)
    forms = report.forms or list(FORMS)
    answers = [rights(problem)[0] for problem in problems]
    for i, problem in enumerate(problems):
        others = sorted({a for a in answers[i + 1 :] + answers[:i] if a != answers[i]})
        rng.shuffle(others)
        yield from answer_cases(problem, others, forms, rng)
    numeric = all(answer.lstrip("+-").replace(".", "", 1).isdigit() for answer in answers)
    if (numeric if maths is None else maths) and not any("right" in problem.meta for problem in problems):
        yield from _typed(report, forms, rng)


def _typed(report: Report, forms: list[str], rng: random.Random) -> Iterator[Case]:
    """Mathematical answers of every type, whose truth is known by construction."""
    from verifiers.mathexpr.pairs import pairs

    form = next((form for form in forms if form in _TYPED_FORMS), forms[0])
    for pair in pairs(_PAIRS, seed=rng.randrange(1 << 30)):
        family, expect = ("typed_same", RIGHT) if pair.same else ("typed_misses", WRONG)
        yield Case(family, expect, f"{pair.kind}: {pair.how}", Problem(answer=pair.gold), write(form, pair.answer))


def _forms(pool: Pool, report: Report, problems: list[Problem]) -> list[str]:
    """The forms in which most golds are paid."""
    few = problems[:10]
    found = []
    for form in FORMS:
        scores = list(pool.map((p, Completion(write(form, rights(p)[0]))) for p in few))
        if sum(_paid(score) for score in scores) > len(few) / 2:
            found.append(form)
    family = report.families.setdefault("gold", FamilyResult("gold"))
    for problem in problems:
        text = write(found[0] if found else "answer_tag", rights(problem)[0])
        (score,) = pool.map([(problem, Completion(text))])
        family.total += 1
        family.passed += _paid(score)
        if not _paid(score):
            case = Case("gold", RIGHT, "its own gold is not paid", problem, text)
            report.findings.append(_finding("high", case, score, score.error))
    return found


def _paid(score: Score) -> bool:
    return score.reward is not None and score.reward > _PAID


def _judge(report: Report, cases: list[Case], scores: list[Score]) -> None:
    for case, score in zip(cases, scores, strict=True):
        family = report.families.setdefault(case.family, FamilyResult(case.family))
        family.total += 1
        if score.error:
            # A gold that can't be read is the problem's fault; everything else is the verifier's.
            if "GoldError" in score.error:
                family.total -= 1
                continue
            report.findings.append(_finding("high", case, score, score.error))
            continue
        right = _paid(score)
        if case.expect == RIGHT and not right:
            report.findings.append(_finding("low", case, score, "a right answer is not paid"))
        elif case.expect == WRONG and right:
            report.findings.append(_finding("high", case, score, "a wrong answer is paid"))
        else:
            family.passed += 1


def _finding(severity: str, case: Case, score: Score, why: str) -> Finding:
    verdict = score.verdicts.get("v")
    reason = f" ({verdict.reason})" if verdict is not None else ""
    problem = case.problem
    return Finding(
        severity,
        case.family,
        case.what,
        case.text[:100_000].encode("utf-8", "backslashreplace").decode(),
        problem.id or problem.prompt[:200],
        (problem.answer or "")[:500],
        score.reward,
        why + reason,
    )


def _determinism(report: Report, reward: Reward, cases: list[Case], scores: list[Score], timeout_s: float) -> None:
    """The same cases backwards, in processes with other hash seeds and another locale."""
    scored = [(case, score) for case, score in zip(cases, scores, strict=True) if not score.error]
    family = report.families.setdefault("determinism", FamilyResult("determinism"))
    for changed in ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo"}):
        with Pool(reward, workers=1, timeout_s=timeout_s, environment=changed) as pool:
            again = list(pool.map(case.pair for case, _ in reversed(scored)))[::-1]
        for (case, first), second in zip(scored, again, strict=True):
            family.total += 1
            same = (first.reward, dict(first.verdicts)) == (second.reward, dict(second.verdicts))
            family.passed += same
            if not same:
                why = f"{first.reward} first, then {second.error or second.reward} with {changed}"
                moved = Case("determinism", case.expect, case.what, case.problem, case.text)
                report.findings.append(_finding("high", moved, second, why))


def _bad_problem(report: Report, reward: Reward, problem: Problem, timeout_s: float) -> None:
    """A problem without a gold must be an error, or every answer to it is silently wrong."""
    if report.kind == "style":
        return
    with Pool(reward, workers=1, timeout_s=timeout_s) as pool:
        (score,) = pool.map([(Problem(prompt=problem.prompt, id="no gold"), Completion(write("answer_tag", "4")))])
    if score.reward is not None:
        report.notes.append(f"a problem without an answer scores {score.reward:g}; raise GoldError instead")


def _growth(report: Report, problem: Problem) -> None:
    family = report.families.setdefault("growth", FamilyResult("growth"))
    for growth in report.growth:
        family.total += 1
        family.passed += not growth.problem
        if growth.problem:
            text = long_text(growth.fill, 200) + f"... ({growth.sizes[-1]:,} characters)"
            case = Case("growth", ANY, growth.fill, problem, text)
            report.findings.append(_finding("high", case, Score(None), growth.problem))


def _cpu_ms(spec: str, options: Mapping[str, Any], cases: list[Case]) -> float | None:
    timed = Reward("v", options={"v": {"use": "verifiers.audit.probe:Timed", "target": spec, "options": dict(options)}})
    short = [case for case in cases if len(case.text) < 1000][:200]
    with Pool(timed, workers=1) as pool:
        spent = [
            json.loads(s.verdicts["v"].detail)["cpu_s"] for s in pool.map(case.pair for case in short) if not s.error
        ]
    return statistics.median(spent) * 1000 if spent else None
