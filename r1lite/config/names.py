"""Settings whose value is a name: a built-in, `module:function` of the user's code, or a Hub repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

from verifiers.core import did_you_mean

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")


def named(field: str, value: str, known: Sequence[str]) -> str:
    """Returns the value if it is in `known` or is `module:function`. Raises ValueError with the nearest name."""
    if value in known:
        return value
    module, colon, function = value.partition(":")
    if colon and all(part.isidentifier() for part in module.split(".")) and function.isidentifier():
        return value
    hint = did_you_mean(value, known, f"known: {', '.join(known)}")
    raise ValueError(f"--{field} '{value}' is unknown; {hint} (your own: module:function)")


def _repository(name: str) -> str:
    if _REPOSITORY.fullmatch(name) is None:
        raise ValueError(f"{name}: a repository name must be NAME or OWNER/NAME")
    return name


HubRepository = Annotated[str, AfterValidator(_repository)]
