"""Finds a text's "yes" or "no": the word that opens it, or one in its last sentence ("... so yes, it is prime")."""

from __future__ import annotations

import re

from verifiers.extract.asked import question_of, stems
from verifiers.extract.spans import Span
from verifiers.extract.statement_words import NOT, STOP
from verifiers.extract.turns import CORRECTION
from verifiers.extract.wordings import TRUTHS
from verifiers.lazy_pattern import lazy_pattern

_LOOK = 400  # characters before the end that are read
_WORDS = sorted({"yes", "no", "true", "false", *TRUTHS} - {"正", "真", "假", "正しい", "正确"}, key=len, reverse=True)
# A yes or no that stands alone: after punctuation, a concluding word or a copula, and before punctuation.
_ALONE = lazy_pattern(
    r"(?:^|[,:;：，、—–]\s*|\b(?:is|ist|est|es|è|é|is|jest|là|adalah|so|also|donc|quindi|portanto|так что|ответ"
    r"|значит)\s+"
    r"|(?:所以|因此|よって|ので|따라서)[、,，]?\s*)[\"“«'*_$]*"
    rf"(?P<truth>{'|'.join(map(re.escape, _WORDS))})[\"”»'*_$]*(?=\s*(?:[.,;!:。，、—–]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_TURN = lazy_pattern(
    r"(?<![^\W\d_])(?:but|however|yet|aber|doch|mais|pero|но|однако|maar|ale|ama|(?<=[,;.!] )(?:mas|ma"
    r"|men))(?![^\W\d_])|但是?|しかし|하지만",
    re.I,
)
_DOUBTED = lazy_pattern(
    r"[?？؟]|(?<![^\W\d_])(?:i|we|you|let|question|problem|task|ich|wir|je|nous|yo|eu|io|я|if|whether|maybe"
    r"|perhaps|would|could|might|may|or|says?|said|think\w*|guess\w*"
    r"|not sure|claim\w*|wenn|ob|vielleicht"
    r"|oder|sagt|si|ou|dit|peut-être|dice|quizás|talvez|diz|se|forse|если|или|может|говорит|кажется|wrong"
    r"|falsch ist)(?![^\W\d_])"
    r"|如果|或|可能|说|もし|かも|만약",
    re.IGNORECASE,
)


# A yes or no that opens a text: "No, 221 isn't prime."
_OPENS = lazy_pattern(
    rf"[\s\"“«'*_¡]*(?P<truth>{'|'.join(map(re.escape, _WORDS))})[\"”»'*_]*\s*(?:[.,;:!。，、،—–]|$)", re.IGNORECASE
)
# Words that leave such an answer open, take it back or make it conditional.
_OPEN = lazy_pattern(
    r"[?？؟]|(?<![^\W\d_])(?:I|you|we|question|problem|true|false|wahr|vrai|faux|verdad|vero|if|unless"
    r"|whether|maybe|perhaps|possibly|probably|would|might|depend\w*"
    r"|provided|except|sometimes|seems?|says?|said|claims?"
    r"|thinks?|guess\w*|sure|wait|actually|sorry|wrong|mistake\w*|at first|wenn|falls|vielleicht|sofern"
    r"|außer|sagt|glaub\w*|moment|falsch|si(?! (?:ottiene|trova|ha|può|divide|deduce|ricava|vede|scrive"
    r"|tratta)\b)|peut-être"
    r"|sauf|dit|quizás?|tal vez|salvo|dice|perdón|talvez|depende|diz|forse|dipende|tranne|если|может"
    r"|возможно|говорит|als (?:je|we|men|het|de)|misschien|tenzij|jeśli|może"
    r"|chyba|om (?:man|det|vi)|kanske|eğer|belki|nếu|có lẽ|jika|mungkin)(?![^\W\d_])|如果|也许|可能|除非|もし|かも|만약"
    r"|아마|إذا|ربما|अगर|यदि|शायद",
    re.IGNORECASE,
)
_NEGATES = lazy_pattern(
    r"(?<![^\W\d_])(?:not|never|nicht|kein\w*|pas|no|não|non|niet|geen|inte|nie|не|değil\w*|không|tidak"
    r"|bukan|ليس|ليست|لا|नहीं)(?![^\W\d_])"
    r"|n['’]t\b|[不没]|ない|ません|않|아니|아닙",
    re.IGNORECASE,
)


def said_truth(text: str, start: int, end: int, prompt: str) -> Span | None:
    """Returns the span of the yes or no that opens a text, or that its last sentence says, or None.

    None also if the text limits the answer, takes it back, or says the opposite elsewhere.
    """
    opened = _OPENS.match(text, start, end)
    if opened is None:
        return _in_last_sentence(text, start, end)
    rest = text[opened.end() : end]
    if _TURN.search(rest) or CORRECTION.search(rest) or _OPEN.search(rest):
        found = _in_last_sentence(text, start, end)
        return found if found is not None and found[0] > opened.end() else None
    meaning = _meaning(opened["truth"])
    if any(_meaning(other["truth"]) != meaning for other in _ALONE.finditer(rest)):
        return None
    asked = stems(question_of(prompt)) if prompt else set()
    for sentence in STOP.split(rest):
        repeated = bool(asked) and len(asked & stems(sentence)) * 3 > len(asked) * 2
        if repeated and (_NEGATES.search(sentence) is not None) == (meaning == "yes"):
            return None
    return opened.span("truth")


def _meaning(word: str) -> str:
    word = word.casefold()
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}.get(word) or TRUTHS[word]


def _in_last_sentence(text: str, start: int, end: int) -> Span | None:
    """Returns the span of the last sentence's yes or no, or None if the sentence expresses doubt or contains two."""
    low = max(start, end - _LOOK)
    stop = len(text[:end].rstrip())
    begin = max((match.end() for match in STOP.finditer(text, low, stop - 1)), default=low)
    turns = list(_TURN.finditer(text, begin, stop))
    begin = turns[-1].end() if turns else begin
    found = list(_ALONE.finditer(text[begin:stop].lstrip() if not turns else text[begin:stop]))
    if len(found) != 1 or _DOUBTED.search(text, begin, stop):
        return None
    if NOT.search(text[begin:stop][: found[0].start("truth")]):
        return None
    place = text.index(found[0]["truth"], begin + found[0].start())
    return place, place + len(found[0]["truth"])
