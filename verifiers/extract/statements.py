"""Finds the value that the last sentence states: "So in one week the farmer collects 40 eggs."

No phrase announces such an answer, so it counts only if the sentence has no other reading. Only thanks and checks that
find no fault may follow it. One value must be left in it after the values that the question or the text gives are set
aside. None of its words may doubt, deny, report, suppose or ask. And it must show that it concludes, by a word such as
"so", by a value that follows from the numbers before it, or by words that it shares with the question.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from verifiers.extract.asked import (
    NOTHING,
    OF_TIME,
    Asked,
    says_other,
    shared_with,
    stems,
)
from verifiers.extract.asked_names import THAT_IS, opening_name, without_denied_names
from verifiers.extract.asked_values import (
    another_is_asked,
    counts_another,
    follows,
    in_all,
    is_a_step,
    is_operand,
    new_values,
    of_the_asked,
    only_new,
    only_one,
    outdone,
    said_of,
    the_wanted,
    values_of,
)
from verifiers.extract.claims import named
from verifiers.extract.clauses import begins_clause, main_clause, objection, opposed, reason_of, reports, supposes
from verifiers.extract.closings import closing_form, closing_list, closing_share
from verifiers.extract.conclusions import OPTION_LABEL, altered, concludes, unsure
from verifiers.extract.contrasts import contrast, explains
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.last_sentences import closing
from verifiers.extract.operands import result_of
from verifiers.extract.quantities import quantities
from verifiers.extract.sentences import BEFORE_AND
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import (
    AFTER_TIME,
    ALSO_POSSIBLE,
    ANNOUNCES,
    ANOTHER,
    ASKED_WITH,
    ASKS_TIME,
    AT_ANOTHER_TIME,
    AT_FIRST,
    BESIDE_TIME,
    BY_DOING,
    CALLED_BAD,
    CONDITION,
    DENIAL,
    DIFFERS,
    DOES,
    EXPLAINED,
    FRAMES,
    GOT,
    INFINITELY_MANY,
    LABELLED,
    LEADS,
    LED_BY,
    LEFT_OVER,
    MORE,
    NAMED,
    NEARLY,
    NO_LEAD,
    NONE_LEFT,
    NOT,
    OBJECTS,
    OPPOSED,
    ORNAMENT,
    PLACED,
    PLAIN_WORD,
    QUOTED,
    REPORTS,
    SAID_TRUE_OR_FALSE,
    SO,
    SOMEBODY,
    STARTS,
    STOP,
    TRUE_OR_FALSE,
    TRUTH,
    UNREAL,
    UNSPACED,
    WORD,
    behind_denial,
)
from verifiers.extract.truths import asks_for_truth
from verifiers.extract.turns import CORRECTION
from verifiers.extract.understood import CONDITIONAL
from verifiers.extract.wordings import says_no_solution
from verifiers.lazy_pattern import lazy_pattern

_ASKED = 300  # characters of a question


_LONGEST = 400  # characters of a sentence


_MOST_BEFORE = 40  # quantities read in the question, and in the text before the sentence


_ALIKE = 16  # characters by which the lengths of sentences that differ only in their values may differ


_LONGEST_UNIT = 24  # characters of a unit


_OPERATION = 20  # characters of an operator in words


_MATHS = ("formula", "relation")


_MOST_EXPLAINING = 4  # sentences of an answer including its explanation


def stated(text: str, start: int, end: int, prompt: str, *, contrasts: bool = False) -> Extraction | None:
    """Returns the value that the last sentence in [start, end) states, or None if nothing shows that it is the answer.

    An extraction without a span means that the text does not commit to the value. With `contrasts`, the sentence must
    state the value instead of one that it denies.
    """
    found = _stated(text, start, end, prompt, contrasts=contrasts)
    return None if found is None else result_of(text[:end], found)


def _stated(text: str, start: int, end: int, prompt: str, *, contrasts: bool) -> Extraction | None:
    low, sentences, wanted, language = closing(text, start, end, prompt)
    if not sentences:
        return None
    asked = _asked(prompt[-2000:], language)
    opening = _opening(text, sentences, language, asked, prompt) if prompt else None
    if opening is not None:
        return opening
    answered = bool(prompt) and _answered_first(text, sentences, language, wanted, asked)
    del sentences[1 if answered else len(sentences) :]
    sentence = sentences[-1]
    question = _question(prompt[-_ASKED:])
    text = _without_asked_denials(text, sentence, question.denials)
    text = without_denied_names(text, sentence, prompt)
    part = text[slice(*sentence)]
    if len(part) > _LONGEST or part.rstrip().endswith((":", "：", "…", "...")) or "\\boxed" in part:
        return None
    if len(OPTION_LABEL.findall(part)) > 1:
        return None
    concluded = sentence[0] + max((match.end() for match in SO.finditer(part)), default=0)
    if says_no_solution(text[concluded : sentence[1]]):
        return Extraction((concluded, sentence[1]), "statement")
    if TRUE_OR_FALSE.search(prompt[-_ASKED:]):
        return _said_true(text, sentence)
    form = closing_form(text, sentence, wanted.sentence)
    if form is not None and not (opposed(text[sentence[0] : form[0]], language) or reports(part, wanted)):
        return form[1]
    whole_form = closing_share(text, sentence, language, wanted.sentence, fraction=wanted.fraction) or closing_list(
        text, sentence, language, wanted.sentence
    )
    if whole_form is not None and whole_form.span is not None:
        led = text[main_clause(text, sentence, language)[0][0] : whole_form.span[0]]
        if opposed(led, language) or reports(part, wanted) or supposes(part) or UNREAL.search(led):
            return Extraction(None, "unsure")
        lists = [(closing_list(text, span, language, wanted.sentence), span) for span in sentences[:-1]]
        differs = any(
            found and found.said != whole_form.said and not CORRECTION.search(text, *span) for found, span in lists
        )
        return Extraction(None, "unsure") if differs else whole_form
    option = _option(text, sentence, prompt, language)
    if option is not None:
        return Extraction(option, "statement")
    before = quantities(text, low, sentence[0], language)[-_MOST_BEFORE:]
    condition = _given_condition(text, sentence, wanted, [*asked, *before], language)
    if condition is not None:
        sentence = (condition, sentence[1])
        part = text[slice(*sentence)]
    whole = sentence
    at_first = question.at_first or (not prompt and AT_FIRST.search(text, low, sentence[0]))
    reported = THAT_IS.sub(" ", AT_FIRST.sub(" ", part) if at_first else part, count=1)
    reported = reported.replace(", want ", ", ") if language == "nl" else reported  # "because"
    if reports(reported, wanted) or supposes(part):
        return None
    if ALSO_POSSIBLE.search(part):
        return Extraction(None, "unsure")
    frame = FRAMES.search(text, low, sentence[0])
    if frame and not (
        CALLED_BAD.search(frame[0]) and OBJECTS.search(text, frame.end(), sentence[0]) and SO.match(part)
    ):
        return Extraction(None, "unsure")
    endless = INFINITELY_MANY.search(text, *sentence)
    if endless is not None and not NOT.search(part) and not unsure(part):
        return Extraction(endless.span(), "statement")
    truth = TRUTH.match(text, *sentence) if len(sentences) > 1 else None
    if truth is not None and (not prompt or asks_for_truth(prompt)):
        return Extraction((truth.start(1), sentence[1]), "statement")
    sentence = (truth.end() + 1, sentence[1]) if truth else sentence  # "So yes, the price was $250."
    part = text[slice(*sentence)]
    name = named(text, sentence, prompt, language)
    if name is not None:
        return Extraction(name, "statement")
    if STARTS.match(part):
        return None
    turn = contrast(text, sentence)
    if contrasts and turn is None:
        return None
    denied = {quantity.key for quantity in quantities(text, *turn[0], language)} if turn else set()
    sentence = (turn[1], sentence[1]) if turn else sentence
    contrasted = _contrasted(text, sentence, language)
    if contrasted is not None:
        denied |= {quantity.key for quantity in quantities(text, contrasted, sentence[1], language)}
        sentence = (sentence[0], contrasted)
    nearly = NEARLY.search(text, *sentence)
    sentence = (sentence[0], nearly.start()) if nearly else sentence
    main, _ = main_clause(text, sentence, language, loose=False)
    said_in_it = [item for item in quantities(text, *main, language) if not item.article]
    led_to = len(WORD.findall(text, sentence[0], main[0])) > 2 or UNSPACED.search(text, sentence[0], main[0] - 3)
    premised = condition is not None or bool(led_to and said_in_it)
    ranked = _RANKED.fullmatch(text, said_in_it[0].span[1], main[1]) if len(said_in_it) == 1 else None
    if ranked and not (WORD.search(text[main[0] : said_in_it[0].span[0]]) or denied):
        asks_for_it = not prompt or ranked["rank"].lower()[:5] in wanted.sentence.lower()
        return Extraction(said_in_it[0].span if asks_for_it else None, "statement", said=said_in_it[0].said)
    if led_to and not said_in_it and quantities(text, *main, language):
        return Extraction(None, "unsure")  # "Because 7 minus 4 is 3, the answer has one digit."
    if main[0] > sentence[0] and said_in_it:
        before = (*before, *quantities(text, sentence[0], main[0], language))
        sentence = (main[0], sentence[1])  # without its premises
    reason = reason_of(text, sentence[0] + 1, sentence[1], language)
    reason = reason or (EXPLAINED.search(text, *sentence) if SO.match(part) else None)
    stated_first = quantities(text, sentence[0], reason.start(), language) if reason else ()
    if reason and stated_first and _says_more(text, (sentence[0], reason.start()), (reason.end(), sentence[1]), wanted):
        stated_first = ()  # "Its slope is 2, because it rises, and it crosses the axis at 5."
    reason = reason if stated_first else None
    inside = _with_lists(text, stated_first or quantities(text, *sentence, language))
    value = (
        in_all(text, sentence, inside)
        or the_wanted(text, sentence, inside, asked, wanted)
        or of_the_asked(text, sentence, inside, asked, wanted)
        or only_one(text, sentence, inside, asked, before)
        or only_new(text, sentence, inside, asked, before, wanted)
    )
    if value is None or value.key in denied:
        others = new_values(text, sentence, inside, asked, wanted) if prompt and value is None else []
        return Extraction(None, "unsure") if others and outdone(text, sentence, others, wanted) else None
    if prompt and another_is_asked(text, sentence, value, inside, asked, prompt[-_ASKED:], wanted):
        return Extraction(None, "unsure")
    if prompt and counts_another(text, sentence, value, prompt, wanted):
        return Extraction(None, "unsure")
    clause = _clause(text, sentence, value.span, language)
    timed = value.kind == "time" and BESIDE_TIME.search(text, clause[0], value.span[0]) is None
    placed = timed or value.kind == "relation" or _is_placed(text, clause[0], value.span[0])
    placed = placed or _as_asked(text, clause, value, prompt)
    if wanted.fraction and _said_of_another(text[value.span[1] : sentence[1]], wanted):
        return Extraction(None, "unsure")
    placed = placed or text.endswith(_THAT_IS.get(language, "\n"), clause[0], value.span[0])
    other = SOMEBODY.search(text, said_of(text, sentence, value)[0], value.span[0])
    if other and prompt and other[0].lower() not in prompt.lower():
        return Extraction(None, "unsure")
    then = AT_ANOTHER_TIME.search(text[slice(*said_of(text, sentence, value))]) if prompt else None
    if then and then[0].lower() not in prompt.lower():
        return Extraction(None, "unsure")
    is_wanted = wanted.is_wanted(text, value)
    placed = placed or _leads(text[clause[0] : value.span[0]], wanted, is_wanted)
    closes = bool(prompt) and not WORD.search(text[value.span[1] : sentence[1]])
    led = text[clause[0] : value.span[0]]
    placed = placed or (closes and not _BY.search(led) and _leads(led, wanted, True))
    placed = placed or (is_wanted and _LED_TO.search(text[clause[0] : value.span[0]]) is not None)
    leading = text[clause[0] : value.span[0]]
    leading = ANNOUNCES.sub(" ", leading) if turn else leading
    said = f"{leading} § {text[value.span[1] : clause[1]]}"
    given_between = _BETWEEN_TWO.search(said)
    if given_between and all(number in prompt for number in given_between.groups()):
        said = _BETWEEN_TWO.sub(" ", said)  # "the number halfway between 40 and 50"
    if opposed(_without_shared(said, wanted), language):
        return Extraction(None, "unsure") if language != "en" else None  # English denials are examined elsewhere
    own_unit = value.kind in ("time", "duration") or _names(text, value, wanted)
    if altered(text, clause, value.span, placed=placed, named=own_unit, question=wanted.sentence):
        return None
    after = text[value.span[1] : sentence[1]]
    led = text[clause[0] : value.span[0]]
    if value.kind == "number" and LABELLED.search(led) and DOES.match(after):
        return None  # "Bus 7 has ..."
    more = None if wanted.difference else MORE.search(after)
    if more and more[0].strip(" .").lower() not in wanted.sentence.lower():
        return Extraction(None, "unsure") if prompt else None
    if QUOTED.search(led) and QUOTED.search(after):
        return None
    if GOT.search(led) and not WORD.search(after) and not is_wanted:
        return None
    if sentence[1] == end and not _ended(part) and len(WORD.findall(after)) > 3:
        return None  # the sentence was cut off
    corrected = max((at for at, span in enumerate(sentences[:-1], 1) if CORRECTION.search(text, *span)), default=0)
    earlier = sentences[corrected:-1]
    if _said_otherwise(text, earlier, whole, value, language):
        return Extraction(None, "unsure")
    calculated = "=" in text[max(sentence[0], value.span[0] - _OPERATION) : value.span[0]]
    if (
        prompt
        and not (calculated or SO.search(part) or BY_DOING.match(part))
        and _answered_before(text, earlier, whole, value, language, wanted, asked)
    ):
        return Extraction(None, "unsure")
    known = values_of([*asked, *before, *inside], value)
    signs = (
        turn
        or (is_wanted and value.kind not in ("time", "duration") and "text" not in value.said)
        or SO.search(part)
        or concludes(text[sentence[0] : value.span[0]])
        or follows(value.value, known)
        or (len(sentences) > 1 and not WORD.search(text[sentence[0] : value.span[0]] + after))
        or (text[: value.span[0]].endswith("**") and after.startswith("**"))
        or premised
        or (reason and not WORD.search(text[sentence[0] : value.span[0]]))
        or (value.kind in ("time", "duration") and question.time and _speaks_of(part, prompt[-_ASKED:]))
        or (value.kind == "relation" and not WORD.search(text[sentence[0] : value.span[0]] + after))
        or (value.kind == "formula" and "=" in text[slice(*value.span)] and not WORD.search(after))
    )
    if value.key in {quantity.key for quantity in asked} and not (
        turn
        or reason
        or premised
        or SO.search(part)
        or concludes(led)
        or LEFT_OVER.search(f", {led}")
        or len(inside) > 1
        or (len(sentences) > 1 and len(stems(led + after) & stems(wanted.sentence)) > 1)
    ):
        return None  # the sentence only repeats a value of the question
    if wanted.time and prompt and not (signs or _shares(part, prompt)):
        return None
    if prompt or (signs and (before or len(inside) > 1 or reason or premised)):
        return Extraction(value.span, "statement", said=value.said)
    return None


@dataclass(frozen=True, slots=True)
class _Question:
    """What the words of a question show about the answer."""

    denials: frozenset[str]  # beginnings of the words that the question denies
    at_first: bool  # the question asks for an initial state
    time: bool  # the question asks how long or when
    prepositions: frozenset[str]  # "by" of "by how much", "in" of "in which year"
    which: frozenset[str]  # beginnings of the words after "which"


@functools.lru_cache(maxsize=256)
def _question(asked: str) -> _Question:
    return _Question(
        frozenset(_denied(found) for found in DENIAL.finditer(asked)),
        AT_FIRST.search(asked) is not None,
        ASKS_TIME.search(asked) is not None,
        frozenset(found[1].lower() for found in ASKED_WITH.finditer(asked)),
        frozenset(found[1].lower()[:5] for found in _WHICH.finditer(asked)),
    )


def _without_asked_denials(text: str, sentence: Span, denials: frozenset[str]) -> str:
    """Returns the text without denials that the question uses too ("do not like tea" after "how many do not like")."""
    if not denials:
        return text
    part = DENIAL.sub(
        lambda denial: " " * len(denial[1]) + denial[0][len(denial[1]) :] if _denied(denial) in denials else denial[0],
        text[slice(*sentence)],
    )
    return text[: sentence[0]] + part + text[sentence[1] :]


def _denied(denial: re.Match[str]) -> str:
    """Returns the beginning of the denied word; in scripts without spaces between words, its first character."""
    return denial[2].lower() if denial[1].isascii() or denial[1][0] < "\u3000" else denial[2][0]


def _is_placed(text: str, low: int, high: int) -> bool:
    """Returns whether a phrase such as "comes out at" leads to the value. All such phrases end in one of six words."""
    led = text[low:high].rstrip().lower()
    return led.endswith(("at", "to", "of", "de", "di", "von", "bei")) and PLACED.search(text, low, high) is not None


def _as_asked(text: str, clause: Span, value: Quantity, prompt: str) -> bool:
    """Returns whether the words before a value repeat the question's ("start with") or say how long something takes."""
    span = value.span
    led = LED_BY.search(text, clause[0], span[0])
    if led is not None:
        begun, preposition = led[1][:4].lower(), led[2].lower()
        if any(first.startswith(begun) and second == preposition for first, second in _pairs(prompt[-_ASKED:])):
            return True
    question = _question(prompt[-_ASKED:])
    labelled = _LABEL_OF.search(text, clause[0], span[0])
    if labelled is not None and labelled[1].lower()[:5] in question.which:
        return True  # "on day 8" in answer to "on which day"
    before = PLAIN_WORD.findall(text[max(clause[0], span[0] - _OPERATION) : span[0]])
    if before and before[-1].lower() in question.prepositions:
        return True  # "by 25 percent" in answer to "by what percentage"
    return question.time and value.kind != "time" and AFTER_TIME.search(text, clause[0], span[0]) is not None


