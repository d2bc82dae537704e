"""Finds the final claim of a text that took back, denied or doubted something before it.

"I get 85. Hold on, that is the wrong way round. The number is 58." commits to 58. So what the text before retracts does
not count against a last sentence, or against a clause after "so" or ", and" in it, that claims a value by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.extract.anchors import anchors
from verifiers.extract.announcements import announced
from verifiers.extract.denials import denied_after, denied_before
from verifiers.extract.gates import Gated
from verifiers.extract.last_sentences import closing
from verifiers.extract.sentences import sentence_start
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import CONDITION, FRAMES, QUOTED, REPORTS, SO, SOMEBODY, SUPPOSES, UNREAL
from verifiers.extract.statements import stated
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

_TAIL = 300  # characters before the end in which a claim is looked for
_LOOK = 1000  # characters before the claim that are read
_LED = 32  # characters from the beginning of a clause to the phrase that announces its value
# "The number is", "Richtig ist": phrases that claim a final value, if a sentence begins with them.
_CLAIMING = (
    r"(?:(?:(?:and|but|und|et|y|e|mais|pero|mas|ma|а|но)\s+)?"
    r"(?:(?:the|our)\s+(?:(?:final|correct|right|true|actual|required|desired|sought|wanted|missing|unknown)\s+){0,2}"
    r"(?:number|value|total|amount|count|one)\s+(?:is|equals|must be|has to be|stays|remains|comes to)"
    r"|(?:richtig|korrekt)\s+(?:ist|sind)|(?:der|die|das)\s+(?:(?:gesuchte|richtige|korrekte"
    r"|endgültige)[rs]?\s+)?(?:zahl|wert|summe|anzahl)\s+"
    r"(?:ist|lautet|beträgt|bleibt)|(?:le|la)\s+(?:(?:bonne?|vraie?)\s+)?(?:nombre|valeur|total)(?:\s+(?:cherchée?"
    r"|correcte?|exacte?))?\s+"
    r"(?:est|vaut|reste)|(?:el|la|lo)\s+(?:número|valor|total|cantidad|correcto)(?:\s+(?:buscad[oa]|correct[oa]"
    r"|final))?\s+"
    r"(?:es|sigue siendo)|o\s+(?:número|valor|total|correto|certo)(?:\s+(?:procurado|correto|final))?\s+é"
    r"|(?:il|quello)\s+(?:numero|valore|totale|giusto|corretto)(?:\s+(?:cercato|corretto|giusto|finale))?\s+è"
    r"|(?:juist|goed|correct)\s+is|(?:het|de)\s+(?:(?:juiste|gezochte|goede)\s+)?(?:getal|aantal|waarde|totaal)\s+is"
    r"|rätt\s+är|det\s+(?:rätta|sökta)\s+(?:talet|värdet)\s+är|talet\s+är|(?:poprawna|prawidłowa|szukana)\s+(?:liczba"
    r"|wartość)\s+(?:to|wynosi|jest)|poprawnie jest|(?:верно|правильно)\s*[:—–-]"
    r"|(?:(?:искомое|верное|правильное)\s+)?(?:число|значение)\s*(?:[—–-]|равно|это))\s"
    r"|(?:العدد|القيمة|الصحيح)(?: الصحيح| الصحيحة| المطلوب| المطلوبة)? (?:هو|هي)\s"
    r"|正确的?(?:值|数|结果)?(?:是|应为|应该是)|(?:这个|所求的?)数是|正しくは|求める数は"
    r"|올바른 (?:값|수)은|(?:구하는|그) 수는)"
)
_CLAIMS = any_case(rf"\W*+{_CLAIMING}")
_MAY_CLAIM = Gated(rf"(?:[.!,;:，。！；،*\n]\s*+|^){_CLAIMING}")
# The end of a clause after which the rest of the sentence claims by itself. A comma alone may be within a phrase.
_JOINT = any_case(
    r"[,;،，；—–]\s*(?:and|but|und|aber|sondern|et|mais|y|e|pero|sino(?: que)?|mas(?: sim)?|ma|bensì|и|а|но|en|maar"
    r"|och|men|i|ale|lecz|ve|ama|dan|tetapi|và|nhưng|بل|لكن|ولكن)(?![^\W\d_])\s*|[;；]\s*|[，,]\s*(?:而是|但是?)"
)
_OPEN = (":", "：", "?", "？", "؟", "(")  # last characters of a text that the next sentence belongs to
_QUOTES = (("“", "”"), ("«", "»"), ("「", "」"))
FORMS = ("\\boxed", "\\fbox", "\\framebox", "####", "nswer>")  # an answer in one of these states itself
_AT_FIRST = any_case(
    r"(?<![^\W\d_])(?:first|erstes|zuerst|premier|première|primer[oa]?|primeir[oa]|prim[oa]|eerste|första|pierwsz[ya]"
    r"|первый|сначала|ilk|perta?ma)(?![^\W\d_])|最初|一开始|처음|أول"
)  # "my first answer was"
_NUMBER = lazy_pattern(r"(?:\b[A-Za-z]\s?=\s?)?((?:(?<![\d)] )(?<![\d)])[-−]\s?)?\d+(?:[.,/:]\d+)*)")


def final_claims(text: str, start: int, prompt: str, refused: str) -> Iterator[int]:
    """Yields where the last sentence and its last clause begin, if they may claim a value by themselves.

    Nothing is yielded after a text that supposes, quotes or asks, or that ends in a colon.

    Args:
        refused: why the answer of the whole text is refused, such as "retracted".
    """
    replaced = refused in ("retracted", "several final answers")
    announced_before = replaced or refused == "negated" or refused.endswith("not understood")
    if not (announced_before or _MAY_CLAIM.search(text, max(start, len(text) - _TAIL))):
        return
    if any(form in text for form in FORMS):
        return
    sentence = next(reversed(closing(text, start, len(text), prompt)[1]), None)
    if sentence is None:
        return
    before = text[max(start, sentence[0] - _LOOK) : sentence[0]].rstrip(" \t\n*_`>#")
    quoted = before.count('"') % 2 or any(before.count(opening) > before.count(end) for opening, end in _QUOTES)
    if quoted or before.endswith(_OPEN) or before.count("```") % 2 or FRAMES.search(before):
        return
    if before and (replaced or _CLAIMS.match(text, sentence[0])):
        yield sentence[0]
    clause = _clause(text, sentence)
    if clause is not None and not _reported(text[sentence[0] : clause]):
        yield clause


def is_claim(text: str, start: int, position: int, extraction: Extraction, prompt: str) -> bool:
    """Returns whether an answer that was found in the text from `position` on is a final claim of the whole text.

    A phrase announces it, the sentence answers the question, or a concluding word or a phrase such as "the number is"
    begins it. An answer that the text before denies, or before which it gives another one and takes nothing back, is
    none.
    """
    if extraction.span is None or extraction.others:
        return False
    if extraction.source == "statement" and prompt:
        whole = stated(text, start, len(text), prompt)
        claimed = whole is not None and whole.span == extraction.span
    else:
        claimed = extraction.source == "anchor" or bool(SO.match(text, position) or _CLAIMS.match(text, position))
    return claimed and not _contradicted(text, max(start, position - _LOOK), position, text[slice(*extraction.span)])


def _clause(text: str, sentence: Span) -> int | None:
    """Returns where the last clause of a sentence begins that announces its value by itself, or None."""
    ends = [match.start() + 1 for match in SO.finditer(text, *sentence) if match[0][0] in ",;—–،，"]
    ends += [match.end() for match in _JOINT.finditer(text, *sentence)]
    for position in sorted(ends, reverse=True):
        announcing = anchors(text[: sentence[1]], position)[:1]
        if _CLAIMS.match(text, position) or (announcing and announcing[0].start - position < _LED):
            return position
    return None


def _reported(lead: str) -> bool:
    """Returns whether the clauses before a claim report, suppose or attribute it."""
    return bool(
        REPORTS.search(lead) or UNREAL.search(lead) or SOMEBODY.search(lead) or SUPPOSES.match(lead)
        or CONDITION.match(f"{lead}, ") or QUOTED.search(lead) or "?" in lead
    )  # fmt: skip


def _contradicted(text: str, low: int, position: int, value: str) -> bool:
    """Returns whether the text before a claim denies its value, or claims another one and takes nothing back."""
    numbers = _NUMBER.findall(value)
    for said in _NUMBER.finditer(text, low, position):
        if said[1] in numbers and (denied_before(text, low, said.start()) or denied_after(text, said.end(), position)):
            return True
    earlier = announced(text[:position], low)
    claims = [earlier.span] if earlier is not None and earlier.span is not None else []
    claims += [(claim.end(), claim.end() + _LED) for claim in _MAY_CLAIM.finditer(text, low, position)]
    for start, end in claims:
        same = _NUMBER.findall(text, start, end)[:1] == numbers[:1] if numbers else text[start:end] == value
        led = text[low:start]
        if any(led.count(opening) > led.count(closing) for opening, closing in _QUOTES):
            continue  # "「答えは56」と書いた生徒がいました"
        first = _AT_FIRST.search(text, sentence_start(text, start, low), start)
        if not (same or first or CORRECTION.search(text, start, position)):
            return True
    return False
