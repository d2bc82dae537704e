"""A quantity of running text, and how several are joined to one: "3 h 35 min", "three and a quarter"."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.marks import MARKS
from verifiers.units.reading import lookup
from verifiers.units.words import begins_power, goes_on, respelled, unit_end

_NAME = lazy_pattern(rf"\s?-?([^\W\d_]{{1,16}}+(?:[{MARKS}]++[^\W\d_]{{0,6}}+){{0,6}}+)(?![^\W\d_])")
_DEGREES = any_case(r"\s?-?(?:degrees?|grad|degrés?|grados?|graus?|gradi|graden|grader)\s(celsius|fahrenheit)\b")
_TIMES = {
    "days": "days? tag tage tagen jours? días? dias? giorn[io] dagen dygn dni дн(?:я|ей) gün ngày hari 日間 天 일",
    "hours": "hours? hrs? h stunden? heures? horas? or[ae] uur timm(?:e|ar) godzin\\w* час(?:а|ов)? saat giờ jam घंटे"
    " ساعة ساعات 時間 小时 小時 시간",
    "minutes": "minutes? mins? minuten? minutos? minut[io] minut[ay]? minuter минут[аы]? мин dakika phút menit मिनट"
    " دقيقة دقائق 分钟 分鐘 分間 分 분",
    "seconds": "seconds? secs? s sekunden? secondes? segundos? second[io] sekund\\w* секунд[аы]?"
    " saniye giây detik 秒 초",
}
_TIME_UNIT = "|".join(f"(?P<{name}>{'|'.join(words.split())})" for name, words in _TIMES.items())
_TIME_UNIT_AT = any_case(rf"\s?(?:{_TIME_UNIT})(?![^\W\d_\u3040-\ud7af])")
_MAJOR = any_case(
    r"\s?(?:(?:dollar|euro|pound|peso|franc|rand|krone|krona)s?|euro|pfund|franken|livres?|francs?|libras?|re(?:al"
    r"|ais)|sterline|dólar(?:es)?"
    r"|dollari|kron(?:or|er|en)|zł(?:ot(?:y|e|ych))?|korun[ay]?|lira|lei|рубл\w*|гривн\w*|гривень|грн|долар\w*"
    r"|доллар\w*|евро|євро|lire|dolar\w*|ευρώ|دولار\w*|ريال\w*|جنيه\w*|रुपय\w*)(?![^\W\d_])"
)
_MINOR = any_case(
    r"\s?(?:cents?|pence|pennies|p|centimes?|céntimos?|centavos?|cêntimos?|centesim[io]|grosz\w*|öre|øre|kuruş|haléř\w*"
    r"|bani|копе\w*|коп|копі\w*|цент\w*|λεπτά|سنت\w*|هلل\w*|قرش\w*|पैसे)(?![^\W\d_])"
)
_PART_OF_HOUR = any_case(
    r"\s?(?:h|heures?|horas?|or[ae]|uur|timm(?:e|ar)|godzin\w*|часа?|ώρες)\s(?:(?P<quarter>et quart|y cuarto"
    r"|e un quarto|en een kwartier|och en kvart|i kwadrans|с четвертью|και τέταρτο)|et demie?|y media|e meia"
    r"|e mezz[ao]|en een half|och en halv|i pół|с половиной|και μισή)(?![^\W\d_])"
)
_ENDS_SUM = lazy_pattern(r"[\s*]*(?:[.,;:!?)\n]|$)")  # after "four dollars fifty"
_TIME_JOINT = any_case(r"\.?,?\s?(?:(?:and|und|et|y|e|en|och|i|и|ve|và|dan|और)\s)?\s?")
_NEAR = 20  # characters between two numbers that may be joined


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity in running text."""

    span: Span
    kind: str  # "number", "word", "time", "duration", "ratio", "formula", "relation"
    value: Fraction | None
    key: object  # the value, or the text itself
    said: str = ""  # in the notation that the verifier reads, if the text uses another
    article: bool = False  # a word for one that may be an article


def unit_name(text: str, position: int) -> str:
    """Returns the unit that the word directly after a number names, in any language, or ""."""
    after = text[position : position + 1]
    name = _NAME.match(text, position) if after.isalpha() or after.isspace() or after == "-" else None
    if name is None or len(name[1]) < 3:
        return ""
    scale = _DEGREES.match(text, position) if name[1][0] in "dgDG" else None
    if scale is not None:
        return f"°{scale[1][0].upper()}"
    unit = lookup(name[1])
    named = unit is not None and bool(unit.dimension)
    if (named and goes_on(text, name.end())) or begins_power(text, name.start(1)):
        stop = unit_end(text, name.start(1))
        if stop > name.end():
            return respelled(text[name.start(1) : stop])
    return name[1] if named else ""


