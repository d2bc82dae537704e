"""Finds the "yes" or "no" of a last sentence: "It may look prime, but the answer is: no, 3 divides it."."""

from __future__ import annotations

import re

from verifiers.extract.spans import Span
from verifiers.extract.statement_words import NOT, STOP
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
    r"(?<![^\W\d_])(?:but|however|yet|aber|doch|mais|pero|mas|ma|но|однако|maar|men|ale|ama)(?![^\W\d_])|但是?|しかし|하지만",
    re.I,
)
_DOUBTED = lazy_pattern(
    r"[?？؟]|(?<![^\W\d_])(?:i|we|you|let|question|problem|task|ich|wir|je|nous|yo|eu|io|я|if|whether|maybe|perhaps|would|could|might|may|or|says?|said|think\w*|guess\w*"
    r"|not sure|claim\w*|wenn|ob|vielleicht"
    r"|oder|sagt|si|ou|dit|peut-être|dice|quizás|talvez|diz|se|forse|если|или|может|говорит|кажется|wrong"
    r"|falsch ist)(?![^\W\d_])"
    r"|如果|或|可能|说|もし|かも|만약",
    re.IGNORECASE,
)


def said_truth(text: str, start: int, end: int) -> Span | None:
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
