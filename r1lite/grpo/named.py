"""Functions of the user's, named `module:function` on the command line or in a recipe."""

from __future__ import annotations

import difflib
import functools
import importlib
from typing import Any

from r1lite.errors import UserError


@functools.cache
def imported(field: str, spec: str) -> Any:
    """The function that `module:function` names. `--FIELD` stands in messages.

    Data names none: `config/trust.py` refuses what a run's or a set's files name.

    Raises:
        UserError: the module can't be imported, or has no such function.
    """
    module_name, _, attribute = spec.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may fail in any way while it is imported
        raise UserError(f"--{field} {spec}: can't import '{module_name}': {type(error).__name__}: {error}") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        near = difflib.get_close_matches(attribute, [name for name in vars(module) if not name.startswith("_")], 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise UserError(f"--{field} {spec}: module '{module_name}' has no function '{attribute}'{hint}")
    return found
