"""Detects questions that ask to order what they name, for which any other order of the same values is wrong."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import any_case

_DEGREE = (
    r"(?:small|least|low|short|light|young|slow|few|cheap|weak|cold|narrow|old|early|near|close|thin|great|large|big"
    r"|high|long|heav|most|fast|strong|hot|wide|late|tall|far|thick|best|worst)\w*"
)
_ASKS = any_case(
    rf"\b(?:{_DEGREE} to (?:the )?{_DEGREE}"
    r"|(?:ascending|descending|increasing|decreasing|chronological|alphabetical|numerical|reverse|correct|right) order"
    r"|in order\b|(?:order|sort|arrange|rank) (?:the|these|them|this|by|from|\d)"
    r"|(?:auf|ab)steigend\w*|der größe nach|reihenfolge|sortier\w*|ordne\w?"
    r"|vo[nm] (?:klein|kleinst|groß|größt)\w* (?:nach|zu|zum)"
    r"|ordre|(?:du|de la|des) plus (?:petit|grand|court|long|léger|lourd|jeune|vieux|lent|rapide)\w* (?:au|à la)"
    r"|orden\w*|orde[nm]\w*|de (?:menor|mayor) a (?:menor|mayor)|d[eo] (?:menor|maior) (?:para|ao|a)"
    r"|ordin\w+|dal? (?:più )?(?:piccolo|grande|minore|maggiore) a\w*"
    r"|volgorde|(?:op|af)lopend\w*|van (?:klein|groot)\w* naar|storleksordning|rækkefølge|rosnąc\w*|malejąc\w*"
    r"|kolejno\w+|uporządk\w+|sırala\w*|küçükten|büyükten|thứ tự|urut\w*|seřa[ďd]\w*|vzestupn\w*|sestupn\w*)\b"
    r"|порядк\w*|расположи\w*|впорядкуй\w*|от (?:меньш|больш|наименьш|наибольш)\w+ к"
    r"|[从由從](?:小到大|大到小|[低高短长長轻輕重慢快]到)|排列|排序|順|순서|순으로|오름차순|내림차순|ترتيب|رتب|تصاعدي"
    r"|تنازلي"
    r"|مرتب|क्रम|σειρά|בסדר|סדר"
)
_TERMS = any_case(  # "Find the first three terms", not "the sum of the first three terms"
    r"\b(?:find|give|list|write(?: down| out)?|state|determine|compute|calculate|name|what are) (?:the )?"
    r"(?:next|first|last|following) (?:[a-z]+ |\d+ )?(?:[a-z-]+ ){0,2}(?:terms|numbers in (?:the|this)"
    r" (?:sequence|pattern))\b"
    r"|\b(?:give|state|list|write|name)\b[^.?!]{0,60}\bin the order\b"
    r"|\b(?:schreibe|nenne|gib|bestimme|berechne) (?:die )?(?:ersten|nächsten|letzten) (?:\w+ )?glieder"
    r"|\b(?:donne|calcule|écri[strvez]+)\w* les (?:\w+ )?(?:premiers termes|termes suivants)"
    r"|\b(?:escrib\w+|halla\w*|calcula\w*|d[aé]) los (?:\w+ )?(?:primeros|siguientes) (?:\w+ )?términos"
    r"|\b(?:escrev\w+|calcul\w+|determin\w+) os (?:\w+ )?(?:primeiros|próximos) (?:\w+ )?termos"
    r"|\b(?:scriv\w+|trova\w*|calcol\w+) i (?:primi|prossimi) (?:\w+ )?termini"
    r"|(?<!\w)(?:найдите|запишите|выпишите|напишите) (?:перв|следующ)\w+ (?:\w+ )?член"
    r"|写出[^。，]{0,10}[前后後]\w{1,2}[项項]"
)
_BETWEEN = any_case(r"\s*(?:[,;<>≤≥、，،]|\band\b|\bund\b|\bet\b|\by\b)\s*")


def asks_to_order(prompt: str, gold: str) -> bool:
    """Returns whether a question asks for terms of a sequence, or for an order of items that it names itself.

    "List all solutions in increasing order" is not such a question: its solutions are right in any order.
    """
    if _TERMS.search(prompt):
        return True
    items = [item for part in _BETWEEN.split(gold) if (item := part.strip(" $.{}[]()\\"))]
    if len(items) < 2 or _ASKS.search(prompt) is None:
        return False
    items = [re.escape(item).replace(r"\.", "[.,]") for item in items]
    return all(re.search(rf"(?<![\w.,/]){item}(?![\w/]|[.,]\d)", prompt, re.IGNORECASE) for item in items)
