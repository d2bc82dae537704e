"""Identifies the script of a word, and the languages that use it."""

from __future__ import annotations

import functools
import unicodedata

from verifiers.lazy_pattern import any_case, lazy_pattern

# Letters with their combining marks (`\w` leaves out Indic vowel signs and Arabic points), joined by apostrophes.
# Zero-width joiners belong to the word, so that they can be detected.
_MARKS = (
    r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
)
_HIDDEN = r"\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_HAN = r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_OTHER = rf"(?:(?![{_HAN}{_KANA}])[^\W\d_]|[{_MARKS}{_HIDDEN}])"
TOKEN = lazy_pattern(rf"[{_HAN}{_KANA}]+|{_OTHER}+(?:['’]{_OTHER}+)*")
HIDDEN = lazy_pattern(rf"[{_HIDDEN}]")
EAST_ASIAN = lazy_pattern(rf"[{_HAN}{_KANA}]")
KANA = lazy_pattern(rf"[{_KANA}]")

# Scripts that belong to one of our languages; letters that are foreign to it show another language of that script.
OWNERS = {"HANGUL": "ko", "CYRILLIC": "ru", "ARABIC": "ar", "DEVANAGARI": "hi"}
_FOREIGN = {
    "ru": any_case("[іїєґўђћјљњџѓќѕәғқңөұүһҳҷ]"),
    "ar": lazy_pattern("[پچژگکیےٹڈڑںہھۆێە]"),
    "hi": lazy_pattern("ळ|ऱ"),
}
_JOINERS_ALLOWED = {"ARABIC", "DEVANAGARI"}  # where joiners are part of the spelling


@functools.lru_cache(maxsize=1 << 14)
def script_of(char: str) -> str:
    """Returns the script of a letter, from its Unicode name; "" for marks and characters without a name."""
    if char < "\u0250":
        return "LATIN"
    if unicodedata.category(char)[0] == "M":
        return ""
    name = unicodedata.name(char, "")
    if name.startswith("LATIN"):
        return "LATIN"
    return name.partition(" ")[0]  # "FULLWIDTH" and "MATHEMATICAL" are look-alikes and are not mapped to a script


def language_of(word: str) -> str:
    """Returns the language that a word's letters show, "latin" if the word itself must decide, "other" if none of ours.

    Words with mixed scripts or hidden characters are "other": look-alikes are a way to disguise a language.
    """
    scripts = {script for char in set(word) if char not in "'’" and (script := script_of(char))}
    hidden = HIDDEN.search(word) is not None
    if hidden:
        scripts = {script_of(c) for c in set(HIDDEN.sub("", word)) if c not in "'’"} - {""}
        if not scripts:
            return ""
    if len(scripts) != 1:
        return "other" if scripts else ""
    (script,) = scripts
    if hidden and script not in _JOINERS_ALLOWED:
        return "other"
    if script == "LATIN":
        return "latin"
    language = OWNERS.get(script, "other")
    if language in _FOREIGN and _FOREIGN[language].search(word):
        return "other"
    return language
