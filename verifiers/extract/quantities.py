"""Finds the numbers, times, ratios and formulas of running text, in digits and in words."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction

from verifiers.extract.fraction_words import BEFORE, DIVIDED, is_part, one_part, ordinal_parts, parts
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity, unit_name, with_durations
from verifiers.extract.numerals import (
    ARTICLES,
    CHARACTERS,
    KOREAN,
    NUMBER_LANGUAGES,
    THOUSANDS,
    first_words,
    in_characters,
    in_korean,
    in_one_word,
    numerals,
)
from verifiers.extract.scaled import with_scale
from verifiers.extract.spans import Span
from verifiers.extract.spoken import half_of_day, spoken_times
from verifiers.extract.worded import worded
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.words import goes_on, respelled, speed_at, unit_end

_LETTERS = "A-Za-z_\u00aa\u00b5\u00ba\u00c0-\u024f\u0370-\u052f\u05d0-\u05ea\u0621-\u064a\u0671-\u06d3\u0904-\u0939"
_UNITS = (
    r"(?:[mcdk]?m[²³]?|[mcdk]?m\^[23]|[mk]?g|[mcd]?l|L|kcal|k?J|k?W|V|A|s|h|min|km/h|m/s|mph|°\s?[CF]|°|US dollars"
    r"|dollars|cents?|euros?|kilograms?|grams?|milligrams?|pounds?|ounces?|(?:centi|milli|kilo)?met(?:er|re)s?"
    r"|miles?|inches|feet|foot|yards?|(?:milli)?lit(?:er|re)s?|gallons?|hours?|minutes?|seconds?|days?|weeks?|months?"
    rf"|years?|per ?cent|percent|degrees?)(?![{_LETTERS}\d^]|/(?!(?:h|s|min|kg|g|m|l|L)\b))"
)
# Units that may follow a number without a space and are not variables: "750m", "12cm", but not "5s" or "3m + 2".
_TOUCHING = rf"(?:[cdmk]m[²³]?|m[²³]?|[mk]?g|[mcd]l|L|km/h|m/s)(?![{_LETTERS}\d^]|/(?!(?:h|s)\b)|\s?[-+*/=^·×(])"
_TERM = r"(?:(?!\\[])])[^\s=<>≤≥≡,;，、。$\u3040-\uffff]){1,60}"
_TERMS = rf"{_TERM}(?:\s?[-+−*/·×]\s?{_TERM}){{0,8}}"
_IN_DIGITS = lazy_pattern(
    r"(?P<formula>\$(?!\s|[\d.,]+\s(?![\\<>=≤≥+*^]))[^$\n]{1,100}(?<!\s)\$|\\\([^\n]{1,100}?\\\))"
    rf"|(?<![{_LETTERS}\d)}}^.])"
    rf"(?P<relation>[A-Za-zΑ-Ωα-ω][₀-₉]?(?:⁻¹)?(?:\([a-z\d]\))?\s?[=<>≤≥≡]\s?{_TERMS}(?:\s?=\s?{_TERMS}){{0,6}}"
    r"(?<![.!?)])(?:\s?\(mod \d{1,9}\))?)|(?=\d)(?<![\d:.])(?P<time>\d{1,2}:\d{2}(?![\d:])(?:\s?[apAP]\.?\s?[mM]\b\.?)?"
    r"|\d{1,2}\.\d{2}(?=\s[apAP]\.?[mM]\b)|\d{1,2}\.\d{2}\suur\b|\d{1,2}(?:[.:]\d{2})?\s?Uhr\b(?:\s\d{2}(?!\d))?"
    r"|\d{1,2}(?=\s?[apAP]\.?[mM]\b)\s?[apAP]\.?[mM]\b|\d{1,2}\s?h\s?\d{2}(?!\s?min|\d))"
    r"|(?=\d)(?<![\d:.])(?P<ratio>\d{1,9}(?:(?::|\s:\s?)\d{1,9}){1,2}|(?:(?<=ratio )"
    r"|(?<=ratio of ))\d{1,9} to \d{1,9})(?!\d)"
    rf"|(?=[-+−$€£¥₹%\d])(?:(?<![{_LETTERS}\d^\\{{/])|(?<=\bRp))"
    r"(?<!\d[.,])(?:[-+−]?[$€£¥₹]\s?|[-+−]\s?|(?<!\d)(?<!\d )%)?"
    r"(?P<number>(?:\d{1,3}(?:\.\d{3})+(?=,\d{1,2}(?!\d))|\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u00a0\u202f]\d{3})+"
    r"|\d{1,3}(?:\.\d{3}){2,}|\d{1,30})(?!\d)(?:[.,]\d{1,20})?)"
    rf"(?:\s?/\s?(?P<under>\d{{1,9}})|\s?(?P<part>[¼½¾⅓⅔⅛⅜⅝⅞]))?(?:\s?%)?(?:(?![{_LETTERS}\d^])"
    rf"|(?={_TOUCHING}))(?:\s?(?P<unit>{_UNITS}(?:\s?(?:/|[·⋅]|per|an?)\s?{_UNITS}){{0,2}}))?"
)
ROOT = lazy_pattern(  # "2√3", "36π", "4π/3"
    r"(?<![\w^/.,·×+−-])(?<![·*×+−-] )(?<!\d\*)(?=[\d√π])\d{0,9}(?:[.,/]\d{1,9})?"
    r"(?:√(?:\d{1,9}|\([\d+−/-]{1,20}\))|(?:(?<=\d)\s?π|π(?=\s?/))(?:\s?/\s?\d{1,9})?)"
    r"(?![A-Za-z0-9_^/(²³])(?!\s?[-+−·×*]\s?[\w(√])"
)
_EXPONENT = lazy_pattern(r"\d[eE][-+]?\d")
_SCIENTIFIC = lazy_pattern(  # "1.5×10⁸", "3.6e11"
    r"(?<![\w^/.,·×*])[-−]?\d+(?:[.,]\d+)?(?:\s?(?:[×·⋅*x]|\\times|\\cdot)\s?10\s?(?:\^\s?(?:[-−+]?\d{1,3}|\{[-−]?\d{1,3}\}"
    r"|\([-−]?\d{1,3}\))|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})|[eE][-+]?\d{1,3})(?![A-Za-z\d])"
)
_NUMBERS = lazy_pattern(r"\d+")
_IN_WORDS = any_case(r" power| root | or minus | over | squared| cubed|\ba dozen")
_PRONOUN_BEFORE = any_case(r"\b(?:the|this|that|which|each|every|another|any)(?: [a-z]+)? $")
_CLOCK = lazy_pattern(
    r"(?<![\d:.])(?:(?:午前|午後|上午|下午|早上|晚上|凌晨|오전|오후)\s?)?\d{1,2}\s?(?:[時时시](?![間间간])"
    r"|[点點](?=\d{1,2}分|[半钟整]))"
    r"(?:\s?\d{1,2}\s?[分분](?![钟鐘])|[半반钟整])?"
)  # 午前9時35分
_WORD = lazy_pattern(r"[\u0900-\u0963]+|[^\W\d_]+(?:['’][^\W\d_]+)?|(?<=[^\W\d_])-(?=[^\W\d_])")
_SPELLED = lazy_pattern(r"[^\W\d_]{3,60}(?:[ -][^\W\d_]{1,20}){0,8}")
_WORDS_OF_ONE = 4  # "mười lăm"
_KOREAN = lazy_pattern(
    rf"(?<![\uac00-\ud7af\d])(?:(?P<sino>(?=[일이삼사오육칠팔구십백천만]{{2}}|만\s|[십백천](?:입니다|이다)){KOREAN})(?:(?=\s?[개명원번살마장권일년분초])|(?=입니다|이다|이에요|예요|\W|$))"
    r"|(?P<native>[\uac00-\ud7af]{2,4}?)(?:입니다|이다|이에요|예요))"
)
_CHARACTERS = lazy_pattern(CHARACTERS)
_SHARE = lazy_pattern(
    rf"({CHARACTERS}|\d{{1,6}})\s?(?:分之|分の|분의)\s?({CHARACTERS}|\d{{1,6}})(?![時时시]|\s?[分秒])"
)  # 七分之五
_SHARE_KOREAN = lazy_pattern(rf"({KOREAN})분의\s?({KOREAN})")  # 사분의 삼
_DECIMAL = lazy_pattern(  # 三点五, 两个半
    rf"({CHARACTERS})(?:[点點]([零〇一二三四五六七八九]{{1,6}})(?!\d)|(?:个|個|小时|小時|時間|天|倍|元|块)半(?![径徑周数數年天]))"
)
_POINT = {"en": "point", "de": "komma", "fr": "virgule", "es": "coma", "pt": "vírgula", "it": "virgola", "nl": "komma"}
_NO_NUMBER = lazy_pattern(r"[共起定样樣般些切直分旦番面人種緒部方日月]|$")  # "一共": altogether, "一人": anybody
_ONE_OF_TIME = ("hour", "minute", "day")
_HALF = {  # "two and a half"
    "en": ("and a half",), "fr": ("et demi", "et demie"), "es": ("y medio", "y media"), "pt": ("e meio", "e meia"),
    "it": ("e mezzo", "e mezza"), "nl": ("en een half", "en een halve"), "sv": ("och en halv", "och ett halvt"),
    "pl": ("i pół",), "ru": ("с половиной",), "uk": ("з половиною",), "cs": ("a půl",), "el": ("και μισό", "και μισή"),
    "fa": ("و نیم",), "ar": ("ونصف",), "id": ("setengah",), "tr": ("buçuk",), "vi": ("rưỡi",),
}  # fmt: skip
_SCALES = {  # "three hundred"; a spelling has the same value in all languages that share it
    100: frozenset("hundred cents cent hundra honderd yüz ratus trăm सौ".split()),
    1000: frozenset(
        "thousand tausend mille mil mila tusen duizend bin ribu nghìn ngàn тысяча тысячи тысяч tysiące tysięcy हज़ार"
        " हजार tisíc tisíce тисяча тисячі тисяч ألف ألفا آلاف".split()
    ),
}
_BETWEEN_PARTS = frozenset("and e und y och en linh lẻ".split())  # "one hundred and five"
_MINUS = Gated(
    r"(?<![^\W\d_])(?:minus|negative|минус|мінус|eksi|âm|سالب|ناقص)\s(?=\S)"
    r"|(?:(?<!\w )|(?<=\best )|(?<=donc )|(?<=vaut )|(?<=\bes )|(?<=entonces )|(?<=\b[éè] )|(?<=então )|(?<=vale )"
    r"|(?<=quindi )|(?<=\bis )|(?<=\bdus ))(?:moins|meno|menos|min)\s(?=\S)"
    r"|(?:零下|氷点下|マイナス|영하|마이너스|[负負])\s?(?=\S)"
)


@functools.lru_cache(maxsize=8)  # a verdict reads each sentence several times
def quantities(text: str, start: int, end: int, language: str) -> tuple[Quantity, ...]:
    """Returns all quantities between `start` and `end`, in order and without overlaps."""
    east = language in ("zh", "ja", "ko")
    shares = [*_shares(text, start, end), *_spelled(_CLOCK, "time", text, start, end)] if east else []
    roots = _spelled(ROOT, "formula", text, start, end) if "√" in text or "π" in text else []
    if "10" in text or _EXPONENT.search(text, start, end):
        roots += _spelled(_SCIENTIFIC, "formula", text, start, end)
    if language == "en" and _IN_WORDS.search(text, start, end):
        roots += worded(text, start, end)
    in_digits = [_in_digits(match) for match in _IN_DIGITS.finditer(text, start, end)]
    spoken = [
        Quantity(span, kind, None, said if kind == "time" else Fraction(said.split()[0]), said)
        for span, kind, said in spoken_times(text, start, end, language)
    ]
    if language in ("zh", "ja"):
        in_words = _characters(text, start, end, language)
    elif language == "ko":
        in_words = _korean(text, start, end) or _words(text, start, end, language)
    else:
        in_words = _words(text, start, end, language)
    found: list[Quantity] = []
    for others in (shares, roots, spoken, in_digits, in_words):
        taken = [quantity.span for quantity in found]
        found += [item for item in others if not any(low < item.span[1] and item.span[0] < high for low, high in taken)]
    found = [with_scale(text, item, end) for item in sorted(found, key=lambda quantity: quantity.span)]
    signs = {sign.end(): sign.start() for sign in _MINUS.finditer(text, start, end)}
    return tuple(
        with_durations(text, [_signed(text, signs, item) for item in found] if signs else found, end, language)
    )


def number_in_other_words(text: str) -> Fraction | None:
    """Returns the number that the whole plain text spells in the languages that know all its words, or None."""
    plain = text.lower()
    if not _SPELLED.fullmatch(plain):
        return None
    found = [quantities(plain, 0, len(plain), language) for language in NUMBER_LANGUAGES]
    values = {one[0].value for one in found if len(one) == 1 and one[0].span == (0, len(plain))}
    value = values.pop() if len(values) == 1 else None
    return value if isinstance(value, Fraction) else None


def in_digits(text: str, start: int, end: int, language: str) -> str:
    """Returns the text with the numbers in words between `start` and `end` in digits, each ending where it ended."""
    for item in reversed(quantities(text, start, end, language)):
        low, high = item.span
        if item.kind == "word" and not item.article:
            digits = str(item.value)
            text = f"{text[:low]}{digits.rjust(high - low)}{text[high:]}" if len(digits) <= high - low else text
    return text


def _spelled(pattern: re.Pattern[str], kind: str, text: str, start: int, end: int) -> list[Quantity]:
    return [
        Quantity(match.span(), kind, None, "".join(match[0].split())) for match in pattern.finditer(text, start, end)
    ]


def _in_digits(match: re.Match[str]) -> Quantity:
    kind = match.lastgroup or "number"
    if kind in ("formula", "relation", "time", "ratio"):
        whole = match[0].rstrip("*") if kind == "relation" else match[0]
        missing = whole.count("(") - whole.count(")") if kind == "relation" else 0
        if missing > 0 and match.string.startswith(")" * missing, match.start() + len(whole)):
            whole += ")" * missing  # "y(x) = 3·exp(2x)"
        plain = whole.strip("$").replace(",", "")
        value = Fraction(plain) if plain.isdecimal() else None
        if kind == "time" and plain[-1].isdigit():
            clock = ":".join(_NUMBERS.findall(plain))  # "2 h 05", "9 Uhr 30"
            hour = int(clock.partition(":")[0])
            end, half = half_of_day(match.string, match.end(), hour)
            if half and hour < 13:
                said = clock + half
                return Quantity((match.start(), end), kind, None, said, said)
        return Quantity(
            (match.start(), match.start() + len(whole)),
            kind,
            value,
            "".join(whole.lower().split()) if value is None else value,
        )
    start, end = match.span()
    sign = -1 if match[0].lstrip()[0] in "-−" else 1
    value = _value(match["number"], sign, int(match["under"] or 1) or 1)
    if match["part"]:
        value += sign * Fraction(unicodedata.numeric(match["part"])).limit_denominator(8)
    start += len(match[0]) - len(match[0].lstrip())
    unit = match["unit"] or unit_name(match.string, end)  # a letter, and no dollar sign makes it a variable
    if match["unit"] and goes_on(match.string, end):  # "72 km na godzinę"
        stop = unit_end(match.string, match.start("unit"))
        unit = respelled(match.string[match.start("unit") : stop]) if stop > end else unit
    spelled = r"^\circ" if unit == "°" else f"\\text{{ {unit}}}"
    plain = match[0][: match.start("unit") - match.start()] if match["unit"] else match[0]
    said = f"{plain.strip()}{spelled}" if unit else f"{plain.strip()[1:]}\\%" if plain.strip()[0] == "%" else ""
    if not match.string.isascii():
        said = speed_at(match.string, start) or said
    said = f"Rp{plain.strip()}" if match.string.endswith("Rp", 0, start) else said
    return Quantity((start, end), "number", value, value, said)


def _value(digits: str, sign: int, under: int) -> Fraction:
    """Returns the value of "1,250", "1 250", "1.250.000", "12.5" or "12,5". A comma before three digits groups them."""
    if digits.isdecimal():
        return Fraction(sign * int(digits), under) if under > 1 else Fraction(sign * int(digits))
    digits = "".join(digits.split())
    last = max(digits.rfind("."), digits.rfind(","))
    groups = digits.count(",") + digits.count(".")
    if last >= 0 and (len(digits) - last != 4 or (groups == 1 and digits[last] == ".")):
        whole, decimals = digits[:last], digits[last + 1 :]
    else:
        whole, decimals = digits, ""
    whole = whole.replace(",", "").replace(".", "")
    return Fraction(sign * int(whole + decimals), 10 ** len(decimals) * under)


def _signed(text: str, signs: dict[int, int], quantity: Quantity) -> Quantity:
    """Returns the negative quantity for "minus five", or `quantity` unchanged if it is subtracted from a number."""
    low, high = quantity.span
    sign = signs.get(low)
    if sign is None or quantity.value is None or quantity.value <= 0 or text[low] in "+-−":
        return quantity
    if text[max(0, sign - 4) : sign].rstrip(" )$")[-1:].isdigit():
        return quantity
    value = -quantity.value
    said = f"-{quantity.said or text[low:high].strip()}"
    return Quantity((sign, high), quantity.kind, value, value, said)


def _in_words(span: Span, value: Fraction, unit: str = "", *, article: bool = False) -> Quantity:
    """Returns a number in words, with its unit if that is known."""
    said = f"{value}\\text{{ {unit}}}" if unit else str(value)
    return Quantity(span, "word", value, value, said, article)


def _words(text: str, start: int, end: int, language: str) -> list[Quantity]:
    """Returns the numbers in words, each as long as possible: "quarenta e oito" is one number."""
    shares, first = parts(language), first_words(language)
    lower = [word.lower() for word in _WORD.findall(text, start, end) if word != "-"]
    found: list[Quantity] = []
    singles, ordinals = one_part(language), ordinal_parts(language)
    shared = not (singles.keys().isdisjoint(lower) and ordinals.keys().isdisjoint(lower))
    thousand = THOUSANDS.get(language, "\n")
    compound = any(thousand in word for word in lower)
    if not (shared or compound) and first.isdisjoint(lower) and not (language == "en" and {"a", "an"} & {*lower}):
        return found
    words = _Words(text, [match for match in _WORD.finditer(text, start, end) if match[0] != "-"], lower, language)
    halved = any(turn[-1] in lower for turn in words.halves)
    at = 0
    while at < len(lower):
        following = lower[at + 1] if at + 1 < len(lower) else ""
        size = words.share_size(at, singles, ordinals) if shared else 0
        if size and not (at and lower[at - 1] in first - ARTICLES):
            share = Fraction(1, singles.get(lower[at]) or ordinals[lower[at]])
            unit = words.unit_after(at + size) if share > 1 else ""  # "anderthalb Stunden"
            found.append(_in_words(words.span(at, at + size), share, unit))
            at += size
            continue
        turn = words.and_a_half(at) if halved else 0
        if turn:  # "a litre and a half"
            found.append(_in_words(words.span(at, at + turn), Fraction(3, 2), words.unit_after(at + 1)))
            at += turn
            continue
        if language == "en" and lower[at] in ("a", "an"):
            if following in _ONE_OF_TIME:  # "an hour and 15 minutes"
                found.append(_in_words(words.span(at, at + 1), Fraction(1), article=True))
            place = words.span(at, at + 2) if following in shares else None
            if place and not text.startswith(" of", place[1]) and words.adjacent(at + 1):
                found.append(_in_words(place, Fraction(1, shares[following])))  # "a quarter"
                at += 2
                continue
        under = BEFORE.get(language, {}).get(lower[at])
        if under and following in first and words.adjacent(at + 1):  # "dörtte üç"
            found.append(_in_words(words.span(at, at + 2), Fraction(numerals(language).get(following, 1), under)))
            at += 2
            continue
        if lower[at] in ARTICLES and following in singles:
            at += 1  # "một nửa"
            continue
        reads = lower[at] in first or (compound and thousand in lower[at])
        amount = words.amount(at) if reads else None
        if amount is None:
            at += 1
            continue
        value, last = amount
        whole = shares.get(lower[last]) if value and last < len(lower) else None
        if value and last + 1 < len(lower) and lower[last] in ordinals and is_part(lower[last + 1]):
            whole = ordinals[lower[last]]  # "tres cuartas partes"
        divided = None if whole else words.divided(last)
        half = words.half_at(last)
        later = 0 if half else words.half_at(last + 1)
        decimals = words.decimals(last)
        unit = words.unit_after(last) if later else ""  # "dos kilómetros y medio"
        if whole:
            total, last = Fraction(value, whole), last + 1
        elif divided:
            total, last = Fraction(value) * divided[0], divided[1]
        elif decimals:
            total, last = value + decimals[0], decimals[1]
        else:
            total = value + Fraction(1, 2) if half or unit else Fraction(value)
            last += half + (1 + later if unit else 0)
        place = words.span(at, last)
        alone = total == 1 and (lower[at] in ARTICLES or _is_pronoun(text, place, language))
        unit = unit or unit_name(text, place[1])
        found.append(_in_words(place, total, "" if unit.startswith("pound") else unit, article=alone))
        at = last
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text in which numbers are read. All indexes count words."""

    text: str
    tokens: list[re.Match[str]]
    lower: list[str]
    language: str

    @property
    def halves(self) -> list[list[str]]:
        return [turn.split() for turn in _HALF.get(self.language, ())]

    def span(self, first: int, end: int) -> Span:
        return self.tokens[first].start(), self.tokens[end - 1].end()

    def unit_after(self, end: int) -> str:
        return unit_name(self.text, self.tokens[end - 1].end())

    def adjacent(self, at: int) -> bool:
        """Returns whether only spaces or hyphens separate a word from the word before it."""
        return not self.text[self.tokens[at - 1].end() : self.tokens[at].start()].strip(" -")

    def half_at(self, at: int) -> int:
        """Returns the number of words of "and a half" at an index, or 0."""
        return next((len(turn) for turn in self.halves if self.lower[at : at + len(turn)] == turn), 0)

    def and_a_half(self, at: int) -> int:
        """Returns the number of words of a phrase such as "a litre and a half" at an index, or 0 if there is none."""
        if self.lower[at] not in ARTICLES and self.lower[at] not in ("a", "an"):
            return 0
        half = self.half_at(at + 2)
        return half and half + 2

    def share_size(self, at: int, alone: dict[str, int | Fraction], ordinals: dict[str, int]) -> int:
        """Returns how many words name one part of a whole, or 0."""
        if self.lower[at] in alone:
            return 1
        return 2 if self.lower[at] in ordinals and at + 1 < len(self.lower) and is_part(self.lower[at + 1]) else 0

    def divided(self, at: int) -> tuple[Fraction, int] | None:
        """Returns the factor by which "ba phần tư" or "dörtte üç" goes on from its first number, and where it ends."""
        sign = DIVIDED.get(self.language)
        if sign is None or at >= len(self.lower) or not self.adjacent(at):
            return None
        words, inverts = sign
        if self.lower[at] in words:
            found = self.amount(at + 1) if at + 1 < len(self.lower) else None
            if found is not None and found[0]:
                return Fraction(1, found[0]), found[1]
        elif inverts and self.lower[at + 1 : at + 2] == [inverts]:
            return Fraction(1, numerals(self.language).get(self.lower[at], 0) or 1), at + 2  # "cinco doze avos"
        return None

    def decimals(self, at: int) -> tuple[Fraction, int] | None:
        """Returns the decimals in words after "point" ("three point two five") and where they end, or None."""
        if at + 1 >= len(self.lower) or self.lower[at] != _POINT.get(self.language):
            return None
        known, digits, last = numerals(self.language), "", at + 1
        while last < len(self.lower) and self.lower[last] in known and self.adjacent(last) and len(digits) < 6:
            digits, last = digits + str(known[self.lower[last]]), last + 1
        return (Fraction(int(digits), 10 ** len(digits)), last) if digits else None

    def amount(self, at: int) -> tuple[int, int] | None:
        """Returns the number in words ("two thousand three hundred and five") and where it ends, or None."""
        found = self.below_thousand(at)
        if found is None:
            return None
        value, last = found
        if 0 < value < 1000 and self.is_scaled(last, 1000):
            value, last = value * 1000, last + 1
        rest = None if value % 1000 or not value else self.rest(last)
        return (value + rest[0], rest[1]) if rest and rest[0] < 1000 else (value, last)

    def below_thousand(self, at: int) -> tuple[int, int] | None:
        known = numerals(self.language)
        for size in range(min(_WORDS_OF_ONE, len(self.tokens) - at), 0, -1):
            value = known.get(" ".join(self.lower[at : at + size]))
            if value is not None and "," not in self.text[slice(*self.span(at, at + size))]:
                break
        else:
            value, size = in_one_word(self.lower[at], self.language), 1
            if value is None:
                return None
        last = at + size
        if 0 < value < 100 and self.is_scaled(last, 100):
            value, last = value * 100, last + 1
        rest = None if value % 100 or not 0 < value < 1000 else self.rest(last)
        return (value + rest[0], rest[1]) if rest and rest[0] < 100 else (value, last)

    def is_scaled(self, at: int, scale: int) -> bool:
        """Returns whether a word multiplies the number before it by `scale`."""
        if at >= len(self.lower) or self.lower[at] not in _SCALES[scale]:
            return False
        return (self.language == "fr" or not self.lower[at].startswith("cent")) and self.adjacent(at)  # "fifty cents"

    def rest(self, at: int) -> tuple[int, int] | None:
        """Returns the smaller number that follows hundreds or thousands and where it ends, or None."""
        joined = at + (at < len(self.lower) and self.lower[at] in _BETWEEN_PARTS)
        if joined >= len(self.lower) or not all(self.adjacent(place) for place in range(at, joined + 1)):
            return None
        words, word = self, self.lower[joined]
        if self.language == "ar" and word[0] == "و":  # وخمسة: and five
            word = word[1:]
            words = replace(self, lower=[*self.lower[:joined], word, *self.lower[joined + 1 :]])
        return words.below_thousand(joined) if word in first_words(self.language) else None


