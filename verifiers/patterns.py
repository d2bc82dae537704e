"""Compilation of patterns from data in bounded time. Matching can be given a time limit, but compiling can't."""

from __future__ import annotations

import regex

_LONGEST = 10_000  # characters
_LARGEST = 100_000  # characters with all counted repeats expanded, as the library compiles them
_TOKEN = regex.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d*)(?:,(\d*))?\}|.", regex.DOTALL)


def compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """Returns the compiled pattern. Raises ValueError if it is invalid, or would be too large."""
    if len(pattern) > _LONGEST:
        raise ValueError(f"it has {len(pattern):,} characters; at most {_LONGEST:,}")
    if _size(pattern) > _LARGEST:
        raise ValueError(f"its counted repeats, written out, are longer than {_LARGEST:,} characters")
    try:
        return regex.compile(pattern, flags)
    except regex.error as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _size(pattern: str) -> int:
    sizes, last = [0], 0  # sizes of the open groups, and of the item that a repeat would apply to
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        counts = [int(part[:20]) for part in token.groups() if part]
        if text == "(":
            sizes.append(0)
            last = 0
        elif text == ")" and len(sizes) > 1:
            last = sizes.pop() + 1
            sizes[-1] += last
        elif counts:
            more = last * max(0, max(counts) - 1)
            sizes[-1] += more
            last += more
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)
