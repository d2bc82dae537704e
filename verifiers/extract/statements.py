"""Finds the value that the last sentence states: "So in one week the farmer collects 40 eggs."

No phrase announces such an answer, so it counts only if the sentence has no other reading. Only thanks and checks that
find no fault may follow it. One value must be left in it after the values that the question or the text gives are set
aside. None of its words may doubt, deny, report, suppose or ask. And it must show that it concludes, by a word such as
"so", by a value that follows from the numbers before it, or by words that it shares with the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from verifiers.extract.asked import NOTHING, Asked, shared_with
from verifiers.extract.asked_names import THAT_IS, without_denied_names
from verifiers.extract.asked_nouns import is_formula, noun_value
from verifiers.extract.asked_values import (
    in_all,
    new_values,
    of_the_asked,
    only_new,
    only_one,
    outdone,
    said_of,
    the_wanted,
)
from verifiers.extract.claims import alternative, named
from verifiers.extract.clause_judge import CONDITIONAL
from verifiers.extract.clauses import begins_clause, main_clause, objection, opposed, reason_of, reports, supposes
from verifiers.extract.closings import closing_form, closing_list, closing_share, named_values, values_of_one_name
from verifiers.extract.conclusions import unsure
from verifiers.extract.contrasts import contrast, explains
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.last_sentences import closing
from verifiers.extract.openings import answered_first
from verifiers.extract.operands import result_of
from verifiers.extract.owners import of_the_named, only_compares
from verifiers.extract.quantities import quantities
from verifiers.extract.scaled import in_units_of
from verifiers.extract.sentences import BEFORE_AND
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.stated_sentence import (
    ASKED,
    MOST_BEFORE,
    NO_ANSWER,
    UNSURE,
    Sentence,
    question_words,
    values_of_question,
    without_asked_denials,
)
from verifiers.extract.statement_doubts import doubt
from verifiers.extract.statement_words import (
    AT_FIRST,
    BY_DOING,
    CONDITION,
    FRAMES,
    MISTAKE,
    NOT,
    OPPOSED,
    ORNAMENT,
    REPORTS,
    SO,
    STOP,
    UNREAL,
    UNSPACED,
    WORD,
    behind_denial,
)
from verifiers.extract.truths import asks_for_truth
from verifiers.extract.turns import CORRECTION
from verifiers.extract.unannounced import OPTION_LABEL
from verifiers.extract.wordings import CONCEDING, all_reals, says_no_solution
from verifiers.lazy_pattern import any_case, lazy_pattern

_LONGEST = 400  # characters of a sentence
_LONGEST_UNIT = 24  # characters of a unit
_FEW = 6  # words of a clause before a closing option letter
_AND = any_case(r"[,;]\s(?:and|und|et|y|e|en|och|i|и)\s")
# "5/8 is the larger of the two"
_RANKED = any_case(
    r"(?:\s*(?:—|–|の方が|のほうが|[이가]))?\s*(?:(?:is|ist|est|es|è|é|jest|är)\s+)?(?:(?:the|der|die|das|la|le|el"
    r"|il|lo|o|a)\s+)?"
    r"(?P<rank>larg(?:er|est)|great(?:er|est)|bigg(?:er|est)|small(?:er|est)|größer\w?|kleiner\w?"
    r"|plus (?:grande?|petite?)|mayor|menor|maior"
    r"|maggiore|minore|больше|меньше|większ[aey]|mniejsz[aey]|groter|större|mindre|更?[大小](?:きい|さい)?"
    r"|더 (?:큽|작습))"
    r"(?:\s+(?:one|of the two|fraction|number|value|der beiden|des deux|de los dos|dos dois|dei due|bruch"
    r"|zahl))*(?:です|니다)?[\s.!。]*"
)
_LONGEST_LEAD = 24  # characters of a preposition before a place
_AT = any_case(  # "at x = 1", "при x = 1"
    r"(?<![^\W\d_])(?:at|when|for|where|if|with|bei|für|wenn|mit|pour|quand|lorsque|si|en|cuando|para|con|quando|per|em"
    r"|se|voor|bij|als|vid|när|för|om|dla|gdy|przy|при|если|для|когда)\s+[(*]*$|(?:[当當]|此[时時])\s?$"
)
_AT_NAME = lazy_pattern(r"\b(?:at|when|where|for) \$?[a-z]\$? (?:is|equals|=) $")
_AT_BEHIND = lazy_pattern(r"\$?\s?(?:处|處|时|時|일 때|のとき)")
_CLOSING_LETTER = lazy_pattern(r"(?<![^\W\d_'’])([A-J])[)*.\s]*$")
_LETTER = lazy_pattern(r"(?<![^\W\d_'’])(?!I\b)[B-J](?![\w'’])")
# "7/12, which can't be reduced any further", "0.25, or 25 percent": what follows the value only says it again.
_AGAIN = any_case(
    r"(?P<kept>\d)(?:,|\s[—–-])\s?(?:which|and (?:it|this|that)|a fraction that) (?:can(?:['’]t|not|no longer)"
    r"|does(?:n['’]t| not)|is) (?:be )?(?:reduced?|simplif(?:y|ied)|irreducible|in (?:lowest|simplest))[^.!?]*"
    r"|(?<![\d.,/])(?P<value>\d?\.\d{1,6}|\d{1,4}/[1-9]\d{0,3}),? (?:or|that is,?|i\.e\.,?|which is) (?P<about>(?:about"
    r"|roughly|approximately|around) )?(?P<percent>\d{1,3}(?:\.\d{1,4})?)\s?(?:%|per ?cent)"
    r"(?![\w%])"
)
_CONCEDED = any_case(rf",\s{CONCEDING}[^,;\d]*$")  # "..., even though the last bus is nearly empty"
_WHERE = any_case(r"(?<=\d),\s(?:where|at which|wo|où|donde|onde|dove)\s[^.!?]*")
_HOW_MANY = any_case(
    r"\b(?:how many|wie viele|combien|cuántas|quantas|quante|hoeveel|hur många|ile)\b|(?<!\w)сколько|几个|多少"
)
# "That gives 20." is about what the sentence before it says.
_GOES_ON = any_case(
    r"\W*(?:that|this|it|which|you(?:['’]d)?|one|das|so|man|cela|ça|on|eso|esto|se|isso|ciò)(?![^\W\d_])"
)
_SOLUTIONS = any_case(r"\b(?:solutions?|lösungen|soluciones|soluções|soluzioni)\b")
_CLAIM = any_case(r"\b(?:the|this) claim\b")
_CONTRASTED = any_case(
    r"(?:(?:,|\s[(—–-]|[(—–])\s*(?:and |but |und |et |y |e |а )?(?:not(?: quite)?|nicht(?: ganz)?|pas(?: tout à fait)?"
    r"|no|non|não|не|niet|instead of|rather than|not to be confused with|nicht zu verwechseln mit"
    r"|à ne pas confondre avec|no confundir con|não confundir com|da non confondere con|не путать с)|,?\s(?:rather than"
    r"|instead of|and not|anstatt|statt|und nicht|au lieu de|et non|en lugar de|en vez de|y no|em vez de|e não"
    r"|invece di|anziché|e non|in plaats van|en niet|i stället för|och inte|zamiast|a nie|вместо|а не))\s(?=[^.;]*\d)"
)
# "..., although 8 is also possible": the sentence leaves another answer open.
_ALSO_POSSIBLE = any_case(
    r"\b(?:also|equally|just as|auch|ebenso|genauso|aussi|également|también|igualmente|também|anche|ook|också|też"
    r"|również)\b"
    r"[^.;]{0,30}?\b(?:possible|right|correct|möglich|denkbar|richtig|juste|posible|correct[oa]|possível|corret[oa]"
    r"|possibile|giust[oa]|mogelijk|möjlig\w*|możliw\w*)\b|\b(?:possible|right|correct) (?:too|as well)\b"
    r"|(?<!\w)(?:тоже|также)\s[^.;]{0,30}?(?:возможн|подход|верн)"
)
_STARTS = any_case(
    r"\W*+(?:(?:so|now|next|then|first|firstly|and),? )?(?:first(?:ly)?|next|step|part|problem|question|exercise"
    r"|example|case|option|choice|to (?:find|know|see|solve|answer|work out|figure out|get)\b|given|find|note|recall"
    r"|remember|consider|compute|calculate|determine|guess|hint|attempt|draft|zuerst|zunächst|aufgabe|frage|schritt"
    r"|d['’]abord|question|étape|exercice|primero|problema|pass?o(?=\s*(?:\d+\b|:))|pregunta|ejercicio|primeiro"
    r"|pergunta|exercício|prima|domanda|esercizio|сначала|задача|вопрос|шаг|ilk önce|soru|bài|câu"
    r"|soal)\b(?! (?:the )?(?:number|of)\b)"
    r"|\W*(?:第(?![一二三四五六七八九十\d]+[天年次周月])|首先|先|问题|題|题|まず|問|최초|먼저|문제|أولا|السؤال|पहले"
    r"|प्रश्न)"
)
_CALLED_BAD = any_case(r"\b(?:naive|wrong|incorrect|false|mistaken|flawed|bad)\b")
# A sentence that objects to what such a word describes.
_OBJECTS = lazy_pattern(r"[.!?\n]\s+(?:But|However|In fact|Actually|In reality)\b")
# "So she had 45: a third of these is 15, and 45 - 15 = 30."
_EXPLAINED = lazy_pattern(r":\s+(?=[^:\n]{0,200}\d\s*=\s*[$€]?\d)")
# ", which is a little more than four hours": an approximation of the value, often in another unit.
_NEARLY = Gated(
    r",\s*(?:soit|that is|i\.e\.|which is|das sind|o sea|es decir|cioè|ossia|ou seja|то есть)\s+"
    r"(?:just |a (?:little|bit) |slightly |"
    r"un peu |légèrement |etwas |gut |knapp |rund |poco |un poco |algo |чуть )?(?:about|roughly|over|under"
    r"|almost|nearly|(?:more|less) than|(?:plus|moins) (?:de|d['’])|environ|presque|mehr als|weniger als|etwa|fast"
    r"|más de|menos de|casi|più di|meno di|quasi|mais de|quase|больше|меньше|почти|около)\b"
)
_NAMED = lazy_pattern(r"\$?\s*([A-Za-z](?:_\{?\w\}?)?)\s*=")
# A question that asks "true or false?", and the words that answer it.
_TRUE_OR_FALSE = Gated(
    r"\b(?:true or (?:is it )?false|(?:wahr|richtig) oder falsch|vrai ou faux|verdadero o falso|verdadeiro ou falso"
    r"|vero o falso|sant eller falskt|waar of (?:onwaar|niet)|prawda (?:czy|lub|albo) fałsz|doğru mu,? yanlış mı"
    r"|đúng hay sai|benar atau salah|правда или (?:ложь|неправда)|верно или (?:нет|неверно))|对还是错|正しいか|真か偽"
    r"|참.{0,4}거짓|صح أم خطأ"
)
_SAID_TRUE_OR_FALSE = Gated(
    r"(?<![^\W\d_])(?:true|false|wahre?|falsch|vraie?|fausse|faux|verdader[oa]|fals[oa]|verdadeir[oa]|vero|vera|sant"
    r"|falskt?|waar|onwaar|prawd\w+|fałsz\w*|doğru(?:dur)?|yanlış(?:tır)?|đúng|benar|salah|верно|неверно|правда|ложь"
    r"|ложно|истинно)(?![^\W\d_])"
)
_INFINITELY_MANY = Gated(
    r"\b(?:infinitely many|an infinite number|unendlich viele|une infinité|infinit[oa]s|infinite(?= soluzion)"
    r"|oneindig veel|oändligt många)\b|бесконечно много|无数(?:个|多)?|无穷多(?:个)?|無数|무수히 많"
)
# "So no, it is not prime."
_TRUTH = any_case(
    r"\W*+(?:so|therefore|thus|hence|also|daher|donc|así que|por tanto|portanto|quindi|dunque|значит),? "
    r"(yes|no|ja|nein|oui|non|sí|sim|não|sì|да|нет)(?=[,.!])"
)
_VOIDS = any_case(
    r"\b(?:nothing|none|gone|half|double\w*|twice|fewer|less|more|minus|times|too (?:many|few)|should have|start over"
    r"|flawed|misprinted|mixed up|single|taken away|added|doubl\w+|halv\w+|nichts|keine[rs]?|rien|aucun\w*|nada"
    r"|ningun\w*|niente)\b"
)


def stated(text: str, start: int, end: int, prompt: str, *, contrasts: bool = False) -> Extraction | None:
    """Returns the value that the last sentence in [start, end) states, or None if nothing shows that it is the answer.

    An extraction without a span means that the text does not commit to the value. With `contrasts`, the sentence must
    state the value instead of one that it denies.
    """
    text = text if text.isascii() else text.replace("－", "-").replace("＋", "+")
    found = _stated(text, start, end, prompt, contrasts=contrasts)
    return None if found is None else result_of(text[:end], found)


def _stated(text: str, start: int, end: int, prompt: str, *, contrasts: bool) -> Extraction | None:
    low, sentences, wanted, language = closing(text, start, end, prompt)
    if not sentences:
        return None
    asked = values_of_question(prompt[-2000:], language)
    if prompt:
        pair = named_values(text, sentences, wanted.sentence, language)
        pair = pair or values_of_one_name(text, sentences[-1], language)
        if pair is not None:
            return pair
        if answered_first(text, sentences, language, wanted, asked):
            del sentences[1:]
    *earlier, last = sentences
    question = question_words(prompt[-ASKED:])
    read = without_denied_names(without_asked_denials(text, last, question.denials), last, prompt)
    before = quantities(read, low, last[0], language)[-MOST_BEFORE:]
    found = _last_stated(
        Sentence(read, last, earlier, low, end, language, prompt, question, wanted, asked, before, contrasts)
    )
    if contrasts or not prompt:
        return found
    expression = noun_value(text, last, wanted, language)
    if expression is None or expression.span is None:
        return found
    if found is None or found.span is None:
        return expression
    inside = expression.span[0] <= found.span[0] and found.span[1] <= expression.span[1]
    return expression if inside and is_formula(expression.said) else found


def _last_stated(sentence: Sentence) -> Extraction | None:
    """Returns the value that a sentence states, read step by step, or None."""
    for step in (_in_a_form, _disowned, _in_words, _narrowed, _in_the_main_clause, _in_numbers):
        result = step(sentence)
        if result is not None:
            return None if result is NO_ANSWER else result
    return None


def _in_a_form(sentence: Sentence) -> Extraction | None:
    """Returns the answer that the sentence gives by its form: no solution, true or false, a list, an option letter."""
    text, span, part, language = sentence.text, sentence.span, sentence.part, sentence.language
    prompt, wanted = sentence.prompt, sentence.wanted
    if len(part) > _LONGEST or part.rstrip().endswith((":", "：", "…", "...")) or "\\boxed" in part:
        return NO_ANSWER
    if len(OPTION_LABEL.findall(part)) > 1:
        return NO_ANSWER
    concluded = span[0] + max((match.end() for match in SO.finditer(part)), default=0)
    clause = max(concluded, *(text.rfind(sign, *span) + 1 for sign in (";", ":")))
    for begin in (concluded, clause):
        if says_no_solution(text[begin : span[1]]):
            counted = _HOW_MANY.search(wanted.sentence)
            return Extraction((begin, span[1]), "statement", said="0" if counted else "")
    if all_reals(text[concluded : span[1]]) and not opposed(text[concluded : span[1]], language):
        return Extraction((concluded, span[1]), "statement", said="\\mathbb{R}")
    if _TRUE_OR_FALSE.search(prompt[-ASKED:]):
        return _said_true(text, span) or NO_ANSWER
    form = closing_form(text, span, wanted.sentence)
    if form is not None:
        led = _SOLUTIONS.sub(" ", text[span[0] : form[0]])
        if not (opposed(led, language) or reports(part, wanted)):
            return form[1]
    listed = closing_share(text, span, language, wanted.sentence, fraction=wanted.fraction) or closing_list(
        text, span, language, wanted.sentence
    )
    if listed is not None and listed.span is not None:
        return _undisputed(sentence, listed, listed.span)
    option = _option(text, span, prompt, language)
    return None if option is None else Extraction(option, "statement")


def _undisputed(sentence: Sentence, listed: Extraction, span: Span) -> Extraction:
    """Returns a list or share, or `UNSURE` if the sentence doubts it or an earlier one gives another list."""
    text, language, wanted = sentence.text, sentence.language, sentence.wanted
    led = text[main_clause(text, sentence.span, language)[0][0] : span[0]]
    if opposed(led, language) or reports(sentence.part, wanted) or supposes(sentence.part) or UNREAL.search(led):
        return UNSURE
    for earlier in sentence.earlier:
        other = closing_list(text, earlier, language, wanted.sentence)
        if other and other.said != listed.said and not CORRECTION.search(text, *earlier):
            return UNSURE
    return listed


def _disowned(sentence: Sentence) -> Extraction | None:
    """Leaves out a fulfilled condition. Returns why the rest is not the text's own claim, or None if it is."""
    text, prompt, wanted = sentence.text, sentence.prompt, sentence.wanted
    known = [*sentence.asked, *sentence.before]
    condition = _given_condition(text, sentence.span, wanted, known, sentence.language)
    if condition is not None:
        sentence.begin_at(condition)
        sentence.premised = True
    part, begin = sentence.part, sentence.span[0]
    told = sentence.whole[0] if not (sentence.earlier and _GOES_ON.match(part)) else sentence.earlier[-1][0]
    if MISTAKE.search(text, told, sentence.whole[1]):
        return UNSURE
    at_first = sentence.question.at_first or (not prompt and AT_FIRST.search(text, sentence.start, begin))
    reported = THAT_IS.sub(" ", AT_FIRST.sub(" ", part) if at_first else part, count=1)
    reported = reported.replace(", want ", ", ") if sentence.language == "nl" else reported  # "because"
    if reports(reported, wanted) or supposes(part):
        return NO_ANSWER
    if _ALSO_POSSIBLE.search(part):
        return UNSURE
    frame = FRAMES.search(text, sentence.start, begin)
    if frame is None or (_CALLED_BAD.search(frame[0]) and _OBJECTS.search(text, frame.end(), begin) and SO.match(part)):
        return None
    return UNSURE


