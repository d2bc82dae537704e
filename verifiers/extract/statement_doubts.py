"""The doubts about the value that a last sentence states: it is another thing's, altered, disputed or only repeated."""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.extract.asked import OF_TIME, Asked, says_other, shared_with, stems
from verifiers.extract.asked_values import (
    OPERATION,
    another_is_asked,
    counts_another,
    follows_from_others,
    is_a_step,
    is_operand,
    said_of,
)
from verifiers.extract.clauses import opposed
from verifiers.extract.closings import OF_CHANCE
from verifiers.extract.conclusions import altered, concludes
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.offered import is_offered
from verifiers.extract.openings import MOST_EXPLAINING
from verifiers.extract.other_subjects import of_another_subject
from verifiers.extract.placements import is_placed
from verifiers.extract.quantities import quantities
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.stated_sentence import ASKED, NO_ANSWER, UNSURE, Sentence
from verifiers.extract.statement_words import (
    ANOTHER,
    BY_DOING,
    DIFFERS,
    GOT,
    LEFT_OVER,
    PLAIN_WORD,
    QUOTED,
    SO,
    SOMEBODY,
    UNREAL,
    UNSPACED,
    WORD,
)
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

_ALIKE = 16  # characters by which the lengths of sentences that differ only in their values may differ
_NAME = lazy_pattern(r"(?<![^\W_])[A-ZÀ-ÞА-Я][a-zà-ÿа-я]{2,}(?![^\W_])")
_SEVERAL = any_case(  # "An angle has 90 degrees, two of them make 180."
    r"(?<![^\W_])(\d{1,2}|two|three|four|zwei|drei|vier|deux|trois|dos|tres|dois|três|due|tre|twee|drie|två|dwa|trzy)\s"
    r"(?:of (?:them|these|those)|davon|d['’]entre (?:eux|elles)|de (?:ellos|ellas|eles|elas)|di ess[ie]|daarvan"
    r"|z nich)\s(?:make|give|are|ergeben|sind|machen|font|donnent|son|hacen|dan|são|dão|sono|fanno|danno|zijn|geven"
    r"|to|dają)\b"
)
_ASKS_FACTOR = any_case(r"\b(?:factor|faktor|facteur|fator|fattore)\b|во сколько раз")
_TIMES = frozenset("times mal fois veces vezes volte keer gånger раз раза".split())
_SAME_AS = any_case(
    r"(?:\s[^\W\d_]+)?\s(?:is|are|ist|sind|est|es|é|è)\s(?:the same as|equal to|equivalent to|das ?selbe wie"
    r"|genauso viel wie|gleich|la même chose que|égal à|lo mismo que|igual a|o mesmo que|lo stesso che|uguale a)\b"
)
_OWNER = lazy_pattern(r"(?<=\s)([A-ZÀ-ÞА-Я][a-zà-ÿа-я]{2,}),?\s$")
_MATHS = ("formula", "relation")
_COUNTED_ANSWERS = frozenset({"solu", "answ"})
_SAID_TO_BE = any_case(
    r"[^.,;:]{0,40}?\b(?:is|are|was|were|ist|sind|est|sont|es|son|é|são|è|sono|jest|są|zijn|är)\s+"
    r"(?!(?:left|what|that|the|thus|so|also|then|now|our|was|das|ce|lo|la|el|o)\b)([^\W\d_]{3,})"
)
_EQUATED = lazy_pattern(
    r"(?<![\w=])((?:\|[a-z]\||\d{1,3}[a-z]|[a-z]\s?[-+−*/^]\s?\d{1,4}|[a-z][²³]|\d{1,4}\s?[-+−*/]\s?[a-z]))\s?=\s?$"
)
_OF_EACH = any_case(r"\W*\b(?:each|every|jede[rs]?|chaque|cada|ogni|elke?|varje|każd\w+)\b")
_HOLDS_NONE = any_case(r"\b(?:none|nothing|no|0|ohne|sans|sin|senza) ")
_NO_NUMBER_AFTER = any_case(
    r"\b(?:around|about|between)\b(?!\s+(?:(?:a|an|the|half|some)\s+)*(?:§|[$€£]?\d|(?:one|two|three|four|five|six"
    r"|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred)\b))"
)
_BETWEEN_TWO = any_case(
    r"\b(?:between|zwischen|entre|tra|fra|tussen|mellan|między|между) (\d+) (?:and|und|et|y|e|en|och|a|i|и) (\d+)\b"
)
_EITHER_OF_TWO = any_case(
    r"(?<![\w.,])(\d+) (?:or|oder|ou|o|или) (?:(?:by|durch|par|por|per|на) )?(\d+)(?![\w/]|[.,]\d)"
)
# Says that nothing is left over: "9 trays, with none left over".
_NONE_LEFT = any_case(
    r",?\s*(?:with|and) (?:none|nothing|no \w+|0) (?:is |are )?(?:left|remain(?:s|ing)|spare|else|more)(?: over)?\b"
    r"|,?\s*ohne Rest\b|,?\s*sans reste\b"
    r"|,?\s*(?:sin (?:que sobre nada|resto)|y no sobran? (?:ning[úu]n[oa]?|nada)|e não sobra(?:m)? (?:nenhum\w*"
    r"|nada))\b"
    r"|,?\s*(?:senza resto|e non (?:ne )?avanza(?:no)? (?:nessun\w*|niente|nulla)|et il n['’]en reste (?:aucun\w*"
    r"|plus))\b|,?\s*und (?:es bleibt )?(?:keine[rs]?|nichts) (?:bleibt )?übrig\b"
)
_MORE = any_case(
    r"\b(?:more|less|fewer|extra|mehr|weniger|de plus|de moins|más|menos|a mais|a menos|in più|in meno|больше|меньше"
    r"|meer|minder|mer|mindre|więcej|mniej)\W*$"
    # after the value and its unit: "3 grams per litre less than that"
    r"|\A(?:\s?(?!(?:and|or|which|that|so|but|is|are|was|has|as|und|oder|was|das|ist|et|ou|qui|y|o|que|e|и"
    r"|что)\b)[^\s,;:(]{1,16}){0,4}?"
    r"\s(?:more|less|fewer|higher"
    r"|lower|greater|smaller|longer|shorter|mehr|weniger|höher|niedriger|größer|kleiner|länger|kürzer|de plus|de moins"
    r"|más|menos|mais|più|meno|больше|меньше|meer|minder|mer|mindre|więcej|mniej)\s(?:than|als|que|do que|di|чем|dan|än"
    r"|niż|od)(?![^\W\d_])"
)
_LABELLED = any_case(r"(?!(?:so|then|thus|hence|therefore|and|is|are|now|finally)\b)\b[A-Za-z]+ $")
_DOES = any_case(r"\s+(?:is|has|was|had|holds?|contains?|goes|comes|went|came|leaves|starts)\b")
_ANNOUNCES = any_case(
    r"^\W*(?:(?:the|our|die|das|la|el|il|a|o|le) )?(?:(?:right|correct|final|richtige|bonne) )?(?:answers?|solutions?"
    r"|lösung|antwort|solution|réponse|respuesta|solución|resposta|solução|risposta|soluzione)"
    r" (?:is|are|ist|est|es|é|è)\b"
)
# A time beside the present of a question.
_AT_ANOTHER_TIME = Gated(
    r"\b(?:yesterday|the day before yesterday|ago|gestern|vorgestern|vor \w+ (?:jahren|tagen|wochen|stunden)|avant-hier"
    r"|il y a \w+ (?:ans|jours|heures)|ayer|anteayer|hace \w+ (?:años|días|horas)|ontem|anteontem|ieri|\w+ (?:anni"
    r"|giorni|ore) fa|gisteren|eergisteren|geleden|igår|wczoraj|przedwczoraj|temu|вчера|позавчера|назад|dün|hôm qua"
    r"|kemarin)\b|昨日|一昨日|昨天|前天|어제|그저께|أمس"
)


