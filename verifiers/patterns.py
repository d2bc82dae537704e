"""Compilation of patterns from data in bounded time. Matching can be given a time limit, but compiling can't."""

from __future__ import annotations

import regex

_LONGEST = 10_000  # characters
_LARGEST = 100_000  # characters with all counted repeats expanded, as the library compiles them
_TOKEN = regex.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d*)(?:,(\d*))?\}|.", regex.DOTALL)
_IN_A_ROW = 500  # the library prepares a search for such a text in a time that grows with the cube of its length
_LITERAL = regex.compile(rf"[^\\\[\](){{}}|.*+?^$]{{{_IN_A_ROW + 1}}}")
_CALL = regex.compile(r"\(\?(?:R|[+-]?\d|&|P>)")  # (?R), (?1), (?&name)


def compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """Returns the compiled pattern. Raises ValueError if it is invalid, or would be too large."""
    if len(pattern) > _LONGEST:
        raise ValueError(f"it has {len(pattern):,} characters; at most {_LONGEST:,}")
    if _LITERAL.search(pattern):
        raise ValueError(f"it has more than {_IN_A_ROW} plain characters in a row")
    if _CALL.search("".join("." if token[0][0] in "\\[" else token[0] for token in _TOKEN.finditer(pattern))):
        raise ValueError("it calls itself or one of its groups, whose depth has no limit")
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
