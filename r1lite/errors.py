"""The exceptions of r1lite.

UserError      wrong usage: the command line prints the message and exits with 2
RunError       the run can't continue (disk full, non-finite loss, ...): message, exit 1; the last checkpoint remains
Interrupted    SIGINT or SIGTERM stopped the run: exit 130 or 143
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SHOWN = 5


class UserError(ValueError):
    """An input of the user can't be used. The message says what was given, what is allowed, and what to do."""


class BadRowsError(UserError):
    """Rows of a file can't be used."""


class RunError(RuntimeError):
    """The run can't continue. The message says why and what remains."""


class UnscoredError(RunError):
    """Too many completions of a step could not be scored; no weight was changed by the step."""


class Interrupted(BaseException):  # not an Exception, so that no `except Exception` catches it
    """A signal stopped the run."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int]]:
        return type(self), (self.signum,)


def first_line(error: Exception, otherwise: str = "") -> str:
    """The first line of an exception's message that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), otherwise)


def quoted(names: Iterable[str]) -> str:
    """Names in single quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def listing(lines: Sequence[str]) -> str:
    """The first five lines, indented, and the number of further ones: for messages about many rows."""
    more = [f"... and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    return "\n".join(f"  {line}" for line in [*lines[:_SHOWN], *more])
