"""Keeps text from data from controlling a terminal: control characters are shown as escapes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any


def visible(text: str, *, keep: str = "\n\t") -> str:
    """Returns the text with escapes in place of characters that a terminal would obey or hide.

    These are C0 and C1 controls (including ESC), direction marks, zero-width characters and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)


def one_line(text: object) -> str:
    """Returns the visible text without line breaks, for use within a line or a table."""
    return visible(str(text), keep="")


class _Visible:
    """A text stream that writes only visible text."""

    def __init__(self, stream: Any) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        self.raw.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def guarded() -> AbstractContextManager[None]:
    """Context in which all printed text is made visible first; `raw` bypasses it. What was closed is discarded."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller (`>&-`)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # until the process ends
    return _streams(_Visible(raw(sys.stdout)), _Visible(raw(sys.stderr)))


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Context in which a reader of standard output may go away (`| head`): later output is dropped without an error."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, because Python would print an error if this failed at exit
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), raw(sys.stdout).fileno())


def unguarded() -> AbstractContextManager[None]:
    """Context in which a library may print its own control characters; none of its output may come from data."""
    return _streams(raw(sys.stdout), raw(sys.stderr))


@contextlib.contextmanager
def _streams(out: Any, err: Any) -> Iterator[None]:
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def raw(stream: Any) -> Any:
    """Returns the underlying stream, for a program's own control characters."""
    return stream.raw if isinstance(stream, _Visible) else stream