@functools.lru_cache(maxsize=256)
def _pairs(asked: str) -> frozenset[tuple[str, str]]:
    """Returns each word of a question paired with the next word."""
    return frozenset((found[1].lower(), found[2].lower()) for found in _TWO_WORDS.finditer(asked))


@functools.lru_cache(maxsize=256)
def _asked(prompt: str, language: str) -> Sequence[Quantity]:
    """Returns the quantities of a question. They are cached, because all completions of a group share the question."""
    return quantities(prompt, 0, len(prompt), language)[-_MOST_BEFORE:]


def _option(text: str, sentence: Span, prompt: str, language: str) -> Span | None:
    """Returns the span of the option letter that ends a short sentence or a conclusion, or None."""
    found = _CLOSING_LETTER.search(text, *sentence) if len(OPTION_LABEL.findall(prompt[-2000:])) > 1 else None
    if found is None:
        return None
    starts = [match.end() for match in SO.finditer(text, sentence[0], found.start(1))]
    clause = text[max([sentence[0], *starts]) : found.start(1)]
    if len(WORD.findall(clause)) > _FEW or _LETTER.search(clause) or opposed(clause, language):
        return None
    return None if reports(text[slice(*sentence)], NOTHING) or supposes(text[slice(*sentence)]) else found.span(1)


