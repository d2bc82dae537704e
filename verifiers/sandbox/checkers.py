"""Comparison of a program's values with the expected ones, always on the trusted side.

Texts (stdin style):  exact, tokens, float:TOL, unordered
Values (function style):  exact, strict, float:TOL, unordered, item

Tests are data, so they name one of these, or contain a program {"program": TEXT} that runs in the sandbox. A function
of this process, "module:fn", is imported only if the verifier's option `checkers` names it.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verifiers.core import GoldError

TEXT_CHECKERS = ("exact", "tokens", "float:TOL", "unordered")
VALUE_CHECKERS = ("exact", "strict", "float:TOL", "unordered", "item")
PROGRAM_ENTRY = "check"  # the function that a program of the tests defines
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_SHOWN = 100  # characters of a checker in a message
_MAX_NUMBER = 400  # characters; longer tokens compare as text
_NUMBERS = (int, float, complex, Decimal, Fraction)
_SPACE = b" \t\n\r\x0b\x0c"
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")
_NOTHING = object()

TextChecker = Callable[[str, str, str], str]  # (input, expected, got) -> "AC", "PE" or "WA"
ValueChecker = Callable[[Any, Any, Any], bool]  # (arguments, expected, got)


RunProgram = Callable[[str, Any, Any, Any], bool]  # (program, given, expected, got)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The checkers that tests may use besides the named ones."""

    functions: frozenset[str] = frozenset()  # "module:fn" that the user allows
    run: RunProgram | None = None  # runs a program in the sandbox

    def custom(self, checker: Any, known: tuple[str, ...]) -> Callable[[Any, Any, Any], bool]:
        """Returns a program or an allowed function as a checker. Raises GoldError for anything else."""
        if isinstance(checker, Mapping):
            program = checker.get("program")
            if set(checker) != {"program"} or not isinstance(program, str) or self.run is None:
                raise GoldError(
                    f"checker {str(checker)[:_SHOWN]}: a program is given as {{'program': TEXT}}, which defines "
                    f"{PROGRAM_ENTRY}(given, expected, got)"
                )
            return functools.partial(_fairly, functools.partial(self.run, program))
        if checker not in self.functions:
            why = (
                "data runs no function of this process; one of yours must be in the code verifier's option `checkers`"
                if ":" in checker
                else f"known: {', '.join(known)}, or {{'program': TEXT}}"
            )
            raise GoldError(f"unknown checker {checker[:_SHOWN]!r}; {why}")
        return functools.partial(_fairly, functools.partial(_asked, load(checker), checker))


NOTHING = Allowed()


class CheckerFailedError(GoldError):
    """A checker of the user's or of the tests returned no answer."""


def _fairly(check: Callable[[Any, Any, Any], bool], given: Any, expected: Any, got: Any) -> bool:
    """Returns False if the checker fails on a value but not on the expected one: not an infrastructure error."""
    try:
        return check(given, expected, got)
    except CheckerFailedError:
        check(given, expected, expected)
        return False


def text_checker(checker: Any, allowed: Allowed = NOTHING) -> TextChecker:
    """Returns the checker. Raises GoldError if it does not exist or is not allowed."""
    if isinstance(checker, str):
        kind, _, argument = checker.partition(":")
        if checker in _TEXTS:
            return _TEXTS[checker]
        if kind == "float":
            return functools.partial(_float_text, _tolerance(checker, argument))
    custom = allowed.custom(checker, TEXT_CHECKERS)
    return lambda given, expected, got: "AC" if custom(given, expected, got) else "WA"


def value_checker(checker: Any, allowed: Allowed = NOTHING) -> ValueChecker:
    """Returns the checker. Raises GoldError if it does not exist or is not allowed."""
    if isinstance(checker, str):
        kind, _, argument = checker.partition(":")
        if checker in _VALUES:
            return _VALUES[checker]
        if kind == "float":
            tolerance = _tolerance(checker, argument)
            return lambda _, expected, got: equal(expected, got, tolerance=tolerance)
    return allowed.custom(checker, VALUE_CHECKERS)


def is_named(checker: Any) -> bool:
    """True for a checker whose work is bounded by the size of the expected value."""
    return isinstance(checker, str) and (checker in _VALUES or checker.startswith("float:"))


