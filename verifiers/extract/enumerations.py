"""Finds a list that ends a text and enumerates what its sentence counts: "The divisors are 5: 1, 2, 4, 8 and 16."."""

from __future__ import annotations

from verifiers.extract.asked import asked_of
from verifiers.extract.numerals import language_of
from verifiers.extract.overruling import FORMS
from verifiers.extract.quantities import quantities
from verifiers.extract.sentences import BEFORE_AND
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 300  # characters before the end that are read
_BRACKETED = r"(?:\([^()\n]{1,40}\)|\$[^$\n]{1,40}\$)"
_PLAIN = r"[^,;:.?!()$\n、，；。：？！]{1,32}+"  # with the blanks beside it
_ITEM = rf"(?:\s?+{_BRACKETED}\s?|{_PLAIN})"
_LIST = lazy_pattern(rf"\s*{_ITEM}(?:[,;、，；]{_ITEM})*+[\s.。*]*")
_ONE = lazy_pattern(rf"{_BRACKETED}|{_PLAIN}")
_SENTENCE = lazy_pattern(r"[.!?]\s|[。！？\n]")
_CANDIDATES = any_case(
    r"candidat|kandidat|possib|option|opcion|opzion|opç|möglich|choice|case|guess|вариант|кандидат|возможн|可能"
    r"|选项|候補|候选"
)
_DOUBTED = any_case(
    r"[?？]|或|または|또는|\b(?:or|oder|ou|o|eller|lub|veya|atau|hoặc|или|або)\b|\b(?:maybe|perhaps|etc|example"
    r"|e\.g|such as|including)\b|\.\.\.|…|等"
)


def enumerated(text: str, start: int, prompt: str) -> tuple[str, str] | None:
    """Returns the text without the list, and the text without the count; None unless as many items are listed.

    If the question is known, it must count things. Otherwise no candidates may be listed. Returns None beside an
    answer that states itself, such as a box.
    """
    colon = max(text.rfind(sign, max(start, len(text) - _LOOK)) for sign in (":", "："))
    if colon < start or any(form in text for form in FORMS):
        return None
    if _LIST.fullmatch(text, colon + 1) is None or _DOUBTED.search(text, colon):
        return None
    low = max((match.end() for match in _SENTENCE.finditer(text, max(start, colon - _LOOK), colon)), default=start)
    counts = quantities(text, low, colon, language_of(text[-_LOOK:]))
    listed = _ONE.findall(text, colon + 1)
    items = [part for item in listed for part in _values(item) if part.strip(" .。*")]
    if not counts or counts[-1].value != len(items) or len(items) < 2 or counts[-1].kind not in ("number", "word"):
        return None
    wanted = asked_of(prompt[-2000:])
    if not (wanted.things or wanted.counter) if prompt else _CANDIDATES.search(text, low, colon):
        return None
    first, last = counts[-1].span
    return f"{text[:colon]}.", text[:first] + " " * (last - first) + text[last:]


def _values(item: str) -> list[str]:
    return [item] if item.lstrip()[:1] in ("(", "$") else BEFORE_AND.split(item)
