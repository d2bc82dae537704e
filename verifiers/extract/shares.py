"""Finds shares that end a sentence and answer a question for a chance or a fraction: "one in six", "3 out of 5"."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.extract.quantities import quantities
from verifiers.extract.spans import Extraction, Span
from verifiers.lazy_pattern import lazy_pattern

_OF_CHANCE = lazy_pattern(
    r"\b(?:probab|chance|odds|likel|how often|wahrscheinlich|trefferquote|posibilidad|possibilit|kans\b|sannolik"
    r"|prawdopodob|pravděpodob"
    r"|olasılı|xác suất|peluang)|вероятн|шанс|ймовірн|πιθανότητ|احتمال|संभावना|प्रायिकता|概率|可能性|確率|확률|הסתברות",
    re.IGNORECASE,
)
# What stands between the part and the whole, by language.
_BETWEEN = {
    "en": "in|out of|in every|out of every|of", "de": "von|aus|unter", "fr": "sur|parmi",
    "es": "de cada|entre|de|sobre|en",
    "pt": "em|de cada|em cada|de|entre", "it": "su|ogni|tra", "nl": "op|op de|van de|uit",
    "sv": "på|av", "pl": "na|z|spośród",
    "ru": "из", "uk": "з|із",
    "cs": "z|ze", "id": "dari", "vi": "trên|trong", "el": "στα|στις|στους", "ar": "من|من بين|في", "fa": "از",
}  # fmt: skip
_JOINTS = {
    language: lazy_pattern(
        rf"\s(?:(?:chances?|possibilities|chancen?|möglichkeiten|posibilidades|possibilidades|szansa"
        rf"|шанса?)\s)?(?:{words})"
        r"\s(?:(?:the|den|les|los|as|os)\s)?$",
        re.IGNORECASE,
    )
    for language, words in _BETWEEN.items()
}
_LONGEST = 40  # characters of the joint
_ONE = lazy_pattern(r"\b(?:ein|eine[rs]?|une?|una|uno|uma?|één|ett|en|jedn[ao]|jeden|одна|один)$", re.IGNORECASE)
_CLOSED = lazy_pattern(r"[\s.!*_)\"”]*")


def closing_share(text: str, sentence: Span, language: str, asked: str, *, fraction: bool) -> Extraction | None:
    """Returns the share that ends a sentence, or None unless a chance or a fraction is asked for.

    Args:
        asked: the question, or "" if it is unknown; the sentence must then name a chance.
        fraction: the question asks for a fraction.
    """
    if not (fraction or _OF_CHANCE.search(asked or text[slice(*sentence)])) or language not in _JOINTS:
        return None
    *before, whole = quantities(text, *sentence, language) or (None,)
    if whole is None or not whole.value or whole.value.denominator != 1:
        return None
    joint = _JOINTS[language].search(text, max(sentence[0], whole.span[0] - _LONGEST), whole.span[0])
    if joint is None or _CLOSED.fullmatch(text, whole.span[1], sentence[1]) is None:
        return None
    one = _ONE.search(text, sentence[0], joint.start())
    if before and before[-1].span[1] == joint.start():
        start, part = before[-1].span[0], before[-1].value
    else:
        start, part = (one.start(), Fraction(1)) if one else (0, None)
    if part is None or not 0 <= part <= whole.value or part.denominator != 1:
        return None
    share = part / whole.value
    return Extraction((start, whole.span[1]), "statement", said=f"{share.numerator}/{share.denominator}")
