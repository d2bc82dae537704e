"""Limits on what a file may request. A file is data: it may name what ships with this package, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verifiers.formula import Formula
from verifiers.registry import VERIFIERS

# Options of our verifiers by which a file could load code or weaken the sandbox.
_GUARDED = frozenset({"checkers", "packages", "path", "preload", "sandbox"})
_ISOLATION = ("auto", "full", "ns")
# The highest limits per answer that a file may set.
_MOST = {
    **{"time_s": 60, "wall_s": 120, "timeout_s": 60, "servers": 64, "processes": 256, "open_files": 4096},
    **{"memory_mib": 4096, "output_mib": 64, "file_mib": 1024, "disk_mib": 1024},
}


class NotTrustedError(ValueError):
    """A file requests something that only the user may allow; the message says what, and how to allow it."""


def beyond(formula: str, options: Any = None) -> list[str]:
    """Returns the names in a reward beyond the verifiers that ship with this package. Raises ValueError."""
    given = options if isinstance(options, Mapping) else {}
    names = [name for name in Formula(formula).names if not _renamed(given.get(name))]
    return [*(name for name in names if name not in VERIFIERS), *beyond_in_options(given)]


def beyond_in_options(options: Any) -> list[str]:
    """Returns the same for options of verifiers by name: aliases (`use`), options that load code, and limits above
    those that a file may set."""
    found: list[str] = []
    for name, given in options.items() if isinstance(options, Mapping) else ():
        for key, value in given.items() if isinstance(given, Mapping) else ():
            alias = key == "use" and not (isinstance(value, str) and value in VERIFIERS)
            guarded = (key in _GUARDED and value) or (key == "isolation" and value not in _ISOLATION)
            if alias or guarded or (key in _MOST and is_above(value, _MOST[key])):
                found.append(str(value) if alias else f"{name}: {key} = {value}")
    return found


def is_above(value: Any, most: float) -> bool:
    """True for a number, or the text of a number, that is not at most `most`."""
    try:
        return not float(value) <= most
    except OverflowError:  # an integer too large for a float
        return True
    except (TypeError, ValueError):  # not a number: the code that uses it reports that
        return False


def _renamed(given: Any) -> bool:
    return isinstance(given, Mapping) and "use" in given


def require(names: Iterable[str], where: object, *, trust: bool) -> None:
    """Raises NotTrustedError if a file requests anything (`names`) and is not trusted."""
    names = list(dict.fromkeys(names))
    if names and not trust:
        raise NotTrustedError(
            f"{where} requests what a file alone may not: code that does not ship with r1lite, paths outside its own "
            "folder, or an unusual share of this machine:\n"
            + "".join(f"  {name}\n" for name in names)
            + "If these are yours, or you have read them, pass --trust: the code is then imported and runs with your "
            "rights, and the other requests are carried out."
        )