def _in_words(sentence: Sentence) -> Extraction | None:
    """Returns the answer that is no number: "infinitely many", "yes", a name."""
    text, prompt, part = sentence.text, sentence.prompt, sentence.part
    verb = alternative(text, sentence.span, sentence.wanted.sentence, sentence.language)
    if verb is not None:
        return Extraction(verb, "statement")
    endless = _INFINITELY_MANY.search(text, *sentence.span)
    if endless is not None and not NOT.search(part) and not unsure(part):
        return Extraction(endless.span(), "statement")
    truth = _TRUTH.match(text, *sentence.span) if sentence.earlier else None
    if truth is not None:
        if not prompt or asks_for_truth(prompt):
            return Extraction((truth.start(1), sentence.span[1]), "statement")
        sentence.begin_at(truth.end() + 1)  # "So yes, the price was $250."
    name = named(text, sentence.span, prompt, sentence.language)
    if name is not None:
        return Extraction(name, "statement")
    return NO_ANSWER if _STARTS.match(sentence.part) else None


def _narrowed(sentence: Sentence) -> Extraction | None:
    """Leaves out the values that the sentence denies. Returns `NO_ANSWER` if it must deny one and does not."""
    text, language = sentence.text, sentence.language
    turn = contrast(text, sentence.span)
    if turn is None and sentence.must_contrast:
        return NO_ANSWER
    if turn is not None:
        sentence.contrasted = True
        sentence.denied = {quantity.key for quantity in quantities(text, *turn[0], language)}
        sentence.span = (turn[1], sentence.span[1])
    aside = _contrasted(text, sentence.span, language)
    if aside is not None:
        sentence.denied |= {quantity.key for quantity in quantities(text, aside, sentence.span[1], language)}
        sentence.span = (sentence.span[0], aside)
    again = _AGAIN.search(text, *sentence.span)
    if again is not None and (again["value"] is None or _is_percent(again)):
        sentence.span = (sentence.span[0], again.start() + len(again["kept"] or again["value"]))
    places = (_WHERE,) if sentence.question.asks_where or sentence.question.names else ()
    for pattern in (_CONCEDED, *places, _NEARLY):
        beside = pattern.search(text, *sentence.span)
        if beside is not None:
            sentence.span = (sentence.span[0], beside.start())
    return None


