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


class _Named:
    """A text stream that puts its name into an OSError, and drops what is written later: Python would otherwise try to
    write the rest at exit, and print another error."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def write(self, text: str) -> int:
        with self._named_errors():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._named_errors():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = self._name
            with contextlib.suppress(OSError), open(os.devnull, "w") as null:
                os.dup2(null.fileno(), self._stream.fileno())
            raise


def guarded() -> AbstractContextManager[None]:
    """Context in which all printed text is made visible first; `raw` bypasses it. Streams that are closed (`>&-`) are
    opened: a file opened later would get their descriptor, and with it what a library prints."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their descriptors: `open` uses the lowest free one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115  # until the exit
    out, err = _Named(raw(sys.stdout), "standard output"), _Named(raw(sys.stderr), "standard error")
    return _streams(_Visible(out), _Visible(err))


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Context at whose end output is written. The reader of standard output may go away (`| head`): later output is
    dropped without an error. Raises SystemExit if it can't be written for another reason, such as a full disk."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, because Python would print an error if this failed at exit
    except BrokenPipeError:
        pass
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        raise SystemExit(1) from error


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
