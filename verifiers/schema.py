"""Answers that must be JSON allowed by a schema: the jsonschema library, made to terminate on hostile text."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jsonschema
import referencing
import referencing.exceptions
import referencing.jsonschema
import regex
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.match import checked_where, offered
from verifiers.patterns import compiled

_ANNOTATIONS = {
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "contentEncoding",
    "contentMediaType", "contentSchema", "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary",
    "$defs", "then", "else", "minContains", "maxContains",
}  # fmt: skip
_HOLD_A_SCHEMA = {
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not",
    "if", "then", "else", "contentSchema",
}  # fmt: skip
_HOLD_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_HOLD_NAMED_SCHEMAS = {"properties", "patternProperties", "dependentSchemas", "$defs"}


_DRAFT = referencing.jsonschema.DRAFT202012
_COMPARE = {"enum", "const", "uniqueItems"}  # rules that read the whole value

_LONGEST = 1_000_000  # characters of a schema
_STEPS = 100_000  # each takes about 10 us
_STEPS_PER_CHARACTER = 20
_CHARACTERS_PER_STEP = 64  # that are compared, searched or written into a message
_NAMES_PER_STEP = 16  # that are looked up
_PATTERNS_S = 1.0  # CPU seconds of all searches in one answer


@dataclass
class _Budget:
    """What one answer may still cost."""

    steps: int
    pattern_s: float


_budget: ContextVar[_Budget] = ContextVar("_budget")


class TooManySteps(Exception):  # not a ValueError, which says that the answer is not JSON
    """The schema's rules would be applied too often, or its patterns take too long."""


class SchemaError(ValueError):
    """The schema itself can't be used."""


class JsonSchema:
    """1 if the answer is JSON that a schema allows, 0 otherwise.

    A ```json fence around the answer is removed. Reasons: `valid`, `invalid` (the detail names place and rule),
    `not_json` (also repeated keys, NaN, numbers beyond 1e308, and text around it), `no_answer`, `too_long`, `too_deep`.
    It never abstains.

    A schema whose rules are applied too often, as references can repeat one another, gives `too_hard`. So does one
    whose patterns need more than 1 s for the answer: a search that is not finished is never taken for a match or none.

    Args:
        schema: JSON Schema, 2020-12; None = `Problem.meta["schema"]`, or `Problem.answer` as JSON. An unknown keyword
            is refused: it is probably a typing mistake, and would allow everything. A reference must lead to a
            schema, not into an example or a constant.
        equal: the value must also equal `Problem.answer`, parsed as JSON.
        where: "answer", or "text" for the whole completion.

    Raises (when called): GoldError if the problem's schema or answer is missing or can't be used.
    """

    version = "5"

    def __init__(self, *, schema: Mapping[str, Any] | None = None, equal: bool = False, where: str = "answer") -> None:
        self._validator = None
        if schema is not None:
            try:
                self._validator = validator_of(schema)
            except SchemaError as error:
                raise ValueError(f"schema: {error}") from error
        self.equal, self.where = equal, checked_where(where)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        validator = self._validator or self._own(problem)
        span = offered(completion, self.where)
        if isinstance(span, Verdict):
            return span
        text = completion.text[slice(*span)]
        bare = text
        if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
            bare = bare[bare.index("\n") : -3]
        try:
            value = _json(bare)
            broken = broken_rule(value, validator, _STEPS + _STEPS_PER_CHARACTER * len(bare))
            if not broken and self.equal and not same_json(value, self._gold(problem)):
                broken = "differs from the answer"
        except TooManySteps:
            return Verdict(0.0, "too_hard", answer=text[:1000], span=span)
        except RecursionError:
            return Verdict(0.0, "too_deep", answer=text[:1000], span=span)
        except ValueError as error:
            return Verdict(0.0, "not_json", str(error), text[:1000], span)
        return Verdict(float(not broken), "invalid" if broken else "valid", broken, text[:1000], span)

    def _own(self, problem: Problem) -> Validator:
        schema = problem.meta.get("schema")
        if schema is None:
            schema = {} if self.equal else self._gold(problem)
        try:
            return validator_of(schema)
        except SchemaError as error:
            raise GoldError(f"problem {problem.name!r}: its schema can't be used: {error}") from error

    def _gold(self, problem: Problem) -> Any:
        if problem.answer is None:
            raise GoldError(f"problem {problem.name!r} has neither meta['schema'] nor an answer")
        try:
            return canonical(_json(problem.answer))
        except (ValueError, RecursionError) as error:
            raise GoldError(f"problem {problem.name!r}: its answer is not valid JSON: {error}") from error


def _json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a key occurs twice in one object")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):  # 1e400 and 1e500 would be equal
            raise ValueError(f"{digits[:40]} is too large for a number")
        return value

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)


