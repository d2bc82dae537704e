"""Finds out whether a sentence gives its value to something else than the answer, or only places the answer near it."""

from __future__ import annotations

from verifiers.extract.asked import question_of
from verifiers.extract.gates import Gated
from verifiers.extract.opposites import of_the_opposite
from verifiers.extract.other_quantities import of_another_quantity
from verifiers.extract.other_roles import has_another_role
from verifiers.extract.other_symbols import of_another_symbol
from verifiers.extract.spans import Span
from verifiers.extract.statement_words import STOP
from verifiers.lazy_pattern import any_case, lazy_pattern

_LONGEST = 400  # characters of a sentence before its value
_STOPS = lazy_pattern(r"[.!?](?=[\s)\]\"”])|[。！？\n]")
_NUMBER = lazy_pattern(r"\d(?:[^\n]*\d)?")  # in "Score: 7"
# "The vertex is close to (2, -3).", "極限は7に近い。"
_NEAR = Gated(
    r"(?:\b(?:near(?:er)?|nahe?|nära|gần|dekat|hampir)(?: (?:to|bei|an|với|dengan))?"
    r"|\b(?:closer?|next|vicinity|neighbou?rhood|nähe|buurt|dicht ?bij|närheten|proches?|près|cerca|cercan[oa]s?"
    r"|próxim[oa]s?|perto|vicin[oaie]|prossim[oaie]|blisk[oai]\w*)(?: (?:to|of|von|van|av|de|du|d['’]|da|do|a|al))?"
    r"|(?<!\w)(?:близ(?:ок|ка|ко|ки)|рядом|вблизи)(?: (?:к|с|от))?|(?:接近|靠近|逼近)[于於]?|\ba good|大概|差不多)"
    r"[\s$([\\*]*$",
)
_NEAR_BEHIND = any_case(r"[^\w.,;。，；]*(?:に近|の近く|付近|附近|左右|에 가[까깝]|근처|['’]?\w{0,4}\s?yakın)")
_BEFORE = 40  # characters before a value
# "We are given 12 pupils.", "Soit $n=20$.": a value that the question gives, or that is supposed.
_GIVEN = any_case(
    r"[\W_]*(?:(?:so|now|first|also|here|alors|entonces|então|allora|итак)\W+)?"
    r"(?:(?:let(?: us| me)?|suppose|assume|given|(?:we|you) (?:are|were) (?:given|told)|sei(?:en)?|angenommen"
    r"|gegeben (?:ist|sind)|soi(?:t|ent)|posons|supposons|on (?:donne|pose|note)|sean?|supongamos|sejam?|suponha\w*"
    r"|sia(?:no)?|poniamo|supponiamo|stel|laat|låt|niech|пусть|обозначим|положим|предположим|дано)(?![^\W\d_])"
    r"|[设設令]|假设|已知|(?:set|put|say|denote|setze[nt]?|sätt)\s+\$?\s?[a-z]\w{0,2}\s*:?=)[^,;.:，；：。\d]{0,40}\Z"
)


def is_astray(text: str, start: int, value: Span, end: int, prompt: str | None) -> bool:
    """Returns whether the words of its sentence show that a value is not the answer, though it may equal the gold."""
    digits = _NUMBER.search(text, *value)
    number = digits.span() if digits else value
    for stop in _STOPS.finditer(text, max(start, number[0] - _LONGEST), number[0]):
        start = stop.end()
    start = max(start, number[0] - _LONGEST)
    following = STOP.search(text, number[1], end)
    end = following.start() if following else end
    asked = question_of(prompt) if prompt else ""
    if (
        _is_near(text, start, number, end)
        or _GIVEN.match(text[start : number[0]])
        or any(has_another_role(text, start, span, end, asked) for span in {value, number})
    ):
        return True
    return bool(asked) and (
        of_another_quantity(text, start, value, asked)
        or of_another_symbol(text, start, value, asked)
        or of_the_opposite(text, start, number, end, asked)
    )


def _is_near(text: str, start: int, value: Span, end: int) -> bool:
    near = _NEAR.search(text, max(start, value[0] - _BEFORE), value[0]) or _NEAR_BEHIND.match(text, value[1], end)
    return near is not None
