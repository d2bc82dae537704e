"""The console of every command. Text from data can't control the terminal and is not read as markup."""

from __future__ import annotations

import sys
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from verifiers import terminal


class _Safe(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(terminal.visible(text), **options)

    @property
    def file(self) -> IO[str]:
        """Standard output without escaping, so that rich's own control characters take effect."""
        found: IO[str] = terminal.raw(getattr(sys.stdout, "rich_proxied_file", sys.stdout))  # while a table is live
        return found

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        raise AttributeError("this console writes to standard output")


def make_console(*, quiet: bool = False) -> Console:
    """Returns a console for untrusted text: no markup, no emoji, no highlighting."""
    return _Safe(highlight=False, soft_wrap=True, emoji=False, markup=False, quiet=quiet)
