"""Comparison of answers as text or by a pattern, for tasks of your own."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import regex

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.golds import gold_text
from verifiers.patterns import compiled
from verifiers.segments import answering_span, stripped

MAX_CHARS = 100_000  # of an answer
_HIDDEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))


def offered(completion: Completion, where: str) -> tuple[int, int] | Verdict:
    """Returns the span of the text to judge, or the verdict that there is none."""
    text = completion.text
    span = stripped(text, 0, len(text)) if where == "text" else answering_span(text)
    if span is None or span[0] == span[1]:
        return Verdict(0.0, "no_answer")
    if span[1] - span[0] > MAX_CHARS:
        return Verdict(0.0, "too_long", f"{span[1] - span[0]} characters", span=span)
    return span


def checked_where(where: str) -> str:
    """Returns the option `where` if it is valid. Raises ValueError."""
    if where not in ("answer", "text"):
        raise ValueError(f"where must be answer or text, got {where!r}")
    return where


class Exact:
    """1 if the answer is the same text as `Problem.answer`, 0 otherwise.

    Both are compared in Unicode form NFKC, with runs of white space collapsed and invisible characters removed.
    The answer is the only `<answer>` block, or else everything after the thinking. Reasons: `equal`, `different`,
    `no_answer` (none, several blocks, unclosed thinking), `too_long`. It never abstains.

    Args:
        ignore_case: ignore letter case.
        ignore_punctuation: ignore punctuation marks, unless a text has nothing else.
        also: key in `Problem.meta` of a list of other right answers; nulls in it are left out.
        where: "answer", or "text" for the whole completion.

    Raises (when called): GoldError if the problem has no answer.
    """

    version = "2"

    def __init__(
        self, *, ignore_case: bool = False, ignore_punctuation: bool = False, also: str = "", where: str = "answer"
    ) -> None:
        self.ignore_case, self.ignore_punctuation, self.also = ignore_case, ignore_punctuation, also
        self.where = checked_where(where)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        if problem.answer is None or not str(problem.answer).strip():
            raise GoldError(f"problem {problem.name!r} has no answer to compare with")
        golds = [str(problem.answer)]
        if self.also:
            more = problem.meta.get(self.also, [])
            if not isinstance(more, Sequence) or isinstance(more, str):
                raise GoldError(
                    f"problem {problem.name!r}: meta['{self.also}'] must be a list of answers, got {more!r}"
                )
            found = [gold_text(other, f"problem {problem.name!r}: an item of meta['{self.also}']") for other in more]
            golds += [other for other in found if other is not None]
        plain = {self._plain(gold) for gold in golds}
        if "" in plain:
            raise GoldError(f"problem {problem.name!r}: the answer {problem.answer!r} has only invisible characters")
        span = offered(completion, self.where)
        if isinstance(span, Verdict):
            return span
        text = completion.text[slice(*span)]
        same = self._plain(text) in plain
        return Verdict(float(same), "equal" if same else "different", answer=text[:1000], span=span)

    def _plain(self, text: str) -> str:
        text = " ".join(unicodedata.normalize("NFKC", text).translate(_HIDDEN).split())
        if self.ignore_punctuation:
            words = "".join(c if unicodedata.category(c)[0] != "P" else " " for c in text).split()
            text = " ".join(words) or text
        return text.casefold() if self.ignore_case else text


class Regex:
    """1 if the answer as a whole matches a pattern, 0 otherwise.

    Reasons: `match`, `no_match`, `no_answer`, `too_long`, `timeout` (matching took longer than `timeout_s`; the score
    is 0, so give the pattern no nested repeats). It never abstains.

    Args:
        pattern: in the syntax of the `regex` module; None = `Problem.answer` is the pattern.
        search: the pattern may match anywhere in the answer, instead of all of it.
        ignore_case: letter case makes no difference.
        where: "answer", or "text" for the whole completion.
        timeout_s: seconds that one match may take.

    Raises (when called): GoldError if the problem's pattern is missing or can't be compiled.
    """

    version = "1"

    def __init__(
        self,
        *,
        pattern: str | None = None,
        search: bool = False,
        ignore_case: bool = False,
        where: str = "answer",
        timeout_s: float = 1.0,
    ) -> None:
        self.search, self.where, self.timeout_s = search, checked_where(where), timeout_s
        self._flags = regex.DOTALL | (regex.IGNORECASE if ignore_case else 0)
        try:
            self._pattern = None if pattern is None else compiled(pattern, self._flags)
        except ValueError as error:
            raise ValueError(f"pattern {pattern!r:.200} can't be read: {error}") from error

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        pattern = self._pattern
        if pattern is None:
            if not problem.answer:
                raise GoldError(
                    f"problem {problem.name!r} has no pattern in its answer, and the option `pattern` is not set"
                )
            try:
                pattern = compiled(problem.answer, self._flags)
            except ValueError as error:
                raise GoldError(
                    f"problem {problem.name!r}: pattern {problem.answer[:200]!r} can't be read: {error}"
                ) from error
        span = offered(completion, self.where)
        if isinstance(span, Verdict):
            return span
        text = completion.text[slice(*span)]
        match = pattern.search if self.search else pattern.fullmatch
        try:
            found = match(text, timeout=self.timeout_s) is not None
        except TimeoutError:
            return Verdict(0.0, "timeout", f"matching took more than {self.timeout_s} s", text[:1000], span)
        return Verdict(float(found), "match" if found else "no_match", answer=text[:1000], span=span)