def with_durations(text: str, parts: list[Quantity], end: int, language: str) -> list[Quantity]:
    """Merges durations such as "3 h 35 min" or "two hours and ten minutes" into one quantity each."""
    merged: list[Quantity] = []
    for quantity in parts:
        quantity = _with_part_of_hour(text, quantity)
        before = merged[-1] if merged else None
        if before is not None and quantity.span[0] < before.span[1]:
            continue
        if before is not None and _may_join(text, before, quantity):
            joined = (
                _mixed(text, before, quantity)
                or _duration(text, before, quantity, end)
                or _sum_of_money(text, before, quantity, end, language)
            )
            if joined is not None:
                merged[-1] = joined
                continue
        merged.append(quantity)
    return merged


def _may_join(text: str, first: Quantity, second: Quantity) -> bool:
    """Returns whether two numbers are near each other and no operator precedes the second one ("5*3=15")."""
    if first.kind not in ("number", "word") or second.kind not in ("number", "word"):
        return False
    return second.span[0] - first.span[1] <= _NEAR and text[second.span[0] - 1] not in "+-−*/=<>(×÷·"


def _with_part_of_hour(text: str, quantity: Quantity) -> Quantity:
    """Returns "deux heures et quart" as one quantity; any other quantity is unchanged."""
    if quantity.kind not in ("number", "word") or quantity.value is None:
        return quantity
    at = _number_end(text, quantity)
    part = _PART_OF_HOUR.match(text, at) if text[at : at + 1].isalnum() or text[at : at + 1].isspace() else None
    if part is None:
        return quantity
    total = quantity.value + (Fraction(1, 4) if part["quarter"] else Fraction(1, 2))
    return Quantity((quantity.span[0], part.end()), "duration", None, f"{total} hours", f"{total}\\text{{ hours}}")


def _mixed(text: str, first: Quantity, second: Quantity) -> Quantity | None:
    """Returns "3 1/4 cups", "three and a quarter" or "two hours and a quarter" as one quantity, or None."""
    if first.value is None or second.value is None or first.value.denominator > 1 or not 0 < second.value < 1:
        return None
    between = text[_number_end(text, first) : second.span[0]]
    total = first.value + (second.value if first.value > 0 else -second.value)
    place = (first.span[0], second.span[1])
    if abs(first.value) < 1 or len(between) > _NEAR or second.value.denominator == 1:
        return None
    if between == " " and first.kind == second.kind == "number" and "/" in text[slice(*second.span)]:
        return Quantity(place, "number", total, total, second.said.replace(str(second.value), str(total), 1))
    unit = _TIME_UNIT_AT.match(between)
    if second.kind != "word" or _TIME_JOINT.fullmatch(between, unit.end() if unit else 0) is None or " " not in between:
        return None
    if unit and unit.lastgroup == "hours":
        return Quantity(place, "duration", None, f"{total} hours", f"{total}\\text{{ hours}}")
    if unit or first.kind != "word":
        return None
    name = unit_name(text, second.span[1])
    return Quantity(place, "word", total, total, f"{total}\\text{{ {name}}}" if name else str(total))


def _sum_of_money(text: str, first: Quantity, second: Quantity, end: int, language: str) -> Quantity | None:
    """Returns "3 dollars and 50 cents", "$3 and 50 cents" or "three euros fifty" as one quantity, or None."""
    if first.value is None or second.value is None:
        return None
    if first.value.denominator > 1 or not (0 < second.value < 100 and second.value.denominator == 1):
        return None
    at = _number_end(text, first)
    major = _MAJOR.match(text, at, end)
    if major is None and text[first.span[0]] not in "$€£":
        return None
    joint = _TIME_JOINT.fullmatch(text, major.end() if major else at, second.span[0])
    minor = _MINOR.match(text, _number_end(text, second), end)
    spoken = minor is None and major is not None and second.value > 9 and _ENDS_SUM.match(text, second.span[1], end)
    if joint is None or "." in joint[0] or not (minor or spoken):
        return None
    value = first.value + second.value / 100
    name = major[0].strip() if major and language == "en" else ""
    stop = max(second.span[1], minor.end() if minor else 0)
    said = f"{float(value):.2f}" + (f"\\text{{ {name}}}" if name else "")
    return Quantity((first.span[0], stop), first.kind, value, value, said if major else f"{text[first.span[0]]}{said}")


def _number_end(text: str, quantity: Quantity) -> int:
    """Returns where the digits or words of a quantity end, before its unit."""
    at = quantity.span[1]
    while quantity.kind == "number" and not text[at - 1].isdigit():  # the unit is part of the quantity
        at -= 1
    return at


def _duration(text: str, first: Quantity, second: Quantity, end: int) -> Quantity | None:
    if first.value is None or second.value is None:
        return None
    places, names = [], []
    for quantity in (first, second):
        unit = _TIME_UNIT_AT.match(text, _number_end(text, quantity), end)
        if unit is None:
            return None
        places.append(unit.end())
        names.append(str(unit.lastgroup))
    joint = _TIME_JOINT.fullmatch(text, places[0], second.span[0])
    if joint is None or list(_TIMES).index(names[0]) >= list(_TIMES).index(names[1]):
        return None
    said = f"{first.value} {names[0]} {second.value} {names[1]}"
    return Quantity((first.span[0], places[1]), "duration", None, said, said)
