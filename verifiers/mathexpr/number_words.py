"""Numbers in words: "twenty-one", "three quarters", "two and a half", 二十五, and fraction words after a number.

The words below are in lower case and without accents, as in cleaned texts.
"""

from __future__ import annotations

from fractions import Fraction

from verifiers.extract.numerals import CHARACTERS, in_characters, numerals
from verifiers.lazy_pattern import lazy_pattern

_ENGLISH = {word: value for word, value in numerals("en").items() if value < 100 and " " not in word}
SCALES: dict[str, int] = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "myriad": 10**4,
}  # fmt: skip
# Words for tens, hundreds and more that are not among the numerals above.
_MULTIPLES = {
    10: "десятка десятков",
    12: "dozens 打",
    100: "hundreds centaines cientos centenas centinaia сотни сотен сотня",
    144: "gross",
    1000: "thousands milliers millares milhares migliaia",
    10**4: "myriads",
    10**5: "lakh lakhs",
    10**6: "millions",
    10**7: "crore crores",
    10**9: "billions",
    10**12: "trillions",
}
MULTIPLES: dict[str, Fraction] = {
    **{word: Fraction(value) for word, value in SCALES.items()},
    **{word: Fraction(value) for value, words in _MULTIPLES.items() for word in words.split()},
    "成": Fraction(1, 10),
}
# Fraction words: in the singular, and in the plural.
_ONE_PART = {
    2: "half halb halber halbes demi medio media meio mezzo mezza половина",
    3: "third drittel tiers tercio terco terzo треть",
    4: "fourth quarter viertel cuarto quarto четверть",
    5: "fifth funftel cinquieme quinto пятая",
    6: "sixth sechstel sixieme sexto sesto шестая",
    7: "seventh siebtel siebentel septieme septimo setimo settimo седьмая",
    8: "eighth achtel huitieme octavo oitavo ottavo восьмая",
    9: "ninth neuntel neuvieme noveno nono девятая",
    10: "tenth zehntel dixieme decimo decima десятая",
    11: "eleventh elftel onzieme",
    12: "twelfth zwolftel douzieme",
    15: "fifteenth funfzehntel",
    13: "thirteenth",
    14: "fourteenth",
    16: "sixteenth sechzehntel",
    17: "seventeenth",
    18: "eighteenth",
    19: "nineteenth",
    20: "twentieth zwanzigstel",
    30: "thirtieth",
    40: "fortieth",
    50: "fiftieth",
    60: "sixtieth",
    70: "seventieth",
    80: "eightieth",
    90: "ninetieth",
    100: "hundredth hundertstel centieme centesimo centesima сотая",
    1000: "thousandth tausendstel millieme milesimo milesima millesimo тысячная",
    10**6: "millionth millionstel",
    10**9: "billionth",
    10**12: "trillionth",
}
_PARTS = {
    2: "halves halften halbe demis medios meios mezzi",
    3: "thirds drittel tiers tercios tercos terzi трети третьих",
    4: "fourths quarters viertel cuartos quartos quarti четверти четвертых четвёртых",
    5: "fifths funftel cinquiemes quintos quinti пятых пятые",
    6: "sixths sechstel sixiemes sextos sesti шестых",
    7: "sevenths siebtel siebentel septiemes septimos setimos settimi седьмых",
    8: "eighths achtel huitiemes octavos oitavos ottavi восьмых",
    9: "ninths neuntel neuviemes novenos nonos девятых",
    10: "tenths zehntel dixiemes decimos decimas decimi десятых",
    11: "elevenths elftel onziemes",
    12: "twelfths zwolftel douziemes doceavos",
    13: "thirteenths",
    14: "fourteenths",
    15: "fifteenths funfzehntel",
    16: "sixteenths sechzehntel",
    17: "seventeenths",
    18: "eighteenths",
    19: "nineteenths",
    20: "twentieths zwanzigstel",
    30: "thirtieths",
    40: "fortieths",
    50: "fiftieths",
    60: "sixtieths",
    70: "seventieths",
    80: "eightieths",
    90: "ninetieths",
    100: "hundredths hundertstel centiemes centesimos centesimas centesimi сотых",
    1000: "thousandths tausendstel milliemes milesimos milesimas millesimi тысячных",
    10**6: "millionths millionstel миллионных",
    10**9: "billionths",
    10**12: "trillionths",
}
_ARABIC = {3: "أثلاث", 4: "أرباع", 5: "أخماس", 6: "أسداس", 7: "أسباع", 8: "أثمان", 9: "أتساع", 10: "أعشار"}
ONE_PART: dict[str, int] = {word: value for value, words in _ONE_PART.items() for word in words.split()}
PARTS: dict[str, int] = {word: value for value, words in _PARTS.items() for word in words.split()}
PARTS.update({word: value for value, word in _ARABIC.items()})
COINS_AND_ROOMS = frozenset("quarters tiers cuartos quartos".split())  # may be counted: "5 quarters"

