"""Answers that are compared as text, by a pattern, or by a JSON schema: for tasks of your own."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import regex

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.jsonschema import SchemaError, broken_rule, check_schema, same_json
from verifiers.segments import answering

MAX_CHARS = 100_000  # of an answer
_HIDDEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))


def _name(problem: Problem) -> str:
    return f"problem {problem.id or problem.prompt[:60]!r}"


def _offered(completion: Completion, where: str) -> str | Verdict:
    """The text to judge, or the verdict that there is none."""
    text = completion.text.strip() if where == "text" else answering(completion.text)
    if not text:
        return Verdict(0.0, "no_answer")
    if len(text) > MAX_CHARS:
        return Verdict(0.0, "too_long", f"{len(text)} characters")
    return text


def _checked_where(where: str) -> str:
    if where not in ("answer", "text"):
        raise ValueError(f"where must be answer or text, got {where!r}")
    return where


class Exact:
    """1 if the answer is the same text as `Problem.answer`, 0 otherwise.

    Both are compared in Unicode form NFKC, with runs of white space made one space and invisible characters removed.
    The answer is the one `<answer>` block, or else all that follows the thinking. Reasons: `equal`, `different`,
    `no_answer` (none, several blocks, unclosed thinking), `too_long`. It never abstains.

    Args:
        ignore_case: letter case makes no difference.
        ignore_punctuation: nor do punctuation marks.
        also: `Problem.meta` key of a list of other right answers.
        where: "answer", or "text" for the whole completion.

    Raises (when called): GoldError if the problem has no answer.
    """

    version = "1"

    def __init__(
        self, *, ignore_case: bool = False, ignore_punctuation: bool = False, also: str = "", where: str = "answer"
    ) -> None:
        self.ignore_case, self.ignore_punctuation, self.also = ignore_case, ignore_punctuation, also
        self.where = _checked_where(where)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        if problem.answer is None or not str(problem.answer).strip():
            raise GoldError(f"{_name(problem)} has no answer to compare with")
        golds = [str(problem.answer)]
        if self.also:
            more = problem.meta.get(self.also, [])
            if not isinstance(more, Sequence) or isinstance(more, str):
                raise GoldError(f"{_name(problem)}: meta['{self.also}'] must be a list of answers, got {more!r}")
            golds += map(str, more)
        text = _offered(completion, self.where)
        if isinstance(text, Verdict):
            return text
        same = self._plain(text) in {self._plain(gold) for gold in golds}
        return Verdict(float(same), "equal" if same else "different", answer=text[:1000])

    def _plain(self, text: str) -> str:
        text = " ".join(unicodedata.normalize("NFKC", text).translate(_HIDDEN).split())
        if self.ignore_punctuation:
            text = " ".join("".join(c if unicodedata.category(c)[0] != "P" else " " for c in text).split())
        return text.casefold() if self.ignore_case else text


class Regex:
    """1 if the answer as a whole matches a pattern, 0 otherwise.

    Reasons: `match`, `no_match`, `no_answer`, `too_long`, `timeout` (matching took longer than `timeout_s`: 0, for a
    text that stalls a pattern is no right answer; give the pattern no nested repeats). It never abstains.

    Args:
        pattern: in the syntax of the `regex` module; None = `Problem.answer` is the pattern.
        search: the pattern may match anywhere in the answer, instead of all of it.
        ignore_case: letter case makes no difference.
        where: "answer", or "text" for the whole completion.
        timeout_s: seconds that one match may take.

    Raises (when called): GoldError if the problem's pattern is missing or can't be read.
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
        self.search, self.where, self.timeout_s = search, _checked_where(where), timeout_s
        self._flags = regex.DOTALL | (regex.IGNORECASE if ignore_case else 0)
        try:
            self._pattern = None if pattern is None else regex.compile(pattern, self._flags)
        except regex.error as error:
            raise ValueError(f"pattern {pattern!r} can't be read: {error}") from error

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        pattern = self._pattern
        if pattern is None:
            if not problem.answer:
                raise GoldError(f"{_name(problem)} has no pattern in its answer, and the option `pattern` is not set")
            try:
                pattern = regex.compile(problem.answer, self._flags)
            except regex.error as error:
                raise GoldError(f"{_name(problem)}: pattern {problem.answer!r} can't be read: {error}") from error
        text = _offered(completion, self.where)
        if isinstance(text, Verdict):
            return text
        match = pattern.search if self.search else pattern.fullmatch
        try:
            found = match(text, timeout=self.timeout_s) is not None
        except TimeoutError:
            return Verdict(0.0, "timeout", f"matching took more than {self.timeout_s} s", text[:1000])
        return Verdict(float(found), "match" if found else "no_match", answer=text[:1000])


class JsonSchema:
    """1 if the answer is JSON that a schema allows, 0 otherwise.

    A ```json fence around it is taken off. Reasons: `valid`, `invalid` (the detail names place and rule), `not_json`
    (also repeated keys, NaN, and text around it), `no_answer`, `too_long`, `too_deep`. It never abstains.

    Args:
        schema: JSON Schema (2020-12; see `verifiers.jsonschema` for the keywords); None = `Problem.meta["schema"]`,
            or `Problem.answer` as JSON.
        equal: the value must also equal `Problem.answer`, read as JSON.
        where: "answer", or "text" for the whole completion.

    Raises (when called): GoldError if the problem's schema or answer is missing or can't be used.
    """

    version = "1"

    def __init__(self, *, schema: Mapping[str, Any] | None = None, equal: bool = False, where: str = "answer") -> None:
        if schema is not None:
            try:
                check_schema(schema)
            except SchemaError as error:
                raise ValueError(f"schema: {error}") from error
        self.schema, self.equal, self.where = schema, equal, _checked_where(where)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        schema = self.schema if self.schema is not None else self._own_schema(problem)
        text = _offered(completion, self.where)
        if isinstance(text, Verdict):
            return text
        bare = text
        if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
            bare = bare[bare.index("\n") : -3]
        try:
            value = _json(bare)
            broken = broken_rule(value, schema)
        except RecursionError:
            return Verdict(0.0, "too_deep", answer=text[:1000])
        except ValueError as error:
            return Verdict(0.0, "not_json", str(error), text[:1000])
        if not broken and self.equal and not same_json(value, self._gold(problem)):
            broken = "differs from the answer"
        return Verdict(float(not broken), "invalid" if broken else "valid", broken, text[:1000])

    def _own_schema(self, problem: Problem) -> Mapping[str, Any]:
        schema = problem.meta.get("schema")
        if schema is None and self.equal:
            return {}
        if schema is None:
            schema = self._gold(problem)
        try:
            check_schema(schema)
        except SchemaError as error:
            raise GoldError(f"{_name(problem)}: its schema can't be used: {error}") from error
        return schema  # type: ignore[no-any-return]

    def _gold(self, problem: Problem) -> Any:
        if problem.answer is None:
            raise GoldError(f"{_name(problem)} has neither meta['schema'] nor an answer")
        try:
            return _json(problem.answer)
        except (ValueError, RecursionError) as error:
            raise GoldError(f"{_name(problem)}: its answer is no JSON: {error}") from error


def _json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a key stands twice in one object")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
