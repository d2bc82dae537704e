"""Finds the weekday, month or date with which the last clause answers a question."""

from __future__ import annotations

import functools
import re

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern

DAYS = any_case(
    r"(?<![^\W\d_])(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|sonnabend|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado"
    r"|domingo|(?:segunda|terça|quarta|quinta|sexta)-feira|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"
    r"|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|понедельник|вторник|сред[ау]|четверг|пятниц[ау]"
    r"|суббот[ау]|воскресенье|måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag|poniedział(?:ek|ku)|wtor(?:ek|ku)"
    r"|środ[aęy]|czwart(?:ek|ku)|piąt(?:ek|ku)|sobot[aęy]|niedziel[aęi]|pazartesi|salı|çarşamba|perşembe|cumartesi|cuma"
    r"|pazar|senin|selasa|rabu|kamis|jumat|sabtu|minggu|thứ "
    r"(?:hai|ba|tư|năm|sáu|bảy)|chủ nhật|الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد|सोमवार|मंगलवार|बुधवार|गुरुवार"
    r"|शुक्रवार|शनिवार|रविवार)(?:(?=d[ıiuü]r)|(?=t[ıiuü]r)|(?![^\W\d_]))|(?:星期|周)[一二三四五六日天]"
    r"|[月火水木金土日]曜日|[월화수목금토일]요일"
)
_WHICH_DAY = Gated(
    r"\b(?:what|which|on which) day|\bwelche[rmn]? (?:wochen)?tag|\bquel jour|\bqué día|\bque dia|\b(?:che"
    r"|quale) giorno|\b(?:welke|wat voor) dag"
    r"|какой день|星期几|周几|何曜日|무슨 요일|vilken (?:vecko)?dag|jaki(?:m)? dzie[ńn]|który dzień|hangi gün|thứ mấy"
    r"|hari apa|ما اليوم|أي يوم|कौन सा दिन"
    r"|कौन-सा दिन|\b(?:what|which) month|welche[rmn] monat|quel mois|qué mes|que mês|che mese"
)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul"
    r"|aug|sept?|oct|nov|dec|januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet"
    r"|août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre"
    r"|noviembre|diciembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|gennaio|febbraio"
    r"|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre)"
)
MONTHS = any_case(rf"(?<![^\W\d_]){_MONTH}(?![^\W\d_])")
_DATE = any_case(
    rf"(?<![^\W_]){_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?![\d%])|(?<![\d.])\d{{1,2}}(?:st|nd|rd"
    rf"|th|er|\.|º|°)? (?:of |de )?{_MONTH}"
    r"(?![^\W\d_])(?:(?: de|,)? \d{4})?"
)
_WHICH_DATE = any_case(
    r"\b(?:(?:what|which) (?:date|day)|when|wann|welche[smnr] (?:datum|tag)|quelle date|quel jour|quand|qué "
    r"(?:fecha|día)|cuándo|que (?:data|dia)|quando|(?:che|quale|in che) (?:data|giorno))\b"
)
_ENDING = lazy_pattern(r"[ .!*_。]*(?:입니다|이다|です|だ|である|になります|[dt][ıiuü]r|है)?[\s.!*_。।]*")
FROM = any_case(
    r"\b(?:before|after|since|from|until|not|vor|nach|seit|nicht|avant|après|depuis|pas|antes de|después de"
    r"|desde|no|depois de|não|prima di|dopo|da|non)"
    r"(?: the| dem| le| el| il| o)?\s*$"
)


def asked_day(text: str, sentence: Span, clause: Span, prompt: str) -> Span | None:
    """Returns the weekday or month of the last clause, or one of the sentence that the question does not name."""
    days, _ = names_of_days(prompt[-600:])
    return None if days is None else _last_one(days, text, sentence, clause, prompt)


def asked_date(text: str, sentence: Span, clause: Span, prompt: str) -> Span | None:
    """Returns the date of the last clause, or one of the sentence that the question does not name."""
    _, dated = names_of_days(prompt[-600:])
    return _last_one(_DATE, text, sentence, clause, prompt) if dated else None


@functools.lru_cache(maxsize=256)
def names_of_days(prompt: str) -> tuple[re.Pattern[str] | None, bool]:
    """Returns the pattern of the weekdays or months that a question asks for, and whether it asks for a date."""
    asked = _WHICH_DAY.search(prompt)
    of_month = asked is not None and asked[0].lower().endswith(("month", "monat", "mois", "mes", "mês", "mese"))
    return None if asked is None else MONTHS if of_month else DAYS, _WHICH_DATE.search(prompt) is not None


def _last_one(pattern: re.Pattern[str], text: str, sentence: Span, clause: Span, prompt: str) -> Span | None:
    concluded = list(pattern.finditer(text, *clause)) if clause[0] > sentence[0] else []
    if len({match[0].lower() for match in concluded}) == 1:
        return None if FROM.search(text, clause[0], concluded[0].start()) else concluded[0].span()
    given = {name[0].lower() for name in pattern.finditer(prompt)}
    found = [match for match in pattern.finditer(text, sentence[0], clause[1]) if match[0].lower() not in given]
    if not found or FROM.search(text, sentence[0], found[-1].start()):
        return None
    closes = _ENDING.fullmatch(text, found[-1].end(), clause[1])
    return found[-1].span() if closes or len({match[0].lower() for match in found}) == 1 else None
