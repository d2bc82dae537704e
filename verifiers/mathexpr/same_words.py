"""Compares golds in words with answers: names in any order, weekdays, the name that a gold sentence states."""

from __future__ import annotations

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.clean import clean
from verifiers.mathexpr.forms import plain_words, text_words
from verifiers.mathexpr.weekdays import weekday, without_copula

_ENDLESS = lazy_pattern(
    r"(?:there (?:are|is) )?(?:infinitely many|(?:an )?infinite(?: number)?|infinite amount|infinity"
    r"|unendlich(?: viele)?|une infinité|infinit[oa]s|infinite|infiniti|oneindig veel|oändligt många|uendeligt mange"
    r"|nekonečně mnoho|nieskończenie wiele|sonsuz(?: sayıda| çoklukta)?|vô số|tak (?:ter)?hingga(?: banyak)?"
    r"|бесконечно много|безліч|нескінченно багато|无穷多|无数|無数|無限|무수히 많(?:다|습니다)?|무한히 많(?:다|습니다)?"
    r"|عدد لا نهائي|अनंत)[ 个個組组]*(?: of)?"
    r"(?:\s?(?:(?:many )?solutions?|lösungen|solucion(?:es)?|soluções|soluzioni|oplossingen|řešení"
    r"|rozwiązań|решений|розв'язків|解|çözüm|nghiệm|solusi|lösningar))?(?: exists?)?"
)


def same_words(gold: Answer, text: str, gold_text: str = "") -> bool:
    """Returns whether the words are the gold's, or the one name or adjective that a gold sentence states."""
    if (
        gold.kind == "text"
        and _ENDLESS.fullmatch(" ".join(gold.words))
        and _ENDLESS.fullmatch(plain_words(text).lower())
    ):
        return True
    words = text_words(clean(text))
    wanted = gold.words if gold.kind == "text" else text_words(clean(gold_text)) if gold_text else ()
    if not wanted or not words:
        return False
    if [word for word in words if word != "and"] == [word for word in wanted if word != "and"]:
        return True
    if len(words) == len(wanted) == 1 and _same_verb(words[0], wanted[0]):
        return True
    if gold.kind == "text" and _names(wanted) and _names(wanted) == _names(words):
        return True  # "Boris and Anna"
    if gold.kind == "text" and _labelled(wanted) and _labelled(wanted) == _labelled(words):
        return True  # "Lucia 12, Marco 24"
    if gold.kind == "text" and weekday(wanted) is not None:
        return weekday(wanted) == weekday(words)
    if gold.kind == "text" and len(words) == 1 and len(wanted[0]) > 2 and (without_copula(words[0]),) == wanted:
        return True
    if gold.kind != "text" or len(words) != 1 or len(words[0]) < 3 or not words[0].isalpha():
        return False
    if {"not", "no", "neither", "nor", "never", "or", "and"} & set(wanted):
        return False
    if len(wanted) > 2 and wanted[0] == words[0] and wanted[1] in ("will", "wins", "can", "is", "has", "won", "was"):
        return True  # "Petya" for "Petya will win"
    return len(wanted) > 2 and wanted[-1] == words[0] and wanted[-2] in ("is", "are", "be", "was")


def _names(words: tuple[str, ...]) -> list[str]:
    """Returns the sorted names of "Anna, Boris and Carl"; [] if the words may be more than a list of names."""
    kept = sorted(word for word in words if word != "and")
    listed = words[-2:-1] == ("and",) and len(kept) < 8 and all(word.isalpha() and len(word) > 2 for word in kept)
    return kept if listed and words[1::2] == ("and",) * (len(words) // 2) else []


def _labelled(words: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """Returns the parts of "Marco 24, Lucia 12": a name and a number each, and one counter for all; else nothing."""
    kept = [word for word in words if word != "and"]
    counters = set(kept[2::3])
    size = 3 if len(counters) == 1 and len(kept) % 3 != 1 and not kept[2].isdigit() else 2
    kept += counters if size == 3 and len(kept) % 3 else ()  # the last one is dropped when a text is cleaned
    parts = [tuple(kept[at : at + size]) for at in range(0, len(kept), size)]
    named = all(len(part) == size and part[0].isalpha() and part[1].isdigit() for part in parts)
    return frozenset(parts) if named and len({part[0] for part in parts}) == len(parts) > 1 else frozenset()


def _same_verb(first: str, second: str) -> bool:
    """Returns whether both words say that something converges, or both that it diverges."""
    return any(first.startswith(stem) and second.startswith(stem) for stem in ("converg", "diverg", "konverg"))
