"""Answers that must be JSON allowed by a schema: the jsonschema library, made to terminate on hostile text."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal, InvalidOperation
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

_PATTERN_TIMEOUT_S = 0.5
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


_LONGEST = 1_000_000  # characters of a schema
_STEPS = 100_000
_STEPS_PER_CHARACTER = 20
_left: ContextVar[list[int]] = ContextVar("_left")  # rules that may still be applied


class TooManySteps(Exception):  # not a ValueError, which says that the answer is not JSON
    """The schema's rules would be applied too often."""


class SchemaError(ValueError):
    """The schema itself can't be used."""


class JsonSchema:
    """1 if the answer is JSON that a schema allows, 0 otherwise.

    A ```json fence around the answer is removed. Reasons: `valid`, `invalid` (the detail names place and rule),
    `not_json` (also repeated keys, NaN, and text around it), `no_answer`, `too_long`, `too_deep`. It never abstains.

    A schema whose rules are applied too often, as references can repeat one another, gives `too_hard`.

    Args:
        schema: JSON Schema, 2020-12; None = `Problem.meta["schema"]`, or `Problem.answer` as JSON. An unknown keyword
            is refused: it is probably a typing mistake, and would allow everything.
        equal: the value must also equal `Problem.answer`, parsed as JSON.
        where: "answer", or "text" for the whole completion.

    Raises (when called): GoldError if the problem's schema or answer is missing or can't be used.
    """

    version = "3"

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
        except TooManySteps:
            return Verdict(0.0, "too_hard", answer=text[:1000], span=span)
        except RecursionError:
            return Verdict(0.0, "too_deep", answer=text[:1000], span=span)
        except ValueError as error:
            return Verdict(0.0, "not_json", str(error), text[:1000], span)
        if not broken and self.equal and not same_json(value, self._gold(problem)):
            broken = "differs from the answer"
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
            return _json(problem.answer)
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

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


def validator_of(schema: Any) -> Validator:
    """Returns a validator for the schema. Raises SchemaError."""
    try:
        return _made(json.dumps(schema))
    except (TypeError, RecursionError) as error:
        raise SchemaError(f"not JSON: {error}") from error


@functools.lru_cache(maxsize=256)
def _made(text: str) -> Validator:
    if len(text) > _LONGEST:
        raise SchemaError(f"it has {len(text):,} characters; at most {_LONGEST:,}")
    schema = json.loads(text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise SchemaError(f"{error.json_path}: {error.message[:300]}") from error
    resource = referencing.jsonschema.DRAFT202012.create_resource(schema)
    # With an empty registry nothing is fetched, whatever a reference names.
    registry: Any = referencing.Registry().with_resource(resource.id() or "", resource)
    _check(schema, registry.resolver(resource.id() or ""), "$")
    made: Validator = _Validator(schema, registry=registry)
    return made


def _check(schema: Any, resolver: Any, at: str) -> None:
    """Refuses what the library accepts: unknown keywords, unresolvable references, invalid patterns."""
    if isinstance(schema, bool):
        return
    for key, value in schema.items():
        place = f"{at}.{key}"
        if key not in _Validator.VALIDATORS and key not in _ANNOTATIONS:
            raise SchemaError(f"{place}: the keyword is unknown")
        if key in ("$ref", "$dynamicRef"):
            try:
                resolver.lookup(value)
            except referencing.exceptions.Unresolvable as error:
                raise SchemaError(f"{place}: {value!r} does not refer to a place in the schema itself") from error
        for pattern in [value] if key == "pattern" else value if key == "patternProperties" else ():
            try:
                compiled(pattern)
            except ValueError as error:
                raise SchemaError(f"{place}: pattern {pattern[:200]!r} can't be read: {error}") from error
        inside = {"": value} if key in _HOLD_A_SCHEMA else value if key in _HOLD_NAMED_SCHEMAS else {}
        if key in _HOLD_SCHEMAS:
            inside = dict(enumerate(value))
        for name, part in inside.items():
            _check(part, resolver, f"{place}.{name}" if name != "" else place)


def broken_rule(value: Any, validator: Validator, steps: int = _STEPS) -> str:
    """Returns the first rule that the value breaks, with its place ("$.a[0]: ..."); "" if the schema allows the value.

    Args:
        steps: how many rules may be applied.

    Raises: RecursionError if value or references nest too deeply, TooManySteps.
    """
    before = _left.set([steps])
    try:
        error = next(iter(validator.iter_errors(value)), None)
    finally:
        _left.reset(before)
    return "" if error is None else f"{error.json_path}: {error.message[:300]}"


def _search(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=_PATTERN_TIMEOUT_S) is not None
    except TimeoutError:
        return False


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
    """Uses decimals: 0.3 is a multiple of 0.1, and no number is too large."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            whole = Decimal(str(value)) % Decimal(str(unit)) == 0
        except InvalidOperation:  # more digits than a decimal can hold
            whole = False
        if not whole:
            yield ValidationError(f"{str(value)[:100]} is not a multiple of {unit}")


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


def _counted(rule: Callable[..., Any]) -> Callable[..., Any]:
    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left = _left.get()
        left[0] -= 1
        if left[0] < 0:
            raise TooManySteps
        return rule(validator, value, instance, schema)

    return apply


_RULES: dict[str, Callable[..., Any]] = {
    **jsonschema.Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}
_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {name: _counted(rule) for name, rule in _RULES.items()}
)
