"""Tells the clause with which a sentence concludes from its reasons and conditions, and whether anything opposes it."""

from __future__ import annotations

import re

from verifiers.extract.asked import Asked
from verifiers.extract.clause_judge import CONDITIONAL
from verifiers.extract.conclusions import unsure
from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.extract.statement_words import BY_DOING, MAY, OPPOSED, REPORTS, SO, SUPPOSES, WORD
from verifiers.extract.vocabulary import HARMLESS, UNSAFE
from verifiers.lazy_pattern import any_case, lazy_pattern

_REASON_IN = {"car": "fr", "want": "nl", "bo": "pl", "ty": "sv"}
_IN_SWEDISH = lazy_pattern(r"\bI\b")  # "in" in Swedish, "and" in Polish, an article in Italian
_FRENCH_NOW = lazy_pattern(r"^\W*Or\b")  # "Or la somme est 4": "now"
_RESTATED = any_case(r"\b(?:ou seja|o sea|das heißt|c['’]est-à-dire)\b")
_FOUND_BY_MYSELF = lazy_pattern(
    r"\bI (?=(?:get|got|have|find|found|obtain(?:ed)?|count(?:ed)?|calculated?|computed?|work(?:ed)? out|arrived? at"
    r"|end(?:ed)? up with)\b)"
)
_SIX = any_case(r"\bsei\b")  # a subjunctive in German, but not in Italian and Portuguese
_SINCE = (
    r"since|because|as|given that|seeing that|if|when|weil|da|wenn|puisque|comme|parce que|si|como|ya que|dado que"
    r"|puesto que|porque|visto que|siccome|poiché|dato che|se|omdat|aangezien|als|eftersom|om|ponieważ|skoro|jeśli|vì"
    r"|nếu|karena|jika|если|так как|поскольку|раз|çünkü"
)
# A reason or condition before its main clause: "Since 162 is more than 158, Ines is taller."
_PREMISE = any_case(
    rf"\W*(?:(?:so|also|donc)\s+)?(?:(?:{_SINCE})\b[^,;]{{1,200}}(?:,(?=\d)[^,;]{{0,60}})*,\s+"
    r"|(?:因为|由于|既然|如果|若)[^，,]{1,120}[，,]\s*|(?:بما أن|لأن|चूँकि|चूंकि|क्योंकि)[^،,]{1,160}[،,]\s*)"
)
_AND_SINCE = Gated(
    rf"[,;]?\s+(?:and|und|et|y|e|en|och|i|и|oraz)\s+(?:{_SINCE})\s[^,;]{{1,160}}(?:,(?=\d)[^,;]{{0,60}})*,\s+"
)
# A clause about something beside the conclusion: "..., while 3 is odd".
_BESIDE = Gated(
    r"(?:,\s|\s)(?:while|whereas|although|though|whatever|no matter|regardless of|despite|während|egal|trotz|malgré"
    r"|a pesar de|apesar de|nonostante|несмотря на|wohingegen|obwohl|tandis que|alors que|bien que"
    r"|mientras|aunque|enquanto|embora"
    r"|mentre|sebbene|terwijl|hoewel|medan|fastän|podczas gdy|chociaż|тогда как|хотя|trong khi|sedangkan)\b"
)
# Words that restate what precedes them and conclude nothing from it.
_RESTATES = any_case(
    r"\W*+(?:which is|that|namely|in other|i\.e|d\.|das heißt|nämlich|c['’]est|es decir|a saber|o sea|ou seja|isto|cioè"
    r"|vale|to jest|oftewel|dat|det|yani|tức|yaitu|то есть|т|يعني|यानी|即|也就是|すなわち|つまり|즉|共)"
)
# The languages of UNSAFE. Each has the words of UNSAFE that belong to other languages and are harmless in it.
_HARMFUL_IN = {
    "en": {"fast", "tal", "ob", "non", "ma", "mas", "si", "falls"}, "de": set(), "fr": {"ne", "ma", "si"}, "es": {"si"},
    "pt": {"no", "se", "ne", "mais"}, "it": {"ne"}, "ru": set(), "ar": set(), "zh": set(), "ja": set(),
    "ko": set(), "hi": set(),
}  # fmt: skip
_REASON = Gated(
    r"[,(]?\s*\b(?:because|since|as (?=\d)|weil|denn|car|puisque|parce que|porque|ya que|pues(?!,)|pois(?!,)|perché"
    r"|poiché|siccome|omdat|want|eftersom|ty|ponieważ|bo|çünkü|vì|karena|потому что|так как)\b"
)
# "If she is x years old", "Если разделить 18 на 4": the condition names an unknown or performs a calculation.
_NAMES_UNKNOWN = any_case(
    r"\W*+(?:if|wenn|si|se|als|om|jeśli)\b[^,]{0,60}\b[nxzt]\b[^,]{0,60},|\W*если [^,]{0,60}\b[а-я]+ть\b[^,]{0,60},"
)
_BUT = any_case(
    r"(?<![^\W\d_])(?:but|however|aber|doch|mais|pero|mas|porém|ma|però|но|однако|maar|men|ale|ama)(?![^\W\d_]),?\s"
    r"|但是?|しかし|하지만"
)
# "Four tickets would set you back 34 dollars.": a polite statement, unless a condition is in the sentence.
_PRICED = any_case(
    r"\bwould (?=(?:\w+ )?(?:set (?:\w+ )?back|cost|come (?:out )?(?:to|at)|be paying|total|amount to|add up to"
    r"|need|require|take|use|have (?:to )?(?:\d|[a-z-]+ (?:left|altogether))|be left with)\b)"
)
_UNREAL_PRICE = any_case(
    r"\b(?:if|without|had|were|unless|otherwise|normally|usually|instead|originally|before|but|then|twice|another"
    r"|other|next)\b"
)


