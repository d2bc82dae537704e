"""Rewrites numbers, money, dates and units of other countries in the spelling that the reader knows.

Only unambiguous ones: "1.234,56" and "2.500.000" can't be English decimals, "mètres carrés" can't be a length.
"""

from __future__ import annotations

from verifiers.extract.spoken import half_of_day
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.words import SPEED, respelled

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
_DATE = any_case(
    rf"(?<!\d)(\d{{1,2}})\.?(?:º|°)?\s+(?:de\s+)?({'|'.join(sorted(_MONTH, key=len, reverse=True))})(?![^\W\d_])"
    r"(?:\s+(?:de\s+)?(\d{4})(?!\d))?(?:\s+(?:года|г\.))?"
)
_EAST_DATE = lazy_pattern(r"(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号일]")
_IN_TEXT = lazy_pattern(r"\\text(?:rm|bf)?\s*\{([^{}]*)\}")
_GROUPED_DECIMAL = lazy_pattern(r"(?<![\d.,])(?<!,[-+])([1-9]\d{0,2}(?:\.\d{3})+),(\d{1,2})(?![\d.,/])")
_PAIR = lazy_pattern(  # "(5.125,3)" is no number in brackets
    r"[(\[{]\s*[-+−]?\d{1,3}(?:\.\d{3})+,\d{1,2}\s*(?:\\(?:right)?\s*)?[)\]}]"
)
_GROUPED = lazy_pattern(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,]*\d)")
_PERCENT_FIRST = lazy_pattern(r"\s*+(\$?)\s*+\\?%\s?(\d+(?:[.,]\d+)?)\s*(\$?)[\s.]*")
_REAIS = lazy_pattern(r"R\s?\\?\$\s?(-?[\d.,]*\d)")
_RUPIAH = lazy_pattern(r"(?<!\w)Rp\.?\s?(\d{1,3}(?:\.\d{3})+|\d{1,12})(?![\d.,]*\d)")
_EURO_FIRST = lazy_pattern(r"€(?:\s|\\[,;: ])*(\d{1,9}),(\d{2})(?![\d.,])")
_REPEATED = lazy_pattern(r"(?<![\d,.])(\d{1,9})(?:\{,\}|,)(?=\d{0,9}(?:\\overline\s?\{|\(\d{1,9}\)))")
_TIME = lazy_pattern(r"[\s*$]*(\d{1,2}:\d{2})(?=\s[a-z])")  # "7:20 in the evening"
_BRACKETS = lazy_pattern(r"\\(?:left|right)\s*(?=[\[\]])")
_ZLOTY = any_case(r"(?<=\d)\s*(?:\\text\{)?\s*zł(?:ot\w+)?(?![^\W\d_])\}?")
# A text without a match of this pattern matches none of the above.
_LOCAL = any_case(
    r"\s(?:por|par|pro|per|al|w|na|i|в|за|za|på|mỗi|một)\s|[時时시每毎速속당平立곱氏씨]|saatte|dakikada|saniyede|\sall['’]|Rp|"
    r":\d\d\s[a-z]|%\s?\d|R\s?\\?\$|\d\.\d{3}[.,]|€(?:\s|\\.)*\d+,|\\overline|\d,\d{0,9}\(|\\(?:left|right)\s*[\[\]]|[年월月\u0904-\u0939]|zł|[\u0430-\u044f\u0620-\u06ff]{2}"
    r"|\d\.?[\s{}~\\a-z]{0,8}\s(?:de\s)?[A-Za-zäéûşğôố]{3,10}|m\s?/\s?[tush]|kh[ốo]i|vuông|persegi|kubik|[\s{][\s\w]{0,3}m[eè]t\w+\s\w|m\s+(?:quad|cuad|carr|kwad)"
)


def plain_spelling(text: str) -> str:
    """Returns the text with local spellings rewritten; long texts are returned unchanged."""
    if len(text) > _LONGEST or _LOCAL.search(text) is None:
        return text
    if _PAIR.search(text) is None:
        text = _GROUPED_DECIMAL.sub(lambda match: f"{match[1].replace('.', '')}.{match[2]}", text)
    percent = _PERCENT_FIRST.fullmatch(text)
    text = f"{percent[1]}{percent[2]}\\%{percent[3]}" if percent else text
    text = _REAIS.sub(lambda match: f"{_decimal_comma(match[1])} reais", text)
    text = _RUPIAH.sub(lambda match: f"{match[1].replace('.', '')} IDR", text)
    text = _ZLOTY.sub(" PLN", text)
    text = _EURO_FIRST.sub(r"€\1.\2", text)
    text = _REPEATED.sub(r"\1.", text)
    text = _BRACKETS.sub("", text)
    timed = _TIME.match(text)
    if timed is not None:
        end, half = half_of_day(text, timed.end(1), int(timed[1].partition(":")[0]))
        text = f"{timed[1]}{half}" if half and not text[end:].strip(" .*$") else text
    plain = _IN_TEXT.sub(r" \1 ", text) if "text" in text else text
    dated = _DATE.fullmatch(plain.strip(" .$*"))
    if dated is not None:
        return " ".join(part for part in (dated[1], _MONTH[dated[2].lower()], dated[3]) if part)
    east = _EAST_DATE.fullmatch(plain.strip(" .$*。"))
    if east is not None:
        month = list(_MONTHS)[int(east[2]) - 1] if 1 <= int(east[2]) <= 12 else east[2]
        return " ".join(part for part in (east[3], month, east[1]) if part)
    return respelled(plain if SPEED.search(plain) else text)


def grouped_by_points(text: str) -> str:
    """Returns the text with a number such as "2.500.000" as 2500000."""
    return _GROUPED.sub(lambda match: match[0].replace(".", ""), text)


def _decimal_comma(number: str) -> str:
    whole, comma, decimals = number.partition(",")
    return f"{whole.replace('.', '')}.{decimals}" if comma and len(decimals) < 3 else number
