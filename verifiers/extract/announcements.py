"""Finds answers that a phrase such as "the answer is ..." announces, in many languages."""

from __future__ import annotations

import re

from verifiers.extract.anchors import WEAK, Anchor, anchors
from verifiers.extract.denials import SAYING, denied_after, free_of_negation, negated, not_final, starts_negated
from verifiers.extract.gates import Gated
from verifiers.extract.hedges import COMPARES, CONTRAST, CONTRAST_AFTER
from verifiers.extract.retractions import instead, plain_tail, retracted
from verifiers.extract.sentences import MATHS, sentence_ends, sentence_start
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.turns import ALTERNATIVE, CONCLUSION, CORRECTION
from verifiers.extract.wordings import CONCEDING, says_no_solution
from verifiers.extract.words import VALUE, WORD, ascii_words
from verifiers.lazy_pattern import any_case, lazy_pattern

_BUT = r"but|sondern|aber|doch|jedoch|mais|sino|pero|mas|porém|ma|però|maar|ale|ama|fakat|tetapi|nhưng"
_BUT_ELSE = (
    r"(?<!\w)(?:но|однако|а правильный|لكن|ولكن|लेकिन)(?!\w)|但是?|可是|然而|不过|其实|其實|实际上|しかし|だが|하지만"
    r"|그러나|지만|[，；](?=(?:正确|正確|真正|实际)的?(?:$|答案|结果)|答案)"
)
# Words after which the text no longer reports what somebody said.
_CONTRASTED = any_case(
    rf"\b(?:{_BUT}|also|daher|somit|donc|ainsi|por lo tanto|entonces|portanto|então|quindi|dunque|dus)\b|{_BUT_ELSE}"
    r"|(?<!\w)(?:поэтому|значит)(?!\w)|所以|因此"
)
_CLAUSE = any_case(
    rf"\b(?:so|therefore|thus|hence|consequently|daher|donc|quindi|{_BUT})\b"
    + f"|{_BUT_ELSE}"
    + r"|,\s+(?=(?:the|our|my|this|it|die|das|la|le|el|il|a|o|ответ)\b)|а именно|поэтому|而是|所以|因此"
    + r"|でなく|따라서|므로|니까"
)
_REASONING = any_case(
    r"(?<![,(\s])[,(\s]++(?:"
    + CONCEDING
    + r"|(?:as (?:required|desired|expected|claimed|needed|stated|wanted|shown|asked)"
    r"|which (?:matches|agrees|means|makes|confirms)|(?:it|this) (?:doesn['’]t|does not|can['’]t|cannot"
    r"|isn['’]t) (?:make sense for it to be"
    r"|be) [A-J]|because|since|given that|as (?:it|the|we|this|there)|which (?:is|are)|weil|denn|car"
    r"|parce que|porque|perché"
    r"|потому что|так как)\b)"
)
# The aside has words only, and none that change the value before it.
_WORDS_ALONE = (
    r"(?![^()]{0,130}\b(?:and|or|plus|minus|negative|times|over|squared|cubed|percent|degrees?|mod|modulo|base|binary"
    r"|half|dozen|score|hundred|thousand|million|billion|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|\w+ty|each|per|not|no|\w+n['’]t|twice|thrice|doubled?|triple|still|need\w*|rest|add\w*|subtract\w*"
    r"|remain\w*|before|after|excluding|including|without|parts?|first|second|third|last|next|step|if|unless|only|just"
    r"|m[aáií]n?[xní]\w*im\w*|aprox\w*|approx\w*|м[аи][кн]\w*имум)\b)"
)
# Asides after a comma or in brackets that are not part of the value; `not_understood` checks them.
_ASIDE = any_case(
    rf"(?<=[\w$)}}\]%])\s+\((?=[a-z]{{3,20}}[ :,][^()\d=\\$]{{3,120}}\)[\s.]{{0,20}}$){_WORDS_ALONE}"
    rf"|(?<=[\w$)}}\]%]),\s+so\s+(?=[^()\d=\\$]{{3,120}}$){_WORDS_ALONE}"
    rf"|(?<=[\w$)}}\]%]),\s+(?:wie|was|comme|como|come|как)\s+(?=[^()\d=\\$]{{3,80}}$){_WORDS_ALONE}|"
    rf"(?<=[\w$)}}\]%]),?\s+(?:(?:and|but) )?not {VALUE},? as\b|(?<=[\w$)}}\]%])\s+and (?:it|this|that) "
    rf"is\b|(?<=[\w$)}}\]%])(?:,\s+|\s+[—–-]+\s+)(?:"
    r"(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:\w+ )?doubt|and (?:it|this|that|nothing|no)\b|exactly as\b"
    r"|no more\b|nothing (?:else|more|less)\b|as (?:one|you|we) (?:can|may)\b|just as\b)"
)
# The rest of a text that only excludes other letters: "it can't be A or B".
_OTHER_LETTERS = any_case(
    r"[\s,;.:(]*(?:(?:because|since|as)\s+)?(?:it|this) (?:(?:doesn['’]t|does not) make sense for it to be"
    r"|(?:can['’]t|cannot|could not|couldn['’]t) be|isn['’]t|is not) ([A-J](?:(?:,| or| nor| and|, or)? [A-J])*)[\s.)]*"
)
_ASKED = any_case(
    r"^\W*(?:(?:so|and|then|but|now)\s+)?(?:is|was|would|will|what|which|can|does|do|how|why|prove|show"
    r"|verify|check|explain|decide|determine)\b[^.!?\n]*$"
    r"|\b(?:suppose|assume|imagine|pretend)\b[^.!?\n]*$"
    r"|\b(?:if|whether|assum(?:ing|es|ed)|could|might|may|maybe|perhaps|unless|guess\w*|until)\b[^.!?,;\n]*$"
)
_HYPOTHETICAL = any_case(r"\W*+(?:for|if|when|with|had|were)\b")
_ASKING = frozenset(
    "if whether suppose assume assumes assumed assuming could might may maybe perhaps is was what which unless"
    " would guess guesses guessed guessing until will can does do how why imagine pretend prove show verify"
    " check explain decide determine".split()
)
_ASKED_ELSE = any_case(
    r"\b(?:ob|wenn|falls|vielleicht|könnte|si|peut-être|pourrait|quiz[áa]s?|tal vez|podría|se|talvez|poderia"
    r"|forse|potrebbe)\b[^.!?\n]*$"
    r"|(?:если|может|возможно|ли|如果|假设|若|是否|也许|可能|もし|만약|라면|إذا|هل|ربما|यदि|शायद)[^.!?。\n]*$"
)
_ASKING_ELSE = frozenset("ob wenn falls vielleicht si quiz talvez podr se vez poderia forse potrebbe pourrait".split())
_OTHERS_SAY = any_case(
    r"(?<!\bi )(?<!\bwe )(?<!\bi would )(?<!\bi['’]d )\b(?:says?|said|thinks?|thought|believes?|claims?|claimed"
    r"|argues?|guess\w*)\b[^.!?\n]*$"
)
_SAYING_ELSE = frozenset(
    "jemand man manche einige viele er sie lehrer leute on certains quelqu il elle ils elles gens beaucoup alguien"
    " algunos muchos ellos ella gente alumno estudiante se alguns muitos eles ele ela aluno qualcuno alcuni molti lui"
    " lei studente si iemand sommigen mensen hij zij".split()
)
# The same in other languages, which have other words for "I say" and "that is to say" (也就是说).
_OTHERS_SAY_ELSE = any_case(
    r"\b(?:jemand|man|manche|einige|viele|er|sie|der lehrer|ein schüler|schüler|leute) (?:\w+ ){0,2}?(?:sag(?:t|en)"
    r"|behaupte[tn]|mein(?:t|en)|glaub(?:t|en)|denk(?:t|en))\b"
    r"|\b(?:on|certains|quelqu['’]un|il|elle|ils|elles|les gens|beaucoup|un élève) (?:\w+ ){0,2}?(?:di(?:t|sent)"
    r"|prétend(?:ent)?|pens(?:e|ent)|croi(?:t|ent)|affirm(?:e|ent))\b"
    r"|\b(?:alguien|algunos|muchos|ellos|él|ella|la gente|un (?:alumno|estudiante)|se) (?:\w+ ){0,2}?(?:dicen?|cree[n]?"
    r"|piensan?|afirman?|sostienen?)\b"
    r"|\b(?:alguém|alguns|muitos|eles|ele|ela|um aluno) (?:\w+ ){0,2}?(?:diz(?:em)?|acha[m]?|pensa[m]?|afirma[m]?"
    r"|acredita[m]?)\b"
    r"|\b(?:qualcuno|alcuni|molti|lui|lei|uno studente|si) (?:\w+ ){0,2}?(?:dic(?:e|ono)|pensan?o?|affermano|afferma"
    r"|sostien[ei]|sostengono|cred(?:e|ono))\b"
    r"|\b(?:iemand|sommigen|mensen|hij|zij) (?:\w+ )?(?:zeg(?:t|gen)|denk(?:t|en)|beweer(?:t|en))\b"
    r"|(?<!\w)(?:говорят|утверждают|считают|думают|(?:он|она|кто-то|некоторые|многие|ученик"
    r"|учитель) (?:\w+ )?(?:говор(?:ит|ят)|утвержда(?:ет|ют)|счита(?:ет|ют)|дума(?:ет|ют)|сказала?|сказали))(?!\w)"
    r"|(?:有人|有些人|有的人|有同学|有的?同学|有学生|学生|同学|老师|朋友|很多人|许多人|不少人|人们|大家|别人|他们?"
    r"|她们?|小[\u4e00-\u9fff])"
    r"[^，。,；]{0,3}(?:说|說|认为|認為|觉得|覺得|声称|以为|猜)|(?:有人|有些人|别人|同学|朋友|老师|他们?"
    r"|她们?)[^，。,；]{0,3}$|据说|據說|传说|听说|聽說"
    r"|(?:يقول|يدعي|يزعم|يعتقد|يظن|قال|يقال)|(?:कुछ लोग|कोई|लोग) (?:कहते|कहता|मानते)"
)
# The same in languages where these words follow the value: 8だと言う人がいる, 8이라고 하지만.
_SAID_AFTER = lazy_pattern(
    r"(?:だ|である)?と(?:言う人|いう人|言われ|主張|言ってい|思う人|思ってい|考える人|誤解|勘違い)"
    r"|という(?:主張|意見|説|のは)"
    r"|(?:이라|라)고\s*(?:한다|하지만|하는\s*(?:사람|것)|말하|주장|생각하는)|(?:이라|라)는\s*(?:말|주장|의견|사람)"
)
_MISTAKE = Gated(
    r"\b(?:common|typical|frequent|usual|classic|easy|tempting) (?:mistakes?|errors?|pitfalls?|traps?)\b[^.!?\n]*$"
    r"|\b(?:häufige[rn]?|typische[rn]?) fehler\b[^.!?\n]*$|\berreurs? (?:fréquentes?|courantes?"
    r"|classiques?)\b[^.!?\n]*$|\berror(?:es)? (?:común|comunes|frecuentes?|típicos?)\b[^.!?\n]*$"
    r"|\berros? comu(?:m|ns)\b[^.!?\n]*$|\berror[ei] comun[ei]\b[^.!?\n]*$|(?<!\w)част\w+ ошибк\w+[^.!?\n]*$"
    r"|常见的?错误[^。\n]*$|よくある(?:間違い|誤り)[^。\n]*$|흔한 실수[^.\n]*$"
)
_FILLER = any_case(
    r"\s*(?:,\s*)?(?:(?:therefore|thus|hence|then|simply|just|also|for sure|surely|certainly|definitely|clearly"
    r"|actually|really|indeed|daher|folglich|somit|demnach|donc|alors|bien|entonces|pues|por lo tanto|por tanto"
    r"|portanto|então|quindi|dunque|dus|таким образом|значит|следовательно|那么|就是|则|إذن|तो)\b[,:]?\s+)"
)
PRAISE = any_case(
    r"(?:also |indeed |therefore |thus )?(?:correct|right|plausible|reasonable|consistent|verified|richtig"
    r"|korrekt|plausibel|exacte?|juste"
    r"|correct[aeo]|corret[ao]|corrett[ao]|giust[ao]|верный|верен|правильный|正确|正確|正しい)(?:的|です)?"
)  # "this result is plausible" is not a second answer
_ANSWERS = any_case(
    r"answer|antwort|réponse|reponse|respuesta|resposta|risposta|antwoord|svar|odpowied|odpov|răspuns|vastaus|ответ"
    r"|відповідь|απάντηση|答|정답|الجواب|الإجابة|پاسخ|cevap|jawaban|đáp|उत्तर|คำตอบ"
)
_LONGEST_LINE = 400  # characters of a line that begins with a value and comments on it
_PLAIN = frozenset("so therefore thus hence and then the our my final answer result solution is are".split())
_FENCE = lazy_pattern(r"[ \t]*\n*```[\w+-]*[ \t]*\n")
_SUFFIX = lazy_pattern(r"['’][dt][ıiuü]r$")  # the Turkish copula
_BELIEF = any_case(r",?\s+(?:i|we)\s+(?:believe|think|guess|suppose|hope|am sure|conclude)\s*$")
# The rest of a line with values alone, which semicolons separate: "−3; 7.", "x ∈ (−∞; 2) ∪ (5; +∞)".
_SEPARATED = lazy_pattern(
    r"(?=[^\n]{0,200}; )(?:[^\W\d_](?![^\W\d_])|\\[A-Za-z]+|(?:[cmk]m|[смк]м|kg|кг)(?![^\W\d_])"
    r"|[^\w\n.]|[\d_]|\.(?=\d))+"
    r"(?=\.?[*_`]*\s*(?:\n|$))"
)
_VALUE = lazy_pattern(VALUE)
_LONGEST_LIST = 200  # characters
_OPENING = " \t\n*_`:：>=，、"
_BOUND = lazy_pattern(r"(?<![=>\n-])(?<!\n )(>=?)[ \t$*_`]*\Z")  # "Answer: > 12", but not "=> 12" and no quoted line
_TAIL = lazy_pattern(r"\s*(?:,|or\b|and\b|\$|\\text|[a-zA-Z%°]|[^\x00-\x7f])")


