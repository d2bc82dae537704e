"""A validator for the part of JSON Schema (2020-12) that describes answers. Any other keyword is refused, not ignored.

Keywords: type enum const; properties required additionalProperties patternProperties propertyNames minProperties
maxProperties dependentRequired; items prefixItems contains minContains maxContains minItems maxItems uniqueItems;
minimum maximum exclusiveMinimum exclusiveMaximum multipleOf; minLength maxLength pattern; allOf anyOf oneOf not
if/then/else; $ref and $defs within the schema. Annotations (title, description, ...) are allowed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import regex

_TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v == v // 1,
}
_ANNOTATIONS = {"title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment", "format"}
_SCHEMAS = {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"}
_LISTS_OF_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_MAPS_OF_SCHEMAS = {"properties", "patternProperties", "$defs"}
_NUMBERS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_COUNTS = {"minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength"} | {
    "minContains",
    "maxContains",
}
_PATTERN_TIMEOUT_S = 0.5


class SchemaError(ValueError):
    """The schema itself can't be used."""


def check_schema(schema: Any, root: Any = None, path: str = "#") -> None:
    """Raises SchemaError where a schema uses what is not known here, or uses it wrongly."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise SchemaError(f"{path}: a schema is an object or true/false, not {type(schema).__name__}")
    for key, value in schema.items():
        at = f"{path}/{key}"
        if key in _SCHEMAS:
            check_schema(value, root, at)
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            for i, part in enumerate(value):
                check_schema(part, root, f"{at}/{i}")
        elif key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            for name, part in value.items():
                check_schema(part, root, f"{at}/{name}")
        elif key == "$ref":
            _referred(root, value)
        elif not _fits(key, value):
            raise SchemaError(f"{at}: {json.dumps(value)[:80]} can't stand there, or the keyword is unknown")
        if key in ("pattern", "patternProperties"):
            _check_patterns([value] if key == "pattern" else list(value), at)


def _fits(key: str, value: Any) -> bool:
    if key in _ANNOTATIONS or key == "const":
        return True
    if key == "type":
        names = value if isinstance(value, list) else [value]
        return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
    if key in _NUMBERS:
        return _TYPES["number"](value) and (key != "multipleOf" or value > 0)
    if key in _COUNTS:
        return _TYPES["integer"](value) and value >= 0
    if key == "required":
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    if key == "dependentRequired":
        return isinstance(value, Mapping) and all(_fits("required", names) for names in value.values())
    checks = {"enum": list, "uniqueItems": bool, "pattern": str}
    return key in checks and isinstance(value, checks[key])


def _check_patterns(patterns: list[str], at: str) -> None:
    for pattern in patterns:
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise SchemaError(f"{at}: pattern {pattern!r} can't be read: {error}") from error


def _referred(root: Any, ref: Any) -> Any:
    if not isinstance(ref, str) or not ref.startswith("#"):
        raise SchemaError(f"$ref {ref!r}: only places in the schema itself (#/...) can be referred to")
    found = root
    for part in ref[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or part not in found:
            raise SchemaError(f"$ref {ref!r}: there is no such place")
        found = found[part]
    return found


def broken_rule(value: Any, schema: Any) -> str:
    """The first rule that the value breaks, with its place ("$.a[0]: ..."); "" if the schema allows it.

    Raises: RecursionError where value or references nest too deep.
    """
    return _broken(value, schema, schema, "$")


def _broken(value: Any, schema: Any, root: Any, at: str) -> str:
    if isinstance(schema, bool):
        return "" if schema else f"{at}: nothing is allowed here"
    if "$ref" in schema:
        found = _broken(value, _referred(root, schema["$ref"]), root, at)
        if found:
            return found
    types = schema.get("type")
    if types is not None and not any(_TYPES[name](value) for name in ([types] if isinstance(types, str) else types)):
        return f"{at}: is no {types if isinstance(types, str) else ' or '.join(types)}"
    if "enum" in schema and not any(same_json(value, allowed) for allowed in schema["enum"]):
        return f"{at}: is none of the allowed values"
    if "const" in schema and not same_json(value, schema["const"]):
        return f"{at}: is not {json.dumps(schema['const'])[:80]}"
    found = _combined(value, schema, root, at)
    if found:
        return found
    if isinstance(value, dict):
        return _object(value, schema, root, at)
    if isinstance(value, list):
        return _array(value, schema, root, at)
    if isinstance(value, str):
        return _string(value, schema, at)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value, schema, at)
    return ""


def _combined(value: Any, schema: Mapping[str, Any], root: Any, at: str) -> str:
    for part in schema.get("allOf", ()):
        if found := _broken(value, part, root, at):
            return found
    if "anyOf" in schema and all(_broken(value, part, root, at) for part in schema["anyOf"]):
        return f"{at}: fits none of anyOf"
    if "oneOf" in schema and sum(not _broken(value, part, root, at) for part in schema["oneOf"]) != 1:
        return f"{at}: does not fit exactly one of oneOf"
    if "not" in schema and not _broken(value, schema["not"], root, at):
        return f"{at}: is what `not` excludes"
    if "if" in schema:
        branch = "else" if _broken(value, schema["if"], root, at) else "then"
        return _broken(value, schema.get(branch, True), root, at)
    return ""


def _object(value: dict[str, Any], schema: Mapping[str, Any], root: Any, at: str) -> str:
    missing = [name for name in schema.get("required", ()) if name not in value]
    for name, needed in schema.get("dependentRequired", {}).items():
        if name in value:
            missing += [other for other in needed if other not in value]
    if missing:
        return f"{at}: lacks '{missing[0]}'"
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        return f"{at}: has {len(value)} properties"
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, inside in value.items():
        place = f"{at}.{name}"
        parts = [properties[name]] if name in properties else []
        parts += [part for pattern, part in patterns.items() if _search(pattern, name)]
        if not parts:
            parts = [schema.get("additionalProperties", True)]
        for part in parts:
            if found := _broken(inside, part, root, place):
                return found
        if found := _broken(name, schema.get("propertyNames", True), root, place):
            return found
    return ""


def _array(value: list[Any], schema: Mapping[str, Any], root: Any, at: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{at}: has {len(value)} items"
    first = schema.get("prefixItems", ())
    for i, inside in enumerate(value):
        part = first[i] if i < len(first) else schema.get("items", True)
        if found := _broken(inside, part, root, f"{at}[{i}]"):
            return found
    if "contains" in schema:
        count = sum(not _broken(inside, schema["contains"], root, at) for inside in value)
        if not schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value)):
            return f"{at}: {count} items are what `contains` asks for"
    if schema.get("uniqueItems") and len({json.dumps(v, sort_keys=True) for v in value}) != len(value):
        return f"{at}: an item stands twice"
    return ""


def _string(value: str, schema: Mapping[str, Any], at: str) -> str:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return f"{at}: has {len(value)} characters"
    if "pattern" in schema and not _search(schema["pattern"], value):
        return f"{at}: does not match {schema['pattern']!r}"
    return ""


def _search(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=_PATTERN_TIMEOUT_S) is not None
    except TimeoutError:
        return False


def _number(value: int | float, schema: Mapping[str, Any], at: str) -> str:
    if value < schema.get("minimum", value) or value > schema.get("maximum", value):
        return f"{at}: {value} is out of range"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"{at}: {value} is not > {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return f"{at}: {value} is not < {schema['exclusiveMaximum']}"
    if "multipleOf" in schema:
        try:
            whole = Decimal(str(value)) % Decimal(str(schema["multipleOf"])) == 0
        except InvalidOperation:  # more digits than decimals hold
            whole = False
        if not whole:
            return f"{at}: {value} is no multiple of {schema['multipleOf']}"
    return ""


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1, but 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b and not (isinstance(a, float) and math.isinf(a))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return type(a) is type(b) and bool(a == b)
