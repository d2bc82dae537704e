"""Finds out whether a sentence tells of the opposite of what the question asks for: "the second number" for the first.

Two words are opposites only before the same noun, as in "the larger number" and "the smaller number", or if they are
nouns themselves that are counted: "7 girls" where boys are asked for.
"""

from __future__ import annotations

import functools
import re

from verifiers.extract.gates import Gated
from verifiers.extract.other_quantities import is_said
from verifiers.extract.other_subjects import group_pattern, named_members
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern

# Members of a group exclude each other before one noun.
_BEFORE_A_NOUN = (
    (  # place in an order
        r"first|1st|erste[rnms]?|premi(?:er|ère)|primer[oa]?|primeir[oa]|prim[oa]|перв\w+|第一|最初|첫",
        r"second|2nd|zweite[rnms]?|deuxième|second[eoa]|segund[oa]|втор\w+|第二|二番目|두",
        r"third|3rd|dritte[rnms]?|troisième|tercer[oa]?|terceir[oa]|terz[oa]|трет\w+|第三|三番目|세",
        r"fourth|4th|vierte[rnms]?|quatrième|cuart[oa]|quart[oa]|четв[её]рт\w+|第四",
        r"fifth|5th|fünfte[rnms]?|cinquième|quint[oa]|пят\w+|第五",
        r"sixth|6th|seventh|7th|eighth|8th|ninth|9th|tenth|10th",
    ),
    (  # end of an order; the last one may be the fourth
        r"first|1st|erste[rnms]?|premi(?:er|ère)|primer[oa]?|primeir[oa]|prim[oa]|перв\w+|第一|最初|첫",
        r"last|letzte[rnms]?|dernier|dernière|últim[oa]|ultim[oa]|последн\w+|最后|最後|마지막",
        r"middle|mittlere[rnms]?|средн\w+|中间",
    ),
    (  # size
        r"larger|bigger|greater|longer|taller|higher|older|elder|heavier|wider|größere[rnms]?|längere[rnms]?|ältere[rnms]?"
        r"|plus (?:grande?|longue?|âgée?)|mayor|maior|maggiore|больш\w+|старш\w+|较大|大きい|큰",
        r"smaller|lesser|shorter|lower|younger|lighter|narrower|kleinere[rnms]?|kürzere[rnms]?|jüngere[rnms]?"
        r"|plus (?:petite?|courte?|jeune)|menor|minore|меньш\w+|младш\w+|较小|小さい|작은",
    ),
    (  # speed of movers
        r"faster|quicker|schnellere[rnms]?|plus rapide",
        r"slower|langsamere[rnms]?|plus lente?",
    ),
    (  # sign
        r"positive[rnms]?|positiv[oae]?|положительн\w+|正|양의",
        r"negative[rnms]?|négative|negativ[oae]?|отрицательн\w+|负|負|음의",
    ),
    (  # place
        r"inner|inside|innere[rnms]?|intérieure?|внутренн\w+",
        r"outer|outside|äußere[rnms]?|extérieure?|внешн\w+",
    ),
    (
        r"upper|top|obere[rnms]?|верхн\w+",
        r"bottom|untere[rnms]?|нижн\w+",
    ),
    (  # kind of number
        r"even|gerade[rnms]?|pairs?|paires?|pares|pari|ч[её]тн\w+|偶|짝",
        r"odd|ungerade[rnms]?|impairs?|impaires?|impares|ímpares|dispari|неч[её]тн\w+|奇|홀",
        r"prime|простых",
        r"composite|составных",
    ),
    (  # digit
        r"ones|units?|einer(?=stelle)",
        r"tens|zehner(?=stelle)",
        r"hundreds|hunderter(?=stelle)",
        r"thousands|tausender(?=stelle)",
        r"tenths",
        r"hundredths",
    ),
    (
        r"real|reelle[rnms]?|réelle|вещественн\w+|действительн\w+|实",
        r"imaginary|imaginäre[rnms]?|imaginaire|мним\w+|虚",
    ),
    (r"acute|spitze[rnms]?|остр\w+", r"obtuse|stumpfe[rnms]?|туп\w+"),
    (  # one of several amounts
        r"average|mean|durchschnittliche[rnms]?|moyenne?",
        r"total|gesamte[rnms]?|totale?",
        r"remaining|restliche[rnms]?|restante?",
        r"maximum|maximale[rnms]?|highest|largest|greatest",
        r"minimum|minimale[rnms]?|lowest|smallest|least",
        r"median",
        r"initial|original|starting|beginning|old|ursprüngliche[rnms]?|anfängliche[rnms]?|initiale|inicial|iniziale"
        r"|начальн\w+|первоначальн\w+|原来|最初|처음",
        r"final|ending|new|resulting|endgültige[rnms]?|neue[rnms]?|finale|nouve(?:au|lle)|nuev[oa]|nov[oa]|nuov[oa]"
        r"|конечн\w+|нов\w+|最终|最後|마지막",
    ),
    (r"x(?=-)", r"y(?=-)", r"z(?=-)"),  # the x-coordinate
)
# Members of a group are counted, and exclude each other.
_NOUNS = (
    (r"boys?|jungen|garçons?|niños|chicos|meninos|ragazzi|мальчик\w*|男生|男孩|男の子|남학생",
     r"girls?|mädchen|filles?|niñas|chicas|meninas|ragazze|девоч\w+|女生|女孩|女の子|여학생"),
    (r"men|männer|hommes|hombres|homens|uomini|мужчин\w*", r"women|frauen|femmes|mujeres|mulheres|donne|женщин\w*"),
    (r"adults?|erwachsene[rn]?|adultes?|adultos|adulti|взрослы\w+|成人|大人|어른",
     r"child(?:ren)?|kids?|kinder|enfants?|niños|crianças|bambini|дет\w+|儿童|子ども|어린이"),
    (r"edges?|kanten|arêtes|aristas|ребер|рёбер|棱|辺|모서리",
     r"vertices|corners?|ecken|sommets|vértices|vertici|вершин\w*|顶点|頂点|꼭짓점",
     r"faces?|flächen|caras|facce|граней|面"),
    (r"rows?|zeilen|lignes|filas|righe|строк\w*|行", r"columns?|spalten|colonnes|columnas|colonne|столбц\w*|列"),
    (r"legs?|beine|pattes|patas|zampe|ног\w*|脚|腿", r"heads?|köpfe|têtes|cabezas|teste|голов\w*|头|頭"),
)  # fmt: skip
_ADJECTIVES = [group_pattern(members) for members in _BEFORE_A_NOUN]
_COUNTED = [group_pattern(members) for members in _NOUNS]
_NOUN = lazy_pattern(r"[\s-]+([^\W\d_]{2,})|(?:个|番目の)?([\u3040-\ud7ff])")
_NUMBER_OF = any_case(
    r"\b(?:number|count|anzahl|nombre|número|numero|число) (?:of|der|de|di|d['’])\s?(?:the |les |los |las )?$"
)
_DIRECTLY = lazy_pattern(r"[\s*$]*(?:(?:more|other|such)\s)?")