def announced(text: str, start: int) -> Extraction | None:
    """Returns the answer of the last phrase that announces and states one and neither denies nor asks it, or None."""
    matches = anchors(text, start)
    stated: list[tuple[Anchor, Span]] = []
    denied = False
    for match in matches:
        span = payload(text, match.end)
        if span is None:
            continue
        if _is_denied(text, start, match, span, last=match is matches[-1]):
            denied = True
        else:
            stated.append((match, span))
    if not stated:
        return Extraction(None, "negated") if denied else None
    if len(stated) > 1:
        stated = [item for item in stated if not PRAISE.fullmatch(text, *item[1])] or stated
    match, span = stated[-1]
    others: list[Span] = []
    plain = plain_tail(text, span[1], len(text))
    excluded = [] if plain else _excluded(text, span)
    contrast = None if plain else CONTRAST_AFTER.match(text, span[1])
    end = contrast.end() if contrast else span[1]
    if text[slice(*span)].strip(" ().*") in excluded:
        return Extraction(None, "retracted")
    if not excluded and not plain:
        if denied_after(text, end, len(text)) or retracted(text, end, len(text)) is not None:
            return Extraction(None, "retracted")
        others += instead(text, end, len(text))
    for (before_it, earlier), (later, _) in zip(reversed(stated[:-1]), reversed(stated), strict=False):
        if _ANSWERS.search(match.word) and not _ANSWERS.search(before_it.word):
            continue  # an intermediate result
        if plain and not WEAK.match(match.word) and WEAK.match(before_it.word):
            continue
        # The earlier answer may extend into the clause that announces the later one.
        gap = text[earlier[1] if earlier[1] <= later.start else earlier[0] : later.start]
        if CORRECTION.search(gap) or (CONCLUSION.search(gap) and not ALTERNATIVE.search(gap)):
            break
        others.append(earlier)
    return Extraction(span, "result" if WEAK.match(match.word) else "anchor", tuple(others[:4]))


