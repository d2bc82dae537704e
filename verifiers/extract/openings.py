"""Finds out whether the first sentence of a text answers and the others explain it: "12. Each box holds 4 eggs."."""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.extract.anchors import anchors
from verifiers.extract.asked import Asked, asked_of, question_of, says_other, shared_with
from verifiers.extract.asked_names import opening_name
from verifiers.extract.asked_values import follows
from verifiers.extract.clauses import objection, reports
from verifiers.extract.conclusions import unsure
from verifiers.extract.denials import denied_after
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.last_sentences import closing
from verifiers.extract.quantities import quantities
from verifiers.extract.retractions import retracted
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.stated_sentence import values_of_question
from verifiers.extract.statement_words import FRAMES, OPPOSED, SO, UNREAL, WORD
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

MOST_EXPLAINING = 4  # sentences of an answer including its explanation
# "**12.** Every month has 28 days.", "Five trips! ...": but "12. Add them." may begin a list
_OPENING = any_case(
    r"[\s*_#>¡]*(?:(?:(?:it|that)(?:['’]s| is|['’]d be| would be)|they are|there are|es (?:ist|sind|gibt)|c['’]est"
    r"|il y en a|son|es|hay|são|é|há|sono|è|ci sono|to|jest|это|всего|es sind|das sind|ça fait|on en a|salen|always"
    r"|immer|toujours|siempre|sempre|option|choice|(?:(?:in total|altogether|overall|all in all|insgesamt|en tout"
    r"|en total|ao todo|in tutto),?\s)?"
    r"(?:it['’]s|that['’]s|it is|they['’]re|there are|you get|we get|i get))\s)?[*_$(]*"
)
_NAMED = lazy_pattern(  # "Maya is 14. Her brother is 9."
    r"[\s*_]*([A-ZÀ-ÞА-Я][^\W\d_]+)\s(?:is|was|has|had|gets|pays|needs|ist|hat|bekommt|zahlt|a|est|tiene|es|tem|é|ha|è)\s"
)
_OTHER = any_case(
    r"\s*(?:(?P<his>(?:her|his|their|its|ihre?|seine?|son|sa|su|seu|sua|suo|его|её|ее)\s)|[A-ZÀ-ÞА-Я][^\W\d_]+)"
)
_THERE = any_case(r"\W*(?:there are|they are|es gibt|il y en a|hay|há|ci sono|всего)\s")
_AFTER_OPENING = lazy_pattern(r"[*_$]*+(?:\s[^\W\d_]+){0,3}[*_$]*+[.!。！]?[\s*_$]*+")
_POINTS_BACK = any_case(  # "9. That is the number that ran away."
    r"\W*+(?:this|that|it|das|dies|c['’]|ce|cela|eso|esto|es|isso|isto|é|questo|ciò|è|dat|dit|det|to|это)(?![^\W\d_])|这"
    r"|那|これ|それ"
)
_DOING = lazy_pattern(r"\W*+[A-Z][a-z]{2,}ing\s")  # "Multiplying the three edges gives the volume."
_EQUALS = lazy_pattern("=")
_LONGEST_LEAD = 4  # characters of Markdown before the first sentence
_MOST_WORDS = 3
_MOST_LISTED = 10  # a smaller number and a full stop may number an item
_LISTS = lazy_pattern(r"\d{1,9}\.")
_APART = lazy_pattern(  # "Friday, because ...", "36 — ten percent is ...", "twelve of them: four around ..."
    r"(?<=[\w)%*])(?:\s?[:：](?!\d)|\s?—|\s[–-](?=\s\D)|[;；]|(?<=\s[A-J])\.(?=\s)"
    r"|,?\s(?:because|since|weil|parce que|porque|ya que|perché|poiché|omdat|eftersom|ponieważ|так как"
    r"|потому что)(?=\s)"
    r"|,(?=\s(?:as(?! the)|denn|da|car|puisque|pues|pois|want|bo|ведь|with|avec|mit|con|com|met|med)\s))"
)
_LONGEST_HEAD = 60  # characters of an answer before its explanation
_THEREFORE = any_case(
    r"\b(?:therefore|thus|hence|consequently|folglich|somit|demnach|donc|par conséquent|por (?:lo )?tanto|portanto"
    r"|quindi|pertanto|więc|zatem)\b|(?<!\w)(?:следовательно|поэтому)(?!\w)|所以|因此|したがって|따라서"
)


