"""Finds boxed answers: the last closed box, the boxes that must agree with it, and the text about it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from verifiers.extract.announcements import announced
from verifiers.extract.asked import question_of
from verifiers.extract.denials import denied_after, denied_before, unsure_before
from verifiers.extract.other_symbols import asked_symbol
from verifiers.extract.retractions import instead, plain_tail, retracted
from verifiers.extract.scaled import changes_value
from verifiers.extract.sentences import sentence_start
from verifiers.extract.spans import Extraction, Span, closing_brace
from verifiers.extract.statement_words import SOMEBODY
from verifiers.extract.turns import ALTERNATIVE, CONCLUSION, CORRECTION
from verifiers.extract.words import OR, VALUE
from verifiers.lazy_pattern import any_case, lazy_pattern

_BOX = lazy_pattern(r"\\(?:boxed|fbox|framebox)\s*(?=[{\w])")
_NAMES = ("\\boxed", "\\fbox", "\\framebox")
_MAX_BOXES = 24  # boxes that are checked, from the end
_BROKEN_GAP = lazy_pattern(r"[.!?](?:\s|$)|\n\s*\n|因此")
# The sign between two boxes of one calculation; and signs around a box that is only part of a larger expression:
# "-\\boxed{7}", "\\sqrt{\\boxed{7}}", "\\boxed{7}^2".
_SIGN = lazy_pattern(r"[-+−*/×÷]|\\(?:cdot|times|div)")
_SUMMED = any_case(
    r"\b(?:so|therefore|thus|hence)\b[^.;]{0,30}\b(?:sum|total|product|difference|quotient|average|result|answer)\b"
)
_OPERATION = lazy_pattern(r"\d|[-+−*/×÷^]|\\(?:cdot|times|div|pm|sqrt|[dt]?frac)")
_INSIDE_BEFORE = lazy_pattern(
    r"[<>]=\s?\$?$|\d\s?–\s?\$?$|(?:\w|^|[\s$=(])[-−+/^_]$|[±∓]\s?\$?$|(?:^|[\s=(])[-−]\$$|=\s?[-−]\s?\$?$"
    r"|\d\s?[-−+*/×·]\s?\$?$"
    r"|(?<![-=−–—])[<>≤≥]\s?\$?$|\\(?:cdot|times|div|pm|sqrt|log|ln|sin|cos|tan|pi|[lg](?:e|eq|t))\s*$"
    r"|(?:[\^_]|\\(?:sqrt(?:\[\w\])?|[dt]?frac(?:\s*\{[^{}]*\})?|binom|overline))\s*\{\s*$"
    r"|(?:\d|(?<!\d)0[.,]|[-−\d]\(|(?<![^\W\d_])(?<!\\)[xyzn](?:\s?[-−+*·]\s?)?)\Z"
)
# An exclamation mark ends a sentence, unless the formula goes on or ends with it: "$\\boxed{7}!$".
# A letter right behind the box is a factor, unless it may be a unit: "\\boxed{7}x".
_INSIDE_AFTER = lazy_pattern(
    r"-ish\b|[\s$]*(?:at (?:most|least)|or (?:so|more|less|fewer))\b|\s*(?:[+/_×]|!(?=\s*(?:\$|\\|[-−+*/=^\d(]))"
    r"|\^(?!\s*\{?\s*\\circ)|\\(?:cdot|times|div|pm|pi|sqrt)(?![a-z])"
    r"|\\[dt]?frac\s*\{?\d|[-−]\s*(?:\d|\\(?:sqrt|pi|[dt]?frac)|[xyzn](?![A-Za-z]))"
    r"|(?:[<>≤≥]|\\[lg](?:e|eq|t)(?![a-z]))\s?[A-Za-z](?![A-Za-z>|]))"
    r"|[*:.,]\d|(?:\\left\s*)?\(\s?\w{1,3}\s?[-+−]\s?\w|(?:\\[,;:!])*(?:[xyznkiq](?![A-Za-z])|e\^)"
)
# "\\boxed{7}$ million", "\\boxed{7}\\text{ dozen}"
_WORD_BEHIND = lazy_pattern(r"(?:[\s$]|\\[,;! )\]]|\\(?:text|mathrm)\s*\{)*([^\W\d_]{3,})")
# What follows a box that gives the value of something else: "would be the number of ordered choices".
_WOULD_BE = any_case(
    r"[\s$*]*(?:would (?:only )?(?:be|give|count)|wäre|ergäbe|serait|donnerait|sería|daría|seria|daria|sarebbe|darebbe"
    r"|было бы|byłoby)(?![^\W\d_])"
)
_SAID_BY = any_case(
    r"\b(?:partner|pupil|student|roommate|mitschüler\w*|kolleg\w+|camarade|élève|collègue|compañer[oa]|alumn[oa]|colega"
    r"|alun[oa]|compagn[oa]|klasgenoot|kompis|kolega|koleżanka)\b|(?<!\w)(?:одноклассни\w+|учени\w+)|同学|同桌|クラスメイト"
    r"|\b(?:he|she|they|er|sie|il|elle|él|ella|ele|ela|lui|lei)\s(?:says?|said|g[eo]ts?|wrote|claims?|insists?|sagt\w*"
    r"|schrieb|dit|écrit|dice|dijo|diz|disse|scrive)\b"
)
# "8 is wrong, and so is \\boxed{7}", "8 is wrong. Sorry, \\boxed{7} too."
_WRONG = r"\b(?:wrong|incorrect|false|mistaken|not (?:right|correct|true|it))\b"
_LIKE_A_DENIED_ONE = any_case(rf"{_WRONG}[^.!?\n]{{0,40}}\b(?:so|as|nor|neither) (?:is|was|are)\W*$")
_OBJECTED = any_case(rf"{_WRONG}(?:[.!,;]+\s*[A-Za-z]{{1,12}})?\W*$")
_LABEL = lazy_pattern(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=(?!=)")
_COMPOSED = lazy_pattern(r"[-+*^]")
_PART = lazy_pattern(
    r"(?m)^[\s*#>•-]*(?:[Pp]art\s)?(\(?(?:[a-h]|i{1,3}|iv|\d)[).]|[^\W\d_][^:：=$\n]{0,30}[:：])"
)  # of a part of the question, and what is asked there
_NO_PART = any_case(
    r"answer|result|final|step|total|antwort|ergebnis|schritt|réponse|résultat|étape|respuesta|resultado|paso|resposta"
    r"|passo|risposta|risultato|antwoord|resultaat|stap|odpowied|wynik|krok|ответ|результат|шаг|итог|cevap|sonuç|adım"
    r"|答|結果|结果|步|ステップ|답|결과|단계|الجواب|النتيجة|الخطوة"
)
_TOO = any_case(r"[\s$*)\\\]]*(?:is |was )?(?:too|as well|also|likewise)\b")

# "either 5 or \\boxed{7}": a value or an option that is offered right before the box.
_OFFERED_BEFORE = lazy_pattern(
    rf"(?P<value>{VALUE}|(?<![\w'’])[A-J](?![\w'’]))[\s,*)}}\]]*(?:{OR}|(?<![^\W\d_])(?i:vs\.?|versus|alternatively)(?![^\W\d_])|∨)"
    r"\s*(?i:(?:it['’]s|it is|maybe|perhaps|possibly)\s)?[\s$*(]*(?:\\[(\[])?\s*\Z"
)
# "between 5 and \\boxed{7}", "5 to \\boxed{7}", "(5, \\boxed{7})"
_RANGE_BEFORE = any_case(
    rf"(?:(?:between|zwischen|entre|tra|fra|между)\s+(?P<low>{VALUE})[\s$]*(?:and|und|et|y|e|и)|"
    r"(?:(?:from|von|de|da|от|is|are|ist|est|es|é|è)\s+|[:=]\s*|[.\n]\s*|\A\W*)"
    rf"(?P<first>(?<![\w.,/]){VALUE})[\s$]*(?:to|bis|à|до|through)|[(\[{{]\s*(?P<inside>{VALUE})\s*,)[\s$]*\Z"
)
_ALSO = any_case(  # "\\boxed{7} but 5 also works"
    rf"[\s$.,;)\]]*(?:(?:but|and|though|although|however,?|or)\s+)?(?P<value>{VALUE})\s+"
    r"(?:also (?:works?|fits?|is)|works? (?:too|as well)"
    r"|is (?:also|another|equally|just as)(?! (?:wrong|incorrect|not))|would (?:also )?(?:work|be fine|do))(?![^\W\d_])"
)
_OFFER_LOOK = 80  # characters
_TERM = lazy_pattern(
    r"(?:[-+−*/×·÷^_]|\\(?:cdot|times|div|pm))\s*\Z"
)  # before a value that is the end of an expression
_PERCENT = lazy_pattern(r"[\s$]*\\?%")


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: Span


def boxed(text: str, start: int, end: int, prompt: str = "") -> Extraction | None:
    """Returns the last box and the earlier ones that must agree with it. The span is None if every box is denied.

    With the question, boxes of the parts of the asked expression are set aside: "\\boxed{a=4}" before that of a + b.
    """
    boxes = _boxes(text, start, end)
    if boxes is None or not boxes:
        return None if boxes is not None else Extraction(None, "broken_box")
    boxes = [box for box in boxes if not _denied(text, start, box, end)]
    if not boxes:
        return Extraction(None, "negated")
    if all(unsure_before(text, start, box.start) for box in boxes):
        return Extraction(None, "unsure")
    last = boxes[-1]
    boxes = [*_without_parts(text, boxes[:-1], last, prompt), last]
    behind = _WORD_BEHIND.match(text, last.end, end)
    if (
        _INSIDE_BEFORE.search(text, max(start, last.start - 20), last.start)
        or _INSIDE_AFTER.match(text, last.end, end)
        or (behind is not None and changes_value(behind[1], prompt))
    ):
        return Extraction(None, "part_of_an_expression")
    others: list[Span] = []
    if not plain_tail(text, last.end, end):
        taken_back = retracted(text, last.end, end)
        if taken_back is not None:
            found = announced(text[: min(end, last.end + 2000)], taken_back)
            return found if found and found.span else Extraction(None, "retracted")
        correction = CORRECTION.search(text, last.end, min(end, last.end + 2000))
        stated = announced(text[: min(end, last.end + 2000)], correction.start() if correction else last.end)
        if stated is not None and (correction or stated.source == "anchor"):
            if stated.span is None:
                return stated
            if correction or CONCLUSION.search(text, last.end, stated.span[0]):
                return Extraction(stated.span, "anchor", stated.others)
            return Extraction(stated.span, "anchor", (*stated.others, last.content))
        others += instead(text, last.end, end)
        also = _ALSO.match(text, last.end, end)
        others += [also.span("value")] if also else []
    if len(boxes) > 2 and _calculated(text, boxes):
        return Extraction(last.content, "box", tuple(others))
    if len(boxes) > 1 and "," not in text[slice(*last.content)] and _labelled(text, start, boxes):
        return Extraction(last.content, "box", tuple(others), tuple(box.content for box in boxes), in_order=True)
    joint: list[Span] = [last.content]
    joining = True
    for before, box in zip(reversed(boxes[:-1]), reversed(boxes), strict=False):
        gap = text[before.end : box.start]
        if len(gap) > 4000:
            gap = gap[-4000:]
        broken = _BROKEN_GAP.search(gap) or CORRECTION.search(gap) or _SUMMED.search(gap)
        if joining and len(gap) < 60 and not broken:
            joint.insert(0, before.content)
            if ALTERNATIVE.search(gap):
                others.append(before.content)
            continue
        joining = False
        if CORRECTION.search(gap) or (CONCLUSION.search(gap) and not ALTERNATIVE.search(gap[-80:])):
            break  # earlier boxes are taken back or are intermediate results
        if _of_another(text, start, before, gap):
            continue
        others.append(before.content)
    if not _PERCENT.match(text, last.end, end):  # "0.5, or \\boxed{50}\\%"
        others += _offered_before(text, start, boxes[-len(joint)].start)
    if len(joint) > 1 or others or not _PERCENT.match(text, last.end, end):
        return Extraction(last.content, "box", tuple(others), tuple(joint) if len(joint) > 1 else ())
    return Extraction(last.content, "box", said=f"{text[slice(*last.content)]}\\%")


def _offered_before(text: str, start: int, position: int) -> list[Span]:
    """Returns the span of the value that "or" joins to the box at `position`, which must agree with it."""
    low = max(start, position - _OFFER_LOOK)
    match = _OFFERED_BEFORE.search(text[low:position])
    ranged = _RANGE_BEFORE.search(text[low:position]) if match is None else None
    if ranged is not None:
        name = next(name for name, value in ranged.groupdict().items() if value)
        return [(low + ranged.start(name), low + ranged.end(name))]
    if match is None:
        return []
    led = text[low : low + match.start()].rstrip(" $")
    if _TERM.search(led) or (match["value"][0] in "-+−" and (led[-1:].isalnum() or led[-1:] in ")}")):
        return []  # "10 - 5 or \\boxed{5}"
    return [(low + match.start("value"), low + match.end("value"))]


def _without_parts(text: str, boxes: list[_Box], last: _Box, prompt: str) -> list[_Box]:
    """Returns the boxes before the last one, without those that give a value to a part of the asked expression.

    They stay if the last one is such a box too, or if two of them give different values to the same part.
    """
    wanted = asked_symbol(question_of(prompt)) if prompt and boxes else ""
    if _COMPOSED.search(wanted) is None:
        return boxes
    values: dict[str, str] = {}
    kept = []
    for box in boxes:
        label = _LABEL.match(text, *box.content)
        if label is None or label[1] == wanted or label[1] not in wanted:
            kept.append(box)
        elif values.setdefault(label[1], value := text[label.end() : box.content[1]].strip()) != value:
            return boxes
    own = _LABEL.match(text, *last.content)
    return boxes if own is not None and own[1] != wanted and own[1] in wanted else kept


def _of_another(text: str, start: int, box: _Box, gap: str) -> bool:
    """Returns whether a box before the last one is somebody else's ("My friend got 336, but") or of another case."""
    if not _BROKEN_GAP.search(gap) or ALTERNATIVE.search(gap):
        return False
    led = text[sentence_start(text, box.start, start) : box.start]
    return SOMEBODY.search(led) is not None or _SAID_BY.search(led) is not None or _WOULD_BE.match(gap) is not None