def _is_percent(again: re.Match[str]) -> bool:
    """Returns whether "0.25, or 25 percent" gives the same value twice."""
    over, _, under = again["value"].partition("/")
    value = Fraction(over) / int(under or 1)
    close = Fraction(1, 2 if again["about"] else 10**6)
    return abs(value * 100 - Fraction(again["percent"])) < close


def _in_the_main_clause(sentence: Sentence) -> Extraction | None:
    """Leaves out premises and reasons. Returns an answer that the clause compares with others ("5/8 is the larger")."""
    text, language, (begin, end) = sentence.text, sentence.language, sentence.span
    main, _ = main_clause(text, sentence.span, language, loose=False)
    values = quantities(text, *main, language)
    own = [item for item in values if not item.article]
    ranked = _RANKED.fullmatch(text, own[0].span[1], main[1]) if len(own) == 1 else None
    if ranked and not (WORD.search(text[main[0] : own[0].span[0]]) or sentence.denied):
        asks_for_it = not sentence.prompt or ranked["rank"].lower()[:5] in sentence.wanted.sentence.lower()
        return Extraction(own[0].span if asks_for_it else None, "statement", said=own[0].said)
    led_to = len(WORD.findall(text, begin, main[0])) > 2 or UNSPACED.search(text, begin, main[0] - 3)
    if led_to and values and not own:
        return UNSURE  # "Because 7 minus 4 is 3, the answer has one digit."
    sentence.premised = sentence.premised or bool(led_to and own)
    if main[0] > begin and own:
        sentence.before = (*sentence.before, *quantities(text, begin, main[0], language))
        sentence.span = (main[0], end)
    inside = _before_reason(sentence) or quantities(text, *sentence.span, language)
    sentence.inside = _with_lists(text, _without_places(sentence, inside))
    return None


