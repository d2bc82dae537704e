"""The numbers, times, ratios and formulas of running text, in digits and in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from verifiers.extract.numerals import ARTICLES, CHARACTERS, first_words, in_characters, numerals, parts
from verifiers.extract.spans import Span

_LETTERS = "A-Za-z_\u00aa-\u024f\u0370-\u052f\u05d0-\u05ea\u0621-\u064a\u0671-\u06d3\u0904-\u0939"
_UNITS = (
    r"(?:[mcdk]?m[²³]?|[mcdk]?m\^[23]|[mk]?g|[mcd]?l|L|kcal|k?J|k?W|V|A|s|h|min|km/h|m/s|mph|°\s?[CF]|°|US dollars"
    r"|dollars|cents?|euros?|kilograms?|grams?|milligrams?|pounds?|ounces?|(?:centi|milli|kilo)?met(?:er|re)s?"
    r"|miles?|inches|feet|foot|yards?|(?:milli)?lit(?:er|re)s?|gallons?|hours?|minutes?|seconds?|days?|weeks?|months?"
    rf"|years?|per ?cent|percent|degrees?)(?![{_LETTERS}\d/^])"
)
_IN_DIGITS = re.compile(
    r"(?P<formula>\$(?!\s|[\d.,]+\s)[^$\n]{1,100}(?<!\s)\$|\\\([^\n]{1,100}?\\\))"
    r"|(?<![\w)}^.])(?P<relation>[A-Za-z](?:\([a-z]\))?\s?(?:[=<>≤≥])\s?[^\s=<>≤≥,;，。$]{1,60}(?:\s?[-+−*/·×]\s?[^\s=<>,;，。$]{1,60}){0,8}"
    r"(?<![.!?)]))"
    r"|(?<![\d:.])(?P<time>\d{1,2}:\d{2}(?![\d:])(?:\s?[ap]\.?\s?m\b\.?)?|\d{1,2}\.\d{2}(?=\s(?:Uhr|[ap]\.?m\b))"
    r"|\d{1,2}(?=\s?[ap]\.?m\b)\s?[ap]\.?m\b)"
    r"|(?<![\d:.])(?P<ratio>\d{1,9}(?:\s?:\s?\d{1,9}){1,2}"
    r"|(?:(?<=ratio )|(?<=ratio of ))\d{1,9} to \d{1,9})(?!\d)"
    rf"|(?<![{_LETTERS}\d^\\{{/])(?<!\d[.,])[-+−]?[$€£¥₹]?\s?"
    r"(?P<number>(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d{1,3}(?:\.\d{3}){2,}"
    r"|\d{1,30})(?!\d)(?:[.,]\d{1,20})?)"
    rf"(?:\s?/\s?(?P<under>\d{{1,9}}))?(?:\s?%)?(?![{_LETTERS}\d^])(?:\s?(?P<unit>{_UNITS}))?"
)
_WORD = re.compile(r"[\u0900-\u0963]+|[^\W\d_]+(?:['’][^\W\d_]+)?|(?<=[^\W\d_])-(?=[^\W\d_])")
_WORDS_OF_ONE = 4  # "twenty-five thousand", "mười lăm"
_CHARACTERS = re.compile(CHARACTERS)
_NO_NUMBER = re.compile(r"[共起定样樣般些切直分旦番面人種緒部方日月]|$")  # "一共" is altogether, "一人" anybody

_HALF = {  # "two and a half"
    "en": ("and a half",), "fr": ("et demi", "et demie"), "es": ("y medio", "y media"), "pt": ("e meio", "e meia"),
    "it": ("e mezzo", "e mezza"), "nl": ("en een half", "en een halve"), "sv": ("och en halv", "och ett halvt"),
    "pl": ("i pół",), "ru": ("с половиной",),
}  # fmt: skip
_SCALES = {  # "three hundred"
    "en": {"hundred": 100, "thousand": 1000}, "fr": {"cents": 100, "cent": 100, "mille": 1000}, "es": {"mil": 1000},
    "pt": {"mil": 1000}, "sv": {"hundra": 100, "tusen": 1000}, "nl": {"honderd": 100, "duizend": 1000},
    "tr": {"yüz": 100, "bin": 1000}, "id": {"ratus": 100, "ribu": 1000}, "vi": {"trăm": 100, "nghìn": 1000},
    "ru": {"тысячи": 1000, "тысяч": 1000}, "pl": {"tysiące": 1000, "tysięcy": 1000},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of running text."""

    span: Span
    kind: str  # "number", "word", "time", "ratio", "formula", "relation"
    value: Fraction | None
    key: object  # the value, or what the text says
    said: str = ""  # spelled as the verifier reads it, where the text spells it otherwise
    article: bool = False  # a word for one, which may count nothing