def _labelled(text: str, start: int, boxes: list[_Box]) -> bool:
    """Returns whether each box follows a label of its own at the start of a line: "(a) ...", "Area: ..."."""
    labels: set[str] = set()
    for box in boxes:
        gap = text[max(start, box.start - 1000) : box.start]
        found = list(_PART.finditer(gap))
        if not found or _NO_PART.search(found[-1][1]) or CORRECTION.search(gap):
            return False
        labels.add(found[-1][1].casefold())
        start = box.end
    return len(labels) == len(boxes)


def _calculated(text: str, boxes: list[_Box]) -> bool:
    """Returns whether the boxes form one calculation, such as "\\boxed{3}+\\boxed{4}=\\boxed{7}"."""
    gaps = [text[before.end : box.start].strip(" $") for before, box in itertools.pairwise(boxes)]
    return gaps[-1] == "=" and all(_SIGN.fullmatch(gap) for gap in gaps[:-1])


def _boxes(text: str, start: int, end: int) -> list[_Box] | None:
    """Returns the last closed boxes, in order, or None if the very last box does not close.

    A box inside a box is the answer if the outer box holds nothing else except words and an equals sign.
    """
    places: list[re.Match[str]] = []
    low = text.find("\\", start, end)  # the search from the end stops at the first backslash
    last = {name: text.rfind(name, low, end) for name in _NAMES} if low >= 0 else {}
    while len(places) < _MAX_BOXES and (position := max(last.values(), default=-1)) >= 0:
        match = _BOX.match(text, position, end)
        if match:
            places.append(match)
        name = max(last, key=lambda name: last[name])
        last[name] = text.rfind(name, low, position)
    found: list[_Box] = []
    limit = end
    for match in places:
        inside = _closed(text, match.end(), min(limit, match.end() + 20_000))
        if inside is None:
            if not found:
                return None
            continue
        if found and inside[0] == inside[1]:
            continue  # "put the answer in \\boxed{}"
        if found and inside[1] >= found[-1].end:  # this box contains the box that was found before
            rest = text[inside[0] : found[-1].start] + text[found[-1].end : inside[1]]
            if len(rest) > 200 or _OPERATION.search(rest):
                found[-1] = _Box(match.start(), inside[1] + 1, inside)
            continue
        found.append(_Box(match.start(), inside[1] + 1, inside))
    return found[::-1]


def _closed(text: str, position: int, end: int) -> Span | None:
    """Returns the span inside the braces that open at `position`, or of the bare word there; None if unclosed."""
    if text[position] != "{":
        stop = position
        while stop < end and (text[stop].isalnum() or text[stop] in ".,%/"):
            stop += 1
        return position, stop
    close = closing_brace(text, position, end)
    return None if close is None else (position + 1, close)


def _denied(text: str, start: int, box: _Box, end: int) -> bool:
    if denied_before(text, start, box.start):
        return True
    led = text[max(start, box.start - 120) : box.start]
    if led.rstrip(" $*([:\\").endswith((" is", " was", " are")) and _LIKE_A_DENIED_ONE.search(led):
        return True
    if _TOO.match(text, box.end, end) and _OBJECTED.search(led):
        return True
    return not plain_tail(text, box.end, end) and denied_after(text, box.end, end)
