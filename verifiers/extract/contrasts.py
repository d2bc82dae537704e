"""Finds where a sentence denies one value and states another: "not 8 but 9", "18 değil, 12'dir"."""

from __future__ import annotations

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern

_TURN = (
    r"(?:[:：;；]|\bbut(?: rather| actually| instead)?\b|\b(?:it|that|this|they|there)(?:['’](?:s|re)| is| are)\b"
    r"|\b(?:rather|instead)\b(?! (?:than|of))|\b(?:sondern|mais|sino(?: que)?|mas(?: sim)?|bensì|maar|utan|lecz|tylko"
    r"|melainkan|tetapi|mà(?: là)?|c['’]est|es (?:ist|sind))\b|,\s*(?:ale|ma|es|son|é|è|sono|a|das (?:ist|sind))\b"
    r"|\b(?:tatsächlich aber|in wirklichkeit(?: aber)?|actually|in fact|in reality|on second thoughts?|en réalité"
    r"|en realidad|na verdade|in realtà)\b|на самом деле|实际上|其实|実際(?:に)?は|(?<!\w)(?:а|но)(?!\w)"
    r"|(?<!\w)(?:بل|وإنما|إنما)(?!\w)|而是|应该是|應該是|(?<=[，,])是)"
)
_DENIED = Gated(
    r"(?:\bnot\b|n['’]t\b|\b(?:nicht|pas|no|não|non|niet|inte|nie|bukan|không|keine?)\b|(?<!\w)(?:не|ليس|ليست|لم)(?!\w)"
    r"|不是|并非|並非|不等于|\b(?:at first (?:glance|sight)|auf den ersten blick|à première vue|a primera vista"
    r"|à primeira vista|a prima vista)\b|на первый взгляд|乍一看|一见|一見)"
    rf"(?P<denied>[^.!?。\d\n$;:]{{0,40}}[$\d][^!?。\n:;]{{0,80}}?)\W{{0,3}}{_TURN}\s*"
    r"(?:(?:at|in|by|with|on|to|for|from|um|bei|mit|à|en|con|em|com)\s+)?"
)
_DENIED_BEFORE = Gated(
    r"(?P<denied>\d[^!?。।\n]{0,20}?)(?:\bdeğil(?:dir)?\b,?|नहीं[,、]?(?:\s*बल्कि)?|[이가] 아니라|[이가] 아닌"
    r"|(?:では|じゃ|で)なくて?[、,]?)\s*"
)
_STATES = lazy_pattern(r"[\d$一二三四五六七八九十百]|[^\W\d_]{3}")
# "but its square is 9": the stated value belongs to something else.
_OF_IT = any_case(
    r"\b(?:its|their|of (?:it|this|that)|square[ds]?(?! (?:met|cent|kilo|mill|feet|foot|inch|mile|yard|m|cm|km)\w*)"
    r"|cubed?|half|doubled?|twice|tripled?|roots?|carré|quadrat|cuadrado|quadrado|quadrato|moitié|hälfte|mitad"
    r"|metade|metà)\b|\b[nxyz][²³]"
)
_LATE = 200  # characters before the end that are searched
_DENYING = frozenset(
    "no not neither nor none never n't kein keine keinen weder nicht ne pas ni non aucun aucune no sin ninguna não nem"
    " nenhuma né nessuna nessun niet geen noch inte nie ani не ни нет isn't aren't doesn't don't cannot can't without"
    " ohne sans sem senza".split()
)
_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words that judge, report or suppose, so that the clause is about the text after the colon.
_JUDGES = Gated(
    r"\b(?:true|so|right|correct\w*|case|wrong|false|answers?|results?|solutions?|claim\w*|think\w*|say|said|thought"
    r"|first|guess\w*|believe\w*|known?|if|would|could|might|maybe|sure|clear|certain|this|that|it|or|like|verdad"
    r"|ciert[oa]|correct[oa]|respuesta|certo|verdade|resposta|vrai|réponse|exact|richtig|wahr|antwort|das|stimmt|vero"
    r"|corretto|risposta|giusto|ça|cela|c['’]est|eso|esto|isso|questo|ciò|dat|waar|antwoord|to|prawda|det|svaret)\b"
    r"|это|верно|правда|ответ"
)


def may_contrast(text: str, start: int, end: int) -> bool:
    """Returns whether `contrast` could find anything. The test need not know where sentences begin."""
    low = max(start, end - _LATE)
    part = text[low:end]
    if part.isascii() and not (  # a generator would be slower than these searches
        " not " in part or "n't " in part or "Not " in part or "nicht " in part or " pas " in part or " no " in part
        or "No " in part or " non " in part or "Non " in part or " niet " in part or " inte " in part
        or " nie " in part or "Nie " in part or "ukan " in part or " keine " in part
    ):  # fmt: skip
        return False
    return _DENIED.search(text, low, end) is not None or _DENIED_BEFORE.search(text, low, end) is not None


def contrast(text: str, sentence: Span) -> tuple[Span, int] | None:
    """Returns the span that a sentence denies and the start of what it states instead, or None."""
    found = _DENIED.search(text, *sentence) or _DENIED_BEFORE.search(text, *sentence)
    if found is None or _STATES.search(text, found.end(), sentence[1]) is None:
        return None
    if _OF_IT.search(text, found.end(), sentence[1]):
        return None
    return found.span("denied"), found.end()


def explains(lead: str) -> bool:
    """Returns whether the denial before a colon is only about things, as in "The coin has no memory: ..."."""
    words = [word.lower() for word in _WORD.findall(lead)]
    return len(words) > 3 and not _DENYING.isdisjoint(words) and _JUDGES.search(lead) is None