def _said_true(text: str, sentence: Span) -> Extraction | None:
    """Returns the extraction of the word that ends a sentence and answers "true or false?", or None."""
    said = list(SAID_TRUE_OR_FALSE.finditer(text, *sentence))
    if len(said) != 1 or text[said[0].end() : sentence[1]].strip(" .!*_。$}"):
        return None
    led = text[sentence[0] : said[0].start()]
    doubted = OPPOSED.search(led) or NOT.search(led) or REPORTS.search(_CLAIM.sub(" ", led)) or UNREAL.search(led)
    return None if doubted else Extraction(said[0].span(), "statement")


# "**12.** Every month has 28 days.", "Five trips! ...": but "12. Add them." may begin a list
_OPENING = lazy_pattern(
    r"[\s*_#>¡]*(?:(?:(?:it|that)(?:['’]s| is|['’]d be| would be)|they are|there are|es (?:ist|sind|gibt)|c['’]est"
    r"|il y en a"
    r"|son|es|hay|são|é|há|sono|è|ci sono|to|jest|это|всего)\s)?[*_$]*",
    re.IGNORECASE,
)


_AFTER_OPENING = lazy_pattern(r"[*_$]*(?:\s[^\W\d_]+){0,3}[*_$]*[.!。！]?[\s*_$]*")


