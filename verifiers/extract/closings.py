"""Finds values of a form that a question asks for and that end a sentence.

Such are shares, lists, ratios, points, bounds and the values of names: "So a equals -4, and b equals 1." for (a, b).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from fractions import Fraction

from verifiers.extract.asked import NOTHING
from verifiers.extract.clauses import opposed, reports, supposes
from verifiers.extract.gates import Gated
from verifiers.extract.quantities import in_digits, quantities
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import UNREAL
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

OF_CHANCE = Gated(
    r"\b(?:probab|chance|odds|likel|how often|wahrscheinlich|trefferquote|posibilidad|possibilit|kans\b|sannolik"
    r"|prawdopodob|pravděpodob"
    r"|olasılı|xác suất|peluang)|вероятн|шанс|ймовірн|πιθανότητ|احتمال|संभावना|प्रायिकता|概率|可能性|確率|확률|הסתברות"
)
# What stands between the part and the whole, by language.
_BETWEEN = {
    "en": "in|out of|in every|out of every|of", "de": "von|aus|unter", "fr": "sur|parmi",
    "es": "de cada|entre|de|sobre|en",
    "pt": "em|de cada|em cada|de|entre", "it": "su|ogni|tra", "nl": "op|op de|van de|uit",
    "sv": "på|av", "pl": "na|z|spośród",
    "ru": "из", "uk": "з|із",
    "cs": "z|ze", "id": "dari", "vi": "trên|trong", "el": "στα|στις|στους", "ar": "من|من بين|في", "fa": "از",
}  # fmt: skip
_JOINTS = {
    language: any_case(
        rf"[\s-](?:(?:chances?|times?|possibilities|chancen?|möglichkeiten|posibilidades|possibilidades|mal|fois|veces"
        rf"|vezes|volte|keer|szansa|шанса?|раз)\s)?(?:{words})"
        r"[\s-](?:(?:the|den|les|los|as|os)\s)?$"
    )
    for language, words in _BETWEEN.items()
}
_LONGEST = 40  # characters of the joint
_ONE = any_case(r"\b(?:ein|eine[rs]?|une?|una|uno|uma?|één|ett|en|jedn[ao]|jeden|одна|один)$")
_CLOSED = lazy_pattern(
    r"[\s*_)}$]*(?:\s(?:chance|probability|odds)(?:\sof (?:that|it|this|success|happening))?)?"
    r"(?:です|である|だ|になります|입니다|이다|이에요|है|हैं|होंगे|['’][td][iıuü]r)?[\s.!。।*_)\"”$]*"
)
# Asks for several values.
_ASKS_SEVERAL = Gated(
    r"\b(?:what|which) are\b|\b(?:what|which) (?:\w+ )?(?:numbers|integers|values|pairs|primes|factors|divisors|roots"
    r"|solutions|angles|sides|digits|ages|dimensions|coordinates|zeros)\b|\b(?:find|list|name|give|determine|state"
    r"|write(?: down)?|solve)\b[^.?!]{0,20}\b(?:all|both|the(?: \w+){0,2}"
    r" (?:numbers|integers|values|pairs|primes|factors|divisors|multiples|roots|solutions|terms|zeros))\b"
    r"|\b(?:find|determine|compute|calculate|list|give|state) the (?:\w+ ){0,2}(?:eigenvalues|intercepts|asymptotes"
    r"|foci|extrema|coordinates|dimensions|measures|lengths)\b|\bwelche\b|\b(?:bestimme|finde|nenne|gib|löse)\b"
    r"[^.?!]{0,20}\b(?:alle|die|beide)\b|\bquel(?:le)?s\b|\b(?:trouve[rz]?|donne[rz]?|détermine[rz]?|liste[rz]?"
    r"|énumère[rz]?)\b[^.?!]{0,20}\b(?:tous|toutes|les)\b"
    r"|\bcuáles\b|\bqué \w+s\b|\b(?:halla|encuentra|enumera|determina|da|lista)\b[^.?!]{0,20}\b(?:tod[oa]s|los|las)\b"
    r"|\bquais\b|\bque números\b"
    r"|\b(?:encontre|determine|liste|ache|dê)\b[^.?!]{0,20}\b(?:tod[oa]s|os|as)\b|\bquali\b|\b(?:trova|elenca"
    r"|determina)\b[^.?!]{0,20}\b(?:tutt[ie]|i|le|gli)\b"
    r"|\b(?:welke|noem|vilka|jakie|wymień|hangi \w+lar|hangi sayı|tüm|bütün|những|các|apa saja)\b|(?<!\w)(?:какие"
    r"|каковы|(?:найдите|назовите|перечислите|укажите)[^.?!]{0,20}все|які|знайдіть всі|ما هي|أوجد جميع|ποιοι|ποιες"
    r"|ποια)|哪些|哪两个|哪几个|所有|すべて|全て|何と何|모두 (?:구|찾)|모든|무엇과|कौन-?सी? (?:दो )?संख्याएँ"
)
_AND = any_case(
    r"\s*(?:[,，、;；]\s*)?(?:(?:and|und|et|y|e|и|і|та|й|en|och|i|oraz|a|ve|và|dan|και|og|și|और)(?![^\W\d_])"
    r"|[和及与與]|以及|と|[와과]|(?<=\s)[وו]-?)\s*|\s*[,，、;；]\s*"
)
# The words directly before a list that is stated.
_STATES_LIST = any_case(
    r"(?:\b(?:are|is|be|sind|ist|lauten|sont|est|son|es|são|é|sono|è|zijn|is|är|to|są|wynoszą|jsou|adalah|ialah|là"
    r"|include|involved are)\b|(?<!\w)(?:это|равны|будут|є|هي|هما|είναι|हैं|הם)(?!\w)|[—–:：是为為はが]|[은는])"
    r"(?:[\s,]+(?:thus|therefore|then|hence|simply|just|exactly|also|somit|daher|folglich|genau|donc|alors|ainsi"
    r"|entonces|pues|então|portanto|logo|quindi|dunque|dus|alltså|więc|zatem|the numbers|numbers?"
    r"|die zahlen))*[\s,]*[*$({\[]*$|^\W*(?:so|therefore|thus|hence|also|donc|así que|portanto|quindi)?\W*$"
)
_ASKS_RATIO = any_case(
    r"\bratio|verhältnis|rapport|razão|razón|proporci|proporç|proporz|verhouding|förhålland|stosun|отношени"
    r"|比|비율|(?<!\w)비(?!\w)|비는"
)
_RATIO = any_case(
    r"((?<![\w.,:])\d{1,6} (?:to|zu|à|contre|a|para|tot|staat tot|till|do|к)\s+\d{1,6}"
    r"|(?<![\d.,:])\d{1,6}\s?[比対对대]\s?\d{1,6})(?:の比|의 비율?|的比)?(?:です|である|입니다|이다|예요)?[\s.。!*]*$"
)
_ASKS_BETWEEN = any_case(
    r"\b(?:between|zwischen|entre|tra|fra|tussen|mellan|między|antara|giữa|mezi)\b|(?<!\w)(?:между|між|बीच|بین"
    r"|بين)(?!\w)|之间|之間|の間|사이|arasında|μεταξύ"
)
_BOUNDS = any_case(
    r"(?:\b(?:between|zwischen|entre|tra|fra|tussen|mellan|między|antara|giữa|mezi)|(?<!\w)(?:между|між)|μεταξύ)\s+"
    r"([$*]*(-?\d[\d.,/]*)[$*]* (?:and|und|y|et|e|en|och|a|i|dan|và|и|та|και) [$*]*(-?\d[\d.,/]*)[$*]*)"
    r"(?<![.,])[\s.!*]*(?:lies?|liegt|liegen|ligger)?[\s.!*]*$"
)
_ASKS_POINT = any_case(
    r"\b(?:points?|coordinates?|cent(?:er|re)|zentrum|mittelpunkt|centro|vertex|midpoint|meet|intersect\w*|cross"
    r"|punkt\w*|koordinaten|scheitel\w*|schneide\w*|sommet|coordonnées|milieu|puntos?|vértice|coordenadas|ponto|punto"
    r"|coordinate|vertice|vect(?:or|eur)s?|vektor|vettore|wektor|współrzędn\w*|tọa độ|vectơ|koordinat\w*)\b"
    r"|(?<!\w)(?:точк\w*|координат\w*|вершин\w*|вектор\w*)|点|坐标|座標|頂点|좌표|向量|ベクトル|벡터"
)
_ASKS_FACTORS = any_case(
    r"prime factor|factoriz|factoris|primfaktor|facteurs premiers|factores primos|fatores primos|fattori primi"
    r"|простые множ|质因数|質因数|素因数|소인수|czynniki pierwsze|priemfactor"
)
_POWER = r"\d{1,6}[²³⁴⁵⁶⁷⁸⁹]?(?:\^\{?\d\}?)?"
_FACTORS = lazy_pattern(  # "360 = 2³ × 3² × 5"
    rf"(?<![\w.])\d{{2,9}}\s?=\s?({_POWER}(?:\s?[×·*⋅]\s?{_POWER}){{1,8}})[\s.!*]*$"
)
_COORDINATE = r"\s*[-−]?\d[\d./]*\s*"
_POINT = lazy_pattern(
    r"(?<!, )(?<!; )(?<![)] )(?<=\s)[$*]*(?:[A-Z]\s?=?\s?)?"
    rf"(\({_COORDINATE}(?:[,;|]{_COORDINATE}){{1,2}}\))[$*]*[\s.!*]*$"
)
_AND_A_POINT = any_case(  # "(1, 2) and also", before the last of several points
    r"\d\s*\)[$*]*,?\s(?:and|und|et|y|e|en|och|i|и)\s"
    r"(?:(?:also|at|in|the point|auch|bei|aussi|en|también|anche|também)\s)*"
    r"[$*]*(?:[A-Z]\s?=?\s?)?$"
)
_POINT_BY_NAMES = lazy_pattern(  # "The vertex sits at x = 3, y = 5."
    r"(?<![\w'’])(x\s?=\s?([-−]?\d[\d./]*)(?:,| and|, and| und| et| y"
    r"| e)\s(?:at\s)?y\s?=\s?([-−]?\d[\d./]*))(?<![.,])[\s.!*]*$"
)
_ASKS_MATRIX = any_case(
    r"\\begin\{[a-z]?matrix\}|\b(?:matri(?:x|ces?|z|zes)|macierz\w*|inverse|transpose|product)\b|\[\["
    r"|\b[A-Z]\^|(?<!\w)матриц\w*|矩阵|行列|행렬"
)
_ROW = r"\[\s*[-−]?[\w./]+(?:\s*,\s*[-−]?[\w./]+){0,9}\s*\]"
_MATRIX = lazy_pattern(  # "So A squared = [[1, 4], [0, 1]]."
    rf"(?:=|:|\b(?:is|equals|becomes|ist|est|es|é|è|jest)|(?<!\w)это|[是为は])\s*[$*]*(\[\s*{_ROW}(?:\s*,\s*{_ROW}){{0,9}}\s*\])[\s$.!*。]*$"
)
# Questions for a form of answer, and the end of a sentence that gives it.
_FORMS = (
    (_ASKS_RATIO, _RATIO),
    (_ASKS_BETWEEN, _BOUNDS),
    (_ASKS_POINT, _POINT),
    (_ASKS_POINT, _POINT_BY_NAMES),
    (_ASKS_FACTORS, _FACTORS),
    (_ASKS_MATRIX, _MATRIX),
)
_GIVES = lazy_pattern(  # a line such as "- x = 1"
    r"\s*+(?:(?:[-*•]|\d\.)\s+)?[$*]*+(?P<name>[A-Za-zα-ω](?:_\{?\w\}?)?)\s*+=[^=<>?\n]{1,60}"
)
_LEADS_TO_LINES = any_case(  # "So the solution is:", and no other word
    r"\W*+(?:(?:so|thus|therefore|hence|then|finally|also|daher|donc|ainsi|por (?:lo )?tanto|así que|portanto|logo"
    r"|quindi|итак|значит|所以|因此|故|よって|따라서)[\s,，]*+)?(?:(?:we (?:get|have|find"
    r"|obtain)|the|our|die|das|la|le|les|las"
    r"|los|el|a|as|o|os|il|i)\s)?(?:(?:final|unique|only|endgültige|única)\s)?(?:solutions?|answers?|values?|results?"
    r"|lösung(?:en)?|antwort|werte|ergebnisse?|réponse|valeurs|soluci(?:ón|ones)|respuesta|valores|soluç(?:ão|ões)"
    r"|resposta|soluzion[ei]|risposta|решение|ответ|значения|解|答案|答え|정답|해)?(?:\s(?:of|to|for|des|du|del|do|da)"
    r" (?:the |this )?(?:system|equations?|gleichungssystems|système|sistema))?\s?(?:is|are|ist|sind|lautet|lauten|est"
    r"|sont|es|son|é|são|è|sono|是|为|為|は)?[\s*_]*+[:：][\s*_]*+"
)
_MOST_LINES = 8
_ASKS_BOUND = any_case(
    r"[<>≤≥]|\\(?:l|g)(?:e|eq|t)(?![a-z])|\bfor (?:which|what) (?:real )?(?:\$?[a-z]\$?|values?|numbers?)\b|\b(?:domain"
    r"|range|domaine|dom[ií]nio|definitions\w+|wertebereich|ensemble de définition|dziedzin\w+|zbiór wartości)\b"
    r"|область (?:определения|значений|визначення|значень)|定义域|值域|定義域|정의역|치역"
)
_SIGNED = r"\$?(?P<{}>[-−]?\d{{1,9}}(?:[./]\d{{1,9}})?)\$?"
_IN = r"(?:included|inclusive|incluses|eingeschlossen|incluidos|incluídos|inclusi|compresi)"
_OUT = r"(?:excluded|not included|exclusive|exclues|non comprises|ausgeschlossen|excluidos|excluídos|esclusi)"
_WITHIN = any_case(  # "all real numbers between -2 and 3, endpoints included"
    rf"\b(?:between|from|zwischen|von|entre|de|tra|fra|da|tussen|między)\s{_SIGNED.format('low')}"
    rf"\s(?:and|to|und|bis|et|à|y|a|e|en|tot|i)\s{_SIGNED.format('high')},?"
    r"\s(?:\(?(?:both )?(?:ends?|end ?points?|bounds?|bornes|grenzen|extremos|estremi)\s(?:are |sont |están |sono )?"
    rf"(?:{_IN}|(?P<open>{_OUT}))|inclusive|(?P<exclusive>exclusive)"
    rf"|(?:where|with) (?P<first>[-−]?[\d./]+) (?:is )?(?:{_IN}|(?P<first_out>{_OUT}))"
    rf" and [-−]?[\d./]+ (?:is )?(?:{_IN}|(?P<last_out>{_OUT})))"
    r"[\s.)!*]*$"
)
_COMPARED = (
    r"(?:(?P<least>at least|not (?:less|smaller) than|no (?:less|smaller) than|mindestens|au moins|al menos|pelo menos"
    r"|не менш\w* (?:за|від)|не меньше)|(?P<most>at most|no(?:t)? (?:more|greater|larger) than|höchstens|au plus"
    r"|como máximo|no máximo|не більш\w* (?:за|від)|не больше)"
    r"|(?P<greater>greater|larger|bigger|größer|supérieure?s?|plus grande?s?|mayor(?:es)?|maior(?:es)?|maggiori?|больше"
    r"|groter|större|większ\w+)"
    r"|(?P<less>less|smaller|kleiner|inférieure?s?|plus petite?s?|menor(?:es)?|minori?|меньше|kleiner|mindre"
    r"|mniejsz\w+))"
    r"(?:\s(?:than|als|à|que|do que|di|a|чем|dan|än|niż|od))?(?:\s(?P<equal>or equal to|than or equal to|oder gleich"
    r"|ou égaux? à|ou égales? à|o igual(?:es)? (?:a|que)|ou igua(?:l|is) a|o ugual[ei] a|или равн\w+))?(?:\s(?:than|als"
    r"|à|que|do que|di|a|чем|dan|än|niż|od))?"
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
_FAILS = any_case(r"\b(?:not|fails?|nicht|pas|cannot)\b|n['’]t\b|(?<!\w)не(?!\w)")
_EITHER = lazy_pattern(  # "x < -1 or x > 4"
    rf"(?<![\w'’^+*/-])(?P<name>[a-z])\s?(?P<below>[<≤])\s?{_SIGNED.format('low')}\s(?:or|oder|ou|o|или|lub|of|eller)\s"
    rf"(?P=name)\s?(?P<above>[>≥])\s?{_SIGNED.format('high')}[\s$.!*]*$"
)
_EAST = lazy_pattern(
    r"(?<![\w'’^])\$?(?P<name>[a-z])\$?\s?(?:必须|应)?(?:(?P<least>不小于|不低于)|(?P<most>不大于|不超过)"
    r"|(?P<greater>[大高]于)|(?P<less>[小低]于))(?P<equal>等于|或等于)?\s?"
    rf"{_SIGNED.format('value')}[\s$。.!*]*$"
)
_NAMES = lazy_pattern(r"\(\s*([a-z])\s*,\s*([a-z])(?:\s*,\s*([a-z]))?\s*\)")
_MOST_BEFORE = 4  # sentences in which the values stand
_VALUE = r"(?P<value>(?:(?P<minus>minus|negative|moins|menos|meno|минус)\s{1,12}|[-−])?\s{0,8}\d{1,9}(?:[./]\d{1,9})?)"
_SOME = r"[-−]?\s?(?:\d{1,9}(?:[.,/]\d{1,9})?|\d{0,4}√\d{1,6}|\d{0,4}π(?:/\d{1,4})?)"
_JOINT = (
    r"(?:,\s|,?\s?(?<!\w)(?:or|oder|ou|o|и|или|lub|albo|of|eller|veya|vagy|sau|nebo|and|und|et|y|e|i|en|och|ve|또는|그리고"
    r"|或|或者|または|和|と)(?![A-Za-z])\s?)"
)
_SAME_NAME = lazy_pattern(
    rf"(?<![\w'’])(?P<all>(?P<name>[a-z])\s?=\s?{_SOME}(?:{_JOINT}(?P=name)\s?=\s?{_SOME}){{1,5}})"
    r"(?:\s?(?:입니다|이다|です))?[.。\s*]*$"
)
_AFTER_EQUALS = lazy_pattern(rf"=\s?({_SOME})")
_GROUPED = lazy_pattern(r",(?=\d{3}$)")  # in "1,200"


def closing_share(text: str, sentence: Span, language: str, asked: str, *, fraction: bool) -> Extraction | None:
    """Returns the share that ends a sentence, or None unless a chance or a fraction is asked for.

    Args:
        asked: the question, or "" if it is unknown; the sentence must then name a chance.
        fraction: the question asks for a fraction.
    """
    if not (fraction or OF_CHANCE.search(asked or text[slice(*sentence)])) or language not in _JOINTS:
        return None
    *before, whole = quantities(text, *sentence, language) or (None,)
    if whole is None or not whole.value or whole.value.denominator != 1:
        return None
    joint = _JOINTS[language].search(text, max(sentence[0], whole.span[0] - _LONGEST), whole.span[0])
    if joint is None or _CLOSED.fullmatch(text, whole.span[1], sentence[1]) is None:
        return None
    one = _ONE.search(text, sentence[0], joint.start())
    if before and before[-1].span[1] == joint.start():
        start, part = before[-1].span[0], before[-1].value
    else:
        start, part = (one.start(), Fraction(1)) if one else (0, None)
    if part is None or not 0 <= part <= whole.value or part.denominator != 1:
        return None
    share = part / whole.value
    return Extraction((start, whole.span[1]), "statement", said=f"{share.numerator}/{share.denominator}")


def closing_list(text: str, sentence: Span, language: str, asked: str) -> Extraction | None:
    """Returns the list of two or more values that ends a sentence, or None unless several values are asked for."""
    if not _ASKS_SEVERAL.search(asked):
        return None
    found = [item for item in quantities(text, *sentence, language) if not item.article]
    first = len(found) - 1
    if first < 1 or _CLOSED.fullmatch(text, found[-1].span[1], sentence[1]) is None:
        return None
    while first and _AND.fullmatch(text, found[first - 1].span[1], found[first].span[0]):
        first -= 1
    listed = found[first:]
    if len(listed) < 2 or len({item.kind in ("formula", "relation") for item in listed}) > 1:
        return None
    if _STATES_LIST.search(text[sentence[0] : listed[0].span[0]]) is None:
        return None
    said = ", ".join(item.said or text[slice(*item.span)] for item in listed)
    return Extraction((listed[0].span[0], listed[-1].span[1]), "statement", said=said)


def closing_form(text: str, sentence: Span, asked: str) -> tuple[int, Extraction] | None:
    """Returns the ratio, point or bounds that end a sentence and where their phrase begins, or None.

    They count only if the question asks for them. The phrase of two bounds begins with "between".
    """
    for asks, form in _FORMS:
        found = form.search(text, *sentence) if asks.search(asked) else None
        if found is not None and form is _POINT and _AND_A_POINT.search(text, sentence[0], found.start(1)):
            return None if _ASKS_SEVERAL.search(asked) else (found.start(), Extraction(None, "unsure"))
        if found is not None:
            parts = found.groups()[1:]
            said = f"({parts[0]}, {parts[1]})" if form is _POINT_BY_NAMES else " and ".join(parts)
            return found.start(), Extraction(found.span(1), "statement", said=said)
    return bound_in_words(text, sentence, asked)


def closing_assignments(text: str, start: int, end: int) -> Span | None:
    """Returns the span of the lines that end a text and give values to several names, after "The solution is:"."""
    if text.count("=", start, end) < 2:
        return None
    lines = text[start:end].rstrip().split("\n")
    first = len(lines)
    while first and (not lines[first - 1].strip() or _GIVES.fullmatch(lines[first - 1])):
        first -= 1
    names = [found["name"] for found in map(_GIVES.fullmatch, lines[first:]) if found]
    if not first or not 2 <= len(names) <= _MOST_LINES or len(set(names)) < len(names):
        return None
    led = lines[first - 1]
    if not _LEADS_TO_LINES.fullmatch(led, max(led.rfind(stop) + 1 for stop in ".!?。")):
        return None
    low = start + sum(len(line) + 1 for line in lines[:first])
    return low, low + len("\n".join(lines[first:]))


def closing_lines(text: str, count: int) -> list[Span]:
    """Returns the spans of the `count` lines that end a text and give values to names, and the line before; or []."""
    lines: list[Span] = []
    end = len(text)
    while end > 0 and len(lines) <= count:
        begin = text.rfind("\n", 0, end) + 1
        if text[begin:end].strip():
            lines.append((begin, end))
        end = begin - 1
    given = [_GIVES.fullmatch(text, *line) for line in lines]
    names = {found["name"] for found in given[:count] if found}
    if len(lines) < count or None in given[:count] or any(given[count:]) or len(names) not in (1, count):
        return []
    return lines[::-1] if len(lines) > count else [(0, 0), *lines[::-1]]


def bound_in_words(text: str, sentence: Span, asked: str) -> tuple[int, Extraction] | None:
    """Returns the bounds with which a sentence answers an inequality, and where their phrase begins, or None."""
    if not _ASKS_BOUND.search(asked):
        return None
    within = _WITHIN.search(text, *sentence)
    if within is not None:
        outside = within["open"] or within["exclusive"]
        ends = ["(" if outside or within["first_out"] else "[", "(" if outside or within["last_out"] else "["]
        if within["first"] not in (None, within["low"]):  # "between -2 and 3, where 3 is included and -2 is excluded"
            ends.reverse()
        brackets = ends[0], {"(": ")", "[": "]"}[ends[1]]
        said = f"{brackets[0]}{within['low']}, {within['high']}{brackets[1]}"
        return within.start(), Extraction((within.start("low"), within.end("high")), "statement", said=said)
    either = _EITHER.search(text, *sentence)
    if either is not None:
        low, high = f"{either['below']} {either['low']}", f"{either['above']} {either['high']}"
        said = f"{either['name']} {low} or {either['name']} {high}"
        return either.start(), Extraction((either.start(), either.end("high")), "statement", said=said)
    found = _NAMED.search(text, *sentence) or _EAST.search(text, *sentence) or _ANY_NUMBER.search(text, *sentence)
    if found is None or _FAILS.search(text, found.end("value"), sentence[1]):
        return None
    bound = next(name for name in ("least", "most", "greater", "less") if found[name])
    if found["equal"] and bound in ("least", "most"):
        return None  # "not greater than or equal to 4" is less than 4
    sign = ">" if found["greater"] or found["least"] else "<"
    sign += "=" if found["equal"] or found["least"] or found["most"] else ""
    said = f"{found.groupdict().get('name') or 'x'} {sign} {found['value']}"
    return found.start(bound), Extraction(found.span("value"), "statement", said=said)


def named_values(text: str, sentences: Sequence[Span], asked: str, language: str) -> Extraction | None:
    """Returns the values of the names in the question's "(x, y)" as "(4, 3)", or None unless each has exactly one.

    The last sentence must give one of them; the others may stand in the sentences directly before it.
    """
    wanted = list(_NAMES.finditer(asked))
    if not wanted:
        return None
    names = [name for name in wanted[-1].groups() if name]
    near = sentences[-_MOST_BEFORE:]
    text = in_digits(text, near[0][0], near[-1][1], language)
    values: dict[str, str] = {}
    low, high = near[-1][1], near[-1][0]
    for span in near:
        part = text[slice(*span)]
        found = [match for name in names for match in _given(name).finditer(text, *span)]
        if not found:
            continue
        if opposed(part, language) or reports(part, NOTHING) or supposes(part) or UNREAL.search(part):
            return None
        if CORRECTION.search(part):
            values.clear()
        for match in found:
            said = ("-" if match["minus"] else "") + match["value"].split()[-1].replace("−", "-").replace(" ", "")
            if values.setdefault(match["name"], said) != said:
                return None
            low, high = min(low, match.start()), max(high, match.end())
    if set(values) != set(names) or high <= near[-1][0]:
        return None
    return Extraction((low, high), "statement", said=f"({', '.join(values[name] for name in names)})")


def values_of_one_name(text: str, span: Span, language: str) -> Extraction | None:
    """Returns the values of "x = 0,5 lub x = −3", with which a sentence ends, as a list, or None."""
    found = _SAME_NAME.search(text, *span)
    led = text[span[0] : found.start()] if found else ""
    if found is None or opposed(led, language) or reports(led, NOTHING) or supposes(led) or UNREAL.search(led):
        return None
    values = (value.replace("−", "-").replace(" ", "") for value in _AFTER_EQUALS.findall(found[0]))
    values = (_GROUPED.sub("", value) if language == "en" else value.replace(",", ".") for value in values)
    said = ", ".join(f"{found['name']} = {value}" for value in values)
    return Extraction(found.span("all"), "statement", said=said)


@functools.lru_cache(maxsize=64)
def _given(name: str) -> re.Pattern[str]:
    """Returns the pattern of "x = 4" and "x equals 4", where x is not a part of an expression."""
    return re.compile(
        rf"(?<![\w'’^\\/*·+−-])(?<![-+−*/·=] )(?P<name>{name})\$?\s?(?:=|(?:must be|has to be|is equal to|equals|is"
        r"|ist gleich|ist|est égale? à|vaut|est|es igual a|vale|es|é igual a|é|è uguale a|è|is gelijk aan|är lika med"
        r"|är|równa się|wynosi|равен|равна|равно|равняется)(?!\w)|等于|等於|[는은は])"
        rf"\s{{0,8}}\$?{_VALUE}\$?(?![A-Za-z0-9_(^]|[.,/]\d|\s?[-+−*/·=×÷])",
        re.IGNORECASE if name.isupper() else 0,
    )