def doubt(sentence: Sentence, value: Quantity, clause: Span) -> Extraction | None:
    """Returns why a value is not the answer, or None if nothing speaks against it.

    `clause` is the part of the sentence that states the value.
    """
    if _is_of_another(sentence, value):
        return UNSURE
    leading = sentence.text[clause[0] : value.span[0]]
    leading = _ANNOUNCES.sub(" ", leading) if sentence.contrasted else leading
    said = f"{leading} § {sentence.text[value.span[1] : clause[1]]}"
    if opposed(_without_shared(said, sentence.wanted, sentence.prompt), sentence.language):
        return UNSURE if sentence.language != "en" else NO_ANSWER  # English denials are examined elsewhere
    return _altered(sentence, value, clause) or _rivalled(sentence, value) or _unconcluded(sentence, value, clause)


def _is_of_another(sentence: Sentence, value: Quantity) -> bool:
    """Returns whether a value is of another thing, person or time than the question asks for."""
    text, span, prompt, wanted = sentence.text, sentence.span, sentence.prompt, sentence.wanted
    if not prompt:
        return False
    if (not sentence.named and another_is_asked(sentence, value)) or counts_another(sentence, value):
        return True
    start, end = said_of(sentence, value)
    own = text[start:end]
    several = _SEVERAL.search(own)
    if several and several[1].lower() not in prompt.lower() and not shared_with(wanted.sentence, own):
        return True
    named = _OWNER.search(text, span[0], value.span[0])
    if named is not None and named[1] not in wanted.sentence:
        others = {name for name in _NAME.findall(sentence.part) if name != named[1]}
        if any(name in wanted.sentence for name in others):
            return True  # "Hugo has 19 marbles and Lea 12."
    if of_another_subject(sentence.part, wanted.sentence, prompt, sentence.language):
        return True
    if wanted.fraction and _said_of_another(text[value.span[1] : span[1]], wanted):
        return True
    elsewhere = SOMEBODY.search(text, start, value.span[0]), _AT_ANOTHER_TIME.search(own)
    return any(other and other[0].lower() not in prompt.lower() for other in elsewhere)


