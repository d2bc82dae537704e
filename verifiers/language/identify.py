"""Identifies the language of every word of a text, also in mixed texts."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import NamedTuple

from verifiers.language.neutral import without_neutral
from verifiers.language.scripts import EAST_ASIAN, KANA, TOKEN, language_of
from verifiers.language.words import FUNCTIONS, LATIN, WORDS
from verifiers.lazy_pattern import lazy_pattern

LANGUAGES = ("ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "pt", "ru", "tr", "vi", "zh")
HAN_PER_WORD = 1.7  # characters of Chinese or Japanese that weigh as much as a word elsewhere
_STATES = (*LATIN, "other")
_NONE = (0.0,) * len(_STATES)
_LISTED = 2.2  # nats for each language that has the word in its list of common words ...
_FOREIGN = -0.8  # ... and for each other language
_TRIGRAM = 0.45  # triples overlap, so each counts less than its log-odds
_LIMIT = 3.0
_SWITCH, _SWITCH_AT_BREAK = 4.0, 1.6  # cost in nats of a change of language inside a clause, and between two clauses
_PRIOR = 0.7  # nats for the expected language, at the start
_OF_NAMES = 0.4  # share of a capitalised word's evidence that counts
_BREAK = lazy_pattern(r"[.!?;:\n()\"«»“”—,]")
_CLAUSE = lazy_pattern(r"[。！？!?;；\n，、,:：.()（）「」『』]")
_MOST_LETTERS = 25  # of a word that tell it apart: more than `evidence` reads, and than a listed word has
_LETTERS = frozenset("aAIàÀéÉ")  # words of one letter; y, e and o are variables more often
_KANA_SHARE = 0.12  # of a clause's characters, above which its Han is Japanese
_CHINESE = frozenset(
    "的了们这那我你他她它吗呢吧么没很就说还从对时间为个与让给会来过后里头几两边东车长门问发样现应该题设则"
)
_NO_CHINESE = frozenset("込働峠畑枠匂辻円図広実対応検証総労変価値関済氷沢観権円処満残数売買読")


class Unit(NamedTuple):
    """A word, or a run of Chinese or Japanese characters."""

    text: str
    language: str  # one of LANGUAGES, or "other"
    weight: float  # in words


def units(text: str, *, latin_target: bool = True, expected: str | None = None) -> list[Unit]:
    """Returns every word that is in a language, with its language; omits code, formulas, function names and letters.

    Args:
        latin_target: False also leaves out short acronyms and lone names in Latin letters: in a text of another script
            they are no change of language.
        expected: the language, among those in Latin letters, that words without much evidence are assigned to.
    """
    text = without_neutral(text)
    found: list[Unit] = []
    latin: list[tuple[int, str, bool]] = []  # index in `found`, word, whether a break precedes it
    east: list[tuple[int, int, int]] = []  # index in `found`, start, end
    end = 0
    for match in TOKEN.finditer(text):
        word = match[0]
        first = word[0]
        plain = word.isascii()
        if not plain and _is_east_asian(first):
            east.append((len(found), match.start(), match.end()))
            found.append(Unit(word, "zh", len(word) / HAN_PER_WORD))
            end = match.end()
            continue
        language = "latin" if plain else language_of(word)
        if not language:
            continue
        if language == "latin":
            if word.lower() in FUNCTIONS or (len(word) == 1 and not _letter_word(text, match)):
                continue
            if word.isupper() and 1 < len(word) <= 5 and not latin_target:
                continue
            start = match.start()
            broken = start > end + 1 and _BREAK.search(text, end, start) is not None
            latin.append((len(found), word, broken))
        elif len(word) == 1 and language == "other":
            continue
        found.append(Unit(word, language, 1.0))
        end = match.end()
    _name_latin(found, latin, latin_target, expected)
    _name_east_asian(found, east, text)
    return [unit for unit in found if unit.weight]


def _is_east_asian(char: str) -> bool:
    return (
        ("\u3005" <= char <= "\u30ff" and char > "\u303f")
        or "\u31f0" <= char <= "\u9fff"
        or EAST_ASIAN.match(char) is not None
    )


def _letter_word(text: str, match: re.Match[str]) -> bool:
    """True if a single letter is a word here ("I", "a", "à") and not a variable: it has words on both sides."""
    if match[0] not in _LETTERS:
        return False
    before, after = text[max(0, match.start() - 2) : match.start()], text[match.end() : match.end() + 2]
    return (
        len(after) == 2
        and after[0] == " "
        and after[1].isalpha()
        and (not before or (before[-1] == " " and before[0] not in "=+-*/^<>"))
    )


@functools.cache
def _trigrams() -> dict[str, tuple[float, ...]]:
    text = resources.files("verifiers.language").joinpath("trigrams.txt").read_text(encoding="utf-8")
    return {
        line[:3]: tuple(((ord(digit) - 48) - 4.5) / 2 * _TRIGRAM for digit in line[4:]) for line in text.splitlines()
    }


@functools.lru_cache(maxsize=1 << 15)
def evidence(word: str) -> tuple[float, ...]:
    """Returns the log-odds of a lower-case word for each of the Latin languages and "other", in nats."""
    listed = WORDS.get(word)
    if listed is None and ("'" in word or "’" in word):
        listed = WORDS.get(word.replace("’", "'"))
    table = _trigrams()
    padded = f"_{word[:24]}_"
    rows = [row for i in range(len(padded) - 2) if (row := table.get(padded[i : i + 3])) is not None]
    sums = [sum(column) for column in zip(*rows, strict=True)] if rows else list(_NONE)
    if listed is not None:
        sums = [0.3 * s for s in sums]
        for i, language in enumerate(LATIN):
            sums[i] += _LISTED if language in listed else _FOREIGN
        sums[-1] += _FOREIGN
    return tuple(max(-_LIMIT, min(_LIMIT, s)) for s in sums)


def _name_latin(
    units: list[Unit], latin: list[tuple[int, str, bool]], latin_target: bool, expected: str | None
) -> None:
    """Assigns the most probable languages to the words in Latin letters (Viterbi with a cost of changes)."""
    score = [_PRIOR * (state == expected) for state in _STATES]
    back: list[tuple[list[float], float]] = []  # scores before each word, and the score after a change of language
    for _, word, broken in latin:
        top = max(score)
        bar = top - (_SWITCH_AT_BREAK if broken else _SWITCH)
        back.append((score, bar))
        known = evidence(word.lower()[:_MOST_LETTERS])
        if word[0].isupper() and word.lower() not in WORDS:  # names are weak evidence
            known = tuple(_OF_NAMES * e for e in known)
        score = [(s if s >= bar else bar) + e for s, e in zip(score, known, strict=True)]
    if not latin:
        return
    state = max(range(len(score)), key=score.__getitem__)
    for n in range(len(latin) - 1, -1, -1):
        index, word, _ = latin[n]
        weight = 1.0
        if not latin_target and word[0].isupper() and _alone(latin, n):
            weight = 0.0
        units[index] = Unit(word, _STATES[state], weight)
        before, bar = back[n]
        if before[state] < bar:
            state = before.index(max(before))


def _alone(latin: list[tuple[int, str, bool]], n: int) -> bool:
    """True if there is no other word in Latin letters next to it."""
    index = latin[n][0]
    before = n > 0 and latin[n - 1][0] == index - 1
    after = n + 1 < len(latin) and latin[n + 1][0] == index + 1
    return not before and not after


def _name_east_asian(units: list[Unit], east: list[tuple[int, int, int]], text: str) -> None:
    """Distinguishes Japanese from Chinese by clause: kana decide, and a short clause follows the one before it."""
    clauses: list[list[int]] = []
    end = 0
    for index, start, stop in east:
        # Neither language puts spaces between words, so a space is a break too.
        if not clauses or text[end:start] == " " or _CLAUSE.search(text, end, start):
            clauses.append([])
        clauses[-1].append(index)
        end = stop
    previous = ""
    judged: list[str] = []
    for clause in clauses:
        chars = "".join(units[index].text for index in clause)
        kana = len(KANA.findall(chars))
        if kana > _KANA_SHARE * len(chars):
            language = "ja"
        elif kana or (any(char in _NO_CHINESE for char in chars) and not any(char in _CHINESE for char in chars)):
            language = "ja" if previous != "zh" or kana else "zh"
        elif any(char in _CHINESE for char in chars) or len(chars) > 8:
            language = "zh"
        else:
            language = previous or "?"
        judged.append(language)
        previous = language if language != "?" else previous
    following = "zh"
    for n in range(len(judged) - 1, -1, -1):
        if judged[n] == "?":
            judged[n] = following
        following = judged[n]
    for clause, language in zip(clauses, judged, strict=True):
        for index in clause:
            units[index] = units[index]._replace(language=language)