def stated_first(text: str, start: int, end: int, prompt: str) -> tuple[Extraction, str] | None:
    """Returns the value or name that is all of the first clause, if nothing after it takes it back or concludes again.

    The text after it must then be judged as after a box, in the text that is returned too, where it is a sentence.
    """
    _, sentences, _, language = closing(text, start, end, prompt)
    sentences = _set_apart(text, sentences) if sentences and sentences[0][0] < start + _LONGEST_LEAD else []
    if len(sentences) < 2 or text[slice(*sentences[0])].rstrip().endswith(("?", ":")):
        return None
    begin = sentences[1][0]
    rest = text[begin:end]
    if CORRECTION.search(rest) or FRAMES.search(rest) or "?" in rest or _POINTS_BACK.match(rest):
        return None
    if anchors(text[:end], begin):
        return None  # "There are 36 eggs. The answer is 38."
    value = _value_alone(text, sentences, end, language, prompt)
    span = value.span if value else opening_name(text, sentences[0], prompt) or _words_alone(text, sentences[0])
    if span is None or denied_after(text, span[1], end) or retracted(text, span[1], end) is not None:
        return None
    stop = sentences[0][1]
    text = f"{text[:stop]}\n{text[stop + 1 :]}" if text[stop : stop + 1].strip(".!。") else text
    return Extraction(span, "opening", said=value.said if value else ""), text


def _set_apart(text: str, sentences: list[Span]) -> list[Span]:
    """Returns the sentences with the first one divided at a colon, a dash or a reason behind a short clause."""
    low, high = sentences[0]
    sign = _APART.search(text, low, min(high, low + _LONGEST_HEAD))
    if sign is None or not text[sign.end() : high].strip(" .*_"):
        return sentences
    return [(low, sign.start()), (sign.end(), high), *sentences[1:]]


def _words_alone(text: str, sentence: Span) -> Span | None:
    """Returns up to three words that are all of the first sentence ("Friday", "always odd"), or None."""
    opening = _OPENING.match(text, *sentence)
    begin = opening.end() if opening else sentence[0]
    part = text[begin : sentence[1]].strip(" .!*_,)")
    if not part or len(part.split()) > _MOST_WORDS or any(char.isdigit() for char in part):
        return None
    at = text.index(part, begin)
    return at, at + len(part)


def _value_alone(text: str, sentences: list[Span], end: int, language: str, prompt: str) -> Quantity | None:
    """Returns the value that is all of the first sentence, unless a later one concludes another value."""
    opening = _OPENING.match(text, *sentences[0])
    named = _NAMED.match(text, *sentences[0])
    if named is not None and named[1] in question_of(prompt):
        other = _OTHER.match(text, *sentences[1])
        if other is None or not (other["his"] or (other[0].strip() in prompt and other[0].strip() != named[1])):
            return None  # "Pip is 23. Half of 34 is 17."
        opening = named
    asked = asked_of(prompt[-2000:])
    if _THERE.match(text, *sentences[0]) and not (asked.things or asked.counter):
        return None  # "There are three such primes: 2, 3 and 5."
    first = [item for item in quantities(text, *sentences[0], language) if not item.article]
    if opening is None or len(first) != 1 or first[0].span[0] != opening.end():
        return None
    if not _AFTER_OPENING.fullmatch(text, first[0].span[1], sentences[0][1]):
        return None
    if _LISTS.fullmatch(text[slice(*sentences[0])].strip()) and (first[0].value or 0) < _MOST_LISTED:
        return None
    known = {quantity.key for quantity in (*values_of_question(prompt[-2000:], language), *first)}
    begin = sentences[1][0]
    # The pattern begins with the blank before its word; "half of that is" does not conclude.
    concluded = [sign.end() for sign in SO.finditer(text, begin - 1, end) if "that is" not in sign[0]]
    concluded += [match.end() for match in _EQUALS.finditer(text, begin, end)]
    later = [item for item in quantities(text, max(concluded, default=end), end, language) if not item.article]
    return None if later and later[0].key not in known else first[0]  # "12. Each box holds 4, so there are 48 eggs."


def answered_first(text: str, sentences: list[Span], language: str, wanted: Asked, asked: Sequence[Quantity]) -> bool:
    """Returns whether the first sentence answers the question and the others explain where its value comes from.

    The first sentence then shares more words with the question than any other does. The values of the others follow
    from the question's values, and the value of the first follows from all of these.
    """
    if not 1 < len(sentences) <= MOST_EXPLAINING:
        return False
    first, *others = (text[slice(*span)] for span in sentences)
    given = {quantity.key for quantity in asked}
    values = [q for q in quantities(text, *sentences[0], language) if not q.article and q.key not in given]
    if len({value.key for value in values}) != 1 or says_other(text, wanted, values[0]) or _DOING.match(first):
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
    concluded = last and (
        text[: last[0].span[0]].rstrip("$€£ ").endswith("=")
        or _THEREFORE.search(text, sentences[-1][0], last[0].span[0])
    )
    if concluded and last[0].key != values[0].key:
        return False  # the text goes on to calculate another value
    known = [value.value for value in asked if value.value is not None]
    later = [q for q in quantities(text, sentences[1][0], sentences[-1][1], language) if not q.article]
    for value in later:
        if value.key not in given and value.key != values[0].key:
            if value.value is None or not follows(value.value, known):
                return False  # it may continue from the first value
            known.append(value.value)
    return bool(later) and follows(values[0].value, known)
