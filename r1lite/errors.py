"""What can go wrong, by who must act.

UserError      a mistake of use: the command line prints the message and exits with 2
RunError       the run can't go on (disk full, non-finite loss, ...): message, exit 1, the last checkpoint stands
Interrupted    SIGINT or SIGTERM asked the run to stop: exit 130 or 143
"""

from __future__ import annotations


class UserError(ValueError):
    """Something the user gave can't be used; the message says what, what is allowed, and what to do."""


class RunError(RuntimeError):
    """The run can't go on; the message says why and what is left."""


class Interrupted(BaseException):  # not an Exception: nobody on the way up may swallow it
    """A signal asked the run to stop."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int]]:
        return type(self), (self.signum,)
