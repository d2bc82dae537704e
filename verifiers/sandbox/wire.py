"""Values sent between processes: tagged JSON with exact types, decoded to built-in types only.

It is loaded on both sides. The sending side in the sandbox is not trusted, so the reading side bounds everything:
message size, depth, kinds, and hash collisions (10,000 integers with one hash make a set quadratic).
None, bool, str, finite float, int below 2**63 and list represent themselves; everything else is `{tag: body}`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from typing import Any

MAX_DEPTH = 200
_MAX_EQUAL_HASHES = 32
_SMALL = 1 << 63

Reference = Callable[[Any], Any]


class WireError(Exception):
    """A message that can't be accepted: too big, too deep, malformed, or made to be slow."""


_scan: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder())["scan_once"]
_compact = json.JSONEncoder(check_circular=False, separators=(",", ":"))
# The encoder's `encode` builds this for every message; built once here if the interpreter has it in C.
_make = getattr(json.encoder, "c_make_encoder", None)
_chunks: Callable[[Any, int], Iterable[str]] | None = _make and _make(
    None, _compact.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True
)


def pack(message: Any) -> bytes:
    """Returns one frame: 4 bytes of length, then JSON in ASCII. `message` must hold encoded values only."""
    body = "".join(_chunks(message, 0)) if _chunks else _compact.encode(message)
    return len(body).to_bytes(4, "little") + body.encode()


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "little") + body


def unpack(body: bytes | bytearray | memoryview) -> Any:
    try:
        text = str(body, "utf-8")
        value, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise WireError(f"malformed message: {error}") from error
    if end != len(text):
        raise WireError("malformed message: more than one value")
    return value


def header(data: bytes | bytearray) -> int:
    """Returns the length of the frame's body."""
    return int.from_bytes(data[:4], "little")


HEADER_SIZE = 4


def encode(value: Any, opaque: Reference, depth: int = 0) -> Any:
    """Returns the value as JSON-ready data; other objects go through `opaque`, which returns a tagged reference.

    Subclasses of the built-in containers and numbers are sent as their base: a Counter is a dict.
    Raises WireError beyond MAX_DEPTH, and therefore for a list that contains itself.
    """
    kind = type(value)
    if kind is int:
        return value if -_SMALL < value < _SMALL else {"i": hex(value)}
    if kind is bool or value is None:
        return value
    if kind is str:
        return value if value.isascii() else _text_or_bytes(value)
    if kind is float:
        return value if value - value == 0 else {"r": repr(value)}
    if depth > MAX_DEPTH:
        raise WireError(f"a value is nested deeper than {MAX_DEPTH}")
    depth += 1
    if kind is list:
        return [encode(item, opaque, depth) for item in value]
    if kind is tuple:
        return {"t": [encode(item, opaque, depth) for item in value]}
    if kind is dict:
        return {"d": [[encode(k, opaque, depth), encode(v, opaque, depth)] for k, v in value.items()]}
    if kind is set or kind is frozenset:
        return {"s" if kind is set else "f": [encode(item, opaque, depth) for item in value]}
    if kind is bytes or kind is bytearray:
        return {"b" if kind is bytes else "a": value.hex()}
    if kind is complex:
        return {"c": [repr(value.real), repr(value.imag)]}
    if kind is range:
        return {"g": [encode(value.start, opaque), encode(value.stop, opaque), encode(value.step, opaque)]}
    known = _LIBRARY.get((kind.__module__, kind.__name__))
    if known is not None and _library(kind.__module__, kind.__name__) is kind:
        return known(value, opaque)
    if isinstance(value, type):
        return opaque(value)
    for base, plain in _PLAIN:
        if isinstance(value, base):
            return encode(plain(value), opaque, depth)
    scalar = getattr(kind, "item", None)  # numpy scalars; arrays also have it, and are refused below
    if scalar is not None and getattr(value, "shape", None) == ():
        return encode(value.item(), opaque, depth)
    return opaque(value)


