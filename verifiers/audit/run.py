"""Runs an audit: every case in worker processes with a deadline, several times."""

from __future__ import annotations

import dataclasses
import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verifiers.audit import gating, programs
from verifiers.audit.cases import (
    ANY,
    FILLS,
    FORMS,
    MANNERS,
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
from verifiers.audit.math_pairs import pairs
from verifiers.audit.patience import HANGS, Clock, is_late, scores
from verifiers.audit.probe import timed
from verifiers.audit.report import Finding, Kind, Report
from verifiers.audit.samples import sample
from verifiers.audit.targets import ALONE, reward_of
from verifiers.core import Completion, Problem
from verifiers.pool import MAX_FAILED_STARTS, START_TIMEOUT_S, Pool
from verifiers.reward import Reward, Score

SIZES = (4_000, 16_000, 64_000, 256_000)
LIMIT_S = 300.0
_SAID = 200  # characters of a verdict's detail in a finding
_SHORTEST_START_S = 10.0  # of a worker process, on a loaded machine
_HUGE = 200_000
_PAID = 0.5  # a score above it counts as "right"; for a formula, a reward above this share of the right answer's reward
_MAX_PROBLEMS = 40
_PAIRS = 300
_TRIED_GOLDS = 5  # number of problems used to determine whether a verifier reads golds
_TYPED_FORMS = ("box", "think_box", "answer_tag")


def audit(
    target: str,
    problems: Sequence[Problem] = (),
    *,
    options: Mapping[str, Any] | None = None,
    timeout_s: float = 10.0,
    limit_s: float = LIMIT_S,
    workers: int | None = None,
    sizes: Sequence[int] = SIZES,
    maths: bool | None = None,
    kind: Kind | None = None,
    seed: int = 0,
) -> Report:
    """Audits a verifier, or a formula over several.

    Args:
        target: as `resolve` accepts it, or `trl:NAME`, `verl:module:function`, `math-verify`, or a formula.
        problems: with golds; `meta["right"]` and `meta["wrong"]` may list answers. None = samples that fit the target.
        options: of the verifier; for a formula, of its verifiers by name.
        timeout_s: deadline of one call.
        limit_s: time limit of the whole audit, plus at most a few deadlines; what was not tried by then is a finding.
        sizes: lengths, in characters, at which time and memory are measured.
        maths: also try typed pairs of mathematical answers; None = for a single verifier whose golds are numbers.
        kind: what the target judges: "answer", "program", or "style" (how a text is written, whatever the answer is).
            None = its own declaration, else "style" for a verifier that gives some texts 1 and some less, regardless
            of the gold.

    Raises:
        ValueError: the target can't be set up, or a problem has no gold.
        VerifierError: its worker processes end or hang before they score anything.
    """
    reward = reward_of(target, options or {})
    problems = list(problems or sample(target))[:_MAX_PROBLEMS]
    versions = reward.versions.values() if ALONE in reward.versions else map(" ".join, reward.versions.items())
    return _Audit(target, reward, problems, timeout_s, limit_s, workers, kind, seed).run(
        ", ".join(versions), sizes, maths
    )


class _Audit:
    def __init__(
        self, target: str, reward: Reward, problems: list[Problem], timeout_s: float, limit_s: float,
        workers: int | None, kind: Kind | None, seed: int,
    ) -> None:  # fmt: skip
        self.reward, self.problems, self.timeout_s, self.workers = reward, problems, timeout_s, workers
        self.clock, self.rng = Clock(limit_s), random.Random(seed)
        self.is_formula = ALONE not in reward.verifiers
        kinds = {getattr(getattr(v, "func", v), "kind", "") for v in reward.verifiers.values()}
        self.told = kind is not None or self.is_formula or bool(kinds - {""})
        said: Kind = "program" if "program" in kinds else "style" if kinds == {"style"} else "answer"
        self.report = Report(target, "", kind or said, [])
        self.bests: dict[str, float] = {}  # reward of the right answer to each problem

    def run(self, version: str, sizes: Sequence[int], maths: bool | None) -> Report:
        report = self.report
        report.version = version
        with self._pool(self.reward, self.workers) as pool:
            if not self.told and self._is_of_manner(pool):
                report.kind = "style"
            if report.kind != "style":
                self._find_forms(pool)
            cases = list(self._cases(maths))
            found = scores(pool, cases, self.clock)
            self._judge(cases, found)
            gating.check(report, self.reward, self.problems, pool, self.bests)
            self._bad_problem(pool)
        self._determinism(cases, found)
        with self._pool(timed(self.reward), 1) as pool:
            report.growth = measure(pool, self.problems[0], sizes, self.clock)
            self._growth(sizes[-1])
            report.cpu_ms = self._cpu_ms(pool, cases, found)
        return report

    def _pool(self, reward: Reward, workers: int | None) -> Pool:
        start_s = min(START_TIMEOUT_S, max(self.clock.limit_s / MAX_FAILED_STARTS, _SHORTEST_START_S))
        return Pool(reward, workers=workers, timeout_s=self.timeout_s, start_timeout_s=start_s)

    def _cases(self, maths: bool | None) -> Iterator[Case]:
        problems, report = self.problems, self.report
        if report.kind == "style":
            for problem in problems:
                yield from style_cases(problem)
        elif report.kind == "program":
            for problem in problems:
                yield from programs.program_cases(problem, report.forms or list(programs.FORMS))
        else:
            yield from self._answer_cases(report.forms or list(FORMS), maths)
        # Last, so that a slow case takes time only from itself.
        for fill in FILLS:
            expect = ANY if report.kind == "style" else WRONG
            yield Case("huge", expect, fill, problems[0], long_text(fill, _HUGE))

    def _answer_cases(self, forms: list[str], maths: bool | None) -> Iterator[Case]:
        answers = [rights(problem)[0] for problem in self.problems]
        for i, problem in enumerate(self.problems):
            others = sorted({a for a in answers[i + 1 :] + answers[:i] if a != answers[i]})
            self.rng.shuffle(others)
            yield from answer_cases(problem, others, forms, self.rng)
        numeric = all(answer.lstrip("+-").replace(".", "", 1).isdigit() for answer in answers)
        wanted = numeric and not self.is_formula if maths is None else maths
        if wanted and not any("right" in problem.meta for problem in self.problems):
            yield from _typed(forms, self.rng)

    def _is_of_manner(self, pool: Pool) -> bool:
        """True if the verifier judges how a text is written: some texts get 1, some less, and no gold changes that."""
        golds = [problem for problem in self.problems[:_TRIED_GOLDS] if rights(problem)]
        pairs = [(a, b) for a, b in zip(golds, golds[1:] + golds[:1], strict=True) if rights(a)[0] != rights(b)[0]]
        tried: list[Case] = []
        for problem, other in pairs:
            texts = [write(form, rights(problem)[0]) for form in FORMS.values()]
            for text in (*texts, *MANNERS):
                swapped = dataclasses.replace(other, prompt=problem.prompt, id=problem.id)
                tried += [Case("manner", ANY, "", one, text) for one in (problem, swapped)]
        found = scores(pool, tried, self.clock)
        rewards = [None if score is None or score.error else score.reward for score in found]
        if not pairs or None in rewards or rewards[::2] != rewards[1::2]:
            return False
        if len(set(rewards)) > 1 and max(reward or 0.0 for reward in rewards) > _PAID:
            return True
        self.report.notes.append(
            "it scores all texts alike, whatever the known answer is; if it judges style, pass --kind style"
        )
        return False

    def _find_forms(self, pool: Pool) -> None:
        """Determines the forms in which most golds are paid, and the reward of the right answer to each problem."""
        for problem in self.problems:
            if not rights(problem):
                raise ValueError(
                    f"problem {problem.name!r} has no gold: give it an answer, or a list `right` of right answers"
                )
        known = programs.FORMS if self.report.kind == "program" else FORMS
        family = self.report.family("gold")
        few = self.problems[:10]
        tried = [
            Case("gold", RIGHT, form, problem, write(known[form], rights(problem)[0]))
            for problem in few
            for form in known
        ]
        found = dict(
            zip([(case.problem.id, case.what) for case in tried], scores(pool, tried, self.clock), strict=True)
        )
        rewards = {key: score.reward for key, score in found.items() if score is not None and score.reward is not None}
        for problem in few:
            self.bests[problem.id] = max((rewards.get((problem.id, form), 0.0) for form in known), default=0.0)
        for form in known:
            paid = [rewards.get((p.id, form), 0.0) > self._bar(p) for p in few]
            if sum(paid) > len(few) / 2:
                self.report.forms.append(form)
        form = known[self.report.forms[0] if self.report.forms else next(iter(known))]
        cases = [
            Case("gold", RIGHT, "its own gold", problem, write(form, rights(problem)[0])) for problem in self.problems
        ]
        for case, score in zip(cases, scores(pool, cases, self.clock), strict=True):
            if score is None:
                continue
            reward = score.reward or 0.0
            self.bests[case.problem.id] = max(reward, self.bests.get(case.problem.id, 0.0))
            family.total += 1
            family.passed += reward > self._bar(case.problem)
            if reward <= self._bar(case.problem):
                self._add("high", case, score, score.error or "its own gold is not paid")

    def _bar(self, problem: Problem) -> float:
        """Returns the reward above which an answer counts as right."""
        if not self.is_formula:
            return _PAID
        best = self.bests.get(problem.id, 0.0)
        return _PAID * (best if best > 0 else self.reward.range[1])

    def _judge(self, cases: list[Case], judged: list[Score | None]) -> None:
        left_out: dict[str, list[Case]] = {}
        hangs: dict[str, int] = {}
        for case, score in zip(cases, judged, strict=True):
            if score is None:
                left_out.setdefault(case.family, []).append(case)
                continue
            family = self.report.family(case.family)
            family.total += 1
            if score.error:
                # A gold that can't be read is the problem's fault; all other errors are the verifier's.
                if "GoldError" in score.error:
                    family.total -= 1
                    continue
                hangs[case.family] = hangs.get(case.family, 0) + is_late(score)
                self._add("high", case, score, score.error)
                continue
            paid = score.reward is not None and score.reward > self._bar(case.problem)
            if case.expect == RIGHT and not paid:
                self._add("low", case, score, "a right answer is not paid")
            elif case.expect == WRONG and paid:
                self._add("high", case, score, "a wrong answer is paid")
            else:
                family.passed += 1
        for name, missing in left_out.items():
            if hangs.get(name, 0) >= HANGS:
                self.report.notes.append(f"{name}: {HANGS} calls hung, so {len(missing)} further cases were not tried")
            else:
                self._out_of_time(missing[0], f"{len(missing)} cases of '{name}' were not tried")

    def _determinism(self, cases: list[Case], judged: list[Score | None]) -> None:
        """Judges the same cases in reverse order, in processes with other hash seeds and another locale."""
        scored = [(case, s) for case, s in zip(cases, judged, strict=True) if s is not None and not s.error][::-1]
        family = self.report.family("determinism")
        for changed in ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo"}):
            with Pool(self.reward, workers=1, timeout_s=self.timeout_s, environment=changed) as pool:
                again = scores(pool, [case for case, _ in scored], self.clock)
            for (case, first), second in zip(scored, again, strict=True):
                if second is None:
                    self._out_of_time(case, "not all cases were tried a second and third time")
                    return
                family.total += 1
                same = _judged(first) == _judged(second) or self._was_stalled(case, first, second)
                family.passed += same
                if not same:
                    why = f"{_said(first)} first, then {_said(second)} with {changed}"
                    self._add("high", case, second, why, family="determinism")

    def _was_stalled(self, case: Case, first: Score, second: Score) -> bool:
        """Judges a case again as at first, because a verdict of time is a measurement and may differ.

        True if one of the two verdicts is `TLE` and the third verdict equals the other one.
        """
        if "TLE" not in _reasons(first) | _reasons(second):
            return False
        with Pool(self.reward, workers=1, timeout_s=self.timeout_s) as pool:
            (third,) = pool.map([case.pair])
        other = second if "TLE" in _reasons(first) else first
        return _judged(third) == _judged(other)

    def _bad_problem(self, pool: Pool) -> None:
        """A problem without a gold must be an error, or every answer to it is silently wrong."""
        if self.report.kind == "style" or self.is_formula:
            return
        problem = Problem(prompt=self.problems[0].prompt, id="no gold")
        (score,) = pool.map([(problem, Completion(write(FORMS["answer_tag"], "4")))])
        if score.reward is not None:
            self.report.notes.append(f"a problem without an answer scores {score.reward:g}; raise GoldError instead")

    def _growth(self, largest: int) -> None:
        family = self.report.family("growth")
        for growth in self.report.growth:
            family.total += 1
            family.passed += not growth.problem
            if growth.problem:
                text = long_text(growth.fill, 200) + f"... ({growth.sizes[-1]:,} characters)"
                case = Case("growth", ANY, growth.fill, self.problems[0], text)
                self._add("high", case, Score(None), growth.problem)
        if len(self.report.growth) < len(FILLS):
            missing = list(FILLS)[len(self.report.growth)]
            what = f"{len(FILLS) - len(self.report.growth)} fillings of long texts"
            if sum(None in growth.cpu_s for growth in self.report.growth) >= HANGS:
                self.report.notes.append(f"growth: {HANGS} calls hung, so {what} were not tried")
            else:
                case = Case("growth", ANY, missing, self.problems[0], long_text(missing, largest))
                self._out_of_time(case, f"{what} were not tried")

    def _cpu_ms(self, pool: Pool, cases: list[Case], judged: list[Score | None]) -> float | None:
        """CPU milliseconds of a short completion, median over those that were judged."""
        pairs = zip(cases, judged, strict=True)
        short = [case for case, score in pairs if len(case.text) < 1000 and score and not is_late(score)][:200]
        spent = [
            json.loads(score.verdicts["v"].detail)["cpu_s"]
            for score in scores(pool, short, self.clock)
            if score is not None and not score.error
        ]
        return statistics.median(spent) * 1000 if spent else None

    def _out_of_time(self, case: Case, what: str) -> None:
        """Reports cases that were not tried as a finding, not as passed."""
        why = (
            f"the audit's limit of {self.clock.limit_s:g} s ended: {what}; the verifier is slow or the limit too short"
        )
        self._add("high", case, Score(None), why, family="time")

    def _add(self, severity: str, case: Case, score: Score, why: str, *, family: str = "") -> None:
        verdict = score.verdicts.get(ALONE)
        reason = f" ({verdict.reason})" if verdict is not None else ""
        self.report.findings.append(Finding.of(severity, case, score.reward, why + reason, family=family))


def _typed(forms: list[str], rng: random.Random) -> Iterator[Case]:
    """Yields mathematical answers of every type that are right or wrong by construction."""
    form = FORMS[next((form for form in forms if form in _TYPED_FORMS), forms[0])]
    for pair in pairs(_PAIRS, seed=rng.randrange(1 << 30)):
        family, expect = ("typed_same", RIGHT) if pair.same else ("typed_misses", WRONG)
        yield Case(family, expect, f"{pair.kind}: {pair.how}", Problem(answer=pair.gold), write(form, pair.answer))


def _reasons(score: Score) -> set[str]:
    return {verdict.reason for verdict in score.verdicts.values()}


def _said(score: Score) -> str:
    """Returns the reward with its reasons, or the error."""
    why = [word for v in score.verdicts.values() for word in (v.reason, *v.flags, f"({v.detail[:_SAID]})")]
    return score.error or " ".join((f"{score.reward}", *why))


def _judged(score: Score) -> tuple[Any, ...]:
    """Returns what must be the same each time: everything but the detail, which may contain times."""
    return score.reward, {name: (v.score, v.reason, v.answer, v.flags) for name, v in score.verdicts.items()}