def _is_denied(text: str, start: int, anchor: Anchor, span: Span, *, last: bool) -> bool:
    """Returns whether the words beside an announced answer deny, ask, suppose or report it."""
    sentence, word = text[sentence_start(text, anchor.start, start) : anchor.end], anchor.word
    if starts_negated(text[span[0] : span[0] + 40].lstrip(" *_`$")) and not says_no_solution(text[slice(*span)]):
        return True
    if not (_says_plainly(sentence) or _states(sentence)):
        return True
    value = None if last else _VALUE.match(text, *span)
    if value is not None and denied_after(text, value.end(), span[1]):  # "Cevap 14 değil, ..."
        return True
    if (len(word) > 16 or not word.isascii()) and COMPARES.search(word):
        return True
    if (not word.isascii() and _ASKED_ELSE.search(word)) or ("would" in word and _HYPOTHETICAL.match(sentence)):
        return True
    if not text.isascii() and _SAID_AFTER.search(text, span[0], min(span[0] + 60, len(text))):
        return True
    return text.startswith(("?", "？", "؟", "か？", "吗"), span[1]) or _asked(sentence[: anchor.start - anchor.end])


def _excluded(text: str, span: Span) -> list[str]:
    """Returns the letters that the rest of the text excludes if the answer is a letter and no more is said, else []."""
    if span[1] - span[0] > 8 or not re.fullmatch(r"[\s(*]*[A-J][\s).*]*", text[slice(*span)]):
        return []
    found = _OTHER_LETTERS.fullmatch(text, span[1], min(len(text), span[1] + 200))
    return re.findall(r"\b[A-J]\b", found[1]) if found else []