def _without_places(sentence: Sentence, values: Sequence[Quantity]) -> Sequence[Quantity]:
    """Returns the values without the place of another one ("The minimum is -4 at x = 1."), if none is asked for."""
    if not sentence.prompt or sentence.question.asks_where or len(values) < 2:
        return values
    kept = []
    for value in values:
        name = _NAMED.match(sentence.text, *value.span) if value.kind in ("relation", "formula") else None
        begin = max(sentence.span[0], value.span[0] - _LONGEST_LEAD)
        led = sentence.text[begin : value.span[0]]
        if value.kind in ("number", "word") and _AT_NAME.search(sentence.text, begin, value.span[0]):
            continue
        behind = _AT_BEHIND.match(sentence.text, value.span[1], sentence.span[1])
        if name is None or name[1] in sentence.question.names or not (behind or _AT.search(led)):
            kept.append(value)
    return kept or values


def _before_reason(sentence: Sentence) -> Sequence[Quantity]:
    """Returns the values before the reason that the sentence gives, if these and not the later ones are the answer."""
    text, (begin, end) = sentence.text, sentence.span
    reason = reason_of(text, begin + 1, end, sentence.language)
    reason = reason or (_EXPLAINED.search(text, begin, end) if SO.match(sentence.part) else None)
    if reason is None:
        return ()
    values = quantities(text, begin, reason.start(), sentence.language)
    if _says_more(text, (begin, reason.start()), (reason.end(), end), sentence.wanted):
        return ()  # "Its slope is 2, because it rises, and it crosses the axis at 5."
    sentence.reasoned = bool(values)
    return values