def _altered(sentence: Sentence, value: Quantity, clause: Span) -> Extraction | None:
    """Returns why a value is no answer by the words directly beside it, or None."""
    text, wanted = sentence.text, sentence.wanted
    if is_offered(text, sentence.span, value.span):
        return UNSURE
    own_unit = value.kind in ("time", "duration") or _names(text, value, wanted)
    placed = is_placed(sentence, clause, value)
    if altered(text, clause, value.span, placed=placed, named=own_unit, question=wanted.sentence):
        return NO_ANSWER
    led, after = text[clause[0] : value.span[0]], text[value.span[1] : sentence.span[1]]
    equated = _EQUATED.search(led)
    if equated and "".join(equated[1].split()) not in "".join(sentence.prompt.split()):
        return NO_ANSWER  # "x + 1 = 5", "|x| = 5"
    if value.kind == "number" and _LABELLED.search(led) and _DOES.match(after):
        return NO_ANSWER  # "Bus 7 has ..."
    more = None if wanted.difference else _MORE.search(after)
    if more and more[0].strip(" .").lower() not in wanted.sentence.lower():
        return UNSURE if sentence.prompt else NO_ANSWER
    quoted = QUOTED.search(led) and QUOTED.search(after)
    got = GOT.search(led) and not WORD.search(after) and not wanted.is_wanted(text, value)
    cut_off = sentence.span[1] == sentence.end and not _ended(sentence.part) and len(WORD.findall(after)) > 3
    return NO_ANSWER if quoted or got or cut_off else None


def _rivalled(sentence: Sentence, value: Quantity) -> Extraction | None:
    """Returns `UNSURE` if an earlier sentence, after the last correction, answers with another value."""
    text = sentence.text
    corrected = max((at for at, span in enumerate(sentence.earlier, 1) if CORRECTION.search(text, *span)), default=0)
    earlier = sentence.earlier[corrected:]
    if _said_otherwise(sentence, earlier, value):
        return UNSURE
    calculated = "=" in text[max(sentence.span[0], value.span[0] - OPERATION) : value.span[0]]
    if not sentence.prompt or calculated or SO.search(sentence.part) or BY_DOING.match(sentence.part):
        return None
    return UNSURE if _answered_before(sentence, earlier, value) else None


