"""The chain of filters. A filter keeps a completion, or rejects it with a reason.

A filter is written with its options, as in "length:max=2000,unit=words". It is one of FILTERS, any verifier
("thinking:min=1,min_words=20", which keeps scores of at least `min` and abstentions), or your own "module:function".
Your function is called with a Candidate and its options, and returns None to keep it or a Rejection.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from r1lite.curation.rows import Candidate
from r1lite.errors import UserError
from verifiers import VERIFIERS, Reward
from verifiers.core import did_you_mean
from verifiers.segments import thinking

# Default of `min`, the lowest score that passes, for verifiers as filters.
_LOWEST = {"language": 0.9, "repetition": 0.5}
# Reasons that pass with any score: a short chain isn't in a wrong language just because it has few words.
_PASSES = {("language", "short")}
_SHOWN = 80


class Rejection(NamedTuple):
    """The reason for rejecting a completion."""

    reason: str  # a short fixed word, for counting
    detail: str = ""


Check = Callable[[Candidate], Rejection | None]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of the chain. If a verifier decides, `Candidate.scores` has its score when `check` is called."""

    name: str  # a key of FILTERS, a verifier, or "module:function"
    options: Mapping[str, Any]
    check: Check
    verifier: Reward | None = None  # the reward that computes the score, if a verifier decides
    spec: str = field(default="")  # as the user wrote it


def finished(candidate: Candidate) -> Rejection | None:
    """Keeps completions that ended by themselves."""
    if candidate.completion.finish_reason == "stop":
        return None
    return Rejection("cut_off", f"finish_reason {candidate.completion.finish_reason}")


def length(candidate: Candidate, *, min: int = 0, max: int = 0, unit: str = "tokens") -> Rejection | None:
    """Keeps completions of at least `min` and at most `max` (0: any) tokens, words or chars.

    If the number of tokens of a stored completion is unknown, its words are counted.
    """
    text = candidate.completion.text
    size = {"chars": len(text), "words": len(text.split())}.get(unit, candidate.length)
    if size < min:
        return Rejection("too_short", f"{size} {unit}")
    if max and size > max:
        return Rejection("too_long", f"{size} {unit}")
    return None


def paragraphs(candidate: Candidate, *, max_words: int = 200, max_number: int = 0) -> Rejection | None:
    """Keeps thinking with at most `max_number` paragraphs (0: any) of at most `max_words` words each.

    DeepSeek-R1 dropped chains with long paragraphs (arXiv:2501.12948, B.3.3) and gives no limit.
    """
    found = [part for part in re.split(r"\n[ \t]*\n", thinking(candidate.completion.text)) if part.strip()]
    longest = max((len(part.split()) for part in found), default=0)
    if longest > max_words:
        return Rejection("long_paragraph", f"{longest} words")
    if max_number and len(found) > max_number:
        return Rejection("many_paragraphs", f"{len(found)} paragraphs")
    return None


def code_blocks(candidate: Candidate) -> Rejection | None:
    """Keeps thinking without fenced code."""
    return (
        Rejection("code_block") if re.search(r"^[ \t]*(```|~~~)", thinking(candidate.completion.text), re.M) else None
    )


# `correct` isn't a function here: it is the task's verifier, which the caller passes.
FILTERS: dict[str, Callable[..., Rejection | None]] = {
    "finished": finished,
    "length": length,
    "paragraphs": paragraphs,
    "code_blocks": code_blocks,
}