_CJK_NUMBER = lazy_pattern(rf"([负負])?(?:({CHARACTERS})分[之の])?({CHARACTERS})[個个名人本只枚张張匹冊册]?")
_MIXED = lazy_pattern(r"(\d{1,6}) and ((?:a|one|two|three) [a-z]+)")
# Zero to twelve in six other languages, except for Spanish "once", which is an English word.
_OTHERS = {
    word: value
    for language in ("de", "fr", "es", "pt", "it", "ru")
    for word, value in numerals(language).items()
    if value <= 12 and word != "once"
}
_FIRST = frozenset({*_ENGLISH, *SCALES, *_OTHERS, "a", "an", "half"})


def number_in_words(lower: str) -> Fraction | None:
    """Returns the number that a text in lower case spells out: in English, or a small one in others; else None."""
    if lower[:1].isdigit():
        if " and " not in lower:
            return None
        mixed = _MIXED.fullmatch(lower)
        part = _fraction(mixed[2].split()) if mixed else None
        return int(mixed[1]) + part if mixed and part is not None and part < 1 else None
    if "\u3000" < lower[:1] < "\ua000":
        return _cjk(lower)
    if not lower[:1].isalpha() and not lower.startswith(("-", "−")):
        return None
    words = lower.replace("-", " ").replace("−", " ").split()
    said = words[:1] in (["minus"], ["negative"])
    words = words[1:] if said else words
    signed = lower.startswith(("-", "−")) and lower[1:2].isalpha()  # "-three"; "- three" begins with a dash
    if (said and signed) or not words or len(words) > 12 or words[0] not in _FIRST:
        return None
    value = _whole(words)
    value = _fraction(words) if value is None else value
    value = _with_fraction(words) if value is None else value
    return None if value is None else -value if said or signed else value


def part_of(word: str, one: bool) -> int | None:
    """Returns 3 for "thirds", and for "third" if `one` (after a one or an article); None for other words."""
    return PARTS.get(word) or (ONE_PART.get(word) if one else None)


def _whole(words: list[str]) -> Fraction | None:
    """Reads "two hundred and five"; None for words that make no one number, such as "two three" or "two and three"."""
    if len(words) == 1 and words[0] in _OTHERS:
        return Fraction(_OTHERS[words[0]])
    total = current = 0
    room = largest = 10**15  # what the next word must be below: a number, and a scale from a thousand on
    for before, word in zip(["", *words], words, strict=False):
        if word == "and":
            if SCALES.get(before, 0) < 100:
                return None
        elif word in _ENGLISH:
            value = _ENGLISH[word]
            if value >= room or (before and not value):
                return None
            current, room = current + value, 10 if value >= 20 and value % 10 == 0 else 1
        elif word in SCALES and (current or not before):
            scale = SCALES[word]
            if scale >= largest if scale >= 1000 else current >= 100 and scale == 100:
                return None
            current = (current or 1) * scale
            room = 1 if scale == 12 else scale
            if scale >= 1000:
                total, current, largest = total + current, 0, scale
        else:
            return None
    return Fraction(total + current) if words and words[-1] != "and" else None


def _fraction(words: list[str]) -> Fraction | None:
    """Reads "three quarters", "a third", "half", "deux tiers"."""
    if words == ["half"]:
        return Fraction(1, 2)
    if len(words) < 2 or "and" in words:  # "two and three quarters" are no five quarters
        return None
    top = Fraction(1) if words[:-1] in (["a"], ["an"]) else _whole(words[:-1])
    bottom = None if top is None else part_of(words[-1], top == 1)
    return None if top is None or bottom is None else top / bottom


def _with_fraction(words: list[str]) -> Fraction | None:
    """Reads "two and a half", "one and three quarters"."""
    if "and" not in words[1:-1]:
        return None
    at = len(words) - 1 - words[::-1].index("and")
    whole, part = _whole(words[:at]), _fraction(words[at + 1 :])
    return None if whole is None or part is None or part >= 1 else whole + part


def _cjk(text: str) -> Fraction | None:
    """Reads 二十五, 三分之二."""
    match = _CJK_NUMBER.fullmatch(text)
    if match is None:
        return None
    top, bottom = in_characters(match[3]), in_characters(match[2]) if match[2] else 1
    if top is None or not bottom:
        return None
    return Fraction(-top if match[1] else top, bottom)