def _text_or_bytes(value: str) -> Any:
    """Encodes text; JSON would join two lone surrogates into one character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"u": value.encode("utf-8", "surrogatepass").hex()}
    return value


def _library(module: str, name: str) -> Any:
    """Imports a module when it is first needed: a fork-server without these modules forks faster."""
    return getattr(importlib.import_module(module), name)


def _date(value: Any, opaque: Reference) -> Any:
    if getattr(value, "tzinfo", None) is not None:
        return opaque(value)
    return {"T": [type(value).__name__, value.isoformat()]}


_LIBRARY: dict[tuple[str, str], Callable[[Any, Reference], Any]] = {
    ("decimal", "Decimal"): lambda value, _: {"D": str(value)},
    ("fractions", "Fraction"): lambda value, _: {"F": [hex(value.numerator), hex(value.denominator)]},
    ("datetime", "date"): _date,
    ("datetime", "datetime"): _date,
    ("datetime", "time"): _date,
    ("datetime", "timedelta"): lambda value, _: {"T": ["timedelta", [value.days, value.seconds, value.microseconds]]},
}
_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, lambda value: str.__str__(value)[:]),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
)


def decode(data: Any, reference: Callable[[str, Any], Any], depth: int = 0) -> Any:
    """Decodes what `encode` returned; an unknown tag goes to `reference(tag, body)`. Raises WireError."""
    if data is None or type(data) in (bool, int, float, str):
        return data
    if depth > MAX_DEPTH:
        raise WireError(f"a value is nested deeper than {MAX_DEPTH}")
    depth += 1
    if type(data) is list:
        return [decode(item, reference, depth) for item in data]
    if type(data) is not dict or len(data) != 1:
        raise WireError("malformed value")
    [(tag, body)] = data.items()
    try:
        return _tagged(tag, body, reference, depth)
    except WireError:
        raise
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise WireError(f"malformed value of kind {tag!r}: {type(error).__name__}") from error


def _tagged(tag: str, body: Any, reference: Callable[[str, Any], Any], depth: int) -> Any:
    match tag:
        case "t":
            return tuple([decode(item, reference, depth) for item in _list(body)])
        case "d":
            keys = [decode(key, reference, depth) for key, _ in _list(body)]
            _refuse_collisions(keys)
            return dict(zip(keys, [decode(value, reference, depth) for _, value in body], strict=True))
        case "s" | "f":
            items = [decode(item, reference, depth) for item in _list(body)]
            _refuse_collisions(items)
            return set(items) if tag == "s" else frozenset(items)
        case "i":
            return int(_text(body), 16)
        case "r":
            return float(_text(body, 100))
        case "u":
            return bytes.fromhex(_text(body)).decode("utf-8", "surrogatepass")
        case "b":
            return bytes.fromhex(_text(body))
        case "a":
            return bytearray.fromhex(_text(body))
        case "c":
            real, imaginary = _list(body)
            return complex(float(_text(real, 100)), float(_text(imaginary, 100)))
        case "g":
            return range(*(decode(item, reference, depth) for item in _list(body)))
        case "D":
            return _library("decimal", "Decimal")(_text(body, 10_000))
        case "F":
            numerator, denominator = _list(body)
            return _library("fractions", "Fraction")(
                int(_text(numerator, 20_000), 16), int(_text(denominator, 20_000), 16)
            )
        case "T":
            name, value = _list(body)
            if name == "timedelta":
                return _library("datetime", name)(*[item for item in _list(value) if type(item) is int])
            if name not in ("date", "datetime", "time"):
                raise WireError("malformed date")
            return _library("datetime", name).fromisoformat(_text(value, 100))
    return reference(tag, body)


def _list(body: Any) -> list[Any]:
    if type(body) is not list:
        raise WireError("malformed value")
    return body


def _text(body: Any, most: int | None = None) -> str:
    if type(body) is not str:
        raise WireError("malformed value")
    if most is not None and len(body) > most:
        raise WireError(f"a number of {len(body)} digits; the limit is {most}")
    return body


def _refuse_collisions(items: list[Any]) -> None:
    """Refuses collisions: Python's tables are quadratic on equal hashes, which numbers and tuples can have."""
    if len(items) <= _MAX_EQUAL_HASHES:
        return
    hashes = sorted(map(hash, items))
    for first, last in zip(hashes, hashes[_MAX_EQUAL_HASHES:], strict=False):
        if first == last:
            raise WireError("a set or dict is made of colliding hashes")


def no_reference(tag: str, body: Any) -> Any:
    """A `reference` for readers that expect only data."""
    raise WireError(f"unknown kind of value {tag!r}")