def _in_numbers(sentence: Sentence) -> Extraction | None:
    """Returns the value that the question asks for, if nothing speaks against it."""
    rules = (of_the_named, in_all, the_wanted, of_the_asked, only_one, only_new)
    value = next((found for rule in rules if (found := rule(sentence)) is not None), None)
    if value is None:
        others = new_values(sentence) if sentence.prompt else []
        return UNSURE if others and outdone(sentence, others) else None
    if value.key in sentence.denied:
        return None
    clause = _clause(sentence.text, sentence.span, value.span, sentence.language)
    if sentence.named:
        doubted = doubt(sentence, value, (clause[0], min(clause[1], said_of(sentence, value)[1])))
        if doubted is NO_ANSWER or only_compares(sentence, value):
            return UNSURE  # the value of the other one is no answer either
    else:
        doubted = doubt(sentence, value, clause)
    said = in_units_of(sentence.wanted.sentence, sentence.text, value)
    return doubted or Extraction(value.span, "statement", said=said)


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
    said = list(_SAID_TRUE_OR_FALSE.finditer(text, *sentence))
    if len(said) != 1 or text[said[0].end() : sentence[1]].strip(" .!*_。$}"):
        return None
    led = text[sentence[0] : said[0].start()]
    doubted = OPPOSED.search(led) or NOT.search(led) or REPORTS.search(_CLAIM.sub(" ", led)) or UNREAL.search(led)
    return None if doubted else Extraction(said[0].span(), "statement")


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