def equal(expected: Any, got: Any, *, tolerance: float | None = None, strict: bool = False) -> bool:
    """True if two values of built-in types agree. Its work is bounded by the size of `expected`.

    As with `==`, 2 equals 2.0, Decimal(2) and Fraction(2), bytes a bytearray, a set a frozenset. In addition, a list
    equals a tuple of the same items (JSON has no tuples) and nan equals nan. True never equals 1, not even in sets and
    as a key. `strict` requires equal types at every level. With a tolerance, two numbers that are not both integers
    agree within tolerance * max(1, |expected|); two integers must be the same, and infinity agrees only with itself.
    """
    if strict and type(expected) is not type(got):
        return False
    if isinstance(expected, bool) or isinstance(got, bool):
        return type(expected) is type(got) and bool(expected == got)
    if isinstance(expected, _NUMBERS) and isinstance(got, _NUMBERS):
        return _same_number(expected, got, tolerance)
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(
            equal(a, b, tolerance=tolerance, strict=strict) for a, b in zip(expected, got, strict=True)
        )
    if isinstance(expected, dict) and isinstance(got, dict):
        return _same_dict(expected, got, tolerance, strict=strict)
    if isinstance(expected, set | frozenset) and isinstance(got, set | frozenset):
        return _same_items(expected, got, strict=strict)
    if isinstance(expected, bytes | bytearray) and isinstance(got, bytes | bytearray):
        return expected == got
    return type(expected) is type(got) and bool(expected == got)


def _same_number(expected: Any, got: Any, tolerance: float | None) -> bool:
    if _is_nan(expected) or _is_nan(got):
        return _is_nan(expected) and _is_nan(got)
    try:
        if expected == got:
            return True
        if tolerance is None or isinstance(expected, complex) or isinstance(got, complex):
            return False
        if _is_integer(expected) and _is_integer(got):
            return False
        a, b = float(expected), float(got)
        return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(a))
    except ArithmeticError:
        return False


def _is_nan(number: Any) -> bool:
    if isinstance(number, Decimal):  # a signalling NaN can't be compared
        return number.is_nan()
    return bool(number != number)


def _is_integer(number: Any) -> bool:
    """True for an exact integer; a float may be rounded."""
    if isinstance(number, Decimal):
        return number.is_finite() and number == number.to_integral_value()
    return isinstance(number, int) or (isinstance(number, Fraction) and number.denominator == 1)


class _Unknown(Exception):
    """No expected value equals this one."""


