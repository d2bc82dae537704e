"""Parses requests. An error in one row is reported in its own verdict; an error outside the rows is a 422."""

from __future__ import annotations

import collections
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from verifiers.adapters.openrlhf import response_of
from verifiers.adapters.shared import read_gold, said, written
from verifiers.core import Completion, GoldError, Problem
from verifiers.golds import gold_text
from verifiers.prefill import prefill_of
from verifiers.reward import Reward
from verifiers.sandbox.checkers import TEXT_CHECKERS, VALUE_CHECKERS

_MAX_DEPTH = 64
_SHOWN = 80
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = {int, float, bool, type(None)}
_CHECKERS = sorted({*TEXT_CHECKERS, *VALUE_CHECKERS})  # and programs; not module:fn, which runs outside the sandbox
LOWERABLE = ("time_s", "memory_mib")  # limits of code verifiers that a request or a row's tests may lower
Item = tuple[Problem, Completion]
M = TypeVar("M", bound=BaseModel)


class BadRequest(ValueError):
    """The request can't be read; the message says where and why."""


class Row(BaseModel):
    """One completion."""

    model_config = ConfigDict(extra="forbid", strict=True)
    id: str | int = ""
    completion: str
    prompt: str = ""
    reference: Any = None  # the gold: text or a number
    language: str | None = None
    tests: dict[str, Any] | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    token_ids: list[int] = Field(default_factory=list)


class VerifyRequest(BaseModel):
    """A batch; `reward` is a formula over the served verifiers, `verifier` a single one."""

    model_config = ConfigDict(extra="forbid", strict=True)
    reward: str | None = None
    verifier: str | None = None
    config: dict[str, dict[str, Any]] = Field(default_factory=dict)  # lower limits for code: time_s, memory_mib
    rows: list[Any]


class RewardRequest(BaseModel):
    """OpenRLHF's call; other fields are ignored."""

    model_config = ConfigDict(strict=True)
    query: list[Any]
    prompts: list[Any]
    labels: list[Any] | None = None


class SlimeRequest(BaseModel):
    """slime's call for one sample."""

    model_config = ConfigDict(strict=True)
    prompt: Any
    response: Any
    label: Any = None


class _Flaw:
    """Placeholder in parsed JSON for a value that JSON can't express."""

    def __init__(self, why: str) -> None:
        self.why = why


def read_json(body: bytes) -> Any:
    """Returns the body's value, with a `_Flaw` in place of NaN, Infinity, repeated keys and numbers out of range.

    Raises: BadRequest.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 text (byte {error.start})") from error
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise BadRequest(f"the body is nested too deeply; at most {_MAX_DEPTH} levels are read") from error
    except ValueError:  # an integer of more digits than Python parses
        return _loads(text, _integer)


def _loads(text: str, integer: Callable[[str], Any] | None = None) -> Any:
    return json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=integer, object_pairs_hook=_object)


def _constant(name: str) -> _Flaw:
    return _Flaw(f"{name} is not JSON")


def _float(text: str) -> float | _Flaw:
    value = float(text)
    return value if math.isfinite(value) else _Flaw(f"the number {text:.{_SHOWN}} is out of range")


def _integer(text: str) -> int | _Flaw:
    return int(text) if len(text) < 1000 else _Flaw(f"an integer has {len(text)} digits")


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    twice = next(name for name, count in collections.Counter(name for name, _ in pairs).items() if count > 1)
    # As usual the last value wins, so that the row keeps its id; but the row is refused.
    return {**found, "": _Flaw(f"the key {twice[:_SHOWN]!r} occurs twice in one object")}


def flaw_of(value: Any) -> str:
    """Returns why a value can't be used; "" for plain JSON of text, finite numbers and at most 64 levels."""
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if isinstance(found, _Flaw):
            return found.why
        if isinstance(found, str):
            if not found.isascii() and _SURROGATE.search(found):
                return f"a text contains a lone surrogate (half a character): {found[:_SHOWN]!r}"
        elif isinstance(found, dict | list):
            if depth > _MAX_DEPTH:
                return f"it is nested deeper than {_MAX_DEPTH} levels"
            if isinstance(found, dict):
                waiting += [(part, depth + 1) for part in found]
                waiting += [(part, depth + 1) for part in found.values()]
            elif not set(map(type, found)) <= _PLAIN:
                waiting += [(part, depth + 1) for part in found]
    return ""


def verify_request(value: Any) -> VerifyRequest:
    """Parses the body of /v1/verify. Raises BadRequest."""
    return _model(VerifyRequest, value, "rows")


def reward_request(value: Any) -> RewardRequest:
    """Parses the body of /get_reward. Raises BadRequest."""
    return _model(RewardRequest, value, "query", "prompts", "labels")