def chain(specs: Sequence[str], correct: Reward, options: Mapping[str, Mapping[str, Any]]) -> list[Filter]:
    """The filters of these specs. `correct` always comes first, even if it isn't in `specs`.

    Args:
        options: options of the verifiers by name; those in a spec override them.

    Raises:
        UserError: names or options are unknown; the message lists all of them.
    """
    made, wrong = [], []
    for spec in dict.fromkeys(["correct", *specs]):
        try:
            made.append(_filter(spec, correct, options))
        except (UserError, ValueError) as error:
            wrong.append(f"--filters: {error}")
    names = [link.name for link in made]
    wrong += [f"--filters: '{name}' is named twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if wrong:
        raise UserError("\n".join(wrong))
    return made


def _filter(spec: str, correct: Reward, known: Mapping[str, Mapping[str, Any]]) -> Filter:
    name, options = parse(spec)
    if name == "correct":
        if options:
            raise UserError("'correct' takes no options here; set those of its verifier under verifiers: in a recipe")
        return Filter(name, {}, functools.partial(_right, reward=correct), correct, spec)
    if name in FILTERS:
        return Filter(name, options, _bound(spec, FILTERS[name], options), spec=spec)
    if ":" in name:
        return Filter(name, options, _bound(spec, _own(name), options), spec=spec)
    if name not in VERIFIERS and name not in known:
        names = ["correct", *FILTERS, *VERIFIERS]
        hint = did_you_mean(name, names, f"known: {', '.join(names)}.")
        raise UserError(f"unknown filter '{name}'; {hint} (your own: 'module:function')")
    lowest = options.pop("min", _LOWEST.get(name, 1.0))
    if not isinstance(lowest, int | float) or not 0 <= lowest <= 1:
        raise UserError(f"'{spec}': min is the lowest score that passes, from 0 to 1")
    if name in correct.verifiers:
        raise UserError(f"'{name}' is already the filter 'correct'")
    given = {**known.get(name, {}), **options}
    reward = Reward(name, options={name: given} if given else None)
    return Filter(name, {"min": lowest, **given}, functools.partial(_verified, name=name, lowest=lowest), reward, spec)


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """ "length:max=9,unit=words" -> ("length", {"max": 9, "unit": "words"}). Raises UserError."""
    head, colon, tail = spec.rpartition(":")
    if not colon or "=" not in tail:
        return spec.strip(), {}
    options = {}
    for part in tail.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise UserError(f"'{spec}': write options as name:key=value,key=value")
        options[key.strip()] = _value(value.strip())
    return head.strip(), options


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _bound(spec: str, function: Callable[..., Any], options: Mapping[str, Any]) -> Check:
    try:
        inspect.signature(function).bind(None, **options)
    except TypeError as error:
        takes = [name for name in inspect.signature(function).parameters][1:]
        raise UserError(f"'{spec}': {error}; it takes {', '.join(takes) or 'no options'}") from error
    for name, value in options.items():
        default = inspect.signature(function).parameters[name].default
        if isinstance(default, int) and not isinstance(value, int):
            raise UserError(f"'{spec}': {name} must be a whole number, got {value!r}")
    if function is length and options.get("unit", "tokens") not in ("tokens", "words", "chars"):
        raise UserError(f"'{spec}': unit is tokens, words or chars, got {options['unit']!r}")
    return functools.partial(function, **options)


def _own(name: str) -> Callable[..., Any]:
    try:
        found: object = pkgutil.resolve_name(name)
    except Exception as error:  # importing a user's module can raise anything
        raise UserError(f"'{name}': {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UserError(f"'{name}' is {type(found).__name__}, not a function")
    return found


def _right(candidate: Candidate, *, reward: Reward) -> Rejection | None:
    """Keeps completions to which the correctness formula gives its highest value."""
    score = candidate.scores["correct"]
    if score.error:
        return Rejection("unscored", score.error)
    if score.reward is not None and score.reward >= reward.range[1] - 1e-9:
        return None
    verdict = next((v for v in score.verdicts.values() if v.score is None or v.score < 1), None)
    if score.reward is None or verdict is None:
        return Rejection("abstained", "" if verdict is None else verdict.reason)
    return Rejection(verdict.reason, verdict.detail[:_SHOWN])


def _verified(candidate: Candidate, *, name: str, lowest: float) -> Rejection | None:
    """Keeps completions with a score of at least `lowest`, or an abstention."""
    score = candidate.scores[name]
    if score.error:
        return Rejection("unscored", score.error)
    verdict = score.verdicts[name]
    if verdict.score is None or verdict.score >= lowest or (name, verdict.reason) in _PASSES:
        return None
    return Rejection(verdict.reason, verdict.detail[:_SHOWN])