def of_the_opposite(text: str, start: int, value: Span, end: int, asked: str) -> bool:
    """Returns whether the sentence in [start, end) says of the opposite of what is asked for that it is the value.

    A sentence that names both is not of the opposite.
    """
    for members, wanted, noun in _wanted(asked):
        here = [*members.finditer(text, start, end)]
        if not here or any(found.lastgroup == wanted for found in here):
            continue
        for found in here:
            behind = _NOUN.match(text, found.end(), end) if noun else None
            same = not noun or (behind is not None and _stem(behind) == noun)
            counted = found.start() >= value[1] and _DIRECTLY.fullmatch(text, value[1], found.start())
            named = behind.end() if behind else found.end()
            subject = named <= value[0] and is_said(text, named, value[0])
            subject = subject and (noun != "" or _NUMBER_OF.search(text, start, found.start()) is not None)
            if same and (counted or subject):
                return True
    return False


@functools.lru_cache(maxsize=256)
def _wanted(asked: str) -> tuple[tuple[Gated, str, str], ...]:
    """Returns the groups of which a question names exactly one member, with it and the noun behind it."""
    wanted = []
    for members in _ADJECTIVES:
        found = [*members.finditer(asked)]
        if len({match.lastgroup for match in found}) == 1 and (noun := _NOUN.match(asked, found[0].end())):
            wanted.append((members, str(found[0].lastgroup), _stem(noun)))
    for members in _COUNTED:
        only = named_members(members, asked)
        if len(only) == 1:
            wanted.append((members, only.pop(), ""))
    return tuple(wanted)


def _stem(noun: re.Match[str]) -> str:
    return (noun[1] or noun[2])[:4].lower()
