"""Units in the words of many languages: "квадратных метров", "km na godzinę", 時速72km.

`names` has the names of single units. Here are the words between them, for squares, cubes and quotients.
"""

from __future__ import annotations

import functools
import re

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.marks import LETTER
from verifiers.units.reading import DEGREE, Unit, is_unit, lookup

# "percent" in other languages, behind a number.
PERCENT = (
    r"(?:per ?cento?|pct|prozent|v\.\s?h\.|pour ?cent|por ?ciento|por ?cento|procent[a-zůy]{0,3}|процент[а-я]{0,2}"
    r"|відсот[а-яі]{1,3}"
    r"|phần trăm|persen|százalék|τοις εκατό|パーセント|퍼센트|في المئة|في المائة|بالمئة|بالمائة|प्रतिशत)(?![^\W\d_])"
)
# Words behind a number that multiply it; languages with units of ten thousand are read elsewhere.
SCALES = {
    12: "dozen dozens Dutzend docena docenas dúzia dúzias douzaine douzaines dozzina dozzine dozijn dussin tuzin tuziny"
    " tuzinów дюжина дюжины дюжин",
    10**6: "million millions Millionen millón millones milhão milhões milione milioni milion miliony milionów miljoen"
    " miljon miljoner Mio миллион миллиона миллионов млн мільйон мільйона мільйонів juta triệu milyon",
    10**9: "billion billions Milliarde Milliarden milliard milliards bilhão bilhões miliardo miliardi miliard miliardy"
    " miliardów miljard miljarder Mrd миллиард миллиарда миллиардов млрд мільярд мільярда мільярдів miliar milyar",
}

_NAME = rf"[^\W\d_]{LETTER}*"
_EAST = r"(?:キロ|センチ|ミリ)?メートル|千米|公里|[厘毫分]?米|公分|(?:킬로|센티|밀리)?미터|[kcm]?m"
_BEFORE = {  # words before the unit
    "square": r"квадратн\w+|кв(?:\.|(?=\s))|vierkante|kvadratisk\w*|čtverečn\w+|वर्ग|τετραγωνικ\w+",
    "cubic": r"кубическ\w+|кубічн\w+|куб(?:\.|(?=\s))|kubieke|kubisk\w*|krychlov\w+|घन|κυβικ\w+",
}
_AFTER = {
    "square": r"quadrat[ioe]|quadrado?s?|squared|(?:al )?cuadrad[oa]s?|ao quadrado|al quadrato"
    r"|im quadrat|(?:au )?carrés?|kwadrat\w*|čtverečn\w+|в квадрате|persegi|vuông"
    r"|مربع\w*|pătrați",
    "cubic": r"cub[io]|cubed|cubos|cúbic[oa]s?|cubes?|sześcienn\w+|krychlov\w+|kubik|khối|مكعب\w*|cubici",
}
_WITHIN = {  # parts of the unit's word
    "square": rf"(?:quadrat|kvadrat|négyzet|neliö)({_NAME})|(\w{{4,}})kare|(?:平方|(?<!세)제곱)({_EAST})",
    "cubic": rf"(?:kubik|köb|kuutio)({_NAME})|(\w{{4,}})küp|(?:立方|세제곱)({_EAST})",
}
_POWERS = tuple(
    (
        power,
        any_case(
            rf"(?<![^\W\d_])(?:(?:{_BEFORE[power]})\s*({_NAME})|({_NAME})\s+(?:{_AFTER[power]})"
            rf"|{_WITHIN[power]})(?!{LETTER})"
        ),
    )
    for power in ("square", "cubic")
)
_BY = r"(?:por|par|pro|per|w|na|i|в|за|za|på|mỗi|một|setiap|في|لكل|प्रति|al|a la)\s+|all['’]\s?"
_PER = any_case(
    rf"(?<={LETTER})(?:\s+(?:{_BY})({_NAME})|\s?每\s?(小时|小時|分钟|分鐘|分|秒)|(?<=[mم])\s?/\s?(t|u|sa|tim|hod|س"
    rf"|ث|د))(?!{LETTER})"
)
_SHORT = {**dict.fromkeys(("t", "u", "sa", "tim", "hod", "س"), "hour"), "ث": "second", "د": "minute"}  # after a slash
_EVERY = {  # words before a speed
    "hour": "時速|时速|시속|每小时|每小時|毎時|매시|시간당|saatte",
    "minute": "分速|분속|每分钟|每分鐘|毎分|분당|dakikada",
    "second": "秒速|초속|每秒|毎秒|초당|saniyede",
}
_EVERY_NAMED = "|".join(f"(?P<{unit}>{words})" for unit, words in _EVERY.items())
SPEED = lazy_pattern(
    rf"(?:{_EVERY_NAMED})\s?[約约약]?\s?"
    r"(?P<value>\d[\d.,]{0,20})\s{0,3}(?P<kilo>km|キロメートル|キロ|公里|千米|킬로미터|kilometre|)(?P<metre>m"
    r"|メートル|米|미터|metre|)"
    r"(?![A-Za-z²³^])"
)
_LAST_OF_EVERY = frozenset("速속時时시分钟鐘秒당초")
_LONGEST_EVERY = 8
_PREFIX = lazy_pattern(rf"(?:{'|'.join(_EVERY.values())}|摂氏|攝氏|摄氏|섭씨|(?<!\w)Rp\.?)(?=\s?[-−]?\d)")
_NUMBER = lazy_pattern(r"\d[\s$}]*(?=[^\W\d_])")
_APART = lazy_pattern(rf"([^\W\d_]+)\s(?:per|each|every)\s([^\W\d_]+)|(?:{_EVERY_NAMED})(?!\s?\d)")
_CELSIUS = any_case(
    rf"(?<!{LETTER})({_NAME})\s+(?:Celsius|Цельсі[яю]|Цельсия|Celsjusza|Celsia|مئوية|सेल्सियस|C)(?!{LETTER})"
    r"|(?:摂氏|攝氏|摄氏|섭씨)\s?([-−]?\d[\d.]*)\s?[度도]"
)
_LENGTH, _SECOND = (("length", 1),), (("time", 1),)
_WORDS = lazy_pattern(rf"[\s~]*{_NAME}\.?(?:(?:\s|\s?/\s?|\s?['’]){_NAME}){{0,3}}")
_WORD_END = lazy_pattern(rf"(?<={LETTER})(?!{LETTER})|(?=[でだか입이인])")
_BEGINS = (
    "square",
    "cubic",
    "quadr",
    "kvadr",
    "kubi",
    "квадр",
    "куб",
    "vierk",
    "平方",
    "立方",
    "제곱",
    "세제곱",
    "वर्ग",
    "घन",
)
_GOES_ON = any_case(rf"\s(?:{_AFTER['square']}|{_AFTER['cubic']}|{_BY})|/|\s?每")


