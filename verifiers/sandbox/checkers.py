"""How what a program gave is compared with what is expected, always on the trusted side.

Texts (stdin style):  exact, tokens, float:TOL, unordered, module:fn
Values (function style):  exact, strict, float:TOL, unordered, module:fn
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from verifiers.core import GoldError, VerifierError
from verifiers.sandbox import wire

TEXT_CHECKERS = ("exact", "tokens", "float:TOL", "unordered", "module:fn")
VALUE_CHECKERS = ("exact", "strict", "float:TOL", "unordered", "module:fn")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_MAX_NUMBER = 400  # characters; longer tokens compare as text

TextChecker = Callable[[str, str, str], str]  # (input, expected, got) -> "AC", "PE" or "WA"
ValueChecker = Callable[[Any, Any, Any], bool]  # (arguments, expected, got)


def text_checker(name: str) -> TextChecker:
    """Raises GoldError for a name it does not know."""
    kind, _, argument = name.partition(":")
    if name in _TEXTS:
        return _TEXTS[name]
    if kind == "float":
        return functools.partial(_float_text, _tolerance(name, argument))
    custom = _custom(name, TEXT_CHECKERS)

    def check(given: str, expected: str, got: str) -> str:
        return "AC" if _asked(custom, name, given, expected, got) else "WA"

    return check


def value_checker(name: str) -> ValueChecker:
    """Raises GoldError for a name it does not know."""
    kind, _, argument = name.partition(":")
    if name in _VALUES:
        return _VALUES[name]
    if kind == "float":
        tolerance = _tolerance(name, argument)
        return lambda _, expected, got: equal(expected, got, tolerance=tolerance)
    custom = _custom(name, VALUE_CHECKERS)
    return lambda given, expected, got: _asked(custom, name, given, expected, got)


def equal(expected: Any, got: Any, *, tolerance: float | None = None, strict: bool = False) -> bool:
    """True if two values of built-in types agree.

    2 equals 2.0, a list equals a tuple of the same items (JSON has no tuples) and nan equals nan, unless `strict`,
    which wants equal types all the way down. True never equals 1. With a tolerance, numbers of which one is a float
    agree within tolerance * max(1, |expected|); two integers must be the same, and infinity agrees with itself only.
    A frozenset equals a set of the same items.
    """
    if strict and type(expected) is not type(got):
        return False
    if isinstance(expected, bool) or isinstance(got, bool):
        return type(expected) is type(got) and expected == got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return _same_number(expected, got, tolerance)
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(
            equal(a, b, tolerance=tolerance, strict=strict) for a, b in zip(expected, got, strict=True)
        )
    if type(expected) is dict and type(got) is dict:
        if len(expected) != len(got):
            return False
        # Looked up by the keys that came: only the trusted table is searched.
        return all(
            key in expected and equal(expected[key], value, tolerance=tolerance, strict=strict)
            for key, value in got.items()
        )
    if isinstance(expected, set | frozenset) and isinstance(got, set | frozenset):
        return expected == got
    return type(expected) is type(got) and bool(expected == got)


def _same_number(expected: float, got: float, tolerance: float | None) -> bool:
    if expected == got or (expected != expected and got != got):
        return True
    if tolerance is None or (isinstance(expected, int) and isinstance(got, int)):
        return False
    try:
        a, b = float(expected), float(got)
        return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(a))
    except OverflowError:
        return False


def _split(text: str) -> list[bytes]:
    """Tokens between ASCII white space: str.split would also split at separators and spaces of Unicode."""
    return text.encode("utf-8", "surrogatepass").split()


def _exact(given: str, expected: str, got: str) -> str:
    if expected.rstrip("\n") == got.rstrip("\n"):
        return "AC"
    return "PE" if _split(expected) == _split(got) else "WA"


def _tokens(given: str, expected: str, got: str) -> str:
    wanted, found = _split(expected), _split(got)
    if wanted == found:
        return "AC"
    return "PE" if b"".join(wanted).lower() == b"".join(found).lower() else "WA"


def _unordered_text(given: str, expected: str, got: str) -> str:
    def lines(text: str) -> Counter[bytes]:
        return Counter(b" ".join(tokens) for line in text.split("\n") if (tokens := _split(line)))

    return "AC" if lines(expected) == lines(got) else "WA"


def _float_text(tolerance: float, given: str, expected: str, got: str) -> str:
    wanted, found = _split(expected), _split(got)
    if len(wanted) != len(found):
        return "WA"
    pairs = (
        (a.decode("utf-8", "surrogatepass"), b.decode("utf-8", "surrogatepass"))
        for a, b in zip(wanted, found, strict=True)
    )
    return "AC" if all(_same_token(a, b, tolerance) for a, b in pairs) else "WA"


def _same_token(expected: str, got: str, tolerance: float) -> bool:
    if expected == got:
        return True
    if max(len(expected), len(got)) > _MAX_NUMBER or not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(got)):
        return False
    a, b = float(expected), float(got)
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    if re.fullmatch(r"[+-]?\d+", expected):
        # A relative tolerance would take one large integer for another.
        return int(expected) == int(got) if re.fullmatch(r"[+-]?\d+", got) else abs(a - b) <= tolerance
    return abs(a - b) <= tolerance * max(1.0, abs(a))


def _unordered(given: Any, expected: Any, got: Any) -> bool:
    if not (isinstance(expected, list | tuple) and isinstance(got, list | tuple)):
        return equal(expected, got)
    return Counter(map(_key, expected)) == Counter(map(_key, got))


def _key(value: Any) -> Hashable:
    """A text that is the same for equal values."""
    return json.dumps(wire.encode(_plain(value), repr))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return sorted(([_plain(key), _plain(item)] for key, item in value.items()), key=repr)
    return value


_TEXTS: dict[str, TextChecker] = {"exact": _exact, "tokens": _tokens, "unordered": _unordered_text}
_VALUES: dict[str, ValueChecker] = {
    "exact": lambda _, expected, got: equal(expected, got),
    "strict": lambda _, expected, got: equal(expected, got, strict=True),
    "unordered": _unordered,
}


def _tolerance(name: str, argument: str) -> float:
    try:
        value = float(argument)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise GoldError(f"checker '{name}': the tolerance must be a number in [0, 1), as in 'float:1e-6'")
    return value


def _custom(name: str, known: tuple[str, ...]) -> Callable[[Any, Any, Any], Any]:
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise GoldError(f"unknown checker '{name}'; known: {', '.join(known)}")
    try:
        found = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    except Exception as error:  # a user's module may fail in any way while it is imported
        raise GoldError(f"checker '{name}' can't be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise GoldError(f"checker '{name}' is no function")
    checker: Callable[[Any, Any, Any], Any] = found
    return checker


def _asked(check: Callable[[Any, Any, Any], Any], name: str, given: Any, expected: Any, got: Any) -> bool:
    try:
        return bool(check(given, expected, got))
    except Exception as error:  # the user's checker is at fault, not the submission
        raise VerifierError(f"checker '{name}' failed: {type(error).__name__}: {error}") from error