def _model(model: type[M], value: Any, *by_item: str) -> M:
    """Returns the request; the items of the lists `by_item` are not yet checked."""
    if not isinstance(value, dict):
        raise BadRequest(f"the body must be an object, got {_kind(value)}")
    around = {name: part for name, part in value.items() if not (name in by_item and isinstance(part, list))}
    if why := flaw_of(around):
        raise BadRequest(f"the body can't be used: {why}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BadRequest(_said(error)) from error


def _said(error: ValidationError) -> str:
    """Returns the first error, without the value, which may be large."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:_SHOWN] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def row_item(index: int, row: Any, *, reads_gold: bool, limits: Mapping[str, float]) -> Item:
    """Returns the problem and completion of a row.

    Args:
        reads_gold: the reward compares answers, so a missing value as a gold makes the row unusable.
        limits: of code, by name; a row may lower them but not raise them.

    Raises: BadRequest, naming the row.
    """
    where = f"rows[{index}]"
    if why := flaw_of(row):
        raise BadRequest(f"{where}: {why}")
    try:
        made = Row.model_validate(row)
        gold = gold_text(made.reference) if reads_gold else None
    except ValidationError as error:
        raise BadRequest(f"{where}.{_said(error)}") from error
    except GoldError as error:
        raise BadRequest(f"{where}.reference: {error}") from error
    tests = _tests(f"{where}.tests", made.tests, limits)
    problem = Problem(made.prompt, gold, tests, made.language, str(made.id), made.meta)
    return problem, Completion(made.completion, tuple(made.token_ids), prefill=prefill_of(made.prompt))


def _tests(where: str, tests: Mapping[str, Any] | None, limits: Mapping[str, float]) -> Mapping[str, Any] | None:
    """Returns tests with the limits that apply to them. Raises BadRequest for what a request may not ask for."""
    if tests is None:
        return None
    checker = tests.get("checker")
    if isinstance(checker, str) and checker not in _CHECKERS and not checker.startswith("float:"):
        known = ", ".join(_CHECKERS)
        raise BadRequest(f"{where}.checker: {checker[:_SHOWN]!r} is not served; known: {known}, or {{'program': TEXT}}")
    for name, most in limits.items():
        own = tests.get(name)
        if isinstance(own, int | float) and own > most:
            raise BadRequest(f"{where}.{name}: {own!r:.{_SHOWN}} is more than this server allows ({most:g})")
    return {**limits, **tests}


def id_of(row: Any) -> str | int | None:
    """Returns the id for the reply, also for a row that can't be used."""
    name = row.get("id", "") if isinstance(row, dict) else None
    return name if isinstance(name, str | int) and not isinstance(name, bool) and not flaw_of(name) else None


def lowered(limits: Mapping[str, float], config: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Returns the limits of code that a request sets with `config`. Raises BadRequest."""
    found = dict(limits)
    for verifier, options in config.items():
        for name, value in options.items():
            if name not in limits:
                allowed = f"it may lower {' and '.join(limits)}" if limits else "this reward has none to lower"
                raise BadRequest(
                    f"config.{verifier[:_SHOWN]}.{name[:_SHOWN]}: options are fixed when the server starts; {allowed}"
                )
            most = limits[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
                shown = f"{value!r:.{_SHOWN}}"
                raise BadRequest(f"config.{verifier}.{name} must be a number above 0 and at most {most:g}, got {shown}")
            found[name] = min(found[name], value)
    return found


def reward_items(request: RewardRequest, reward: Reward, limits: Mapping[str, float]) -> list[Item | BadRequest]:
    """Returns OpenRLHF's batch, with an error for each unusable item; its tests can't raise the `limits` of code.

    Raises: BadRequest if the lengths differ.
    """
    labels = request.labels or [None] * len(request.query)
    if not len(request.query) == len(request.prompts) == len(labels):
        counts = f"{len(request.query)}, {len(request.prompts)} and {len(labels)}"
        raise BadRequest(f"query, prompts and labels must be of one length, got {counts}")
    items: list[Item | BadRequest] = []
    for index, (query, prompt, label) in enumerate(zip(request.query, request.prompts, labels, strict=True)):
        try:
            items.append(_reward_item(index, query, prompt, label, reward, limits))
        except BadRequest as error:
            items.append(error)
    return items


def slime_request(value: Any) -> SlimeRequest:
    """Parses the body of /slime. Raises BadRequest."""
    return _model(SlimeRequest, value)


def slime_item(sample: SlimeRequest, reward: Reward, limits: Mapping[str, float]) -> Item:
    """Returns slime's sample; its prompt is text or messages, its tests can't raise the `limits` of code.

    Raises: BadRequest.
    """
    for name in ("prompt", "response", "label"):
        if why := flaw_of(getattr(sample, name)):
            raise BadRequest(f"{name}: {why}")
    try:
        problem = _labelled("label", sample.label, Problem(said(sample.prompt, "user")), reward, limits)
        return problem, written(sample.prompt, said(sample.response))
    except TypeError as error:
        raise BadRequest(f"prompt, response: {error}") from error


def _reward_item(index: int, query: Any, prompt: Any, label: Any, reward: Reward, limits: Mapping[str, float]) -> Item:
    for name, value in (("query", query), ("prompts", prompt), ("labels", label)):
        if why := flaw_of(value):
            raise BadRequest(f"{name}[{index}]: {why}")
    if not isinstance(query, str) or not isinstance(prompt, str):
        name, value = ("prompts", prompt) if isinstance(query, str) else ("query", query)
        raise BadRequest(f"{name}[{index}]: it must be text, got {_kind(value)}")
    problem = _labelled(f"labels[{index}]", label, Problem(prompt, id=str(index)), reward, limits)
    try:
        return problem, Completion(response_of(query, prompt), prefill=prefill_of(prompt))
    except ValueError as error:
        raise BadRequest(f"query[{index}]: {error}") from error


def _labelled(where: str, label: Any, problem: Problem, reward: Reward, limits: Mapping[str, float]) -> Problem:
    """Returns the problem with the answer or the tests of a trainer's label. Raises BadRequest."""
    try:
        problem = read_gold(reward, problem, label)
    except GoldError as error:
        raise BadRequest(f"{where}: {error}") from error
    return replace(problem, tests=_tests(where, problem.tests, limits))


def _kind(value: Any) -> str:
    if isinstance(value, _Flaw):
        return value.why
    names = {dict: "an object", list: "a list", str: "text", type(None): "null", bool: "a truth value"}
    return names.get(type(value), "a number")