def _unconcluded(sentence: Sentence, value: Quantity, clause: Span) -> Extraction | None:
    """Returns `NO_ANSWER` if the sentence only repeats a value, or nothing shows that it concludes, or else None."""
    text, part, wanted = sentence.text, sentence.part, sentence.wanted
    led, after = text[clause[0] : value.span[0]], text[value.span[1] : sentence.span[1]]
    given = value.key in sentence.given
    if given and _SAME_AS.match(after):
        return NO_ANSWER  # "2.4 metres is the same as 24 centimetres."
    if given and not (
        sentence.contrasted
        or sentence.reasoned
        or sentence.premised
        or SO.search(part)
        or concludes(led)
        or LEFT_OVER.search(f", {led}")
        or len(sentence.inside) > 1
        or (sentence.earlier and len(stems(led + after) & stems(wanted.sentence)) > 1)
    ):
        return NO_ANSWER
    if sentence.prompt and not (wanted.time and not _shares(part, sentence.prompt)):
        return None
    if not _concludes(sentence, value):
        return NO_ANSWER
    more = sentence.before or len(sentence.inside) > 1 or sentence.reasoned or sentence.premised
    return None if sentence.prompt or more else NO_ANSWER


def _concludes(sentence: Sentence, value: Quantity) -> bool:
    """Returns whether a sentence shows by a word, its form or the numbers before it that its value is a conclusion."""
    text, part = sentence.text, sentence.part
    led, after = text[sentence.span[0] : value.span[0]], text[value.span[1] : sentence.span[1]]
    if sentence.contrasted or sentence.premised or SO.search(part) or concludes(led):
        return True
    timed = value.kind in ("time", "duration")
    if not timed and "text" not in value.said and sentence.wanted.is_wanted(text, value):
        return True
    if follows_from_others(value, sentence):
        return True
    if text[: value.span[0]].endswith("**") and after.startswith("**"):
        return True
    times = [part.kind for part in sentence.inside].count("time")
    if value.kind == "time" and sentence.wanted.clock and sentence.before and times == 1:
        return True
    if timed and sentence.question.time and _speaks_of(part, sentence.prompt[-ASKED:]):
        return True
    if sentence.reasoned and not WORD.search(led):
        return True
    if WORD.search(after):
        return False
    alone = not WORD.search(led) and (sentence.earlier or value.kind == "relation")
    return bool(alone) or (value.kind == "formula" and "=" in text[slice(*value.span)])


def _said_of_another(after: str, wanted: Asked) -> bool:
    """Returns whether a fraction is said of something that the question does not ask for ("A quarter is blue.")."""
    found = _SAID_TO_BE.match(after)
    return found is not None and found[1].lower()[:4] not in wanted.sentence.lower()


def _names(text: str, value: Quantity, wanted: Asked) -> bool:
    """Returns whether the question asks for what the word after a value names ("12 times", "20 more", "5 dozen")."""
    word = WORD.match(text, value.span[1] + text.startswith(" ", value.span[1]))
    if word is None:
        return False
    if _ASKS_FACTOR.search(wanted.sentence) and word[0].lower() in _TIMES:
        return True
    return word[0][:4].lower() in wanted.things or (wanted.difference and DIFFERS.fullmatch(word[0]) is not None)


