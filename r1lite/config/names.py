"""Settings that are a built-in name, or `module:function` for code of the user's."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def named(field: str, value: str, known: Sequence[str]) -> str:
    """The value, if it is one of `known` or `module:function`. Raises ValueError with the nearest name."""
    if value in known:
        return value
    module, colon, function = value.partition(":")
    if colon and all(part.isidentifier() for part in module.split(".")) and function.isidentifier():
        return value
    near = difflib.get_close_matches(value, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    raise ValueError(f"--{field} '{value}' is unknown; {hint} (your own: module:function)")
