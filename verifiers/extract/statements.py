"""The value that the last sentence says of things: "So in one week the farmer collects 40 eggs."

Nothing announces such an answer, so it counts only if the sentence can say nothing else: it is the last one but for
thanks and for checks that find no fault, one value is left in it when those are set aside that the question or the text
gives, no word of it doubts, denies, reports, supposes or asks, and there is a sign that it concludes: a word such as
"so", a value that follows from the numbers before it, or words that it shares with the question.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from fractions import Fraction

from verifiers.extract.conclusions import OPTION_LABEL, altered, concludes, unsure
from verifiers.extract.numerals import language_of
from verifiers.extract.quantities import Quantity, quantities
from verifiers.extract.sentences import BEFORE_AND
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import (
    ADJUNCT,
    BY_DOING,
    CHECK,
    COURTESY,
    DOES,
    EQUATION,
    FRAMES,
    GOT,
    HARMFUL_IN,
    LABELLED,
    MORE,
    OPERATED,
    OPERATES,
    OPPOSED,
    ORNAMENT,
    PLACED,
    QUOTED,
    REASON,
    REPORTS,
    SO,
    STARTS,
    STOP,
    SUPPOSES,
    UNSPACED,
    WORD,
)
from verifiers.extract.understood import CONDITIONAL
from verifiers.extract.vocabulary import HARMLESS, UNSAFE

_LOOK = 1000  # characters before the end
_LONGEST = 400  # characters of a sentence
_MOST_BEFORE = 40  # quantities of the question, and of the text before the sentence
_ALIKE = 16  # characters by which two sentences differ that say the same of two values
_MOST_GIVEN = 16  # numbers that a value is derived from


def stated(text: str, start: int, end: int, prompt: str) -> Extraction | None:
    """The value that the last sentence between two places says, or None where nothing shows that it is the answer.

    An extraction without a span says that the sentence does not stand by its value.
    """
    low = max(start, end - _LOOK)
    language = language_of(f"{prompt[-400:]} {text[max(low, end - 400) : end]}")
    sentences = _sentences(text, low, end)
    while len(sentences) > 1 and (
        _is_courtesy(text[slice(*sentences[-1])], language) or _is_check(text[slice(*sentences[-1])], language)
    ):
        sentences.pop()
    if not sentences:
        return None
    sentence = sentences[-1]
    part = text[slice(*sentence)]
    if len(part) > _LONGEST or part.rstrip().endswith((":", "：", "…", "...")) or "\\boxed" in part:
        return None
    if len(OPTION_LABEL.findall(part)) > 1:
        return None
    if REPORTS.search(part) or SUPPOSES.match(part) or STARTS.match(part):
        return None
    if FRAMES.search(text, low, sentence[0]):
        return Extraction(None, "unsure")
    before = quantities(text, low, sentence[0], language)[-_MOST_BEFORE:]
    asked = _asked(prompt[-2000:], language)
    reason = REASON.search(text, sentence[0] + 1, sentence[1])
    inside = quantities(text, sentence[0], reason.start(), language) if reason else []
    reason = reason if inside else None
    inside = inside or quantities(text, *sentence, language)
    value = _only_one(text, sentence, inside, asked, before)
    if value is None:
        return None
    clause = _clause(text, sentence, value.span)
    placed = value.kind in ("time", "relation") or PLACED.search(text, clause[0], value.span[0]) is not None
    placed = placed or (language == "pl" and text.endswith("to ", clause[0], value.span[0]))  # "that is" in Polish
    if _opposed(text[slice(*clause)], language):
        return Extraction(None, "unsure") if language != "en" else None  # English denials are told apart elsewhere
    if altered(text, clause, value.span, placed=placed):
        return None
    after = text[value.span[1] : sentence[1]]
    led = text[clause[0] : value.span[0]]
    if value.kind == "number" and LABELLED.search(led) and DOES.match(after):
        return None  # "Bus 7 has ..."
    more = MORE.search(after)
    if (more and more[0].strip(" .") not in prompt) or (QUOTED.search(led) and QUOTED.search(after)):
        return None
    if GOT.search(led) and not WORD.search(after):
        return None
    if sentence[1] == end and not _ended(part) and len(WORD.findall(after)) > 3:
        return None  # cut off on the way
    if _said_otherwise(text, sentences[:-1], part, value, language):
        return Extraction(None, "unsure")
    known = _values([*asked, *before, *inside], value)
    signs = (
        SO.search(part)
        or concludes(text[sentence[0] : value.span[0]])
        or follows(value.value, known)
        or (len(sentences) > 1 and not WORD.search(text[sentence[0] : value.span[0]] + after))
        or (text[: value.span[0]].endswith("**") and after.startswith("**"))
        or (reason and not WORD.search(text[sentence[0] : value.span[0]]))
    )
    if (signs and (before or prompt or len(inside) > 1)) or (prompt and _shares(part, prompt)):
        return Extraction(value.span, "statement", said=value.said)
    return None


@functools.lru_cache(maxsize=256)
def _asked(prompt: str, language: str) -> list[Quantity]:
    """The quantities of a question, which the completions of a group share."""
    return quantities(prompt, 0, len(prompt), language)[-_MOST_BEFORE:]


def _sentences(text: str, low: int, end: int) -> list[Span]:
    """All that hold a letter or a digit."""
    spans = []
    at = low
    for match in STOP.finditer(text, low, end):
        spans.append((at, match.end()))
        at = match.end()
    spans.append((at, end))
    trimmed = (
        (low + len(part) - len(part.lstrip(ORNAMENT)), high) for low, high in spans for part in (text[low:high],)
    )
    return [span for span in trimmed if any(char.isalnum() for char in text[slice(*span)])]


def _ended(part: str) -> bool:
    return part.rstrip(" \t\n*_`)\"”»'」").endswith((".", "!", "。", "！", "।", "$", "\\]"))


def _is_courtesy(part: str, language: str) -> bool:
    return (
        len(part) < 160
        and COURTESY.match(part.lstrip(" (¡")) is not None
        and "?" not in part
        and not any(char.isdigit() for char in part)
        and not _objection(part, language)
    )


def _is_check(part: str, language: str) -> bool:
    """A check of the answer that comes out right; one that finds fault, or goes on to something else, is none."""
    if len(part) > 200 or not CHECK.match(part.lstrip(" (*_")) or not any(char.isdigit() for char in part):
        return False
    if SO.search(part) or OPPOSED.search(part) or _objection(part, language) or unsure(part):
        return False
    return all(_holds(match) for match in EQUATION.finditer(part))


def _holds(equation: re.Match[str]) -> bool:
    first, sign, second, result = equation.groups()
    a, b, c = (Fraction(number.replace(",", ".")) for number in (first, second, result))
    if sign in "/÷:":
        return b != 0 and a == b * c
    return c == (a + b if sign == "+" else a - b if sign in "-−–" else a * b)


def _objection(part: str, language: str) -> str:
    """A word that speaks against something, but for turns that are known to be harmless."""
    if language not in HARMFUL_IN:
        return ""  # their words stand in `OPPOSED`
    fine = HARMFUL_IN[language]
    plain = HARMLESS.sub(" ", part.replace("’", "'"))
    words = (match[0].lower() for match in WORD.finditer(plain))
    return next((word for word in words if word in UNSAFE and word not in fine), "")


def _opposed(clause: str, language: str) -> bool:
    if OPPOSED.search(clause) or _objection(clause, language):
        return True
    if CONDITIONAL.search(clause):
        return True
    return unsure(re.sub(r"\b(?:no|se|ne|o)\b", " ", clause) if language in ("pt", "it", "fr") else clause)


def _only_one(
    text: str, sentence: Span, inside: list[Quantity], asked: list[Quantity], before: list[Quantity]
) -> Quantity | None:
    """The one value of a sentence, when what is given, calculated with or said of the circumstances is set aside."""
    free = [quantity for quantity in inside if not quantity.article] or inside
    free = [quantity for quantity in free if not _is_operand(text, quantity.span, sentence)]
    left = _after_so(text, sentence, free) or free
    for aside in _set_aside(text, sentence, left, asked, before):
        left = [quantity for quantity in left if quantity.key not in aside] or left
        if left and len({quantity.key for quantity in left}) == 1:
            listed = [quantity for quantity in free if quantity.span[0] <= left[-1].span[0]]
            return None if _joined(text, listed) else left[-1]
    last = free[-1] if free and not _joined(text, free) else None
    if last is None or any(other.value == last.value for other in asked):
        return None
    return last if follows(last.value, _values([*asked, *before, *inside], last)) else None


def _set_aside(
    text: str, sentence: Span, values: list[Quantity], asked: list[Quantity], before: list[Quantity]
) -> Iterator[set[object]]:
    """What is set aside in turn, until one value is left; the last takes the longest to find."""
    yield set()
    yield {quantity.key for quantity in values if _is_adjunct(text, sentence, quantity.span)}
    yield {quantity.key for quantity in asked}
    yield _given(text, asked, before)


def _values(quantities: list[Quantity], beside: Quantity) -> list[Fraction]:
    """Of all that differ from the one given."""
    return [other.value for other in quantities if other.value is not None and other.value != beside.value]


def _joined(text: str, values: list[Quantity]) -> bool:
    """Is the last value the last of a list? ("3 and 5")"""
    return len(values) > 1 and BEFORE_AND.fullmatch(text, values[-2].span[1], values[-1].span[0]) is not None


def _given(text: str, asked: list[Quantity], before: list[Quantity]) -> set[object]:
    """The values that the text before a sentence takes as known: those that it does not calculate."""
    known = [quantity.value for quantity in asked if quantity.value is not None and not quantity.article]
    calculated = set()
    others: set[object] = {quantity.key for quantity in (*asked, *before) if quantity.value is None}
    for quantity in before:
        if quantity.value is None or quantity.article or quantity.value in known:
            continue
        if text[: quantity.span[0]].endswith(("=", "= ")) or follows(quantity.value, known):
            calculated.add(quantity.value)
        known.append(quantity.value)
    return {*known, *others} - calculated


def _after_so(text: str, sentence: Span, free: list[Quantity]) -> list[Quantity]:
    ends = [match.end() for match in SO.finditer(text, *sentence)]
    return next((later for end in reversed(ends) if (later := [item for item in free if item.span[0] >= end])), [])


def _is_operand(text: str, span: Span, sentence: Span) -> bool:
    after = text[span[1] : min(sentence[1], span[1] + 8)]
    return OPERATED.match(after) is not None or (
        OPERATES.search(text[max(sentence[0], span[0] - 8) : span[0]]) is not None and "=" in after
    )


def _is_adjunct(text: str, sentence: Span, span: Span) -> bool:
    """ "In three days Luca reads 15 pages": the number right behind the preposition that opens the sentence."""
    match = ADJUNCT.match(text, sentence[0], span[0])
    return match is not None and match.end() == span[0]


def _clause(text: str, sentence: Span, span: Span) -> Span:
    """The sentence from the last conclusion before the value on, without its reason."""
    starts = [match.end() for match in SO.finditer(text, sentence[0], span[0]) if _parts(text, sentence[0], match)]
    calculation = None if starts else BY_DOING.match(text, sentence[0], span[0])
    starts += [calculation.end()] if calculation else []
    reason = REASON.search(text, span[1], sentence[1])
    return starts[-1] if starts else sentence[0], reason.start() if reason else sentence[1]


def _parts(text: str, start: int, conclusion: re.Match[str]) -> bool:
    """Does the conclusion begin a clause, as in "1 is odd, so 7 are left", and not stand within one?"""
    before = text[start : conclusion.end() - len(conclusion[0].lstrip(" ,;:—–"))].rstrip()
    return not before or (
        (before[-1] in ",;:—–、，)" or max(conclusion[0]) > "\u0590") and not text.startswith(",", conclusion.end())
    )


def _said_otherwise(text: str, earlier: list[Span], part: str, value: Quantity, language: str) -> bool:
    """Does an earlier sentence say the same with another value?"""
    shape = _shape(part, language)
    return bool(shape) and any(
        abs(span[1] - span[0] - len(part)) < _ALIKE
        and shape == _shape(text[slice(*span)], language)
        and value.key not in {quantity.key for quantity in quantities(text, *span, language)}
        for span in earlier[-20:]
    )


def _shape(part: str, language: str) -> tuple[str, ...]:
    for quantity in reversed(quantities(part, 0, len(part), language)):
        part = part[: quantity.span[0]] + " " + part[quantity.span[1] :]
    return tuple(word.lower() for word in WORD.findall(SO.sub(" ", part)))


def follows(value: Fraction | None, given: list[Fraction]) -> bool:
    """Is the value the sum, difference, product, quotient or percentage of two of the numbers, or the sum of all?"""
    if value is None:
        return False
    wanted = float(value)
    numbers = [float(number) for number in given[-_MOST_GIVEN:]]

    def same(result: float) -> bool:
        return abs(result - wanted) <= 1e-9 * abs(wanted)

    if len(numbers) > 1 and (same(sum(numbers)) or same(sum(set(numbers)))):
        return True
    return any(
        same(a + b)
        or same(abs(a - b))
        or same(a * b)
        or same(a * b / 100)
        or (b and same(a / b))
        or (a and same(b / a))
        for a, b in itertools.combinations_with_replacement(numbers, 2)
    )


def _shares(part: str, prompt: str) -> bool:
    """Do a sentence and the question share a word of substance, or, unspaced, three pairs of characters?"""
    if UNSPACED.search(part):
        pairs = {part[at : at + 2] for at in range(len(part) - 1)}
        return len([pair for pair in pairs if UNSPACED.match(pair) and pair in prompt]) > 2
    asked = {word[:5].lower() for word in WORD.findall(prompt[-2000:]) if len(word) > 3}
    return len({word[:5].lower() for word in WORD.findall(part) if len(word) > 3} & asked) > 0
