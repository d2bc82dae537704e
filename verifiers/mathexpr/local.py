"""Rewrites numbers, money, dates and units of other countries in the spelling that the reader knows.

Only unambiguous ones: "1.234,56" and "2.500.000" can't be English decimals, "mètres carrés" can't be a length.
"""

from __future__ import annotations

import re

from verifiers.lazy_pattern import lazy_pattern

_LONGEST = 120  # characters of a number with its unit, or of a date
_MONTHS = {
    "January": "enero janvier janeiro gennaio januar januari января stycznia ocak januarie",
    "February": "febrero février fevereiro febbraio februar februari февраля lutego şubat",
    "March": "marzo mars março märz maart марта marca mart",
    "April": "abril avril aprile april апреля kwietnia nisan",
    "May": "mayo mai maio maggio mei maj мая maja mayıs",
    "June": "junio juin junho giugno juni июня czerwca haziran",
    "July": "julio juillet julho luglio juli июля lipca temmuz",
    "August": "agosto août augustus augusti августа sierpnia ağustos",
    "September": "septiembre septembre setembro settembre september сентября września eylül",
    "October": "octubre octobre outubro ottobre oktober октября października ekim",
    "November": "noviembre novembre november ноября listopada kasım",
    "December": "diciembre décembre dezembro dicembre dezember december декабря grudnia aralık",
}
_MONTH = {name: english for english, names in _MONTHS.items() for name in names.split()}
_DATE = lazy_pattern(
    rf"(?<!\d)(\d{{1,2}})\.?(?:º|°)?\s+(?:de\s+)?({'|'.join(sorted(_MONTH, key=len, reverse=True))})(?![^\W\d_])"
    r"(?:\s+(?:de\s+)?(\d{4})(?!\d))?(?:\s+(?:года|г\.))?",
    re.IGNORECASE,
)
_EAST_DATE = lazy_pattern(r"(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号일]")
_IN_TEXT = lazy_pattern(r"\\text(?:rm|bf)?\s*\{([^{}]*)\}")
_GROUPED_DECIMAL = lazy_pattern(r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+),(\d{1,2})(?![\d.,])")
_GROUPED = lazy_pattern(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,]*\d)")
_PERCENT_FIRST = lazy_pattern(r"\s*(\$?)\s*\\?%\s?(\d+(?:[.,]\d+)?)\s*(\$?)[\s.]*")
_REAIS = lazy_pattern(r"R\s?\\?\$\s?(-?[\d.,]*\d)")
_EURO_FIRST = lazy_pattern(r"€(?:\s|\\[,;: ])*(\d{1,9}),(\d{2})(?![\d.,])")
_REPEATED = lazy_pattern(r"(?<![\d,.])(\d{1,9})(?:\{,\}|,)(?=\d{0,9}\\overline\s?\{)")
_BRACKETS = lazy_pattern(r"\\(?:left|right)\s*(?=[\[\]])")
_SQUARE = lazy_pattern(
    r"((?:\w*m[eè]t\w+|\w*метр\w*|[cdkm]?m|[см]м|м|км))\s+(?:quadrat[ioe]|quadrado?s?|cuadrad[oa]s?|carrés?"
    r"|kwadrat\w*|в квадрате)"
    r"(?![^\W\d_])",
    re.IGNORECASE,
)
_SQUARE_FIRST = lazy_pattern(r"(?:квадратн\w+|vierkante|kvadratiska?)\s+(?=\w*(?:метр|met))", re.IGNORECASE)
_CUBIC = lazy_pattern(r"(\w*m[eè]t\w+|[cdkm]?m)\s+(?:cubi|cubos|cúbicos|cubes)(?![^\W\d_])", re.IGNORECASE)
_ZLOTY = lazy_pattern(r"(?<=\d)\s*(?:\\text\{)?\s*zł(?:ot\w+)?(?![^\W\d_])\}?", re.IGNORECASE)
_PER = lazy_pattern(
    r"(?<=[^\W\d_])\s+(?:(?:por|par|pro|per|w|na|i|в|за|mỗi|một)\s+|all['’]\s?|al\s+)"
    r"(hora|heure|stunde|ora|godzinę|uur|timmen?|jam|giờ|час|segundo|seconde|sekundę?|sekunden|secondo|giây|detik"
    r"|секунду|minuto|minutę|minuut|minuten|minute|phút|menit|минуту)(?![^\W\d_])",
    re.IGNORECASE,
)
_TIMES = {**dict.fromkeys("hutjочg", "hour"), **dict.fromkeys("pmм", "minute"), **dict.fromkeys("dsс", "second")}
_SPEED = lazy_pattern(
    r"(?P<by>時速|时速|시속|每小时|毎時|매시|分速|분속|每分钟|毎分|秒速|초속|每秒|毎秒|saatte|dakikada|saniyede)\s?約?约?약?\s?"
    r"(?P<value>\d[\d.,]{0,20})\s?(?P<kilo>km|キロメートル|キロ|公里|千米|킬로미터|kilometre|)(?P<metre>m|メートル|米|미터|metre|)"
)  # 時速60km
_EVERY = {**dict.fromkeys("時时시", "hour"), **dict.fromkeys("分분", "minute"), **dict.fromkeys("秒초", "second"),
          "小": "hour", "saatte": "hour", "dakikada": "minute", "saniyede": "second"}  # fmt: skip
