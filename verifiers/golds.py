"""Conversion of golds in data to text. A missing value is never taken for a gold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verifiers.core import GoldError

# Texts that pandas and NumPy write when a missing value is cast to text. "Infinity" and "\infty" are valid golds.
MISSING = frozenset({"nan", "nat", "<na>"})
_SHOWN = 60


def gold_text(value: Any, what: str = "the gold") -> str | None:
    """Returns the gold as text; None if there is none. Lists and objects become JSON.

    Args:
        what: the value's name in messages.

    Raises: GoldError for values that can't be a gold: NaN and infinity as numbers (pandas' missing values), "nan",
        "NaT" and "<NA>" as text, true and false, empty or blank text, empty lists and objects, and other types.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        raise GoldError(f"{what} must be text or a number, got {str(value).lower()} (quote it if it is an answer)")
    if isinstance(value, float | Decimal | Fraction):
        if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            raise GoldError(f"{what} must be text or a finite number, got the number {value} (a missing value?)")
        return str(value)
    if isinstance(value, int):
        return _digits(value, what)
    if isinstance(value, list | tuple | dict):
        return _structure(value, what)
    if not isinstance(value, str):
        return _scalar(value, what)
    if not is_text(value):
        raise GoldError(f"{what} contains a lone surrogate (half a character): {value[:_SHOWN]!r}")
    bare = value.strip()
    if not bare:
        raise GoldError(f"{what} is empty")
    if bare.lower() in MISSING:
        raise GoldError(f"{what} must be an answer, got the text {bare!r} (a missing value?)")
    return str(value)


def mapping_of(value: Any) -> Mapping[str, Any] | None:
    """Returns a value that names its parts (tests, meta), also from JSON text, as data files hold it; else None."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def is_text(text: str) -> bool:
    """False if the text contains a lone surrogate, which JSON can encode but no file or tokenizer accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _digits(value: int, what: str) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python's limit on the digits of an integer
        raise GoldError(f"{what} has too many digits for a number; write it as text") from error


def _structure(value: Any, what: str) -> str:
    if not value:
        raise GoldError(f"{what} must be text or a number, got {json.dumps(value)}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise GoldError(f"{what} is not valid JSON: {str(error) or 'it is nested too deeply'}") from error
    if not is_text(text):
        raise GoldError(f"{what} contains a lone surrogate (half a character)")
    return text


def _scalar(value: Any, what: str) -> str | None:
    """Converts NumPy's scalars and arrays of one item, through their `item()`."""
    item = getattr(value, "item", None)
    if callable(item):
        try:
            plain = item()
        except ValueError:  # an array of several items
            plain = value.tolist()
        if isinstance(plain, str | bool | int | float | list):
            return gold_text(plain, what)
    raise GoldError(f"{what} must be text or a number, got {type(value).__name__}")