def _says_plainly(sentence: str) -> bool:
    """Returns True only if `_states` would. The test is cheap."""
    return sentence.isascii() and _PLAIN.issuperset(ascii_words(sentence))


def _states(sentence: str) -> bool:
    """Returns whether the clause that announces an answer neither denies it nor calls it provisional."""
    clause = _CLAUSE.split(sentence)[-1]
    return (free_of_negation(sentence) or not negated(clause)) and not not_final(clause)


def _asked(before: str) -> bool:
    """Returns whether the words before an anchor ask, suppose or report the text after it."""
    words = frozenset(WORD.findall(before.lower()))
    plain = before.isascii() and words.isdisjoint(_SAYING_ELSE)
    last = _CONTRASTED.split(before)[-1]
    if _MISTAKE.search(last) or (not plain and _OTHERS_SAY_ELSE.search(last)):
        return True
    if not words.isdisjoint(_ASKING) and _ASKED.search(before):
        return True
    if not words.isdisjoint(SAYING) and _OTHERS_SAY.search(_CLAUSE.split(before)[-1]):
        return True
    return not (before.isascii() and words.isdisjoint(_ASKING_ELSE)) and _ASKED_ELSE.search(before) is not None


def without_aside(text: str, span: Span) -> Span:
    """Returns the span of the value that begins a line, without the comment after it."""
    if span[1] - span[0] > _LONGEST_LINE:
        return span
    aside = _ASIDE.search(text, *span) if "," in text[slice(*span)] or "(" in text[slice(*span)] else None
    return (span[0], aside.start()) if aside else span


