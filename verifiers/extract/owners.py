"""Tells the values of a sentence apart by what they belong to: "Ben is 6 and Mia is 18", "length 8 and width 5".

An owner is a name or an ordinal that the clause of a value has before it, or the noun directly before the value.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set

from verifiers.extract.asked_values import after_so, is_operand, said_of
from verifiers.extract.clauses import opposed
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.stated_sentence import ASKED, Sentence
from verifiers.extract.statement_words import DIFFERS, JOINS, UNREAL
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
_ELSEWHERE = any_case(
    r"\b(?:beside|next to|another|example|figure|picture|neighbou?r\w*|similar|original\w*|beispiel"
    r"|neben|exemple|ejemplo"
    r"|exemplo|esempio)\b|(?<!\w)пример\w*"
)
_PAST = any_case(r"\b(?:was|were|had|did|war|waren|hatte|étai(?:t|ent)|avait|era|tenía|tinha|aveva)\b|(?<!\w)был\w*")
_LATER = any_case(
    r"\b(?:will|['’]ll|then|later|ago|earlier|before|afterwards|wird|dann|damals|später|alors|plus tard|entonces"
    r"|después|então|depois|allora|dopo)\b|(?<!\w)(?:будет|тогда|потом)(?!\w)"
)
_POSITION = lazy_pattern(r"\d+(?:st|nd|rd|th)\b")


def of_the_named(sentence: Sentence) -> Quantity | None:
    """Returns the value of the name, ordinal or noun that the question asks about, if others have values too, or None.

    In "Ben is 6 and Mia is 18", "the 49th digit is a 1 and the 50th is a 4" or "length 8 and width 5", each value has
    an owner of its own.
    """
    text, wanted, question = sentence.text, sentence.wanted, sentence.wanted.sentence
    said = [item for item in sentence.inside if not item.article and not _POSITION.match(text, *item.span)]
    concluded = after_so(sentence, said)
    said = concluded if len(concluded) > 1 else said
    if len(said) < 2 or any(is_operand(text, item.span, sentence.span) for item in said):
        return None
    of_asked = _of_the_name(sentence, said) or _of_the_noun(sentence, said)
    if sum(of_asked) != 1 or len({item.kind in ("number", "word") for item in said}) > 1 + (not wanted.things):
        return None
    sentence.named = bool(question)
    return said[of_asked.index(True)] if question else None


def _of_the_name(sentence: Sentence, said: Sequence[Quantity]) -> list[bool]:
    """Returns which values are of the name or ordinal that the question asks about; none if any value has no owner."""
    text = sentence.text
    asked = _names(sentence.prompt[-ASKED:]) & _names(sentence.wanted.sentence.lstrip(" ¿(\"'").partition(" ")[2])
    asked = _ordinals_of(asked) or asked
    clauses = [said_of(sentence, item) for item in said]
    if len(asked) != 1 or len(set(clauses)) != len(said):
        return []
    owners = [_named_in(text[low : item.span[0]], asked) for item, (low, _) in zip(said, clauses, strict=True)]
    asking = sentence.wanted.sentence
    clear = all(
        _has(text[low : item.span[0]], asked, asking)
        for item, (low, _), owner in zip(said, clauses, owners, strict=True)
        if owner == asked
    )
    return [owner == asked for owner in owners] if clear and all(len(owner) == 1 for owner in owners) else []


def _of_the_noun(sentence: Sentence, said: Sequence[Quantity]) -> list[bool]:
    """Returns which values follow the asked noun or letter; none if any value follows neither."""
    asked = sentence.wanted.sentence
    wanted = _asked_noun(asked) or (tuple(sentence.question.names) if len(sentence.question.names) == 1 else ())
    ends = [sentence.span[0], *(item.span[1] for item in said)]
    nouns = [_noun_before(sentence.text, low, item.span[0]) for low, item in zip(ends, said, strict=False)]
    verb = _asked_verb(asked)
    if not (wanted or verb) or not all(nouns) or len(set(nouns)) != len(nouns):
        return []
    between = [sentence.text[one.span[1] : two.span[0]] for one, two in itertools.pairwise(said)]
    if not all(JOINS.search(joint) or joint.startswith(" with ") for joint in between):
        return []  # "The integral is 9 modulo 10."
    if verb:
        return [noun[-1][: len(verb)] == verb for noun in nouns]
    return [_is_asked(noun, wanted, asked) for noun in nouns]


def only_compares(sentence: Sentence, value: Quantity) -> bool:
    """Returns whether a clause compares, supposes or is of another time: "Mia is 12 years older and Ben is 6."."""
    asked, text = sentence.wanted.sentence, sentence.text
    low, high = said_of(sentence, value)
    if (DIFFERS.search(text, low, high) and not sentence.wanted.difference) or UNREAL.search(text, low, high):
        return True
    elsewhere = _ELSEWHERE.search(text, sentence.whole[0], value.span[0])
    if elsewhere and elsewhere[0].lower() not in sentence.prompt.lower():
        return True
    rest = text[high : sentence.whole[1]]
    if opposed(rest, sentence.language) or (_PAST.search(text, low, high) and not _PAST.search(asked)):
        return True
    later = _LATER.search(text, low, sentence.whole[1])
    return later is not None and later[0].lower() not in asked.lower()


def _names(part: str) -> frozenset[str]:
    return frozenset((*_NAME.findall(part), *(_IN_WORDS[word] for word in _ORDINAL.findall(part))))


def _named_in(part: str, asked: Set[str]) -> frozenset[str]:
    """Returns the names of a part without common words at its beginning, or its ordinals if one is asked for."""
    found = _ordinals_of(_names(part)) if _ordinals_of(asked) else _names(part)
    return frozenset(word for word in found if word[0].isdigit() or word in asked or word.lower() not in SAFE)


def _ordinals_of(owners: Set[str]) -> frozenset[str]:
    return frozenset(owner for owner in owners if owner[0].isdigit())


def _has(part: str, owner: Set[str], asked: str) -> bool:
    """Returns whether a part only says that its owner has or is something, in such words or in the question's."""
    words = [word.lower() for word in _WORD.findall(part) if _IN_WORDS.get(word, word) not in owner]
    return all(word in _HAS or word[:4] in asked.lower() for word in words)


def _asked_noun(asked: str) -> tuple[str, ...]:
    """Returns the words of the noun that a question asks for, such as ("larger", "number"), or ()."""
    found = _ASKED_NOUN.search(asked)
    return tuple(found["thing"].lower().replace("-", " ").split()) if found else ()


def _asked_verb(asked: str) -> str:
    """Returns the beginning of the verb of a question such as "How much do you save?", or ""."""
    found = _ASKED_VERB.search(asked)
    return found["verb"][:_STEM].lower() if found else ""


def _noun_before(text: str, low: int, value: int) -> tuple[str, ...]:
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


def _is_asked(noun: tuple[str, ...], wanted: tuple[str, ...], question: str) -> bool:
    """Returns whether the noun before a value is the asked one; an adjective must be the question's."""
    *lead, last = noun
    *adjective, thing = wanted
    if adjective and lead and lead[-1] == adjective[-1]:
        return last in (thing, "one")
    if last != thing or adjective:
        return False
    return not lead or lead[-1] in question.lower()