_BOUNDED = lazy_pattern(r"\b(?:at (?:least|most)|mindestens|höchstens|au (?:moins|plus)|al menos|pelo menos|almeno)\b")


def _opening(
    text: str, sentences: list[Span], language: str, asked: Sequence[Quantity], prompt: str
) -> Extraction | None:
    """Returns the value or name that is the first sentence if the others explain it without another new value."""
    if not 1 < len(sentences) <= _MOST_EXPLAINING:
        return None
    rest = text[sentences[1][0] : sentences[-1][1]]
    if CORRECTION.search(rest) or FRAMES.search(rest) or "?" in rest or SO.search(rest) or _POINTS_BACK.match(rest):
        return None
    bare = _BOUNDED.sub(" ", rest)
    if OPPOSED.search(bare) or objection(bare, language) or unsure(bare) or reports(bare, NOTHING):
        return None
    name = opening_name(text, sentences[0], prompt)
    if name is not None:
        return Extraction(name, "statement")
    opening = _OPENING.match(text, *sentences[0])
    first = [item for item in quantities(text, *sentences[0], language) if not item.article]
    if opening is None or len(first) != 1 or first[0].span[0] != opening.end():
        return None
    alone = text[slice(*sentences[0])].strip()
    if not _AFTER_OPENING.fullmatch(text, first[0].span[1], sentences[0][1]) or _LISTS.fullmatch(alone):
        return None
    known = {quantity.key for quantity in (*asked, *first)}
    later = quantities(text, sentences[1][0], sentences[-1][1], language)
    numbers = values_of([*asked, *first], first[0])
    if all(
        item.article or item.key in known or follows(item.value, numbers) or is_operand(text, item.span, sentences[-1])
        for item in later
    ):
        return Extraction(first[0].span, "statement", said=first[0].said)
    return None


