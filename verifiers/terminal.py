"""What data holds can't steer a terminal: control characters are shown, not sent."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any


def visible(text: str, *, keep: str = "\n\t") -> str:
    """The text with escapes in place of what a terminal would obey or hide.

    These are C0 and C1 controls (ESC among them), marks of direction and of no width, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)


def one_line(text: object) -> str:
    """The same, without line breaks: for a place in a line or a table."""
    return visible(str(text), keep="")


class _Visible:
    """A text stream to which only visible text is written."""

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


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Within, whatever is printed is made visible first; `raw` is the way around it."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Visible(raw(sys.stdout)), _Visible(raw(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Within, a reader of standard output that has gone away (`| head`) is no error: what comes after is dropped."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here rather than at Python's end, which would complain
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), raw(sys.stdout).fileno())


@contextlib.contextmanager
def unguarded() -> Iterator[None]:
    """Within, a library prints with its own control characters; none of it may come from data."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = raw(sys.stdout), raw(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: Any) -> Any:
    """The stream itself, for a program's own control characters."""
    return stream.raw if isinstance(stream, _Visible) else stream