def main_clause(text: str, sentence: Span, language: str, *, loose: bool = True) -> tuple[Span, bool]:
    """Returns the clause with which a sentence concludes, and whether a word such as "so" begins it.

    It begins after the last such word, or after the premise before it, and ends before the reason that follows it.
    With `loose`, words such as "but" and "namely" begin it too.
    """
    begin, concluded = sentence[0], False
    turns = [match for match in SO.finditer(text, *sentence) if begins_clause(text, sentence[0], match)]
    for turn in sorted((*turns, *(_BUT.finditer(text, *sentence) if loose else ())), key=re.Match.end):
        if not _RESTATES.match(turn[0]) or (loose and not reason_of(text, begin + 1, turn.start(), language)):
            begin, concluded = turn.end(), True
    premise = None if concluded else _PREMISE.match(text, *sentence)
    begin = premise.end() if premise else begin
    begin = max((match.end() for match in _AND_SINCE.finditer(text, begin, sentence[1])), default=begin)
    reason = reason_of(text, begin + 1, sentence[1], language)
    beside = _BESIDE.search(text, begin + 1, reason.start() if reason else sentence[1])
    ends = beside or reason
    return (begin, ends.start() if ends else sentence[1]), concluded


def reason_of(text: str, low: int, high: int, language: str) -> re.Match[str] | None:
    """Returns the match of the conjunction that begins a reason, or None.

    French "car", Dutch "want", Polish "bo" and Swedish "ty" count only in their own language.
    """
    for found in _REASON.finditer(text, low, high):
        if _REASON_IN.get(found[0].strip(" ,(").lower(), language) == language:
            return found
    return None


def begins_clause(text: str, start: int, conclusion: re.Match[str]) -> bool:
    """Returns whether the concluding word begins a clause, as in "1 is odd, so 7 are left", and is not inside one."""
    before = text[start : conclusion.end() - len(conclusion[0].lstrip(" ,;:—–"))].rstrip()
    return not before or (
        (before[-1] in ",;:—–、，)" or max(conclusion[0]) > "\u0590") and not text.startswith(",", conclusion.end())
    )


def objection(part: str, language: str) -> str:
    """Returns the first word of objection outside phrases that are known to be harmless, or ""."""
    if language not in _HARMFUL_IN:
        return ""  # `OPPOSED` holds the words of the other languages
    harmful = UNSAFE - _HARMFUL_IN[language] if _HARMFUL_IN[language] else UNSAFE
    plain = MAY.sub(" ", part.replace("’", "'"))
    if harmful.isdisjoint(WORD.findall(plain.lower())):
        return ""  # removing harmless phrases adds no word
    words = (match[0].lower() for match in WORD.finditer(HARMLESS.sub(" ", plain)))
    return next((word for word in words if word in harmful), "")


def opposed(clause: str, language: str) -> bool:
    clause = _FOUND_BY_MYSELF.sub("we ", _RESTATED.sub(" ", clause))
    clause = _FRENCH_NOW.sub(" ", clause) if language == "fr" else clause
    clause = _IN_SWEDISH.sub(" ", clause) if language in ("sv", "pl", "it") else clause
    if OPPOSED.search(clause) or objection(clause, language):
        return True
    if CONDITIONAL.search(_SIX.sub(" ", clause) if language in ("it", "pt") else clause):
        return True
    return unsure(re.sub(r"\b(?:no|se|ne|o)\b", " ", clause) if language in ("pt", "it", "fr") else clause)


def reports(part: str, wanted: Asked) -> bool:
    """Returns whether a word that the question does not use, such as "should", reports, supposes or plans the value."""
    if _PRICED.search(part) and not _UNREAL_PRICE.search(part):
        part = _PRICED.sub(" ", part)
    return any(
        match[0].lower() not in wanted.doubts
        for match in REPORTS.finditer(MAY.sub(lambda month: " " * len(month[0]), part))
    )


def supposes(part: str) -> bool:
    """Returns whether a sentence begins with a condition that does not name an unknown ("if she is x years old")."""
    concluded = _NAMES_UNKNOWN.match(part) and (SO.search(part) or BY_DOING.match(part))
    return SUPPOSES.match(part) is not None and not (concluded and not unsure(part))