_POINTS_BACK = lazy_pattern(  # "9. That is the number that ran away."
    r"\W*(?:this|that|it|das|dies|c['’]|ce|cela|eso|esto|es|isso|isto|é|questo|ciò|è|dat|dit|det|to|это)(?![^\W\d_])|这"
    r"|那|これ|それ",
    re.IGNORECASE,
)


_LISTS = lazy_pattern(r"\d{1,9}\.")


def _answered_first(text: str, sentences: list[Span], language: str, wanted: Asked, asked: Sequence[Quantity]) -> bool:
    """Returns whether the first sentence answers the question and the others explain where its value comes from.

    The first sentence then shares more words with the question than any other does. The values of the others follow
    from the question's values, and the value of the first follows from all of these.
    """
    if not 1 < len(sentences) <= _MOST_EXPLAINING:
        return False
    first, *others = (text[slice(*span)] for span in sentences)
    given = {quantity.key for quantity in asked}
    values = [q for q in quantities(text, *sentences[0], language) if not q.article and q.key not in given]
    if len({value.key for value in values}) != 1 or says_other(text, wanted, values[0]):
        return False
    rest = text[sentences[1][0] : sentences[-1][1]]
    topics = shared_with(wanted.sentence, first)
    most = max(len(shared_with(wanted.sentence, other)) for other in others)
    if len(topics) <= most or CORRECTION.search(rest) or FRAMES.search(rest):
        return False
    last = quantities(text, *sentences[-1], language)[-1:]
    again = last and last[0].key == values[0].key and not WORD.search(text[last[0].span[1] : sentences[-1][1]])
    if again and not (OPPOSED.search(rest) or reports(UNREAL.sub(" ", rest), wanted)):
        return True  # "Pip is 17. Without the six extra years ... 34, and half of that is 17."
    if objection(rest, language) or unsure(rest):
        return False
    if last and last[0].key != values[0].key and text[: last[0].span[0]].rstrip("$€£ ").endswith("="):
        return False  # the text goes on to calculate another value
    known = [value.value for value in asked if value.value is not None]
    later = [q for q in quantities(text, sentences[1][0], sentences[-1][1], language) if not q.article]
    for value in later:
        if value.key not in given and value.key != values[0].key:
            if value.value is None or not follows(value.value, known):
                return False  # it may continue from the first value
            known.append(value.value)
    return bool(later) and follows(values[0].value, known)


