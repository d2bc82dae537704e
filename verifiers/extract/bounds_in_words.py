"""Finds bounds that a sentence gives in words: "any number that is at least 4", "x is greater than 4"."""

from __future__ import annotations

from verifiers.extract.spans import Extraction, Span
from verifiers.lazy_pattern import any_case, lazy_pattern

_ASKS_BOUND = any_case(
    r"[<>≤≥]|\\(?:l|g)(?:e|eq|t)(?![a-z])|\bfor (?:which|what) (?:real )?(?:\$?[a-z]\$?|values?|numbers?)\b"
    r"|\b(?:domain|range|domaine|dom[ií]nio|definitions\w+|wertebereich|ensemble de"
    r" définition|dziedzin\w+|zbiór wartości)\b|область (?:определения|значений|визначення|значень)|定义域|值域"
    r"|定義域|정의역|치역"
)
_SIGNED = r"\$?(?P<{}>[-−]?\d{{1,9}}(?:[./]\d{{1,9}})?)\$?"
_IN = r"(?:included|inclusive|incluses|eingeschlossen|incluidos|incluídos|inclusi|compresi)"
_OUT = r"(?:excluded|not included|exclusive|exclues|non comprises|ausgeschlossen|excluidos|excluídos|esclusi)"
_WITHIN = any_case(  # "all real numbers between -2 and 3, endpoints included"
    rf"\b(?:between|from|zwischen|von|entre|de|tra|fra|da|tussen|między)\s{_SIGNED.format('low')}"
    rf"\s(?:and|to|und|bis|et|à|y|a|e|en|tot|i)\s{_SIGNED.format('high')},?"
    r"\s(?:\(?(?:both )?(?:ends?|end ?points?|bounds?|bornes|grenzen|extremos|estremi)\s(?:are |sont |están |sono )?"
    rf"(?:{_IN}|(?P<open>{_OUT}))|inclusive|(?P<exclusive>exclusive)"
    rf"|(?:where|with) [-−]?[\d./]+ (?:is )?(?:{_IN}|(?P<low_out>{_OUT})) and [-−]?[\d./]+ (?:is )?(?:{_IN}"
    rf"|(?P<high_out>{_OUT})))"
    r"[\s.)!*]*$"
)
_COMPARED = (
    r"(?:(?P<least>at least|not (?:less|smaller) than|no (?:less|smaller) than|mindestens|au moins|al menos|pelo menos"
    r"|не менш\w* (?:за|від)|не меньше)|(?P<most>at most|no(?:t)? (?:more|greater|larger) than|höchstens|au plus"
    r"|como máximo"
    r"|no máximo|не більш\w* (?:за|від)|не больше)"
    r"|(?P<greater>greater|larger|bigger|größer|supérieure?s?|plus grande?s?|mayor(?:es)?|maior(?:es)?|maggiori?"
    r"|больше|groter|större|większ\w+)"
    r"|(?P<less>less|smaller|kleiner|inférieure?s?|plus petite?s?|menor(?:es)?|minori?|меньше|kleiner|mindre"
    r"|mniejsz\w+))"
    r"(?:\s(?:than|als|à|que|do que|di|a|чем|dan|än|niż|od))?(?:\s(?P<equal>or equal to|than or equal to|oder gleich"
    r"|ou égaux? à"
    r"|ou égales? à|o igual(?:es)? (?:a|que)"
    r"|ou igua(?:l|is) a|o ugual[ei] a|или равн\w+))?(?:\s(?:than|als|à|que|do que|di|a|чем|dan|än|niż|od))?"
)
_NAMED = any_case(  # "x is greater than 4"
    r"(?<![\w'’^])(?P<name>[a-z])\$?\s(?:(?:is|be|ist|est|es|é|è|sia|must|muss|doit|debe|deve|has|to|être|ser|essere"
    r"|strictly|echt|strictement|estrictamente|estritamente|strettamente|должно|должен|быть|строго)\s){0,3}"
    rf"{_COMPARED}\s{_SIGNED.format('value')}(?:\s(?:ist|sein|sind))?[\s$.!*]*$"
)
_ANY_NUMBER = any_case(  # "any real number that is at least 4 works"
    r"(?<![^\W\d_])(?:any|every|all|each|jede|alle|alla|tout|tous les|todos?|todos los|todos os|tutti i|усі"
    r"|все)\s[^.;\d]{0,44}?"
    rf"(?<![^\W\d_]){_COMPARED}\s{_SIGNED.format('value')}(?![\w./]*\d)[^\d]{{0,60}}$"
)
_EITHER = lazy_pattern(  # "x < -1 or x > 4"
    rf"(?<![\w'’^+*/-])(?P<name>[a-z])\s?(?P<below>[<≤])\s?{_SIGNED.format('low')}\s(?:or|oder|ou|o|или|lub|of|eller)\s"
    rf"(?P=name)\s?(?P<above>[>≥])\s?{_SIGNED.format('high')}[\s$.!*]*$"
)
_EAST = lazy_pattern(
    r"(?<![\w'’^])\$?(?P<name>[a-z])\$?\s?(?:必须|应)?(?:(?P<least>不小于|不低于)|(?P<most>不大于|不超过)"
    r"|(?P<greater>[大高]于)|(?P<less>[小低]于))(?P<equal>等于|或等于)?\s?"
    rf"{_SIGNED.format('value')}[\s$。.!*]*$"
)


def bound_in_words(text: str, sentence: Span, asked: str) -> tuple[int, Extraction] | None:
    """Returns the bounds with which a sentence answers an inequality, and where their phrase begins, or None."""
    if not _ASKS_BOUND.search(asked):
        return None
    within = _WITHIN.search(text, *sentence)
    if within is not None:
        outside = within["open"] or within["exclusive"]
        brackets = "(" if outside or within["low_out"] else "[", ")" if outside or within["high_out"] else "]"
        said = f"{brackets[0]}{within['low']}, {within['high']}{brackets[1]}"
        return within.start(), Extraction((within.start("low"), within.end("high")), "statement", said=said)
    either = _EITHER.search(text, *sentence)
    if either is not None:
        said = (
            f"{either['name']} {either['below']} {either['low']} or {either['name']} {either['above']} {either['high']}"
        )
        return either.start(), Extraction((either.start(), either.end("high")), "statement", said=said)
    found = _NAMED.search(text, *sentence) or _EAST.search(text, *sentence) or _ANY_NUMBER.search(text, *sentence)
    if found is None:
        return None
    sign = ">" if found["greater"] or found["least"] else "<"
    sign += "=" if found["equal"] or found["least"] or found["most"] else ""
    said = f"{found.groupdict().get('name') or 'x'} {sign} {found['value']}"
    return found.start(), Extraction(found.span("value"), "statement", said=said)
