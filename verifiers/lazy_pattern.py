"""Patterns that are compiled when first used: of the hundreds in the maths verifier, one verdict uses a few."""

from __future__ import annotations

import re
from typing import Any, cast

_NAMES = ("pattern", "flags", "groups", "groupindex", "search", "match", "fullmatch", "finditer", "findall", "split",
          "sub", "subn")  # fmt: skip


class _Compiled:
    """Has the methods of a pattern as its own attributes, so that each costs one look-up."""


class _Lazy(_Compiled):
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        self.__dict__.update({known: getattr(compiled, known) for known in _NAMES})
        self.__class__ = _Compiled  # type: ignore[assignment]  # without `__getattr__`, which would slow every call
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but an invalid pattern raises `re.error` when it is first used, and `re.sub` and the other
    functions of `re` don't take the result: call its methods."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


def any_case(pattern: str) -> re.Pattern[str]:
    """As `lazy_pattern`, for a pattern whose letters match in upper and lower case."""
    return lazy_pattern(pattern, re.IGNORECASE)
