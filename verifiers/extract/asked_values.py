"""Chooses, among the values of a sentence, the one that the question asks for."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction

from verifiers.extract.asked import INTERROGATIVES, Asked, says_other, shared_with, stems, topics
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.sentences import BEFORE_AND
from verifiers.extract.spans import Span
from verifiers.extract.stated_sentence import ASKED, Sentence
from verifiers.extract.statement_words import BY_DOING, JOINS, LEFT_OVER, SO, SOMEBODY_ELSE, UNSPACED, WORD
from verifiers.lazy_pattern import any_case, lazy_pattern

OPERATION = 20  # characters of an operator in words
_MOST_GIVEN = 16  # numbers from which a value may be derived
# Conjunctions that begin a clause about something other than the answer.
_BESIDES = any_case(
    r"(?<![^\W\d_])(?:after|when|once|if|since|because|before|while|nachdem|wenn|weil|bevor|après que|quand|parce que"
    r"|cuando|después de que|porque|depois que|quando|dopo che|perché|nadat|als|omdat|когда|после того|так как)"
    r"(?![^\W\d_])"
)
_BY_SIGN = (
    r"(?:[-+−–·*×x/÷^]|\b(?:minus|plus|times|divided by|multiplied by|moins|fois|divisé par|mal|geteilt durch|menos|más"
    r"|por|entre|mais|vezes|più|meno|per|diviso|минус|плюс)\b)"
)
_THINGS = r"(?:\s?[a-z]{1,12}(?:\s[a-z]{1,12})?)?"  # "12 red apples + 5 pears = 17"
_OPERATED = any_case(rf"\s*{_BY_SIGN}\s*[$€£]?\d|\(\d|{_THINGS}\s+[-+*×x/]\s+[$€£]?\d")
_OPERATES = any_case(rf"\d[\s%]*(?:{_BY_SIGN}|:)\s*[$€£]?$|\d{_THINGS}\s+[-+*×x/]\s+[$€£]?$")
_ADJUNCT = any_case(
    r"\W*+(?:so |thus |therefore |hence |also |donc |dus |alltså |quindi |portanto |logo |así que )?(?:in|for|over"
    r"|across|during|after|per|with|within|of|at|on|from|out of|each|every|all|nach|für|mit|bei|von|pro|während|en|dans"
    r"|pour|avec|après|pendant|sur|por|durante|con|tras|de|em|com|para|após|dos|das|di|dei|delle|dopo|på|under"
    r"|efter|med|av|na|voor|met|uit|w|za|po|z|за|в|на"
    r"|из|через|после|с|trong|với|sau|dalam|dari|في|من|بعد|خلال)\s+(?:(?:the|all|these|those|den|die|der|les|des|ces"
    r"|los|las|os|as|gli|i|le|de|het|każdy\w*)\s+)?"
)
_COMPARED = lazy_pattern(
    r"\b(?:than|and|or|und|als|oder|et|ou|que|y|o|e|che|di|dan|och|än|eller|i|niż|lub)\b|(?<!\w)(?:и|чем|или)(?!\w)"
)
_ONLY_IS = any_case(r"\s*(?:is|equals|ist|est|es|é|è|jest|är|равно|равен)\s*")
_TOTALLED = any_case(
    r"(?:\s[^\W\d_]+){0,2}\s(?:in all|altogether|in total|all told|all in all|insgesamt|zusammen|en tout|au total"
    r"|en total|in tutto|in totale|ao todo|no total|всего|в сумме|razem|łącznie|in totaal|totalt|toplam)[\s.!*_]*"
)
_BOTH = any_case(r"[$*]?,?\s(?:and|und|et|y|e|и|і|en|och|i|og|és|și|ve|dan|και)\s")


def is_a_step(first: Fraction | None, second: Fraction | None, known: Sequence[Fraction]) -> bool:
    """Returns whether one operation with a number of the question leads from the first value to the second."""
    if first is None or second is None:
        return first is second  # times, which have no number to calculate with
    return any(
        second in (first + by, first - by, by - first, first * by, first * by / 100, first * (100 - by) / 100)
        or second * by == first or second * first == by
        for by in (*known, Fraction(2))
    )  # fmt: skip


def only_one(sentence: Sentence) -> Quantity | None:
    """Returns the only value left after given values, operands and circumstances are set aside.

    Otherwise returns the last value if it says what is left over or follows from the others, or else None.
    """
    text, inside = sentence.text, sentence.inside
    free = [quantity for quantity in inside if not quantity.article] or inside
    free = [quantity for quantity in free if not is_operand(text, quantity.span, sentence.span)]
    left = after_so(sentence, free) or _after_premise(sentence, free) or free
    said = left
    for aside in _set_aside(sentence, left):
        left = [quantity for quantity in left if quantity.key not in aside] or left
        if left and len({quantity.key for quantity in left}) == 1:
            listed = [quantity for quantity in said if quantity.span[0] <= left[-1].span[0]]
            return None if _joined(text, listed) else left[-1]
    last = free[-1] if free and not _joined(text, free) else None
    if last is None or any(other.value == last.value for other in sentence.asked):
        return None
    ends = (other.span[1] for other in inside if other.span[1] <= last.span[0])
    led = text[max([sentence.span[0], *ends]) : last.span[0]]
    if _BESIDES.search(led.rpartition(", which ")[2]):
        return None
    return last if LEFT_OVER.search(led) or _ONLY_IS.fullmatch(led) or follows_from_others(last, sentence) else None


def in_all(sentence: Sentence) -> Quantity | None:
    """Returns the last value if it ends its sentence as a total ("12 in all") of the values before it, or None."""
    values = [item for item in sentence.inside if not item.article and item.value is not None]
    if len(values) < 2 or not _TOTALLED.fullmatch(sentence.text, values[-1].span[1], sentence.span[1]):
        return None
    parts = [item.value for item in values[:-1] if item.value is not None and item.value.denominator == 1]
    return values[-1] if sum(parts) == values[-1].value else None


def the_wanted(sentence: Sentence) -> Quantity | None:
    """Returns the only value of the asked kind, if all others are given or name something else, or else None."""
    text, wanted, given = sentence.text, sentence.wanted, sentence.given
    said = [
        value for value in sentence.inside
        if not value.article and not is_operand(text, value.span, sentence.span)
    ]  # fmt: skip
    named = [
        value for value in said
        if (value.key not in given or (wanted.fraction and value.kind == "word")) and wanted.is_wanted(text, value)
    ]  # fmt: skip
    if len({value.key for value in named}) != 1 and not _closes(sentence, named):
        return None
    found = named[-1]
    if (found.kind == "time" and wanted.clock) or found.kind in ("relation", "formula"):
        return found
    beside = [value for value in said if value.key != found.key and (value.key not in given or value.span > found.span)]
    if found.value == len(beside) > 1 and all(value.span > found.span for value in beside):
        return found  # "two solutions, 3 and -3"
    if wanted.percent and found.value is not None:
        # "0.3, so 75 is 30% of 250"
        beside = [value for value in beside if value.key not in given and (value.value or 0) * 100 != found.value]
    if wanted.fraction and found.value is not None and found.value.denominator > 1:
        beside = [value for value in beside if value.value is None or value.value.denominator > 1]
    if not all(says_other(text, wanted, value) for value in beside):
        return None
    return None if _is_new(SOMEBODY_ELSE.search(text, *said_of(sentence, found)), wanted) else found


def _is_new(match: re.Match[str] | None, wanted: Asked) -> bool:
    """Returns whether a word was found that the question does not use."""
    return match is not None and match[0].lower() not in wanted.sentence.lower()


def _closes(sentence: Sentence, named: Sequence[Quantity]) -> bool:
    """Returns whether the sentence ends with the last of several times and the other times lead to it."""
    text = sentence.text
    if len(named) < 2 or named[-1].kind != "time" or _joined(text, named):
        return False
    led, rest = text[named[-2].span[1] : named[-1].span[0]], text[named[-1].span[1] : sentence.span[1]]
    before = text[sentence.span[0] : named[-2].span[0]]
    if shared_with(sentence.wanted.sentence, before) - shared_with(sentence.wanted.sentence, led + rest):
        return False
    return JOINS.search(led) is not None and not _BESIDES.search(led) and not any(char.isdigit() for char in rest)


def of_the_asked(sentence: Sentence) -> Quantity | None:
    """Returns, of two values in separate clauses, the one whose clause alone has words of the question, or None."""
    text, wanted = sentence.text, sentence.wanted
    said = [(value, said_of(sentence, value)) for value in _not_given(sentence)]
    said = [pair for pair in said if pair[0].kind == "time"] if wanted.clock else said
    said = list({value.key: (value, span) for value, span in said}.values())
    if len(said) != 2 or said[0][1] == said[1][1] or SO.search(text, said[0][0].span[1], said[1][0].span[0]):
        return None
    words = topics(wanted.sentence) - INTERROGATIVES
    shared = [words & topics(text[slice(*span)]) for _, span in said]
    most = max(range(2), key=lambda index: len(shared[index]))
    clause = text[slice(*said[most][1])]
    enough = wanted.clock or len(shared[most]) > 1 or shared[most] == words or UNSPACED.search(clause)
    if shared[1 - most] or not shared[most] or not enough:
        return None
    return None if _is_new(SOMEBODY_ELSE.search(clause), wanted) else said[most][0]


def only_new(sentence: Sentence) -> Quantity | None:
    """Returns the only new value that suits the question; of several, the last one if it follows from other numbers."""
    new = new_values(sentence)
    if not new or _joined(sentence.text, new):
        return None
    last = new[-1]
    if len({value.key for value in new}) == 1:
        return last
    if outdone(sentence, new) or _BESIDES.search(sentence.text[new[-2].span[1] : last.span[0]]):
        return None
    return last if follows_from_others(last, sentence) else None


def _not_given(sentence: Sentence) -> list[Quantity]:
    """Returns the values of a sentence that the question does not give and that are no operands."""
    return [
        value for value in sentence.inside
        if value.key not in sentence.given and not value.article
        and not is_operand(sentence.text, value.span, sentence.span)
    ]  # fmt: skip


def new_values(sentence: Sentence) -> list[Quantity]:
    """Returns the values of a sentence that are not given in the question, not operands and not of another kind."""
    return [value for value in _not_given(sentence) if not says_other(sentence.text, sentence.wanted, value)]


def outdone(sentence: Sentence, new: Sequence[Quantity]) -> bool:
    """Returns whether an earlier value's clause shares more words with the question than the last value's clause."""
    clauses = (sentence.text[slice(*said_of(sentence, value))] for value in new)
    *shared, last = (len(shared_with(sentence.wanted.sentence, clause)) for clause in clauses)
    return any(words > last for words in shared)


def another_is_asked(sentence: Sentence, value: Quantity) -> bool:
    """Returns whether another value of the sentence suits the question better than `value`.

    The clause of a later value shares more words with the question ("There are 12 cows and 8 chickens."), or the clause
    of another new value names the asked thing while the clause of `value` names another thing of the problem.
    """
    text, wanted = sentence.text, sentence.wanted
    question = stems(wanted.sentence)
    own = said_of(sentence, value)
    own_part = text[slice(*own)]
    own_words = question & stems(own_part)
    own_shared = shared_with(wanted.sentence, own_part)
    rest = sentence.prompt[-ASKED:].replace(wanted.sentence, " ")
    names_another = bool(shared_with(rest, own_part) - own_shared - shared_with(rest, wanted.sentence))
    new = new_values(sentence) if names_another else []
    known = [item.value for item in (*sentence.asked, *sentence.inside) if item.value is not None]
    for other in sentence.inside:
        said = said_of(sentence, other)
        if other.article or other.key == value.key or said == own:
            continue
        part = text[slice(*said)]
        words = question & stems(part)
        if other.span[0] > value.span[1] and len(words) > len(own_words):
            return True
        if words > own_words and other.key not in sentence.given and _BOTH.fullmatch(text, other.span[1], own[0]):
            return True  # "The larger number is 7 and the smaller number is 13."
        if not own_words and words & _next_word(text, other) and _next_word(text, value):
            return True
        concluded = SO.search(text, other.span[1], value.span[0]) is not None
        if concluded or other not in new:
            continue
        shared = shared_with(wanted.sentence, part)
        step = other.span[0] < value.span[0] and len(own_shared) > len(shared) and other.value is not None
        if shared - own_shared and not (step and is_a_step(other.value, value.value, known)):
            return True
    return False


def counts_another(sentence: Sentence, value: Quantity) -> bool:
    """Returns whether a value counts a thing of the problem that is not asked for ("12 boys" if girls are counted)."""
    text, prompt, wanted = sentence.text, sentence.prompt, sentence.wanted
    named = WORD.match(text, value.span[1] + 1) if text.startswith(" ", value.span[1]) else None
    if named is None or len(named[0]) < 4 or not wanted.things or not says_other(text, wanted, value):
        return False
    stem, part = named[0][:4].lower(), text[slice(*sentence.span)].lower()
    known = {word[:4].lower() for word in WORD.findall(prompt.replace(wanted.sentence, " "))}
    both = stem in known and not wanted.things.isdisjoint(known)
    if not both or not any(_beside(prompt.lower(), stem, thing) for thing in wanted.things):
        return False
    return stem not in wanted.sentence.lower() and not any(thing in part for thing in wanted.things)


def _beside(text: str, first: str, second: str) -> bool:
    """Returns whether a conjunction and few other words stand between words that begin so ("more boys than girls")."""
    found = sorted(
        (*match.span(), stem) for stem in (first, second) for match in re.finditer(rf"\b{re.escape(stem)}\w*", text)
    )
    gaps = (text[end:start] for (_, end, one), (start, _, two) in itertools.pairwise(found) if one != two)
    return any(len(WORD.findall(gap)) < 5 and _COMPARED.search(gap) for gap in gaps)


def said_of(sentence: Sentence, quantity: Quantity) -> Span:
    """Returns the span, between commas and conjunctions, of the part of a sentence that contains a quantity."""
    low, high = sentence.span
    begin = low
    for start, end in _joints(sentence.text[begin:high]):
        if begin + end <= quantity.span[0]:
            low = begin + end
        elif begin + start >= quantity.span[1]:
            return low, begin + start
    return low, high


@functools.lru_cache(maxsize=8)
def _joints(part: str) -> tuple[Span, ...]:
    return tuple(match.span() for match in JOINS.finditer(part))


def _next_word(text: str, quantity: Quantity) -> set[str]:
    """Returns the stem of the word after a quantity, as a set."""
    match = WORD.match(text, quantity.span[1] + 1)
    return stems(match[0]) if match else set()


def _set_aside(sentence: Sentence, values: Sequence[Quantity]) -> Iterator[Set[object]]:
    """Yields the sets of values to set aside in turn until one value is left. The last set is the slowest to find."""
    yield set()
    yield {quantity.key for quantity in values if _is_adjunct(sentence, quantity.span)}
    yield sentence.given
    yield _known_before(sentence)


def follows_from_others(value: Quantity, sentence: Sentence) -> bool:
    """Returns whether a value follows from the other values of the question, the text before and the sentence."""
    beside = (*sentence.asked, *sentence.before, *sentence.inside)
    return follows(value.value, [item.value for item in beside if item.value is not None and item.value != value.value])


def _joined(text: str, values: Sequence[Quantity]) -> bool:
    """Returns whether the last value ends a list such as "3 and 5"."""
    return len(values) > 1 and BEFORE_AND.fullmatch(text, values[-2].span[1], values[-1].span[0]) is not None


def _known_before(sentence: Sentence) -> set[object]:
    """Returns the values that the text before a sentence takes as known, which are those that it does not calculate."""
    known = [quantity.value for quantity in sentence.asked if quantity.value is not None and not quantity.article]
    calculated = set()
    others = {quantity.key for quantity in (*sentence.asked, *sentence.before) if quantity.value is None}
    for quantity in sentence.before:
        if quantity.value is None or quantity.article or quantity.value in known:
            continue
        if sentence.text[: quantity.span[0]].endswith(("=", "= ")) or follows(quantity.value, known):
            calculated.add(quantity.value)
        known.append(quantity.value)
    return {*known, *others} - calculated


def after_so(sentence: Sentence, free: Sequence[Quantity]) -> list[Quantity]:
    """Returns the values after the last word such as "so" that has some behind it."""
    ends = [match.end() for match in SO.finditer(sentence.text, *sentence.span)]
    return next((later for end in reversed(ends) if (later := [item for item in free if item.span[0] >= end])), [])


def _after_premise(sentence: Sentence, free: Sequence[Quantity]) -> list[Quantity]:
    """Returns the values after an opening premise ("Since two of them add to 115, the third is 65.")."""
    premise = BY_DOING.match(sentence.text, *sentence.span)
    return [item for item in free if premise and item.span[0] >= premise.end()]


def is_operand(text: str, span: Span, sentence: Span) -> bool:
    """Returns whether the value is an operand, as are 12 and 5 in "12 + 5 = 17" and "12 plus 5 makes 17"."""
    after = text[span[1] : min(sentence[1], span[1] + OPERATION)]
    if _OPERATED.match(after):
        return True
    signed = text[span[0]] in "+-−"
    led = text[max(sentence[0], span[0] - OPERATION) : span[0] + signed]
    operates = _OPERATES.search(led + " " if signed else led)
    return operates is not None and ("=" in after[:8] or any(char.isalpha() for char in operates[0]))


def _is_adjunct(sentence: Sentence, span: Span) -> bool:
    """Returns whether the value follows a preposition that opens the sentence: "In three days Luca reads 15 pages"."""
    match = _ADJUNCT.match(sentence.text, sentence.span[0], span[0])
    return match is not None and match.end() == span[0]


def follows(value: Fraction | None, given: list[Fraction]) -> bool:
    """Returns whether a value is a sum or product of given numbers, or a difference, quotient or percentage of two."""
    if value is None:
        return False
    wanted = float(value)
    numbers = [float(number) for number in given[-_MOST_GIVEN:]]

    def same(result: float) -> bool:
        return abs(result - wanted) <= 1e-9 * abs(wanted)

    if len(numbers) > 1 and (
        same(sum(numbers))
        or same(math.prod(numbers))
        or same(sum(set(numbers)))
        or same(2 * max(numbers) - sum(set(numbers)))
    ):
        return True
    if any(same(a + b + c) for a, b, c in itertools.combinations(numbers[-8:], 3)):
        return True
    return any(
        same(a + b)
        or same(abs(a - b))
        or same(a * b)
        or same(a * b / 100)
        or same(a * (100 - b) / 100)
        or same(b * (100 - a) / 100)
        or (b and same(a / b))
        or (a and same(b / a))
        for a, b in itertools.combinations_with_replacement(numbers, 2)
    )
