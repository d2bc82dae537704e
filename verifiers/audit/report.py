"""The findings of an audit, as text, JSON and HTML."""

from __future__ import annotations

import collections
import html
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from verifiers.audit.cases import Case
from verifiers.audit.growth import Growth

Kind = Literal["answer", "program", "style"]
KINDS: dict[Kind, str] = {
    "answer": "audited as a verifier of right answers",
    "program": "audited as a verifier of programs",
    "style": "audited as a verifier of style: it compares with no known answer, so its verdicts on wrong answers "
    "can't be audited, but determinism, growth of time and hostile text are",
}
_SHOWN = 400  # characters of an input
_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of the verifier, with the input that shows it."""

    severity: str  # "high": pays a wrong answer, fails, hangs, or differs; "low": refuses a right answer
    family: str
    what: str
    text: str  # the completion
    problem: str  # its id or prompt
    gold: str
    score: float | None
    detail: str

    @classmethod
    def of(cls, severity: str, case: Case, score: float | None, detail: str, *, family: str = "") -> Finding:
        """Returns the finding that a case shows."""
        problem = case.problem
        return cls(
            severity,
            family or case.family,
            case.what,
            case.text[:_KEPT].encode("utf-8", "backslashreplace").decode(),
            problem.id or problem.prompt[:200],
            (problem.answer or "")[:500],
            score,
            detail,
        )


@dataclass(slots=True)
class FamilyResult:
    """Counts and score of a family of cases."""

    name: str
    passed: int = 0
    total: int = 0

    @property
    def score(self) -> float:
        return self.passed / self.total if self.total else 1.0

    @property
    def shown(self) -> str:
        """The score as text."""
        return f"{self.score:.1%}" if self.total else "not tried"


@dataclass(slots=True)
class Report:
    """The audit of one verifier."""

    target: str
    version: str
    kind: Kind
    forms: list[str]  # forms of answers that the verifier reads
    families: dict[str, FamilyResult] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    cpu_ms: float | None = None  # median of a short completion
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if there is no finding of high severity."""
        return not any(finding.severity == "high" for finding in self.findings)

    def family(self, name: str) -> FamilyResult:
        """Returns the family of this name, initially empty."""
        return self.families.setdefault(name, FamilyResult(name))

    def as_json(self) -> str:
        """Returns the whole report as JSON."""
        families = {
            name: {**asdict(family), "score": family.score if family.total else None}
            for name, family in self.families.items()
        }
        body: dict[str, Any] = {**asdict(self), "families": families, "passed": self.passed}
        return json.dumps(body, ensure_ascii=True, indent=2, allow_nan=False) + "\n"

    def as_text(self, *, show: int = 20) -> str:
        """Returns a score per family, and the most important findings first."""
        reads = f", reads {', '.join(self.forms)}" if self.forms else ""
        lines = [f"{self.target} (version {self.version or 'unknown'}), {KINDS[self.kind]}{reads}", ""]
        for name, family in self.families.items():
            lines.append(f"  {name:<14} {family.shown:>9}  {family.passed}/{family.total}")
        if self.cpu_ms is not None:
            lines.append(f"  {'CPU time':<14} {self.cpu_ms:.3f} ms for a short completion (median)")
        lines += [f"  note: {note}" for note in self.notes]
        ranked = self._ranked()
        for finding in ranked[:show]:
            lines += ["", f"{finding.severity}: {finding.family}: {finding.what}"]
            if finding.gold:
                lines.append(f"  gold   {finding.gold!r}")
            lines.append(f"  input  {finding.text[:_SHOWN]!r}")
            lines.append(f"  score  {finding.score}  {finding.detail}")
        if len(ranked) > show:
            lines += ["", f"... and {len(ranked) - show} more findings"]
        high = sum(finding.severity == "high" for finding in self.findings)
        verdict = "passed" if self.passed else "FAILED"
        lines += ["", f"{verdict}: {high} findings of high severity, {len(self.findings) - high} of low"]
        return "\n".join(lines)

    def _ranked(self) -> list[Finding]:
        """Returns findings of high severity before low, and the first of every family before the second of any."""
        seen: collections.Counter[tuple[str, str]] = collections.Counter()
        keys = []
        for i, finding in enumerate(self.findings):
            kind = (finding.severity, finding.family)
            keys.append((finding.severity != "high", seen[kind], i))
            seen[kind] += 1
        return [self.findings[i] for _, _, i in sorted(keys)]

    def as_html(self) -> str:
        """Returns one page without external resources."""
        rows = "".join(
            f"<tr><td>{html.escape(f.name)}<td>{f.passed}/{f.total}<td>{f.shown}</tr>" for f in self.families.values()
        )
        growth = "".join(
            f"<tr><td>{html.escape(g.fill)}<td>{g.sizes[-1]:,}<td>"
            f"{'late' if g.cpu_s[-1] is None else f'{g.cpu_s[-1] * 1000:.1f} ms'}"
            f"<td>{'' if g.exponent is None else f'{g.exponent:.2f}'}<td>{g.mib:.1f}</tr>"
            for g in self.growth
        )
        found = "".join(
            f"<h3 class={f.severity}>{f.severity}: {html.escape(f.family)}: {html.escape(f.what)}</h3><p>gold <code>"
            f"{html.escape(f.gold)}</code>, score {f.score}. {html.escape(f.detail)}<pre>"
            f"{html.escape(f.text[:4000].encode('utf-8', 'replace').decode())}</pre>"
            for f in self._ranked()
        )
        return (
            "<!doctype html><meta charset=utf-8><title>Audit of "
            f"{html.escape(self.target)}</title><style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;"
            "padding:0 1rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem;border:1px solid #bbb;text-align:"
            "left}pre{background:#f4f4f4;padding:.6rem;overflow:auto;white-space:pre-wrap}.high{color:#a00}</style>"
            f"<h1>{html.escape(self.target)}: {'passed' if self.passed else 'failed'}</h1>"
            f"<p>version {html.escape(self.version or 'unknown')}, {html.escape(KINDS[self.kind])}; reads "
            f"{html.escape(', '.join(self.forms) or 'no answers')}</p>"
            f"<table><tr><th>family<th>passed<th>score</tr>{rows}</table><h2>Findings</h2>{found or '<p>None.'}"
            "<h2>Time and memory</h2><table><tr><th>filling<th>characters<th>CPU<th>exponent<th>MiB</tr>"
            f"{growth}</table>\n"
        )