def _answered_before(
    text: str,
    earlier: list[Span],
    sentence: Span,
    value: Quantity,
    language: str,
    wanted: Asked,
    asked: Sequence[Quantity],
) -> bool:
    """Returns whether an earlier sentence gives another value that answers the question as well or better.

    It shares more words with the question than this sentence, or as many and `value` does not follow from its value.
    """
    own = shared_with(wanted.sentence, text[slice(*sentence)])
    given = {quantity.key for quantity in asked}
    known = [quantity.value for quantity in asked if quantity.value is not None]
    is_other, is_wanted = says_other(text, wanted, value), wanted.is_wanted(text, value)
    for span in earlier[-_MOST_EXPLAINING:]:
        part = text[slice(*span)]
        shared = shared_with(wanted.sentence, part)
        if not shared or len(shared) < len(own) or "=" in part or opposed(part, language) or UNREAL.search(part):
            continue
        new = [
            quantity for quantity in quantities(text, *span, language)
            if not quantity.article and quantity.key not in given and not is_operand(text, quantity.span, span)
            and (is_other or not says_other(text, wanted, quantity))
        ]  # fmt: skip
        if len({quantity.key for quantity in new}) != 1 or new[0].key == value.key or new[0].kind in _MATHS:
            continue
        if is_wanted and not wanted.is_wanted(text, new[0]):
            continue
        if len(shared) > len(own) or not is_a_step(new[0].value, value.value, known):
            return True
    return False


def _given_condition(text: str, sentence: Span, wanted: Asked, known: Sequence[Quantity], language: str) -> int | None:
    """Returns where a sentence continues after a condition whose values are given, or None.

    The condition of "If each costs $4, she pays $8" is fulfilled if the question says that each costs $4.
    """
    found = CONDITION.match(text, *sentence)
    if found is None or (wanted.sentence and not any(char.isdigit() for char in text[found.end() : sentence[1]])):
        return None
    if any(match[0].lower() not in wanted.sentence.lower() for match in UNREAL.finditer(text, *sentence)):
        return None
    if objection(found[0][found[0].find(" ", 3) :], language) or CONDITIONAL.search(found[0]):
        return None
    given = quantities(text, sentence[0], found.end(), language)
    keys = {quantity.key for quantity in known}
    fulfilled = bool(given) and (not wanted.sentence or all(item.key in keys or item.article for item in given))
    return found.end() if fulfilled else None


def _said_of_another(after: str, wanted: Asked) -> bool:
    """Returns whether a fraction is said of something that the question does not ask for ("A quarter is blue.")."""
    found = _SAID_TO_BE.match(after)
    return found is not None and found[1].lower()[:4] not in wanted.sentence.lower()


def _names(text: str, value: Quantity, wanted: Asked) -> bool:
    """Returns whether the question asks for what the word after a value names ("12 times", "20 more", "5 dozen")."""
    word = WORD.match(text, value.span[1] + text.startswith(" ", value.span[1]))
    if word is None:
        return False
    return word[0][:4].lower() in wanted.things or (wanted.difference and DIFFERS.fullmatch(word[0]) is not None)


def _without_shared(said: str, wanted: Asked) -> str:
    """Returns the text without doubts that the question shares, or "around" and "between" that precede no number."""
    if wanted.doubts:
        said = PLAIN_WORD.sub(lambda word: " " if word[0].lower() in wanted.doubts else word[0], said)
    if not wanted.things.isdisjoint(_COUNTED_ANSWERS):
        said = PLAIN_WORD.sub(lambda word: " " if word[0][:4].lower() in _COUNTED_ANSWERS else word[0], said)
    said = ANOTHER.sub(" §", said)
    if _HOLDS_NONE.search(said):
        said = NONE_LEFT.sub(" ", said)
    return _NO_NUMBER_AFTER.sub(" ", said)


_AND = lazy_pattern(r"[,;]\s(?:and|und|et|y|e|en|och|i|и)\s", re.IGNORECASE)


def _says_more(text: str, clause: Span, reason: Span, wanted: Asked) -> bool:
    """Returns whether a clause behind a reason shares two words more with the question than the one before it."""
    joint = _AND.search(text, *reason)
    if joint is None or not any(char.isdigit() for char in text[joint.end() : reason[1]]):
        return False
    own, later = (shared_with(wanted.sentence, part) for part in (text[slice(*clause)], text[joint.end() : reason[1]]))
    return len(later) > len(own) + 1


def _contrasted(text: str, sentence: Span, language: str) -> int | None:
    """Returns where a final aside that denies other values begins (", not quite 30% below the price"), or None."""
    aside = _CONTRASTED.search(text, *sentence)
    if aside is None or not any(char.isdigit() for char in text[sentence[0] : aside.start()]):
        return None
    return aside.start() if quantities(text, aside.start(), sentence[1], language) else None


def _leads(led: str, wanted: Asked, is_wanted: bool) -> bool:
    """Returns whether a preposition leads to the answer.

    The value must be of the asked kind, or the words before it must share at least two words with the question.
    """
    found = LEADS.search(led)
    if found is None or not led[: found.start()].strip() or NO_LEAD.search(led):
        return False
    if found[0].lower().startswith("by "):
        return is_wanted and wanted.difference
    return is_wanted or len(stems(led) & stems(wanted.sentence)) > 1