def _without_shared(said: str, wanted: Asked, prompt: str) -> str:
    """Returns the text without doubts that the question shares, or "around" and "between" that precede no number."""
    between = _BETWEEN_TWO.search(said)
    if between and all(number in prompt for number in between.groups()):
        said = _BETWEEN_TWO.sub(" ", said)  # "the number halfway between 40 and 50"
    either, asked = _EITHER_OF_TWO.search(said), _EITHER_OF_TWO.search(wanted.sentence)
    if either and asked and either.groups() == asked.groups():
        said = _EITHER_OF_TWO.sub(" ", said, count=1)  # "divisible by 6 or 8"
    if wanted.doubts:
        said = PLAIN_WORD.sub(lambda word: " " if word[0].lower() in wanted.doubts else word[0], said)
    if not wanted.things.isdisjoint(_COUNTED_ANSWERS):
        said = PLAIN_WORD.sub(lambda word: " " if word[0][:4].lower() in _COUNTED_ANSWERS else word[0], said)
    said = ANOTHER.sub(" §", said)
    if _HOLDS_NONE.search(said):
        said = _NONE_LEFT.sub(" ", said)
    return _NO_NUMBER_AFTER.sub(" ", said)


def _ended(part: str) -> bool:
    return part.rstrip(" \t\n*_`)\"”»'」").endswith((".", "!", "。", "！", "।", "$", "\\]"))


def _said_otherwise(sentence: Sentence, earlier: list[Span], value: Quantity) -> bool:
    """Returns whether an earlier sentence says the same with another value."""
    text, language, (start, end) = sentence.text, sentence.language, sentence.whole
    alike = [span for span in earlier[-20:] if abs(span[1] - span[0] - end + start) < _ALIKE]
    shape = _shape(text, (start, end), language) if alike else ()
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


def _answered_before(sentence: Sentence, earlier: list[Span], value: Quantity) -> bool:
    """Returns whether an earlier sentence gives another value that answers the question as well or better.

    It shares more words with the question than this sentence, or as many and `value` does not follow from its value.
    """
    text, language, wanted = sentence.text, sentence.language, sentence.wanted
    own = shared_with(wanted.sentence, sentence.part)
    known = [quantity.value for quantity in (*sentence.asked, *sentence.before) if quantity.value is not None]
    is_other, is_wanted = says_other(text, wanted, value), wanted.is_wanted(text, value)
    for span in earlier[-MOST_EXPLAINING:]:
        part = text[slice(*span)]
        shared = shared_with(wanted.sentence, part)
        if _OF_EACH.match(part) and not _OF_EACH.search(wanted.sentence):
            continue
        if not shared or len(shared) < len(own) or "=" in part or opposed(part, language) or UNREAL.search(part):
            continue
        new = [
            quantity for quantity in quantities(text, *span, language)
            if not quantity.article and quantity.key not in sentence.given and not is_operand(text, quantity.span, span)
            and (is_other or not says_other(text, wanted, quantity))
        ]  # fmt: skip
        if len({quantity.key for quantity in new}) != 1 or new[0].key == value.key or new[0].kind in _MATHS:
            continue
        if is_wanted and not wanted.is_wanted(text, new[0]):
            continue
        if value.value is not None and 0 < value.value < 1 < (new[0].value or 0) and OF_CHANCE.search(wanted.sentence):
            continue  # a count of outcomes
        if len(shared) > len(own) or not is_a_step(new[0].value, value.value, known):
            return True
    return False


def _speaks_of(part: str, asked: str) -> bool:
    """Returns whether a sentence shares a word such as "ends" or 结束 with a question that asks when."""
    if UNSPACED.search(part):
        return _shares_pairs(part, asked, 2)
    words = [{word.lower()[:3] for word in WORD.findall(text) if len(word) > 2} for text in (part, asked)]
    return bool((words[0] & words[1]) - OF_TIME)


def _shares(part: str, prompt: str) -> bool:
    """Returns whether a sentence and the question share a content word, or three pairs of characters if unspaced."""
    if UNSPACED.search(part):
        return _shares_pairs(part, prompt, 3)
    words = [{word[:5].lower() for word in WORD.findall(text) if len(word) > 3} for text in (part, prompt[-2000:])]
    return not words[0].isdisjoint(words[1])


def _shares_pairs(part: str, prompt: str, least: int) -> bool:
    pairs = {part[at : at + 2] for at in range(len(part) - 1)}
    return sum(pair in prompt for pair in pairs if UNSPACED.match(pair)) >= least
