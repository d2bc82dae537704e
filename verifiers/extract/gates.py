"""Speeds up patterns with many alternatives: they are searched only in texts that contain a required word.

The gate is derived from the parsed pattern, so that it can't differ from the pattern. For every alternative it holds
one literal run of letters (a whole word, or the beginning or another part of a word) or a single character. If an
alternative has none, the pattern has no gate. The words of a text are looked up once for all patterns.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from verifiers.lazy_pattern import lazy_pattern

_LONGEST_PREFIX = 4
_LETTERS = re.compile(r"[^\W\d_]+")
_FOLDED = re.compile("[\u0130\u0131\u017f\u212a\u212b\u1e9e\u03c2\u00b5]")  # `lower` does not fold these
_UNSPACED = "\u2e80"  # scripts from here on have no spaces between words
_SHORT = 1500  # characters of a text that is looked up as a whole
_LEAST_WORTH = 2
_FREQUENT = frozenset(
    "the of a to in is are and we it that this i or be by as no not at on you so but der die la le el".split()
)
_COMMON = frozenset(" \t\n.,:;'’-()*_$\\\"")  # characters of most texts


class _Need(NamedTuple):
    kind: str  # "word", "prefix", "part" or "char"
    text: str

    @property
    def worth(self) -> int:
        if self.kind == "part":
            return 3
        if self.kind == "prefix":
            return len(self.text) + (not self.text.isascii())  # such letters are rare in most texts
        return 4 if self.kind == "char" or self.text in _FREQUENT else 9


_Needs = frozenset[_Need]


class _Features(NamedTuple):
    words: frozenset[str]
    prefixes: frozenset[str]
    chars: frozenset[str]
    lower: str


@functools.lru_cache(maxsize=64)
def _features(text: str) -> _Features | None:
    """Returns the lower-case words, prefixes and characters of a text, or None if folding its case is ambiguous."""
    if not text.isascii() and _FOLDED.search(text):
        return None
    lower = text.lower()
    words = frozenset(_LETTERS.findall(lower))
    prefixes = {word[:size] for word in words for size in range(1, _LONGEST_PREFIX + 1)}
    return _Features(words, frozenset(prefixes), frozenset(lower), lower)


class _Gate(NamedTuple):
    """The words, prefixes, characters and parts of which a text must contain at least one."""

    words: frozenset[str]
    prefixes: frozenset[str]
    chars: frozenset[str]
    parts: frozenset[str]


class Gated:
    """A pattern that is searched only if its gate allows a match. The matches are those of the pattern, in any case."""

    def __init__(self, pattern: str, flags: int = re.IGNORECASE) -> None:
        self.pattern = lazy_pattern(pattern, flags)
        self._given = pattern, flags

    @functools.cached_property
    def _gate(self) -> _Gate | None:
        needs = needed(*self._given)
        if needs is None:
            return None
        kinds = ("word", "prefix", "char", "part")
        return _Gate(*(frozenset(need.text for need in needs if need.kind == kind) for kind in kinds))

    def may_match(self, part: str) -> bool:
        """Returns whether the pattern could match within a text."""
        gate = self._gate
        found = _features(part) if gate else None
        if gate is None or found is None:
            return True
        return not (
            gate.words.isdisjoint(found.words)
            and gate.prefixes.isdisjoint(found.prefixes)
            and gate.chars.isdisjoint(found.chars)
            and not any(part in found.lower for part in gate.parts)
        )

    def may_match_in(self, text: str, start: int, end: int) -> bool:
        """Returns whether the pattern could match from `start` to `end`. The features of a short text are cached."""
        return self.may_match(text if len(text) <= _SHORT else text[start:end])

    @functools.cached_property
    def _on_lower(self) -> re.Pattern[str] | None:
        """The pattern for texts in lower case, which is searched faster, or None if case matters to it."""
        pattern, flags = self._given
        if not flags & re.IGNORECASE or "-i:" in pattern or any(map(str.isupper, re.sub(r"\\.", "", pattern))):
            return None
        # A dotless i matches "I", which `lower` makes an i. Texts with a dotless i have no features.
        return re.compile(pattern.replace("\u0131", "i"), flags & ~re.IGNORECASE)

    def _reader(self, text: str) -> tuple[re.Pattern[str], str]:
        """Returns a pattern and the text, of the same length, in which it finds what this pattern finds in `text`."""
        found = _features(text) if len(text) <= _SHORT and self._on_lower is not None else None
        return (self.pattern, text) if found is None or self._on_lower is None else (self._on_lower, found.lower)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Returns the first match. Its text may be in lower case."""
        end = len(text) if end is None else end
        if not self.may_match_in(text, start, end):
            return None
        pattern, text = self._reader(text)
        return pattern.search(text, start, end)

    def finditer(self, text: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
        """Yields all matches. Their text may be in lower case."""
        end = len(text) if end is None else end
        if not self.may_match_in(text, start, end):
            return iter(())
        pattern, text = self._reader(text)
        return pattern.finditer(text, start, end)

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self.pattern.sub(new, text) if self.may_match(text) else text

    def match(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        return self.pattern.match(text, start, len(text) if end is None else end)


def needed(pattern: str, flags: int = 0) -> _Needs | None:
    """Returns the needs of which a text must satisfy one to match the pattern, or None if there are none."""
    return _of_sequence(list(_parser.parse(pattern, flags)), "", False)


def _better(first: _Needs | None, second: _Needs | None) -> _Needs | None:
    if first is None or second is None:
        return first or second
    worth = [(min(need.worth for need in needs), -len(needs)) for needs in (first, second)]
    return first if worth[0] >= worth[1] else second


def _closed(run: str, at_start: bool, *, whole: bool) -> _Needs | None:
    """Returns the need of a run of letters. With `whole`, the run ends its word; otherwise the word may continue."""
    if not run:
        return None
    if run[0] >= _UNSPACED:
        return frozenset({_Need("char", run[0])})
    if any(char >= _UNSPACED for char in run):
        return None
    if not at_start:
        return frozenset({_Need("part", run)}) if len(run) + (not run.isascii()) > 2 else None
    need = _Need("word", run) if whole else _Need("prefix", run[:_LONGEST_PREFIX])
    return frozenset({need}) if need.worth >= _LEAST_WORTH else None


def _is_letter(char: str) -> bool:
    return _LETTERS.fullmatch(char) is not None


def _of_sequence(items: list[Any], run: str, at_start: bool) -> _Needs | None:
    """Returns the best need of any item of a sequence. `run` holds the letters directly before the sequence."""
    best: _Needs | None = None
    index = 0
    while index < len(items):
        operation, value = items[index]
        index += 1
        if operation is sre.LITERAL:
            char = chr(value).lower()
            if len(char) == 1 and _is_letter(char) and not _FOLDED.match(chr(value)):
                run += char
                continue
            best = _better(best, _closed(run, at_start, whole=not chr(value).isalnum() and chr(value) != "_"))
            after = chr(items[index][1]) if index < len(items) and items[index][0] is sre.LITERAL else "a"
            if not char.isalnum() and not after.isalnum():
                best = _better(best, frozenset({_Need("part", char + after)}))
            elif len(char) == 1 and not char.isalnum() and char not in _COMMON:
                best = _better(best, frozenset({_Need("char", char)}))
            run, at_start = "", not chr(value).isalnum() and chr(value) != "_"
        elif operation is sre.SUBPATTERN:
            items[index:index] = list(value[3])
        elif operation is sre.BRANCH:
            following = items[index : index + 1]
            parts = [_of_sequence([*part, *following], run, at_start) for part in value[1]]
            if all(part is not None for part in parts):
                best = _better(best, frozenset().union(*(part for part in parts if part is not None)))
            run, at_start = "", _ends_open([(operation, value)])
        elif operation is sre.AT:
            boundary = value in (sre.AT_BOUNDARY, sre.AT_END, sre.AT_END_STRING)
            best = _better(best, _closed(run, at_start, whole=boundary))
            run, at_start = "", value in (sre.AT_BOUNDARY, sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
        elif operation is sre.ASSERT_NOT and _is_letters(value[1]):
            if value[0] < 0:  # no letter precedes
                best, run, at_start = _better(best, _closed(run, at_start, whole=False)), "", True
            else:
                best, run, at_start = _better(best, _closed(run, at_start, whole=True)), "", False
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            if value[0] > 0:  # a lookahead consumes nothing
                best, run = _better(best, _closed(run, at_start, whole=False)), ""
                at_start = False
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, _, part = value
            best = _better(best, _closed(run, at_start, whole=bool(least) and _is_gap(list(part))))
            if least:
                best = _better(best, _of_sequence(list(part), "", at_start and not run))
            open_before = bool(least) or (at_start and not run)
            run, at_start = "", open_before and _ends_open(list(part))
        else:
            signs = _signs(value) if operation is sre.IN else None
            best = _better(best, signs)
            gap = _is_gap([(operation, value)])
            best = _better(best, _closed(run, at_start, whole=gap))
            run, at_start = "", gap
    return _better(best, _closed(run, at_start, whole=False))


def _signs(value: Any) -> _Needs | None:
    """Returns a need for each character of a set, or None if one of them is common."""
    chars = [chr(what) if kind is sre.LITERAL else " " for kind, what in value]
    if any(char in _COMMON or (char.isalnum() and char.isascii()) for char in chars):
        return None
    return frozenset(_Need("char", char) for char in chars)


def _ends_open(items: list[Any]) -> bool:
    """Returns whether a part ends in a character that is not a letter, so that a word begins after it."""
    if not items:
        return False
    operation, value = items[-1]
    if operation is sre.SUBPATTERN:
        return _ends_open(list(value[3]))
    if operation is sre.BRANCH:
        return all(_ends_open(list(part)) for part in value[1])
    if operation is sre.AT:
        return value in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _ends_open(list(value[2])) and (bool(value[0]) or _ends_open(items[:-1]))
    return _is_gap(items[-1:])


def _is_gap(items: list[Any]) -> bool:
    """Returns whether a part is one character that can't be a letter or digit."""
    if len(items) != 1:
        return False
    operation, value = items[0]
    if operation is sre.LITERAL:
        return not chr(value).isalnum() and chr(value) != "_"
    if operation is not sre.IN:
        return False
    return all(
        (kind is sre.LITERAL and not chr(what).isalnum() and what != ord("_"))
        or (kind is sre.CATEGORY and what in (sre.CATEGORY_SPACE, sre.CATEGORY_NOT_WORD))
        for kind, what in value
    )


def _is_letters(part: Any) -> bool:
    """Returns whether a part is one character that can be any letter: "\\w", "[^\\W\\d_]", but not "[A-Za-z]"."""
    items = list(part)
    if len(items) != 1:
        return False
    operation, value = items[0]
    if operation is not sre.IN:
        return False
    plain = [(kind, what) for kind, what in value]
    if plain and plain[0] == (sre.NEGATE, None):
        return set(plain[1:]) <= {
            (sre.CATEGORY, sre.CATEGORY_NOT_WORD),
            (sre.CATEGORY, sre.CATEGORY_DIGIT),
            (sre.LITERAL, 95),
        }
    return plain == [(sre.CATEGORY, sre.CATEGORY_WORD)]