def quantities(text: str, start: int, end: int, language: str) -> list[Quantity]:
    """All of them between two places, in order. They do not overlap."""
    found = [_in_digits(match) for match in _IN_DIGITS.finditer(text, start, end)]
    in_words = _characters(text, start, end) if language in ("zh", "ja") else _words(text, start, end, language)
    taken = [quantity.span for quantity in found]
    found += [word for word in in_words if not any(low < word.span[1] and word.span[0] < high for low, high in taken)]
    return sorted(found, key=lambda quantity: quantity.span)


def _in_digits(match: re.Match[str]) -> Quantity:
    kind = match.lastgroup or "number"
    if kind in ("formula", "relation", "time", "ratio"):
        plain = match[0].strip("$").replace(",", "")
        value = Fraction(plain) if plain.isdecimal() else None
        return Quantity(match.span(), kind, value, "".join(match[0].lower().split()) if value is None else value)
    start, end = match.span()
    sign = -1 if match[0].lstrip()[0] in "-−" else 1
    value = sign * _value(match["number"]) / (int(match["under"] or 1) or 1)
    start += len(match[0]) - len(match[0].lstrip())
    unit = match["unit"]  # a letter that no dollar sign makes a variable
    said = f"{match[0][: match.start('unit') - match.start()].strip()}\\text{{ {unit}}}" if unit else ""
    return Quantity((start, end), "number", value, value, said)


def _value(digits: str) -> Fraction:
    """Of "1,250", "1 250", "1.250.000", "12.5" and "12,5"; a comma before three digits groups them."""
    digits = "".join(digits.split())
    last = max(digits.rfind("."), digits.rfind(","))
    groups = digits.count(",") + digits.count(".")
    if last >= 0 and (len(digits) - last != 4 or (groups == 1 and digits[last] == ".")):
        whole, decimals = digits[:last], digits[last + 1 :]
    else:
        whole, decimals = digits, ""
    whole = whole.replace(",", "").replace(".", "")
    return Fraction(int(whole + decimals), 10 ** len(decimals))


def _words(text: str, start: int, end: int, language: str) -> list[Quantity]:
    """Numbers in words, the longest first: "quarenta e oito" is one."""
    known, shares, first = numerals(language), parts(language), first_words(language)
    tokens = [match for match in _WORD.finditer(text, start, end) if match[0] != "-"]
    lower = [match[0].lower() for match in tokens]
    found: list[Quantity] = []
    if first.isdisjoint(lower):
        return found
    at = 0
    while at < len(tokens):
        if lower[at] not in first:
            at += 1
            continue
        for size in range(min(_WORDS_OF_ONE, len(tokens) - at), 0, -1):
            value = known.get(" ".join(lower[at : at + size]))
            if value is not None and not text[tokens[at].start() : tokens[at + size - 1].end()].count(","):
                break
        else:
            at += 1
            continue
        last = at + size
        scale = _SCALES.get(language, {}).get(lower[last]) if 1 < value < 100 and last < len(tokens) else None
        if scale:
            value, last = value * scale, last + 1
        whole = shares.get(lower[last]) if value and last < len(tokens) else None
        half = next(
            (turn for turn in _HALF.get(language, ()) if lower[last : last + 3][: len(turn.split())] == turn.split()),
            "",
        )
        amount = Fraction(value, whole) if whole else value + Fraction(1, 2) if half else Fraction(value)
        last += 1 if whole else len(half.split())
        place = (tokens[at].start(), tokens[last - 1].end())
        alone = amount == 1 and lower[at] in ARTICLES
        found.append(Quantity(place, "word", amount, amount, str(amount), alone))
        at = last
    return found


def _characters(text: str, start: int, end: int) -> list[Quantity]:
    found = []
    for match in _CHARACTERS.finditer(text, start, end):
        value = in_characters(match[0])
        if value is None or (match[0] in ("一", "十", "千", "万") and _NO_NUMBER.match(text, match.end())):
            continue
        found.append(Quantity(match.span(), "word", Fraction(value), Fraction(value), str(value), value == 1))
    return found