def payload(text: str, position: int) -> Span | None:
    """Returns the span that an anchor announces, the maths after it or the rest of its sentence, or None."""
    fence = _FENCE.match(text, position)
    if fence:
        close = text.find("```", fence.end(), fence.end() + 3000)
        if close >= 0 and text[fence.end() : close].strip():
            return fence.end(), close
    filler = _FILLER.match(text, position)
    position = filler.end() if filler else position
    window = text[position : position + 3000]
    skipped = len(window) - len(window.lstrip(_OPENING + "-" if window[:2].strip() else _OPENING))
    if window.lstrip(_OPENING).startswith("-"):
        skipped = len(window) - len(window.lstrip(_OPENING))
    begin = position + skipped
    bound = _BOUND.search(text, position, begin)
    begin = bound.start(1) if bound else begin
    rest = text[begin : begin + 3000]
    separated = _SEPARATED.match(rest) if "; " in rest[:_LONGEST_LIST] else None
    if separated:
        return begin, begin + len(separated[0].rstrip(" *_`"))
    maths = MATHS.match(rest)
    if maths:
        after = rest[maths.end() :]
        end = sentence_ends(text).search(after)
        tail = after[: end.start()] if end else after
        aside = _REASONING.match(tail)
        tail = tail[: aside.start()] if aside else tail
        if _TAIL.match(tail) and len(tail) < 200:
            return begin, begin + maths.end() + len(CONTRAST.sub("", tail.rstrip(" *_`")))
        return begin, begin + maths.end()
    end = sentence_ends(text).search(rest)
    stop = end.start() if end else len(rest)
    reasoning = _REASONING.search(rest, 0, stop)
    stop = reasoning.start() if reasoning else stop
    said = _ASIDE.search(rest, 0, stop)
    stop = said.start() if said else stop
    found = rest[:stop].rstrip(" \t*_`")
    if " " in found or "'" in found or not found.isascii():
        found = CONTRAST.sub("", _BELIEF.sub("", _SUFFIX.sub("", found)))
    return (begin, begin + len(found)) if found.strip() else None