def respelled(text: str) -> str:
    """Returns the text with squares, cubes, quotients and speeds as in "20 square метров" and "72 km per hour"."""
    for power, pattern in _POWERS:
        text = pattern.sub(functools.partial(_raised, power=power), text)
    text = SPEED.sub(_speed, _PER.sub(_per, text))
    return _CELSIUS.sub(_in_celsius, text)


def _raised(match: re.Match[str], power: str) -> str:
    name = next(filter(None, match.groups()))
    unit = lookup(name)
    return f"{power} {name}" if unit is not None and unit.dimension == _LENGTH else match[0]


def _per(match: re.Match[str]) -> str:
    name = _SHORT.get((match[3] or "").lower()) or match[1] or match[2]
    unit = lookup(name) or lookup(name.removeprefix("ال"))
    timed = unit is not None and unit.dimension == _SECOND and unit.scale <= 3600
    return f" per {name.removeprefix('ال')}" if timed else match[0]


def _speed(match: re.Match[str]) -> str:
    if not (match["kilo"] or match["metre"]):
        return match[0]
    every = next(unit for unit in _EVERY if match[unit])
    return f"{match['value']} {'km' if match['kilo'] else 'm'} per {every}"


def _in_celsius(match: re.Match[str]) -> str:
    if match[2]:
        return f"{match[2]} °C"
    return "°C" if lookup(match[1]) == DEGREE else match[0]


def every_time(sentence: str) -> Unit | None:
    """Returns the minute of "how much flows out per minute", a time after a word that is no unit; None if none is."""
    for match in _APART.finditer(sentence):
        name = next((unit for unit in _EVERY if match[unit]), match[2])
        unit = None if match[1] and lookup(match[1]) else lookup(name)
        if unit is not None and unit.dimension == _SECOND:
            return unit
    return None


def unit_end(text: str, position: int) -> int:
    """Returns where the longest unit in words ends that begins at `position`, or `position` if there is none."""
    words = _WORDS.match(text, position)
    ends = [found.start() for found in _WORD_END.finditer(text, position, words.end())] if words else []
    return next((end for end in reversed(ends) if end > position and is_unit(respelled(text[position:end]))), position)


def begins_power(text: str, position: int) -> bool:
    """Returns whether the word after a number may begin the name of a square or cube."""
    return text.startswith(_BEGINS, position)


def goes_on(text: str, end: int) -> bool:
    """Returns whether a unit that ends at `end` may go on: "km na godzinę"."""
    return _GOES_ON.match(text, end) is not None


def speed_at(text: str, position: int) -> str:
    """Returns "72\\text{ km per hour}" for the number at `position` in 時速72km, or "" if it is no such speed."""
    if text[max(0, position - 2) : position].strip()[-1:] not in _LAST_OF_EVERY:
        return ""
    speed = SPEED.search(text, max(0, position - _LONGEST_EVERY), position + 40)
    if speed is None or speed.start("value") != position:
        return ""
    value, _, unit = _speed(speed).partition(" ")
    return rf"{value}\text{{ {unit}}}" if unit else ""


def without_units(text: str, start: int, end: int) -> str:
    """Returns the text with spaces for the units in words beside the numbers between `start` and `end`."""
    by = _PREFIX.search(text, max(0, start - _LONGEST_EVERY), end)
    text = f"{text[: by.start()]}{' ' * len(by[0])}{text[by.end() :]}" if by else text
    for number in _NUMBER.finditer(text, start, end):
        stop = unit_end(text, number.end())
        text = text[: number.end()] + " " * (stop - number.end()) + text[stop:]
    return text
