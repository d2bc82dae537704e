"""Reads the words beside a value: its unit, noun and scale. Unless all are understood, the text is Unreadable."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.limits import Unreadable
from verifiers.mathexpr.nodes import number
from verifiers.mathexpr.number_words import COINS_AND_ROOMS, MULTIPLES, ONE_PART, PARTS, part_of
from verifiers.mathexpr.tokens import Token, nesting, numeral
from verifiers.units.reading import AMBIGUOUS, Unit, atoms, lookup, read_unit

REVERSING = frozenset(
    "not no never without less more greater fewer least most than over under between below above beyond minus"
    " negative half double twice thrice other neither nor except but square squared root cube cubed times"
    " divided plus unknown larger bigger smaller higher lower exceeds exceeding within cannot"
    " can't isn't wrong incorrect false almost nearly or to until through choose mod modulo remainder"
    " einhalb halb половиной половины promille permille mille mil tens basis 折 百分点 個百分点 prozentpunkte".split()
)
# Other scales and fractions, without accents: "5 quadrillion", "5 trilioni", "5 tys.", "5 vingtiemes", "5 trinta avos".
_SCALES = lazy_pattern(
    r"(?:m|b|tr|quadr|quint|sext|sept|oct|non|dec|z)[iy]l+(?:ion(?:s|en|es|er|i|e|y|ow|ths?)?|iard(?:e[nr]?|y|ow)"
    r"|on(?:es)?|h(?:ao|oes)|joen|jon(?:er)?|jard(?:er)?|yon|yar|iun)|googol|(?:hundred|thousand|million)fold"
    r"|bn|mn|tn|tys|tis|mln|mrd|mld|mio|тыс|трлн|квадриллион\w*|(?!cent)\w+(?:iemes?|esim[oi]|eavos?|ntavos?|zehntel|igstel)"
    r"|avos|\w+(?:дцат|десят)ых|сороковых"
)
_REPEATING = frozenset("recurring repeating periodic periodique periodico periodica periodisch".split())
# Words beside a number that don't name what is counted.
_NO_NOUN = frozenset(
    "in of the a an is are was total altogether overall all left remaining each every apart away long wide tall high"
    " deep old exactly approximately about only per and for from at on it he she they we so answer respectively"
    " east west north south".split()
)
_ORDINAL = frozenset(["st", "nd", "rd", "th"])
_LATER_WORDS = frozenset("in ( a an met gun jam lit".split())  # not units after a noun: "5 people met"
_SHORT = frozenset(["per", "sq", "cu", "of"])
_TIME, _LENGTH = (("time", 1),), (("length", 1),)
_CENT, _EURO = Unit((("USD", 1),), Fraction(1, 100)), Unit((("EUR", 1),), Fraction(1))
_NAMED_AS_FUNCTIONS = frozenset(["min", "sec", "lb"])  # units
_AND = frozenset("and und et y e и".split())


class Tail(NamedTuple):
    """The meaning of the words after a value."""

    scale: Fraction
    percent: bool
    unit: Unit | None
    label: tuple[str, ...]
    noun: bool  # whether a word names what is counted


NO_TAIL = Tail(Fraction(1), False, None, (), False)


def split_tail(tokens: list[Token]) -> tuple[list[Token], list[str]]:
    """Splits tokens into the expression and the words (unit, noun) after it.

    Raises:
        Unreadable: something after the first word is neither a word nor part of a unit.
    """
    depth = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if not depth and index and _starts_unit(tokens, index):
            words = _words(tokens, index)
            if words is not None:
                return tokens[:index], words
            if token.kind in ("text", "word"):
                raise Unreadable("something after the words that follow a value")
    return tokens, []


def _starts_unit(tokens: list[Token], index: int) -> bool:
    token, before = tokens[index], tokens[index - 1]
    if token.kind == "text":
        return True
    if token.kind == "word":
        if token.value in _ORDINAL and before.kind == "num" and not token.spaced:
            return True
        known = (
            lookup(token.value) is not None
            or token.value.lower() in MULTIPLES
            or token.value in ("per", "sq", "cu", "of")
        )
        return (
            len(token.value) > 3
            or not token.value.isascii()
            or (known and before.kind in ("num", "op", "sym") and (token.spaced or before.kind == "num"))
            or (known and before.value == "pi")
        )
    if token.kind == "other":
        return token.value in "¢°"
    if token.kind == "cmd":  # "5 \frac{\text{m}}{\text{s}}"
        return token.value == "frac" and [part.kind for part in tokens[index + 1 : index + 3]] == ["op", "text"]
    if token.value in _NAMED_AS_FUNCTIONS and token is tokens[-1] and before.value == "}":
        return True  # "\\frac{13}{2} \\mathrm{min}"
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.value == "/":  # "15/hour"
        time = lookup(after.value) if after is not None and after.kind in ("word", "text") else None
        return before.kind == "num" and time is not None and time.dimension == _TIME
    if token.kind == "fn" and before.kind == "num" and after is None and token.value in _NAMED_AS_FUNCTIONS:
        return True  # "135min"
    if token.kind not in ("sym", "fn") or not token.spaced or before.kind != "num":
        return False
    if token.kind == "fn":
        return token.value in _NAMED_AS_FUNCTIONS and (after is None or after.kind == "word" or after.value == "/")
    following = [part.value for part in tokens[index + 1 : index + 4]]
    if token.value == "Omega":
        return not following
    if token.value in ("mu", "k"):
        return len(following) > 0 and (tokens[index + 1].kind == "text" or following[0] == "Omega")
    # "5 m/s": a letter is a unit if the rest can only belong to one
    second = following[1] if len(following) > 1 else ""
    divided = following[:1] in (["/"], ["per"]) and (second in ("s", "h", "{", "(") or lookup(second) is not None)
    times = after is not None and after.kind == "word" and len(after.value) > 1 and lookup(after.value) is not None
    divided |= times  # "2.7 g cm^{-3}"
    north = len(following) == 1 and tokens[index + 1].kind in ("word", "text")  # "10 m north"
    return token.value in AMBIGUOUS and (divided or north)


def _words(tokens: list[Token], index: int) -> list[str] | None:
    """Returns the words and signs of a tail; None if it contains anything else."""
    words: list[str] = []
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.kind in ("word", "text"):
            words += atoms(token.value)
        elif token.kind == "num":
            power = token.value in ("2", "3") and not token.spaced and _is_length(words[-1:])  # "cm2"
            if not power and (words[-1:] not in (["^"], ["-"]) or not token.value.isdigit()):
                return None  # a number after words is another value
            words.append(token.value)
        elif token.kind == "sym" and (token.value in ("a", "mu", "Omega", "k") or lookup(token.value) is not None):
            words.append({"mu": "μ", "Omega": "Ω"}.get(token.value, token.value))
        elif token.kind == "fn" and token.value in _NAMED_AS_FUNCTIONS:
            words.append(token.value)
        elif token.kind == "cmd" and token.value == "frac":
            top, after = _group(tokens, index)
            bottom, index = _group(tokens, after)
            if top is None or bottom is None:
                return None
            words += ["(", *top, ")", "/", "(", *bottom, ")"]
        elif token.value in ("/", "^", "-", "*", "(", ")", "'") or (token.kind == "other" and token.value in "¢°€£¥₹₽"):
            words.append(token.value)
        elif token.value not in ("{", "}") and not (token.value == "." and words):
            return None
    return _prefixed(words)


def _is_length(words: list[str]) -> bool:
    unit = lookup(words[0]) if words else None
    return unit is not None and unit.dimension == _LENGTH


def _group(tokens: list[Token], index: int) -> tuple[list[str] | None, int]:
    """Returns the words in the braces that open at `index`, and the index of the next token."""
    depth, start = 0, index
    while index < len(tokens):
        depth += (tokens[index].value == "{") - (tokens[index].value == "}")
        index += 1
        if not depth:
            return _words(tokens[start:index], 0), index
    return None, index


def _prefixed(words: list[str]) -> list[str]:
    """Joins μ and k with the unit after them."""
    result: list[str] = []
    for word in words:
        joined = result[-1] + word if result and result[-1] in ("μ", "k") else ""
        if joined and lookup(joined) is not None:
            result[-1] = joined
        else:
            result.append(word)
    return result


def read_tail(words: list[str], count: Fraction | None = None) -> Tail:
    """Returns the meaning of the words after a value.

    Args:
        count: the value, if it is a number.

    Raises:
        Unreadable: a word is not understood, or may change the value.
    """
    scale = Fraction(1)
    while words and words[0].lower() in MULTIPLES:
        scale *= MULTIPLES[words[0].lower()]
        words = words[1:]
    part = _part(words, count)
    if part:
        scale, words = scale / part, words[1:]
    percent = bool(words) and words[0].lower() in ("percent", "pct", "%")
    if percent:
        words = words[1:]
    unit, rest = read_unit(words)
    after = [word.lower() for word in rest]
    endless = (count or 0) % 1 != 0 and not _REPEATING.isdisjoint(after)  # "0.3 recurring" is a third
    if endless or (any(map(changes_value, after)) and after != ["times"]):
        raise Unreadable("words that may change the value")
    label = _label(rest)
    if unit is None:
        unit = _later_unit(rest)
    stems = [word for word in label if word not in _NO_NOUN and len(word) > 2]
    return Tail(scale, percent, unit, label, unit is None and bool(stems))


def changes_value(word: str) -> bool:
    """Returns whether a word in lower case behind a number makes another value of it."""
    return word in REVERSING or word in PARTS or word in MULTIPLES or _SCALES.fullmatch(word.rstrip(".")) is not None


def _part(words: list[str], count: Fraction | None) -> int | None:
    """Returns 3 if the words begin with "thirds"; None if they begin with no fraction word.

    Raises:
        Unreadable: for "5 quarters", which may be coins, and "2 third".
    """
    word = words[0].lower() if words else ""
    alone = len(words) < 2 or words[1] in ("of", "de", "von", "des")
    part = part_of(word, count == 1 and alone)
    if (part is None and word in ONE_PART and alone) or (word in COINS_AND_ROOMS and part and (count or 0) >= part):
        raise Unreadable("words that may change the value")
    return part


def _label(words: list[str]) -> tuple[str, ...]:
    label = []
    for index, word in enumerate(words):
        plain = word.rstrip(".")
        if plain.replace("_", "").isalpha():
            label.append(plain.casefold())
        elif word not in (")", "'") and not (word in "(-/" and any(other[0].isalpha() for other in words[index + 1 :])):
            raise Unreadable(f"'{word}' among the words that follow a value")
    return tuple(label)


def _later_unit(words: list[str]) -> Unit | None:
    """Returns the unit after other words: "5 apples per day", "5 whole kilometres"."""
    for index in range(1, min(len(words), 6)):
        if words[index] in AMBIGUOUS or words[index] in _LATER_WORDS:
            continue
        unit, _ = read_unit(words[index:])
        if unit is not None and unit.dimension:
            return unit
    return None


def compound(tokens: list[Token]) -> Answer | None:
    """Returns the sum of "2 hours and 30 minutes" or "5 feet 6 inches", in the first unit; None for other tokens."""
    if len(tokens) < 4 or len(tokens) > 16 or tokens[0].kind != "num":
        return None
    parts: list[tuple[Fraction, Unit]] = []
    commas, index = False, 0
    while index < len(tokens):
        if parts:
            commas |= tokens[index].value == ","
            index += tokens[index].value == "," and tokens[index].kind == "op"
            index += index < len(tokens) and tokens[index].value in _AND
        pair = tokens[index : index + 2]
        index += 2
        if len(pair) != 2 or pair[0].kind != "num" or pair[1].kind not in ("word", "text", "sym", "fn"):
            return None
        unit = lookup(pair[1].value)
        if unit is None or not unit.dimension:
            return None
        if unit == _CENT and parts and parts[-1][1] == _EURO:
            unit = Unit(_EURO.dimension, unit.scale)
        amount = numeral(pair[0].value)[0]
        if parts and (unit.dimension != parts[-1][1].dimension or amount * unit.scale >= parts[-1][1].scale):
            return None
        parts.append((amount, unit))
    first = parts[0][1]
    if len(parts) < 2 or (commas and first.dimension != _TIME):
        return None  # "3 m, 20 cm" may be two answers
    return Answer("scalar", number(sum(amount * unit.scale for amount, unit in parts) / first.scale), unit=first)
