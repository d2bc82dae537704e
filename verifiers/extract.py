"""The final answer's place in a completion, found in linear passes that know what is reasoning and what is answer."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass

Span = tuple[int, int]

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ANSWER = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?=[{\w])")
_HASHES = re.compile(r"####[ \t]*([^\n]*)")
_MAX_BOXES = 24  # looked at from the end
_TAIL = 20_000  # characters before the end in which anchors and last maths are looked for

# What announces an answer, in several languages; the payload follows.
_ANCHOR = re.compile(
    r"(?:\b(?:final\s+)?(?:answers?|result|solution|(?:option|choice)(?=\s+is))\b[*_`]*\s*(?:(?:to|for|of)\s+(?:the|this|our)\s+\w+(?:\s+\w+)?\s+)?"
    r"(?:is|are|=|equals|will be|would be|comes out to|should be|must be|:|was)"
    r"|\b(?:final answer|answer|ans)\b[*_`]*\s*[:=\n]"
    r"|\b(?:respuesta|resposta|risposta|r[ée]ponse|antwort|odpowied[źz]|cevap|odpov[ěe][ďd]|lösung|svar|jawaban)\b[^\n:.=]{0,20}?"
    r"(?:\bes\b|\bé\b|\bè\b|\best\b|\bist\b|\blautet\b|\bto\b|:|=|\bär\b|\badalah\b|\bje\b)"
    r"|\bответ\b[^\n:.—–=\d]{0,12}[:—–=-]?"
    r"|答え(?:は|:|：)|答案?(?:就?是|为|為|應該是|应该是)?\s*[:：]?|正解は|정답(?:은|:|：)?|답(?:은|:|：)"
    r"|उत्तर\s*(?:है|:)|الجواب(?:\s+هو)?\s*:?|الإجابة(?:\s+هي)?\s*:?|đáp (?:án|số)(?:\s+là)?\s*:?)",
    re.IGNORECASE,
)
_STEMS = (
    "answer", "result", "solution", "option", "choice", "ans:", "ans =", "ans=", "respuesta", "resposta", "risposta",
    "reponse", "antwort", "odpowied", "cevap", "odpov", "svar", "jawaban",
)  # fmt: skip
_MAX_ANCHORS = 64
_NEGATED = re.compile(
    r"\b(?:not|never|isn't|is not|wasn't|aren't|cannot|can't|won't|nor|neither|incorrect|wrong|false|unlikely|doubt)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\b(?:so|therefore|thus|hence|but|consequently)\b", re.IGNORECASE)
_REASONING = re.compile(
    r"[,(\s]+(?:because|since|given that|as (?:it|the|we|this|there)|which (?:is|are))\b", re.IGNORECASE
)
_ASKED = re.compile(
    r"\b(?:if|whether|suppose|assum\w+|could|might|may|maybe|perhaps|is|was|what|which|unless|would|guess\w*|until)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_OTHERS_SAY = re.compile(
    r"(?<!\bi )(?<!\bwe )\b(?:says?|said|thinks?|thought|believes?|claims?|claimed|argues?|guess\w*)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|correcting|mistake|mistaken|error|sorry|oops|recheck|rechecking|re-check"
    r"|recalculat\w+|re-?evaluat\w+|re-?examin\w+|revis\w+|reconsider\w*|let me (?:re|fix|check|try)|on second thought"
    r"|scratch that|i misread|i meant|that's wrong|that is wrong|is incorrect|is wrong|was wrong|hmm|no[,:;.!]|instead"
    r"|should be|should have been|rather)(?![a-z])|修正|更正|不对|错了|等等|ошибк|исправ|perdón|corrijo|erreur|fehler",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"\b(?:therefore|thus|hence|final(?:ly)?|in conclusion|in total|overall|so|step|part|then|next|adding|substitut\w+"
    r"|now|this gives|answer is|finally)\b|∴|因此|所以|最后|итог",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\b(?:or|either|alternatively|also|another|possibly|maybe|perhaps|could also|might also|else|otherwise)\b|或",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|could be|might be|may be|not|isn't|guess|between|about|around|wrong"
    r"|unsure|don't know|cannot|can't)\b|\?",
    re.IGNORECASE,
)
_MATHS = re.compile(r"\$\$([^$]+)\$\$|\$([^$\n]+)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.^_\\{/])[-+−]?[$€£]?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?(?:\s?%)?(?![\w^])")
_LISTED = re.compile(r"[\d$)]\s*(?:,|,?\s*(?:and|or))\s*$")  # the last of several is no answer
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])[.!?](?=\s|$|[*_`]*(?:\s|$))|\n|。|;(?=\s)|です|입니다|이다|であ")


@dataclass(frozen=True, slots=True)
class Found:
    """Where the final answer stands, and how it was found."""

    span: Span | None
    source: str  # "answer", "box", "hashes", "anchor", "maths", "number", "whole"; or why there is none
    others: tuple[Span, ...] = ()  # other final answers that stand beside it, and must agree with it
    joint: tuple[Span, ...] = ()  # boxes of one sentence that make a list together, the last one included


def final_answer(text: str) -> Span | None:
    """The span [start, end) of the final answer, or None where the text gives none."""
    return find(text).span


def find(text: str, *, strict: bool = False) -> Found:
    """The final answer's place.

    What stands in `<think>` never counts, and an unclosed `<think>` means no answer. Then, in this order: the
    `<answer>` block (there must be exactly one: several are several guesses), the last `\\boxed{}`, the last `####`,
    a phrase that announces the answer, the whole text if it is nothing but maths, the last maths or number. A box
    inside the answer block is the answer. With `strict` only the answer block counts.
    """
    start = after_thinking(text)
    if start is None:
        return Found(None, "unclosed_think")
    if text.find("nswer>", start) >= 0 or text.find("NSWER>", start) >= 0:
        tags = _some(_ANSWER, text, start, 3)
        if tags:
            if [tag[1] for tag in tags] != ["", "/"]:
                return Found(None, "several_answers" if len(tags) > 2 else "broken_answer")
            inside = tags[0].end(), tags[1].start()
            box = _boxed(text, *inside)
            return box or Found(inside, "answer")
    if strict:
        return Found(None, "no_answer_block")
    box = _boxed(text, start, len(text)) if text.find("\\", start) >= 0 else None
    if box is not None:
        return box
    if text.find("####", start) >= 0:
        hashes = _HASHES.match(text, text.rfind("####", start))
        if hashes is not None and hashes[1].strip():
            return Found(hashes.span(1), "hashes", _other_hashes(text, start, hashes.start()))
    start = max(start, len(text) - _TAIL)
    return _announced(text, start) or _unannounced(text, start)


def after_thinking(text: str) -> int | None:
    """Where the text after the reasoning begins; None if reasoning is opened and never closed."""
    if text.find("hink") < 0 and text.find("HINK") < 0:
        return 0
    if "<T" not in text and "</T" not in text:  # only the last tag matters, and it is found from the end
        opened = max(text.rfind("<think>"), text.rfind("<thinking>"))
        closed = max(text.rfind("</think>"), text.rfind("</thinking>"))
        if opened > closed:
            return None
        return text.index(">", closed) + 1 if closed >= 0 else 0
    start, open_ = 0, False
    for tag in _THINK.finditer(text):
        open_ = not tag[1]
        start = tag.end()
    return None if open_ else start


def _some(pattern: re.Pattern[str], text: str, start: int, most: int) -> list[re.Match[str]]:
    found = []
    for match in pattern.finditer(text, start):
        found.append(match)
        if len(found) == most:
            break
    return found


# -- boxes


def _boxed(text: str, start: int, end: int) -> Found | None:
    """The last box, with the earlier ones that must agree with it; Found without a span where boxes are denied."""
    boxes = _boxes(text, start, end)
    if boxes is None or not boxes:
        return None if boxes is not None else Found(None, "broken_box")
    boxes = [box for box in boxes if not _denied(text, start, box, end)]
    if not boxes:
        return Found(None, "negated")
    last = boxes[-1]
    replaced = _corrected_after(text, last, end)
    if replaced is not None:
        return replaced
    others: list[Span] = []
    joint: list[Span] = [last.content]
    joining = True
    for before, box in zip(reversed(boxes[:-1]), reversed(boxes), strict=False):
        gap = text[before.end : box.start]
        if len(gap) > 4000:
            gap = gap[-4000:]
        if (
            joining
            and len(gap) < 60
            and not re.search(r"[.!?](?:\s|$)|\n\s*\n|因此", gap)
            and not _CORRECTION.search(gap)
        ):
            joint.insert(0, before.content)
            if _ALTERNATIVE.search(gap):
                others.append(before.content)
            continue
        joining = False
        if _CORRECTION.search(gap) or (_CONCLUSION.search(gap) and not _ALTERNATIVE.search(gap[-80:])):
            break  # what was boxed earlier is taken back, or is a step on the way
        others.append(before.content)
    return Found(last.content, "box", tuple(others), tuple(joint) if len(joint) > 1 else ())


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: Span


def _boxes(text: str, start: int, end: int) -> list[_Box] | None:
    """The last boxes that close, in order; None if the very last one does not. A box inside a box is the answer."""
    places: list[re.Match[str]] = []
    position = end
    while len(places) < _MAX_BOXES:
        position = max(text.rfind("\\boxed", start, position), text.rfind("\\fbox", start, position))
        if position < 0:
            break
        match = _BOX.match(text, position, end)
        if match:
            places.append(match)
    found: list[_Box] = []
    limit = end
    for match in places:
        inside = _closed(text, match.end(), min(limit, match.end() + 20_000))
        if inside is None:
            if not found:
                return None
            continue
        if found and inside[1] >= found[-1].end:
            continue  # it holds the box found before
        found.append(_Box(match.start(), inside[1] + 1, inside))
    return found[::-1]


def _closed(text: str, position: int, end: int) -> Span | None:
    """The content of the braces that open at `position`, or the bare word there."""
    if text[position] != "{":
        stop = position
        while stop < end and (text[stop].isalnum() or text[stop] in ".,%/"):
            stop += 1
        return position, stop
    close = closing_brace(text, position, end)
    return None if close is None else (position + 1, close)


def closing_brace(text: str, position: int, end: int) -> int | None:
    """Where the brace that opens at `position` is closed before `end`; what a backslash precedes is no brace."""
    depth = 0
    while position < end:
        char = text[position]
        if char == "\\":
            position += 1
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return None


def _denied(text: str, start: int, box: _Box, end: int) -> bool:
    """ "The answer is not \\boxed{5}", "\\boxed{5} is wrong", "is it \\boxed{5}?"."""
    before = text[max(start, box.start - 60) : box.start].rstrip(" $\\([*=:")
    if re.search(
        r"\b(?:not|isn't|never|cannot be|can't be|nor|ruled? out|excluded?|rejected?"
        r"|eliminated?|wrong|incorrect|false)(?:\s+(?:equal to|be|simply|just|exactly))?$",
        before,
        re.IGNORECASE,
    ):
        return True
    after = text[box.end : min(end, box.end + 60)].lstrip(" $\\)]*}")
    return bool(
        re.match(
            r"(?:is|would be|was|seems)\s+(?:not|wrong|incorrect|false|a mistake|too)|\s*(?:\?|\(wrong|\(incorrect)",
            after,
            re.IGNORECASE,
        )
    )


def _corrected_after(text: str, last: _Box, end: int) -> Found | None:
    """An answer announced after the last box, where the text takes the box back."""
    tail = text[last.end : min(end, last.end + 2000)]
    correction = _CORRECTION.search(tail)
    if correction is None:
        return None
    found = _announced(text[: min(end, last.end + 2000)], last.end + correction.start())
    return found


def _other_hashes(text: str, start: int, last: int) -> tuple[Span, ...]:
    before = text.rfind("####", start, last)
    if before < 0:
        return ()
    match = _HASHES.match(text, before)
    between = text[match.end() : last] if match else ""
    return (match.span(1),) if match and not _CORRECTION.search(between) else ()


# -- anchors


def _announced(text: str, start: int) -> Found | None:
    """The last phrase that announces an answer, states it, and neither denies nor asks it."""
    matches = _anchors(text, start)
    stated: list[tuple[re.Match[str], Span]] = []
    denied = False
    for match in matches:
        span = _payload(text, match.end())
        if span is None:
            continue
        sentence = text[_sentence_start(text, match.start(), start) : match.end()]
        if _NEGATED.search(_CLAUSE.split(sentence)[-1]) or _NEGATED.match(text[span[0] : span[0] + 40].lstrip(" *_`$")):
            denied = True
            continue
        tail = text[span[1] : span[1] + 3]
        before = sentence[: match.start() - match.end()]
        if tail.startswith("?") or _ASKED.search(before) or _OTHERS_SAY.search(before):
            denied = True
            continue
        stated.append((match, span))
    if not stated:
        return Found(None, "negated") if denied and matches[-1].group() != "" else None
    match, span = stated[-1]
    others = []
    for (announced, earlier), (later, _) in zip(reversed(stated[:-1]), reversed(stated), strict=False):
        if "answer" in match[0].lower() and "answer" not in announced[0].lower():
            continue  # a result on the way
        gap = text[earlier[1] : later.start()]
        if _CORRECTION.search(gap) or (_CONCLUSION.search(gap) and not _ALTERNATIVE.search(gap)):
            break
        others.append(earlier)
    return Found(span, "anchor", tuple(others[:4]))


def _anchors(text: str, start: int) -> list[re.Match[str]]:
    """The last 64 anchors. In ASCII text the regular expression is tried only where a literal stem was found."""
    if not text.isascii():
        return list(collections.deque(_ANCHOR.finditer(text, start), maxlen=_MAX_ANCHORS))
    lower = text[start:].lower()
    places = []
    for stem in _STEMS:
        position = lower.find(stem)
        while position >= 0:
            places.append(start + position)
            position = lower.find(stem, position + len(stem))
    found = []
    for place in sorted(places)[-_MAX_ANCHORS:]:
        match = _ANCHOR.match(text, place)
        if match:
            found.append(match)
    return found


def _sentence_start(text: str, position: int, start: int) -> int:
    low = max(start, position - 200)
    last = low
    for match in _SENTENCE_END.finditer(text, low, position):
        last = match.end()
    return last


def _payload(text: str, position: int) -> Span | None:
    """What an anchor announces: the maths that follows, or the rest of its sentence."""
    window = text[position : position + 3000]
    skipped = len(window) - len(window.lstrip(" \t\n*_`:：=>-" if window[:2].strip() else " \t\n*_`:："))
    if window.lstrip(" \t\n*_`:").startswith("-"):
        skipped = len(window) - len(window.lstrip(" \t\n*_`:："))
    begin = position + skipped
    rest = text[begin : begin + 3000]
    maths = _MATHS.match(rest)
    if maths:
        after = rest[maths.end() :]
        end = _SENTENCE_END.search(after)
        tail = after[: end.start()] if end else after
        if re.match(r"\s*(?:,|or\b|and\b|\$|\\text|[a-zA-Z%°])", tail) and len(tail) < 200:
            return begin, begin + maths.end() + len(tail.rstrip(" *_`"))
        return begin, begin + maths.end()
    end = _SENTENCE_END.search(rest)
    stop = end.start() if end else len(rest)
    reasoning = _REASONING.search(rest, 0, stop)
    stop = reasoning.start() if reasoning else stop
    found = rest[:stop].rstrip(" \t*_`")
    return (begin, begin + len(found)) if found.strip() else None


# -- no announcement


def _unannounced(text: str, start: int) -> Found:
    """The whole text if it is one expression, else the last maths or the last number of its end."""
    begin, end = start, len(text)
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    whole = text[begin:end]
    if not whole:
        return Found(None, "empty")
    if len(whole) < 400 and (_MATHS.fullmatch(whole) or _no_prose(whole)):
        return Found((begin, end), "whole")
    low = max(begin, end - 600)
    sentence = _last_sentence(text, low, end)
    if _UNSURE.search(text, *sentence):
        return Found(None, "unsure")
    if text.count("```", 0, sentence[0]) % 2:
        return Found(None, "code")
    last = None
    for pattern in (_MATHS, _NUMBER):
        for match in pattern.finditer(text, *sentence):
            last = match
        if last is not None and _LISTED.search(text[max(0, last.start() - 24) : last.start()]):
            return Found(None, "list")
        if last is not None:
            return Found(last.span(), "maths" if pattern is _MATHS else "number")
    return Found(None, "nothing")


def _no_prose(text: str) -> bool:
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", re.sub(r"\\text\w*\{[^{}]*\}|\\[A-Za-z]+", " ", text))
    if words and ("$" in text or "\\(" in text):
        return False
    most = 1 if text[0].isalpha() and text[1:2].isalpha() else 3  # a sentence begins with a word, an expression seldom
    if most == 1 and len(words) == 2 and len(text) < 30:
        most = 2 if re.fullmatch(r"[A-Za-z ]+\.?", text) else 1  # "no solution"
    return len(words) <= most and "\n" not in text


def _last_sentence(text: str, low: int, end: int) -> Span:
    """The last sentence that holds a digit or maths."""
    ends = [low, *(match.end() for match in _SENTENCE_END.finditer(text, low, end)), end]
    for first, last in zip(reversed(ends[:-1]), reversed(ends), strict=False):
        part = text[first:last]
        if any(char.isdigit() for char in part) or "$" in part or "\\" in part:
            return first, last
    return low, end
