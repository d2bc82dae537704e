"""Imports user functions that are named `module:function` on the command line or in a recipe."""

from __future__ import annotations

import difflib
import functools
import importlib
from typing import Any

from r1lite.errors import UserError


@functools.cache
def imported(field: str, spec: str) -> Any:
    """The function that `module:function` names. `field` is the flag for error messages.

    Data files cannot name functions: `config/trust.py` refuses names from the files of a run or a dataset.

    Raises:
        UserError: the module can't be imported, or has no such function.
    """
    module_name, _, attribute = spec.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise any error on import
        raise UserError(f"--{field} {spec}: can't import '{module_name}': {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        near = difflib.get_close_matches(attribute, [name for name in vars(module) if not name.startswith("_")], 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise UserError(f"--{field} {spec}: module '{module_name}' has no function '{attribute}'{hint}")
    return function