def _with_lists(text: str, values: Sequence[Quantity]) -> list[Quantity]:
    """Returns the values with lists such as "$x=3$ or $x=-7$" joined into one value."""
    joined: list[Quantity] = []
    for value in values:
        if joined and _names_alike(text, joined[-1], value):
            span = (joined.pop().span[0], value.span[1])
            value = Quantity(span, "formula", None, text[slice(*span)])
        joined.append(value)
    return joined


def _names_alike(text: str, first: Quantity, second: Quantity) -> bool:
    """Returns whether a comma or a conjunction joins two formulas that give values to the same name."""
    if first.kind != second.kind or first.kind not in ("formula", "relation"):
        return False
    one, other = (_NAMED.match(text, *quantity.span) for quantity in (first, second))
    same = one is not None and other is not None and one[1] == other[1]
    return same and BEFORE_AND.fullmatch(text, first.span[1], second.span[0]) is not None


def _clause(text: str, sentence: Span, span: Span, language: str) -> Span:
    """Returns the span from the last concluding word before the value to the end of the sentence or its reason."""
    starts = [
        match.end() for match in SO.finditer(text, sentence[0], span[0]) if begins_clause(text, sentence[0], match)
    ]
    if not starts:  # "..., es war also ein Schaltjahr mit 366 Tagen"
        comma = max(text.rfind(", ", sentence[0], span[0]), text.rfind("; ", sentence[0], span[0]))
        starts = [comma + 2] if comma >= 0 and SO.search(text, comma + 2, span[0]) else []
    calculation = None if starts else BY_DOING.match(text, sentence[0], span[0])
    starts += [calculation.end()] if calculation else []
    reason = reason_of(text, span[1], sentence[1], language)
    start = max([sentence[0], *starts, text.rfind("; ", sentence[0], span[0]) + 1])
    start = max(start, behind_denial(text, sentence[0], span[0]))
    colon = text.rfind(": ", start, span[0])
    if colon >= 0 and len(WORD.findall(text, colon, span[0])) > 1 and explains(text[start:colon]):
        start = colon + 1
    return start, reason.start() if reason else sentence[1]


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


def voided_after(text: str, start: int, end: int, span: Span | None, prompt: str) -> bool:
    """Returns whether the last sentence, which states no value, changes or doubts a value of an earlier one."""
    if span is None or not prompt:
        return False
    _, sentences, _, language = closing(text, start, end, prompt)
    if not sentences or span[1] > sentences[-1][0]:
        return False
    part = text[slice(*sentences[-1])]
    return bool(_VOIDS.search(part) or (opposed(part, language) and not UNREAL.search(part)))