# A preposition after which a value of the asked kind is no argument: "consists of seven days", "consta de 24 horas".
_LED_TO = lazy_pattern(
    r"(?!(?:half|cube|root|part|more|less|each|most|some|many|none|third|other|fewer|square|quarter"
    r"|multiple|instead|out"
    r"|ahead|short|one|two|three|moitié|mitad|metade|metà|hälfte|plus|moins|más|menos|mais|più|meno)\b)"
    r"\b[^\W\d_]+ (?:of|de|di|von|aus|van|av|out of|from|z|ze|из|от|من)\s+(?:just |only |exactly )?$",
    re.IGNORECASE,
)


_LABEL_OF = lazy_pattern(r"\b([^\W\d_]{3,})\s+(?:number |nr\. |no\. )?$", re.IGNORECASE)


_WHICH = lazy_pattern(
    r"\b(?:which|what|welche[mnrs]?|quel(?:le)?|qué|qual|quale|che|welk[e]?|vilke[nt]|który\w*"
    r"|jaki\w*)\s+([^\W\d_]{3,})"
    r"",
    re.IGNORECASE,
)


_BETWEEN_TWO = lazy_pattern(
    r"\b(?:between|zwischen|entre|tra|fra|tussen|mellan|między|между) (\d+) (?:and|und|et|y|e|en|och|a|i|и) (\d+)\b",
    re.IGNORECASE,
)


_THAT_IS = {"pl": "to ", "es": "da "}  # which precede arguments in other languages


_BY = lazy_pattern(r"\bby\s+\W*$", re.IGNORECASE)


# "5/8 is the larger of the two"
_RANKED = lazy_pattern(
    r"(?:\s*(?:—|–|の方が|のほうが|[이가]))?\s*(?:(?:is|ist|est|es|è|é|jest|är)\s+)?(?:(?:the|der|die|das|la|le|el"
    r"|il|lo|o|a)\s+)?"
    r"(?P<rank>larg(?:er|est)|great(?:er|est)|bigg(?:er|est)|small(?:er|est)|größer\w?|kleiner\w?"
    r"|plus (?:grande?|petite?)|mayor|menor|maior"
    r"|maggiore|minore|больше|меньше|większ[aey]|mniejsz[aey]|groter|större|mindre|更?[大小](?:きい|さい)?"
    r"|더 (?:큽|작습))"
    r"(?:\s+(?:one|of the two|fraction|number|value|der beiden|des deux|de los dos|dos dois|dei due|bruch"
    r"|zahl))*(?:です|니다)?[\s.!。]*",
    re.IGNORECASE,
)


_FEW = 6  # words of a clause before a closing option letter


_CLOSING_LETTER = lazy_pattern(r"(?<![^\W\d_'’])([A-J])[)*.\s]*$")


_LETTER = lazy_pattern(r"(?<![^\W\d_'’])(?!I\b)[B-J](?![\w'’])")


_COUNTED_ANSWERS = frozenset({"solu", "answ"})


_SAID_TO_BE = lazy_pattern(
    r"[^.,;:]{0,40}?\b(?:is|are|was|were|ist|sind|est|sont|es|son|é|são|è|sono|jest|są|zijn|är)\s+"
    r"(?!(?:left|what|that|the|thus|so|also|then|now|our|was|das|ce|lo|la|el|o)\b)([^\W\d_]{3,})",
    re.IGNORECASE,
)


_HOLDS_NONE = lazy_pattern(r"\b(?:none|nothing|no|0|ohne|sans|sin|senza) ", re.IGNORECASE)


_CLAIM = lazy_pattern(r"\b(?:the|this) claim\b", re.IGNORECASE)


_TWO_WORDS = lazy_pattern(r"\b(\w+)\s+(?=(\w+))")


_NO_NUMBER_AFTER = lazy_pattern(
    r"\b(?:around|about|between)\b(?!\s+(?:(?:a|an|the|half|some)\s+)*(?:§|[$€£]?\d|(?:one|two|three|four"
    r"|five|six|seven|eight|nine"
    r"|ten|eleven|twelve|\w+teen|\w+ty|hundred)\b))",
    re.IGNORECASE,
)


_CONTRASTED = lazy_pattern(
    r"(?:(?:,|\s[(—–-]|[(—–])\s*(?:and |but |und |et |y |e |а )?(?:not(?: quite)?|nicht(?: ganz)?"
    r"|pas(?: tout à fait)?|no|non|não|не|niet|instead of"
    r"|rather than)|,?\s(?:rather than|instead of|and not|anstatt|statt|und nicht|au lieu de|et non"
    r"|en lugar de|en vez de|y no|em vez de|e não"
    r"|invece di|anziché|e non|in plaats van|en niet|i stället för|och inte|zamiast|a nie|вместо"
    r"|а не))\s(?=[^.;]*\d)",
    re.IGNORECASE,
)