_HINDI = {
    "किमी/घंटा": "km/h", "किमी": "km", "मीटर": "metres", "मी": "metres", "सेमी": "cm", "मिमी": "mm", "किग्रा": "kg",
    "ग्राम": "grams", "लीटर": "litres",
    "घंटे": "hours", "घंटा": "hour", "मिनट": "minutes", "रुपये": "rupees", "रुपए": "rupees", "प्रतिशत": "%",
}  # fmt: skip
_DEVANAGARI = lazy_pattern(  # whole words
    rf"(?<![\u0900-\u0963])(?:{'|'.join(sorted(_HINDI, key=len, reverse=True))})(?![\u0900-\u0963])"
)
# A text without a match of this pattern matches none of the above.
_LOCAL = lazy_pattern(
    r"\s(?:por|par|pro|per|al|w|na|i|в|за|mỗi|một)\s|[時时시每毎매速속]|saatte|dakikada|saniyede|\sall['’]|"
    r"%\s?\d|R\s?\\?\$|\d\.\d{3}[.,]|€(?:\s|\\.)*\d+,|\\overline|\\(?:left|right)\s*[\[\]]|[年월月\u0904-\u0939]|zł|[\u0430-\u044f]{2}"
    r"|\d\.?[\s{}~\\a-z]{0,8}\s(?:de\s)?[A-Za-zäéûşğ]{3,10}|[\s{][\s\w]{0,3}m[eè]t\w+\s\w|m\s+(?:quad|cuad|carr|kwad)",
    re.IGNORECASE,
)


def plain_spelling(text: str) -> str:
    """Returns the text with local spellings rewritten; long texts are returned unchanged."""
    if len(text) > _LONGEST or _LOCAL.search(text) is None:
        return text
    text = _GROUPED_DECIMAL.sub(lambda match: f"{match[1].replace('.', '')}.{match[2]}", text)
    percent = _PERCENT_FIRST.fullmatch(text)
    text = f"{percent[1]}{percent[2]}\\%{percent[3]}" if percent else text
    text = _REAIS.sub(lambda match: f"{_decimal_comma(match[1])} reais", text)
    text = _ZLOTY.sub(" PLN", text)
    text = _EURO_FIRST.sub(r"€\1.\2", text)
    text = _REPEATED.sub(r"\1.", text)
    text = _BRACKETS.sub("", text)
    plain = _IN_TEXT.sub(r" \1 ", text) if "text" in text else text
    speed = _SPEED.fullmatch(plain.strip(" .$*。"))
    if speed is not None and (speed["kilo"] or speed["metre"]):
        return _speed(speed)
    dated = _DATE.fullmatch(plain.strip(" .$*"))
    if dated is not None:
        return " ".join(part for part in (dated[1], _MONTH[dated[2].lower()], dated[3]) if part)
    east = _EAST_DATE.fullmatch(plain.strip(" .$*。"))
    if east is not None:
        month = list(_MONTHS)[int(east[2]) - 1] if 1 <= int(east[2]) <= 12 else east[2]
        return " ".join(part for part in (east[3], month, east[1]) if part)
    text = _SQUARE.sub(r"square \1", text)
    text = _SQUARE_FIRST.sub("square ", text)
    text = _CUBIC.sub(r"cubic \1", text)
    text = _PER.sub(lambda match: f" per {'second' if match[1] == 'giây' else _TIMES[match[1][0].lower()]}", text)
    return _DEVANAGARI.sub(lambda match: f" {_HINDI[match[0]]} ", text)


def _speed(match: re.Match[str]) -> str:
    by = match["by"]
    every = _EVERY.get(by) or next(_EVERY[char] for char in by if char in _EVERY)
    return f"{match['value']} {'km' if match['kilo'] else 'm'} per {every}"


def grouped_by_points(text: str) -> str:
    """Returns the text with a number such as "2.500.000" as 2500000."""
    return _GROUPED.sub(lambda match: match[0].replace(".", ""), text)


def _decimal_comma(number: str) -> str:
    whole, comma, decimals = number.partition(",")
    return f"{whole.replace('.', '')}.{decimals}" if comma and len(decimals) < 3 else number