def _is_pronoun(text: str, span: Span, language: str) -> bool:
    """Returns whether English "one" stands for a noun: "the one we want", "the faster one"."""
    if language != "en" or text[slice(*span)].lower() != "one":
        return False
    return _PRONOUN_BEFORE.search(text, max(0, span[0] - 30), span[0]) is not None


def _shares(text: str, start: int, end: int) -> list[Quantity]:
    """Returns fractions in Chinese, Japanese and Korean, which name the denominator first: 七分之五."""
    found = []
    for match in _SHARE.finditer(text, start, end):
        under, over = (int(part) if part.isdigit() else in_characters(part) for part in match.groups())
        if under and over is not None:
            share = Fraction(over, under)
            found.append(Quantity(match.span(), "word", share, share, f"{over}/{under}"))
    for match in _SHARE_KOREAN.finditer(text, start, end):
        under, over = (in_korean(part) for part in match.groups())
        if under and over:
            found.append(_in_words(match.span(), Fraction(over, under)))
    for match in _DECIMAL.finditer(text, start, end):
        whole = in_characters(match[1])
        if match[2] is None:  # 两个半
            found.append(_in_words(match.span(), Fraction(whole or 0) + Fraction(1, 2)))
            continue
        digits = "".join(str(in_characters(char)) for char in match[2])
        if whole is not None:
            value = Fraction(f"{whole}.{digits}")
            found.append(Quantity(match.span(), "word", value, value, f"{whole}.{digits}"))
    return found


def _korean(text: str, start: int, end: int) -> list[Quantity]:
    """Returns Sino-Korean numbers of two syllables or more (이십삼), and others before a copula (스물셋입니다)."""
    found = []
    for match in _KOREAN.finditer(text, start, end):
        native = match["native"]
        value = numerals("ko").get(native) if native else in_korean(match["sino"])
        if value is not None:
            found.append(_in_words(match.span("native" if native else "sino"), Fraction(value)))
    return found


def _characters(text: str, start: int, end: int, language: str) -> list[Quantity]:
    found = []
    for match in _CHARACTERS.finditer(text, start, end):
        value = in_characters(match[0], language)
        no_number = match[0] in ("一", "十", "千", "万") and _NO_NUMBER.match(text, match.end())
        if value is not None and match[0] not in "零〇" and not no_number:
            found.append(_in_words(match.span(), Fraction(value), article=value == 1))
    return found
