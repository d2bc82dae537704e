"""Removes the declaration of an answer's letters behind it: "where $k$ is an integer", "with arbitrary constants"."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import any_case

_LONGEST = 160  # characters
_LETTER = r"(?:[A-Za-z]|\\lambda|\\mu)(?:_\{?\w\}?|[₀-₉])?"
_AND = r"(?:,|and|und|et|y|e|и|和|\\text\{ ?and ?\}|\$,? ?(?:and |und |et |y |e |и )?\$)"
_LETTERS = rf"(?:\$|\\\()?\s*{_LETTER}(?:\s*{_AND}\s*{_LETTER})*"
_OVER = r"(?:\\in|∈)\s*(?P<over>\\mathbb\s*\{?\s*[RZ]\s*\}?|\\[RZ]|[ℤℝ]|[RZ])\s*(?:\$|\\\))?"
_CLOSED = r"\s*(?:\$|\\\))?\s*"
# No positive, natural or real numbers: these say which values are meant.
_KINDS = (
    r"(?:(?:an?|any|some|the|arbitrary|free|real|integration)\s)*"
    r"(?:integers?|(?:arbitrary\s)?constants?(?: of integration)?|arbitrary)"
    r"|(?:(?:eine?|beliebige\w?|reelle\w?)\s)*(?:ganze\w?\s(?:zahl(?:en)?)?|(?:integrations)?konstanten?)(?:\s(?:ist|sind))?"
    r"|(?:(?:une?|des|la|les)\s)?(?:constantes?|entiers?(?: relatifs?)?)"
    r"(?:\s(?:arbitraires?|réelles?|quelconques?|d['’]intégration))*"
    r"|(?:(?:una?s?|um\w?)\s)?(?:número\s)?(?:constantes?|costanti?|costante|enter[oa]s?|inteir[oa]s?|inter[oi])"
    r"(?:\s(?:arbitrari\w+|arbitrári\w+|qualquer|cualquiera|reales|de integraci[oó]n|d['’]integrazione|de integração))*"
    r"|(?:произвольн\w+\s|люб\w+\s)*(?:постоянн\w+|констант\w+|цел\w+(?:\sчисл\w+)?)"
    r"|(?:任意)?的?(?:整数|整數|常数|常數|积分常数)"
)
_IS = r"(?:is|are|denotes?|ist|sind|est|sont|es|son|é|são|è|sono|—|-|是|为|為)?"
_DECLARES = any_case(
    r"(?P<word>(?<![^\W\d_])(?:where|with|for|here|wobei|mit|für|où|avec|pour|donde|con|para|onde|com|dove|per|где|для)\s"
    r"|其中|这里)"
    r"\s*(?:(?:all|any|every|some|an?|arbitrary)\s)*(?:(?:real|positive|natural|rational|non-?negative)\s)*"
    r"(?:(?P<kind>integers?|constants?)\s|numbers?\s|reals?\s)?"
    rf"(?P<letters>{_LETTERS})(?:\s*{_OVER}|{_CLOSED}{_IS}\s*(?:{_KINDS})|(?P<bare>{_CLOSED}))[\s.。]*\Z"
)


def without_declaration(text: str) -> str:
    """Returns the text without a declaration of integers or constants at its end; any other text unchanged."""
    found = _DECLARES.search(text, max(0, len(text) - _LONGEST))
    if found is None:
        return text
    if found["bare"] is not None and found["kind"] is None:
        letter = re.escape(found["letters"].strip("\\$( "))
        return text[: found.start("word")].rstrip(" ,") if re.search(rf"\({letter}\)\$?\s*=", text) else text
    if found["over"] and found["over"].strip("{} ")[-1] in "Rℝ" and not found["letters"].strip("\\$( ")[0].isupper():
        return text  # only capitals name arbitrary constants
    return text[: found.start("word")].rstrip(" ,;，\n")
