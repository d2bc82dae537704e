"""Translates words of other languages in numbers to English: scales, percentages and fractions."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.words import PERCENT, SCALES

# -- words directly after a number; the keys are the English words that the reader of units knows
_AFTER = {
    "hundred": "hundert honderd hundra hundrede yüz száz सौ ร้อย 百 백",
    "thousand": "Tausend mille mil mila тысяча тысячи тысяч тыс тисяча тисячі тисяч tysiąc tysięcy tysiące nghìn ngàn"
    " ribu ribuan tisíc tisíce duizend tusen tusind bin ezer χιλιάδες हजार हज़ार พัน هزار 千 천 ألف آلاف",
    "myriad": "หมื่น 万 萬 만",
    "lakh": "लाख แสน",
    "million": SCALES[10**6] + " εκατομμύρια εκατομμύριο ล้าน مليون ملايين",
    "crore": "करोड़",
    "hundred million": "亿 億 억",
    "billion": SCALES[10**9] + " tỷ tỉ δισεκατομμύρια अरब مليار مليارات",
    "trillion": "Billionen billón billones trilhão trilhões biljoen biljoner bilionów trilyon triliun триллион"
    " триллиона триллионов трлн трильйон трильйона трильйонів 兆 조",
    "dozen": SCALES[12],
}
_ENGLISH = {word.casefold(): english for english, words in _AFTER.items() for word in words.split()}
_UNSPACED = [word for word in _ENGLISH if "\u3000" <= word[0] <= "\ud7ff"]
_SPACED = sorted((word for word in _ENGLISH if word not in _UNSPACED), key=len, reverse=True)
_WORD = any_case(
    rf"(?<=\d)\s*(?P<text>\\text\s*\{{\s*)?(?:(?P<percent>{PERCENT})|(?P<word>{'|'.join(_SPACED)}))(?![^\W_])\.?"
)
_CHARS = rf"(?:{'|'.join(_UNSPACED)})(?!分|[克米瓦卡焦帕])"  # 千克 is a kilogram
_CHAR_RUN = lazy_pattern(rf"(?<=\d)\s*(\\text\s*\{{\s*)?((?:{_CHARS})+)(?!\s*\d)")
_ONE_CHAR = lazy_pattern(_CHARS)
_MINUS = any_case(
    r"(?<![^\W\d_])(?:минус|menos|moins|meno|سالب|ناقص|마이너스|음수)\s+(?=\$?\d)|(?:负|負|マイナス|마이너스)\s*(?=\$?\d)"
)
_PER_HUNDRED = lazy_pattern(r"百分之\s*(\d+(?:\.\d+)?)")
_FRACTION_IN_TEXT = lazy_pattern(r"\\text\s*\{\s*(\d{1,9}\s*(?:分之|分の|분의)\s*\d{1,9})\s*\}")
_FRACTION = lazy_pattern(r"(\d{1,9})\s*(?:分之|分の|분의)\s*(\d{1,9})")

# An ASCII text without any of these words is returned unchanged.
ASCII_WORDS = frozenset({*_ENGLISH, *"per pct pour pourcent por prozent procent persen v menos moins meno".split()})


def in_english(text: str) -> str:
    """Returns the text with these words and fractions in English or LaTeX."""
    if not text.isascii():
        text = _PER_HUNDRED.sub(r"\1\\%", text)
        text = _FRACTION.sub(r"\\frac{\2}{\1}", _FRACTION_IN_TEXT.sub(r"\1", text))
        text = _CHAR_RUN.sub(_scales, text)
    if text[:1] not in "0123456789":
        text = _MINUS.sub("-", text)
    return _WORD.sub(_spelled, text)


def _scales(match: re.Match[str]) -> str:
    words = " ".join(_ENGLISH[char] for char in _ONE_CHAR.findall(match[2]))
    return _said(words, match[1] or "")


def _spelled(match: re.Match[str]) -> str:
    return _said("%" if match["percent"] else _ENGLISH[match["word"].casefold()], match["text"] or "")


def _said(english: str, opening: str) -> str:
    if opening:
        return rf"\text{{ {english} "
    return r"\%" if english == "%" else rf"\text{{ {english} }}"