class _Ids:
    """A number for each expected value, the same for values that are `equal`; other values are looked up, never added.

    So hostile values meet only a table of trusted ones, and each part of a value is visited once.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._known: dict[Hashable, int] = {}

    def of(self, value: Any, *, add: bool) -> int:
        """Returns the number of a value. Raises _Unknown if it has none and `add` is False."""
        key = self._key(value, add=add)
        if add:
            return self._known.setdefault(key, len(self._known))
        found = self._known.get(key)
        if found is None:
            raise _Unknown
        return found

    def _key(self, value: Any, *, add: bool) -> Hashable:
        kind: type[Any] = type(value)
        if not isinstance(value, bool) and isinstance(value, _NUMBERS):
            return (kind if self._strict else "number", "nan" if _is_nan(value) else value)
        if isinstance(value, list | tuple):
            return (kind if self._strict else "list", *[self.of(item, add=add) for item in value])
        if isinstance(value, set | frozenset):
            return (kind if self._strict else "set", *sorted(self.of(item, add=add) for item in value))
        if isinstance(value, dict):
            pairs = [(self.of(key, add=add), self.of(item, add=add)) for key, item in value.items()]
            return (dict, *sorted(pairs))
        if isinstance(value, bytes | bytearray):
            return (kind if self._strict else "bytes", bytes(value))
        return (kind, value)


def _same_items(expected: Collection[Any], got: Collection[Any], *, strict: bool) -> bool:
    """True for the same items the same number of times, in any order."""
    if len(expected) != len(got):
        return False
    ids = _Ids(strict=strict)
    wanted = sorted(ids.of(item, add=True) for item in expected)
    try:
        return wanted == sorted(ids.of(item, add=False) for item in got)
    except _Unknown:
        return False


def _same_dict(expected: dict[Any, Any], got: dict[Any, Any], tolerance: float | None, *, strict: bool) -> bool:
    if len(expected) != len(got):
        return False
    ids = _Ids(strict=strict)
    wanted = {ids.of(key, add=True): value for key, value in expected.items()}
    try:
        return all(
            equal(wanted.pop(ids.of(key, add=False), _NOTHING), value, tolerance=tolerance, strict=strict)
            for key, value in got.items()
        )
    except _Unknown:
        return False


def _unordered(given: Any, expected: Any, got: Any) -> bool:
    if not (isinstance(expected, list | tuple) and isinstance(got, list | tuple)):
        return equal(expected, got)
    return _same_items(expected, got, strict=False)


def _item(given: Any, expected: Any, got: Any) -> bool:
    """True for the expected value, or for the only item of an expected list."""
    single = isinstance(expected, list | tuple) and len(expected) == 1
    return equal(expected, got) or (single and equal(expected[0], got))


def _bytes(text: str) -> bytes:
    """Encodes text, so that only ASCII white space separates tokens: str.split also splits at Unicode separators."""
    return text.encode("utf-8", "surrogatepass")


def _same_tokens(expected: str, got: str) -> bool:
    wanted = _bytes(expected).split()
    return wanted == _bytes(got).split(None, len(wanted))  # splits no more tokens than needed


def _exact(given: str, expected: str, got: str) -> str:
    if expected.rstrip("\n") == got.rstrip("\n"):
        return "AC"
    return "PE" if _same_tokens(expected, got) else "WA"


def _tokens(given: str, expected: str, got: str) -> str:
    if _same_tokens(expected, got):
        return "AC"
    wanted, found = (_bytes(text).translate(None, _SPACE) for text in (expected, got))
    return "PE" if len(wanted) == len(found) and wanted.lower() == found.lower() else "WA"


def _unordered_text(given: str, expected: str, got: str) -> str:
    wanted, found = _bytes(expected), _bytes(got)
    if len(wanted.translate(None, _SPACE)) != len(found.translate(None, _SPACE)):
        return "WA"
    return "AC" if Counter(_lines(wanted)) == Counter(_lines(found)) else "WA"


def _lines(data: bytes) -> list[bytes]:
    """Splits lines, collapses spaces between tokens and drops empty lines; all white space is processed in C."""
    data = data.translate(_BLANKS)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data.split(b"\n")


def _float_text(tolerance: float, given: str, expected: str, got: str) -> str:
    wanted = _bytes(expected).split()
    found = _bytes(got).split(None, len(wanted))
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
        # A relative tolerance would accept a different large integer.
        return int(expected) == int(got) if re.fullmatch(r"[+-]?\d+", got) else abs(a - b) <= tolerance
    return abs(a - b) <= tolerance * max(1.0, abs(a))


_TEXTS: dict[str, TextChecker] = {"exact": _exact, "tokens": _tokens, "unordered": _unordered_text}
_VALUES: dict[str, ValueChecker] = {
    "exact": lambda _, expected, got: equal(expected, got),
    "strict": lambda _, expected, got: equal(expected, got, strict=True),
    "unordered": _unordered,
    "item": _item,
}


def _tolerance(name: str, argument: str) -> float:
    try:
        value = float(argument)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise GoldError(f"checker '{name}': the tolerance must be a number in [0, 1), as in 'float:1e-6'")
    return value


def load(name: str) -> Callable[[Any, Any, Any], Any]:
    """Imports the function "module:fn". Raises ValueError."""
    module, _, attribute = name.partition(":")
    try:
        found = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    except Exception as error:  # importing a user's module may fail in any way
        raise ValueError(f"checker '{name}' can't be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"checker '{name}' is not a function")
    checker: Callable[[Any, Any, Any], Any] = found
    return checker


def _asked(check: Callable[[Any, Any, Any], Any], name: str, given: Any, expected: Any, got: Any) -> bool:
    try:
        return bool(check(given, expected, got))
    except Exception as error:  # the user's checker is at fault, not the submission
        raise CheckerFailedError(f"checker '{name}' failed: {type(error).__name__}: {error}") from error