def validator_of(schema: Any) -> Validator:
    """Returns a validator for the schema. Raises SchemaError."""
    try:
        return _made(json.dumps(schema))
    except SchemaError:
        raise
    except (TypeError, ValueError, RecursionError) as error:  # also from the library, for odd $id and $ref
        raise SchemaError(f"it can't be read: {error}") from error


@functools.lru_cache(maxsize=256)
def _made(text: str) -> Validator:
    if len(text) > _LONGEST:
        raise SchemaError(f"it has {len(text):,} characters; at most {_LONGEST:,}")
    schema = json.loads(text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise SchemaError(f"{error.json_path}: {error.message[:300]}") from error
    resource = _DRAFT.create_resource(schema)
    # With an empty registry nothing is fetched, whatever a reference names.
    registry: Any = referencing.Registry().with_resource(resource.id() or "", resource)
    parts = list(_schemas(schema, registry.resolver(resource.id() or ""), "$"))
    known = {id(part) for part, _, _ in parts}
    for part, resolver, at in parts:
        _check(part, resolver, at, known)
        part.pop("$schema", None)  # the library would judge by the named draft's own rules, which have no limits
    made: Validator = _Validator(schema, registry=registry)
    return made


def _schemas(schema: Any, resolver: Any, at: str) -> Iterator[tuple[dict[str, Any], Any, str]]:
    """Yields the schema and all schemas in it, each with the resolver of its references and its place."""
    if isinstance(schema, bool):
        return
    yield schema, resolver, at
    for key, value in schema.items():
        inside = {"": value} if key in _HOLD_A_SCHEMA else value if key in _HOLD_NAMED_SCHEMAS else {}
        if key in _HOLD_SCHEMAS:
            inside = dict(enumerate(value))
        for name, part in inside.items():
            place = f"{at}.{key}.{name}" if name != "" else f"{at}.{key}"
            yield from _schemas(part, resolver.in_subresource(_DRAFT.create_resource(part)), place)


def _check(schema: dict[str, Any], resolver: Any, at: str, known: set[int]) -> None:
    """Refuses what the library accepts: unknown keywords, references to other places than schemas, invalid patterns."""
    for key, value in schema.items():
        place = f"{at}.{key}"
        if key not in _Validator.VALIDATORS and key not in _ANNOTATIONS:
            raise SchemaError(f"{place}: the keyword is unknown")
        if key in ("$ref", "$dynamicRef"):
            try:
                target = resolver.lookup(value).contents
            except referencing.exceptions.Unresolvable as error:
                raise SchemaError(f"{place}: {value!r} does not refer to a place in the schema itself") from error
            if not isinstance(target, bool) and id(target) not in known:
                raise SchemaError(f"{place}: {value!r} refers to a place that holds no schema")
        for pattern in [value] if key == "pattern" else value if key == "patternProperties" else ():
            try:
                compiled(pattern)
            except ValueError as error:
                raise SchemaError(f"{place}: pattern {pattern[:200]!r} can't be read: {error}") from error


def broken_rule(value: Any, validator: Validator, steps: int = _STEPS) -> str:
    """Returns the first rule that the value breaks, with its place ("$.a[0]: ..."); "" if the schema allows the value.

    Args:
        steps: how many rules may be applied; a rule that reads many names or characters counts as several.

    Raises: RecursionError if value or references nest too deeply, TooManySteps.
    """
    before = _budget.set(_Budget(steps, _PATTERNS_S))
    try:
        error = next(iter(validator.iter_errors(value)), None)
    finally:
        _budget.reset(before)
    return "" if error is None else f"{error.json_path}: {error.message[:300]}"


def _spend(steps: int) -> None:
    budget = _budget.get()
    budget.steps -= steps
    if budget.steps < 0:
        raise TooManySteps


def _search(pattern: str, text: str) -> bool:
    _spend(1 + len(text) // _CHARACTERS_PER_STEP)
    budget = _budget.get()
    began = time.thread_time()
    try:
        found = regex.search(pattern, text, timeout=budget.pattern_s)
    except TimeoutError as error:
        raise TooManySteps from error
    budget.pattern_s -= time.thread_time() - began
    if budget.pattern_s <= 0:
        raise TooManySteps
    return found is not None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _search(pattern, value):
        yield ValidationError(f"{value[:100]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, part in patterns.items():
            for name, inside in value.items():
                if _search(pattern, name):
                    yield from validator.descend(inside, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, inside in value.items():
            if name in named or any(_search(pattern, name) for pattern in patterns):
                continue
            if allowed is False:
                yield ValidationError(f"the property {name[:100]!r} is not allowed")
            else:
                yield from validator.descend(inside, allowed, path=name)


def _multiple_of(validator: Any, unit: float, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Uses exact fractions: 0.3 is a multiple of 0.1, and no number is too large."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = str(value)  # at most 4,300: Python reads no longer integers, and floats end at 1e308
        _spend(len(digits) // _CHARACTERS_PER_STEP)
        try:
            whole = Fraction(digits) % Fraction(str(unit)) == 0
        except ValueError:  # infinity
            whole = False
        if not whole:
            yield ValidationError(f"{digits[:100]} is not a multiple of {unit}")


def _unevaluated(kind: type, validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, kind):
        judged = _evaluated(validator, value, schema)
        left = next((name for name, _ in _parts(value) if name not in judged), None)
        if left is not None:
            yield ValidationError(f"no other rule judges {str(left)[:100]!r}, and it is not allowed")


def _parts(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items() if isinstance(value, dict) else enumerate(value))


def _evaluated(validator: Any, value: Any, schema: Any) -> set[Any]:
    """Returns the names or indexes of the parts of the value that a rule of the schema judges.

    The library's own functions search with patterns that have no time limit, and follow references without counting.
    """
    _spend(1 + len(value))
    if isinstance(schema, bool):
        return set()

    def valid(part: Any, rule: Any) -> bool:
        return next(validator.descend(part, rule), None) is None

    found: set[Any] = set()
    inside: list[Any] = []
    for key in ("allOf", "anyOf", "oneOf"):
        _spend(_work(key, schema.get(key, []), value))
        inside += [part for part in schema.get(key, ()) if valid(value, part)]
    if "if" in schema:
        holds = valid(value, schema["if"])
        inside += [schema["if"]] * holds + [schema.get("then" if holds else "else", True)]
    if isinstance(value, dict):
        rules = ("additionalProperties", "unevaluatedProperties")
        found.update(schema.get("properties", {}).keys() & value.keys())
        found.update(
            name for pattern in schema.get("patternProperties", ()) for name in value if _search(pattern, name)
        )
        inside += [part for name, part in schema.get("dependentSchemas", {}).items() if name in value]
    else:
        rules = ("contains", "unevaluatedItems")
        found.update(range(len(value) if "items" in schema else min(len(value), len(schema.get("prefixItems", ())))))
    for rule in rules:
        if rule in schema:
            _spend(_work(rule, schema[rule], value))
            found.update(name for name, part in _parts(value) if valid(part, schema[rule]))
    for key in ("$ref", "$dynamicRef"):
        if key in schema:
            place = validator._resolver.lookup(schema[key])
            there = validator.evolve(schema=place.contents, _resolver=place.resolver)
            found |= _evaluated(there, value, place.contents)
    return found.union(*(_evaluated(validator, value, part) for part in inside))


def _unique_items(validator: Any, wanted: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Uses a table, because the library compares mixed items pairwise."""
    if (
        wanted
        and isinstance(value, list)
        and len({json.dumps(canonical(v), sort_keys=True) for v in value}) < len(value)
    ):
        yield ValidationError("an item occurs twice")


def canonical(value: Any) -> Any:
    """Returns a value that is the same only for equal JSON values: 1.0 is 1, true is not."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: canonical(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [canonical(inside) for inside in value]
    return value


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1, but 1 is 1.0."""
    return _text_of(a) == _text_of(b)


def _text_of(value: Any) -> str:
    return json.dumps(canonical(value), sort_keys=True)


def _work(name: str, rule: Any, value: Any) -> int:
    """Returns the steps of a rule, without those of the schemas that it holds."""
    many = len(rule) if isinstance(rule, list | dict) else 1
    # How often the whole value is compared, or quoted by the schema `false`.
    reads = many if name in _COMPARE else rule.count(False) if name in _HOLD_SCHEMAS else int(rule is False)
    steps = 1 + (reads * _size(value) // _CHARACTERS_PER_STEP if reads else 0)
    if name in _HOLD_SCHEMAS:
        return steps + many
    if name in _HOLD_A_SCHEMA and isinstance(value, list | dict):
        return steps + len(value)
    if name == "dependentRequired":
        many = sum(map(len, rule.values()))
    return steps + many // _NAMES_PER_STEP


def _size(value: Any) -> int:
    """Returns about how many characters the value has as JSON."""
    size, left = 0, [value]
    while left:
        part = left.pop()
        size += 4 + (len(part) if isinstance(part, str) else 0)
        if isinstance(part, list | dict):
            left += part
        if isinstance(part, dict):
            left += part.values()
    return size


def _counted(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _spend(_work(name, value, instance))
        return map(_with_message, rule(validator, value, instance, schema) or ())

    return apply


def _with_message(error: ValidationError) -> ValidationError:
    """Counts the message, in which the library quotes values and schemas as a whole."""
    _spend(len(error.message) // _CHARACTERS_PER_STEP)
    return error


_RULES: dict[str, Callable[..., Any]] = {
    **jsonschema.Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
    "unevaluatedItems": functools.partial(_unevaluated, list),
    "unevaluatedProperties": functools.partial(_unevaluated, dict),
}
_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {name: _counted(name, rule) for name, rule in _RULES.items()}
)
