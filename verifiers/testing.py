"""For the test suites of verifier authors: the audit as one assertion, and Hypothesis strategies.

from verifiers.testing import assert_passes_audit, hostile_text

def test_my_verifier():
    assert_passes_audit("my_pkg:fn", [Problem(prompt="6*7?", answer="42")])

@given(hostile_text())
def test_it_never_raises(text):
    fn(Problem(answer="42"), Completion(text))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers.audit import Report, audit
from verifiers.audit.cases import FILLS, FORMS, spellings, write
from verifiers.audit.run import LIMIT_S
from verifiers.core import Completion, Problem

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_TAGS = ("<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "####", "$", "```", "\n", " or ", "\u200b")


def assert_passes_audit(
    target: str,
    problems: Sequence[Problem] = (),
    *,
    options: Mapping[str, Any] | None = None,
    ignore: Collection[str] = (),
    min_recall: float = 0.0,
    largest: int = 64_000,
    timeout_s: float = 10.0,
    limit_s: float = LIMIT_S,
) -> Report:
    """Audits a verifier and fails with its findings.

    Args:
        target: as for `python -m verifiers audit`.
        ignore: families of cases whose findings are known and accepted.
        min_recall: minimum share of right answers in other spellings that must be paid.
        largest: length in characters of the longest text for which time is measured.
        timeout_s, limit_s: deadlines of one call and of the whole audit.

    Raises: AssertionError, with the report; ValueError if the audit can't be run.
    """
    sizes = (largest // 16, largest // 4, largest)
    report = audit(target, problems, options=options, timeout_s=timeout_s, limit_s=limit_s, workers=1, sizes=sizes)
    bad = [finding for finding in report.findings if finding.severity == "high" and finding.family not in ignore]
    spelled = report.families.get("spellings")
    if bad or (spelled is not None and spelled.score < min_recall):
        raise AssertionError(f"the audit of {target} found:\n{report.as_text()}")
    return report


def answers(problem: Problem, *, forms: Sequence[str] = tuple(FORMS)) -> SearchStrategy[Completion]:
    """Completions that answer the problem correctly, in many spellings and forms."""
    from hypothesis import strategies as st

    texts = [text for _, text in spellings(problem)]
    thoughts = st.text(st.characters(categories=("L", "Zs"), max_codepoint=0x24F), min_size=1, max_size=60)
    return st.builds(
        lambda form, answer, why: Completion(write(FORMS[form], answer, why)),
        st.sampled_from(list(forms)),
        st.sampled_from(texts),
        thoughts.filter(lambda why: why.strip() != ""),
    )


def hostile_text(*, max_size: int = 400) -> SearchStrategy[str]:
    """Text made to confuse parsers: tags in any order, unclosed braces, long runs, control or look-alike characters."""
    from hypothesis import strategies as st

    runs = st.builds(lambda piece, n: piece * n, st.sampled_from(sorted(FILLS.values())), st.integers(1, 30))
    pieces = st.one_of(st.sampled_from(_TAGS), runs, st.text(max_size=20))
    return st.lists(pieces, max_size=15).map(lambda found: "".join(found)[:max_size])