def _ended(part: str) -> bool:
    return part.rstrip(" \t\n*_`)\"”»'」").endswith((".", "!", "。", "！", "।", "$", "\\]"))


def _with_lists(text: str, values: Sequence[Quantity]) -> list[Quantity]:
    """Returns the values with lists such as "$x=3$ or $x=-7$" joined into one value."""
    joined: list[Quantity] = []
    for value in values:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.kind == value.kind
            and value.kind in ("formula", "relation")
            and _names_alike(text, before.span, value.span)
        ):
            span = (before.span[0], value.span[1])
            joined[-1] = Quantity(span, "formula", None, text[slice(*span)])
        else:
            joined.append(value)
    return joined


def _names_alike(text: str, first: Span, second: Span) -> bool:
    """Returns whether a comma or a conjunction joins two formulas that give values to the same name."""
    names = [NAMED.match(text, *span) for span in (first, second)]
    return (
        all(names)
        and len({name[1] for name in names if name}) == 1
        and BEFORE_AND.fullmatch(text, first[1], second[0]) is not None
    )


def _clause(text: str, sentence: Span, span: Span, language: str) -> Span:
    """Returns the span from the last concluding word before the value to the end of the sentence or its reason."""
    starts = [
        match.end() for match in SO.finditer(text, sentence[0], span[0]) if begins_clause(text, sentence[0], match)
    ]
    calculation = None if starts else BY_DOING.match(text, sentence[0], span[0])
    starts += [calculation.end()] if calculation else []
    reason = reason_of(text, span[1], sentence[1], language)
    start = max([sentence[0], *starts, text.rfind("; ", sentence[0], span[0]) + 1])
    start = max(start, behind_denial(text, sentence[0], span[0]))
    colon = text.rfind(": ", start, span[0])
    if colon >= 0 and len(WORD.findall(text, colon, span[0])) > 1 and explains(text[start:colon]):
        start = colon + 1
    return start, reason.start() if reason else sentence[1]


def _said_otherwise(text: str, earlier: list[Span], sentence: Span, value: Quantity, language: str) -> bool:
    """Returns whether an earlier sentence says the same with another value."""
    alike = [span for span in earlier[-20:] if abs(span[1] - span[0] - sentence[1] + sentence[0]) < _ALIKE]
    shape = _shape(text, sentence, language) if alike else ()
    return bool(shape) and any(
        shape == _shape(text, span, language) and _gives_another(quantities(text, *span, language), value)
        for span in alike
    )


def _gives_another(said: Sequence[Quantity], value: Quantity) -> bool:
    """Returns whether a sentence gives another value instead of this one. "4x = 28", a step to x = 7, does not."""
    if value.kind == "relation":
        said = [quantity for quantity in said if quantity.kind == "relation"]
        return bool(said) and value.key not in {quantity.key for quantity in said}
    return value.key not in {quantity.key for quantity in said}


def _shape(text: str, span: Span, language: str) -> tuple[str, ...]:
    part = text[slice(*span)]
    for quantity in reversed(quantities(text, *span, language)):
        part = part[: quantity.span[0] - span[0]] + " " + part[quantity.span[1] - span[0] :]
    return tuple(word.lower() for word in WORD.findall(SO.sub(" ", part)))


def begins_with_so(text: str, start: int, position: int) -> bool:
    """Returns whether the sentence that contains the position begins with a concluding word."""
    low = max((stop.end() for stop in STOP.finditer(text, max(start, position - _LONGEST), position)), default=start)
    return SO.match(text[low:position].lstrip(ORNAMENT)) is not None


def with_unit(text: str, end: int, extraction: Extraction) -> Extraction:
    """Returns the extraction of a number with the unit that follows it; any other extraction is unchanged."""
    if extraction.source != "number" or extraction.span is None:
        return extraction
    found = quantities(text, extraction.span[0], min(end, extraction.span[1] + _LONGEST_UNIT), "")
    whole = found and found[0].span[0] == extraction.span[0] and found[0].span[1] >= extraction.span[1]
    return replace(extraction, said=found[0].said) if whole else extraction


def _speaks_of(part: str, asked: str) -> bool:
    """Returns whether a sentence shares a word such as "ends" or 结束 with a question that asks when."""
    if UNSPACED.search(part):
        pairs = {part[at : at + 2] for at in range(len(part) - 1)}
        return len([pair for pair in pairs if UNSPACED.match(pair) and pair in asked]) > 1
    words = [{word.lower()[:3] for word in WORD.findall(text) if len(word) > 2} for text in (part, asked)]
    return bool((words[0] & words[1]) - OF_TIME)


def _shares(part: str, prompt: str) -> bool:
    """Returns whether a sentence and the question share a content word, or three pairs of characters if unspaced."""
    if UNSPACED.search(part):
        pairs = {part[at : at + 2] for at in range(len(part) - 1)}
        return len([pair for pair in pairs if UNSPACED.match(pair) and pair in prompt]) > 2
    asked = {word[:5].lower() for word in WORD.findall(prompt[-2000:]) if len(word) > 3}
    return len({word[:5].lower() for word in WORD.findall(part) if len(word) > 3} & asked) > 0
