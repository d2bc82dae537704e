"""Tells the values of a sentence apart by what they belong to: "Ben is 6 and Mia is 18", "length 8 and width 5".

An owner is a name or an ordinal that the clause of a value has before it, or the noun directly before the value.
"""

from __future__ import annotations

from collections.abc import Set

from verifiers.extract.vocabulary import SAFE
from verifiers.lazy_pattern import any_case, lazy_pattern

# A name, or "50th"; "50.", "50e" and "50º" may begin or end something else
_NAME = lazy_pattern(r"(?<![\w'’])(?:[A-ZÀ-ÞА-Я][a-zà-ÿа-яё]{1,20}|\d{1,6}(?:st|nd|rd|th))(?![\w'’])")
_IN_WORDS = dict(zip(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
    "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th".split(), strict=True,
))  # fmt: skip
_ORDINAL = lazy_pattern(rf"(?<=the )(?:{'|'.join(_IN_WORDS)})(?= (?!and\b)[^\W\d_])")
_IS = (
    r"(?:is|are|was|were|equals|of|must be|comes to|ist|sind|beträgt|von|est|sont|vaut|de|es|son|vale|é|são|è|sono|di)"
)
_ASKED_NOUN = any_case(
    r"\b(?:what(?:['’]s| is| are| was| were| will be)|find|determine|compute|calculate|state|give|was ist"
    r"|wie (?:lautet|groß ist|lang ist|hoch ist)|quel(?:le)? est|cuál es|qual[eè]? [èé])"
    r"\s(?:(?:the|its|their|his|her|le|la|el|il|o|a|der|die|das)\s|l['’])"
    r"(?P<thing>(?:[^\W\d_]+[ -]){0,2}?[^\W\d_]+)"
    r"(?=\s(?:of|when|between|in|for|from|if|on|at|that|to|after|with|inside|des?|der|du|von|wenn|del?|della|do|da|di)\b"
    r"|\s?[?.,;]|$)"
)
_NOUN = any_case(
    rf"(?P<noun>(?:(?<![^\W\d_])[^\W\d_]+[ -])?(?<![^\W\d_])[^\W\d_]+)(?: {_IS})?(?: (?:thus|then|therefore"
    r"|exactly|also|somit|donc))?\s?[=:]?[\s$(*]*$"
)
# "How much do you save?"
_ASKED_VERB = any_case(
    r"\bhow (?:much|many)\b[^?.]{0,40}?\b(?:do|does|did|will|can|must) (?:the )?[^\W\d_]+ (?P<verb>[^\W\d_]{3,})"
    r"(?: (?:now|then|altogether|in total|in all|today))?\s?\?"
)
_STEM = 4  # characters
_LONGEST = 60  # characters before a value
_LETTER = lazy_pattern(r"(?<![\w'’])([a-zA-Z])\$?(?: (?:is|equals|ist|est|vaut|es|vale|é|è)| =)[\s$]*$")
_WORD = lazy_pattern(r"\d{1,6}(?:st|nd|rd|th)|[^\W\d_]+")
_HAS = frozenset(
    "so thus hence therefore then consequently this means that and while is are has have gets get got receives received"
    " must be now exactly a an the years old digit also ist hat bekommt erhält kriegt somit daher damit und est a"
    " reçoit donc et es tiene recibe así que y é tem recebe portanto e è ha riceve quindi jest ma więc i"
    " имеет получает значит и the one other he she own".split()
)
# Words before a noun that say nothing about it, and words that are no nouns.
_NO_NOUNS = frozenset(
    "the a an of its their his her our this that so then thus therefore hence we get gets with and or has have had is"
    " are was were be to by from than about only not leaves leaving gives giving contains but while whereas as on in at"
    " for if when no which where all each both one minus plus times makes der die das ein eine mit und ist hat also von"
    " wir einen le la les un une et de du avec est a donc el los las y con es que o e com il di è per si se en us"
    " must equals there here now it they she he you add subtract".split()
)


def names(part: str) -> frozenset[str]:
    return frozenset((*_NAME.findall(part), *(_IN_WORDS[word] for word in _ORDINAL.findall(part))))


def named_in(part: str, asked: Set[str]) -> frozenset[str]:
    """Returns the names of a part without common words at its beginning, or its ordinals if one is asked for."""
    found = ordinals_of(names(part)) if ordinals_of(asked) else names(part)
    return frozenset(word for word in found if word[0].isdigit() or word in asked or word.lower() not in SAFE)


def ordinals_of(owners: Set[str]) -> frozenset[str]:
    return frozenset(owner for owner in owners if owner[0].isdigit())


def has(part: str, owner: Set[str], asked: str) -> bool:
    """Returns whether a part only says that its owner has or is something, in such words or in the question's."""
    words = [word.lower() for word in _WORD.findall(part) if _IN_WORDS.get(word, word) not in owner]
    return all(word in _HAS or word[:4] in asked.lower() for word in words)


def asked_noun(asked: str) -> tuple[str, ...]:
    """Returns the words of the noun that a question asks for, such as ("larger", "number"), or ()."""
    found = _ASKED_NOUN.search(asked)
    return tuple(found["thing"].lower().replace("-", " ").split()) if found else ()


def asked_verb(asked: str) -> str:
    """Returns the beginning of the verb of a question such as "How much do you save?", or ""."""
    found = _ASKED_VERB.search(asked)
    return found["verb"][:_STEM].lower() if found else ""


def noun_before(text: str, low: int, value: int) -> tuple[str, ...]:
    """Returns the noun directly before a value with the adjective before it, ("smaller", "one"), or ()."""
    low = max(low, value - _LONGEST)
    letter = _LETTER.search(text, low, value)
    if letter is not None:
        return (letter[1],)
    found = _NOUN.search(text, low, value)
    words = found["noun"].lower().replace("-", " ").split() if found else []
    if not words or (words[-1] in _NO_NOUNS and words[-1] != "one") or (words[-1] == "one" and len(words) < 2):
        return ()
    return tuple(word for word in words[-2:] if word not in _NO_NOUNS or word == "one")


def is_asked(noun: tuple[str, ...], wanted: tuple[str, ...], question: str) -> bool:
    """Returns whether the noun before a value is the asked one; an adjective must be the question's."""
    *lead, last = noun
    *adjective, thing = wanted
    if adjective and lead and lead[-1] == adjective[-1]:
        return last in (thing, "one")
    if last != thing or adjective:
        return False
    return not lead or lead[-1] in question.lower()
