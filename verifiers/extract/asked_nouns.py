"""Finds the expression that a sentence gives for what the question names: "So the period is π.", "The roots are ...".

Numbers with their units are found elsewhere. Here the value is whatever stands between the verb and the end of the
sentence, such as an interval, an equation or a list of roots; the verifier has to be able to read all of it.
"""

from __future__ import annotations

from verifiers.extract.asked import Asked
from verifiers.extract.asked_nouns_east import eastern_noun_value
from verifiers.extract.clauses import opposed, reports, supposes
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import UNREAL
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import lazy_pattern

_LONGEST = 80  # characters of a value
_MOST_WORDS = 4  # of two letters or more, in a value
_ADVERB = (
    r"(?:(?:therefore|thus|then|also|exactly|simply|just|indeed|given by|equal to|somit|demnach|folglich|daher|genau"
    r"|donc|alors|exactement|entonces|por tanto|portanto|quindi|dus|dan|daarom)\s)?"
)
_IS = lazy_pattern(
    r"(?<![^\W\d_])(?P<noun>[^\W\d_]{3,})(?:\s[A-Z]{1,3})?(?P<of>\s(?:of|for|to|with|von|des|der|für|de|du|del|da|do|di|della|van)\s"
    r"[^.,;:=]{1,60}?|\s(?:we(?:['’]re| are) looking for|we (?:want|need|seek)|asked for|in question))?\s"
    r"(?P<is>is|are|was|were|equals?|becomes?|comes out (?:to|as|at)|turns out to be|works out to|simplifies to"
    r"|must be|has to be|lies at|is (?:located )?at|sits at|ist|sind|beträgt|lautet|lauten|wird|liegt bei|est|sont|vaut"
    r"|valent|devient|se trouve en|es|son|vale|valen|queda|resulta(?: ser| em)?|está e[nm]|é|são|valem|fica|è|sono"
    r"|valgono|diventa|risulta|si trova in|wordt|worden|ligt (?:bij|op)|jest|są|sunt|este|wynosi|равен|равна|равно"
    r"|равны|составляет|это|—|–|:)\s"
    rf"{_ADVERB}(?:(?:the numbers|die zahlen|les nombres|los números|os números|i numeri|числа|liczby|numerele)\s)?",
)
_SLAVIC = lazy_pattern("[ąćęłńśźżА-я]")
_IS_SLAVIC = lazy_pattern(  # "równanie prostej ma postać y = x", "уравнение прямой имеет вид y = x"
    r"(?<![^\W\d_])(?P<noun>[^\W\d_]{3,})(?:\s[^\W\d_]+){0,2}?\s(?:ma postać|przyjmuje postać|to|jest równ[aey]|wynosi"
    r"|jest(?: zatem| więc)?|(?:znajduje się|leży) w(?: punkcie)?|имеет вид|принимает вид|находится в(?: точке)?"
    r"|равн[ао]|равен|равны|будет|составляет|—|–)\s(?=[-−]?[\d(\[{√π]|[A-Za-z]\b)"
)
_HAS = lazy_pattern(  # "the matrix has eigenvalues 3 and 1"
    r"(?<![^\W\d_])(?:has|have|hat|haben|a|ont|tiene|tienen|tem|têm|ha|hanno)\s(?:the\s|les\s|los\s|as\s|os\s|le\s)?"
    r"(?P<noun>[^\W\d_]{4,})\s(?=[-−]?[\dπ√])"
)
_VERB_FIRST = lazy_pattern(  # "somit lautet die Ableitung 6x", "dus is de top (2, -3)"
    r"\b(?:lautet|lauten|ist|sind|beträgt|ergibt sich|is|zijn|wordt|luidt)\s"
    r"(?:(?:also|somit|demnach|folglich|daher|dann|dus|dan)\s)?(?:der|die|das|de|het)\s(?P<noun>[^\W\d_]{3,})"
    r"(?:\s(?:von|der|des|van|de|het)\s[^.,;:=]{1,40}?)?\s(?=[-−]?[\d(\[{√π]|[A-Za-z]\b)"
)
_ANSWERS = frozenset(
    "answe resul solut root roots value integ deriv limit antid lösun ergeb antwo werte nulls resul répon racin valeu"
    " soluc respu valor raíce respo soluç soluz rispo risul radic корни ответ решен значе".split()
)
_NOT_ITS_OWN = lazy_pattern(
    r"\b(?:of|for|von|des|der|de|du|del|da|do|di|della)\s(?:(?:the|la|le|el|il|a|o|los|las)\s)?$"
)
_MEMBER = lazy_pattern(r"(?<![\w\\])[a-z]\s?∈\s?(\{[^{}]{1,80}\}|[\[(\]][^()\[\]]{1,80}[\])\[])[.\s*]*$")
_WORDS = lazy_pattern(r"[^\W\d_]{2,}")
_MATHS = lazy_pattern(
    r"\d\s(?:and|und|et|y|e|и|și|i|en|och)\s[-−]?\d|[-−+*/^=<>≤≥√π∞²³(\[{|]|(?<![^\W\d_])[A-Za-z](?![^\W\d_])"
    r"|\binfinity\b|\b(?:negative|minus) "
)
_AND = lazy_pattern(r"(?<=[\w)\]√π²³])\s(?:and|und|et|y|e|и|și|i|och|en)\s(?=[-−(\[\w√π])")
# An aside that ends the sentence: "(-2, 5], open on the left".
_ASIDE = lazy_pattern(
    r",\s(?=(?:open|closed|or (?:about|roughly|approximately)|so|since|because|as|which|(?:with|where"
    r"|for) [^,.;\d]{0,40}\b(?:constants?"
    r"|integers?|arbitrary|any|all|every|real|Konstante|constante|entier|ganz\w*)\b)\b)"
)
_IN_BRACKETS = lazy_pattern(r"\s\([^\W\d_]{2,}(?:\s[^\W\d_]{2,}){0,2}\)")  # "x = 2 (vertical)"


def noun_value(text: str, span: Span, wanted: Asked, language: str) -> Extraction | None:
    """Returns what the sentence at `span` says that the thing in question is, if it is not a plain number, or None."""
    part = text[slice(*span)]
    member = _MEMBER.search(part)
    if member is not None and not (opposed(part, language) or reports(part, wanted) or supposes(part)):
        return Extraction((span[0] + member.start(1), span[0] + member.end(1)), "statement", said=member[1])
    start = _after_verb(part, wanted)
    said = "" if start is None else part[start:].rstrip(" .!*_\n")
    if start is None:
        eastern = eastern_noun_value(part, wanted.sentence)
        if eastern is None:
            return None
        start, said = eastern
    aside = _ASIDE.search(said)
    rest = said[aside.start() :] if aside else ""
    said = _IN_BRACKETS.sub("", said[: aside.start()] if aside else said)
    led = part[:start]
    if not said or len(said) > _LONGEST or len(_WORDS.findall(said)) > _MOST_WORDS or _MATHS.search(said) is None:
        return None
    doubted = (
        opposed(clause, language) or reports(clause, wanted) or UNREAL.search(clause)
        for clause in (led, rest)
        if clause
    )
    if any(doubted) or supposes(part) or CORRECTION.search(part) or "?" in part or ". " in said:
        return None
    start += span[0]
    return Extraction((start, start + len(said)), "statement", said=_AND.sub(", ", said))


def _after_verb(part: str, wanted: Asked) -> int | None:
    """Returns where the value begins in "the NOUN is VALUE" or "it has the NOUN VALUE", or None."""
    asked = _ANSWERS | {word[:5].lower() for word in _WORDS.findall(wanted.sentence) if len(word) > 2}
    found = None
    slavic = _IS_SLAVIC.finditer(part) if _SLAVIC.search(part + wanted.sentence) else ()  # the English "to" is no verb
    for match in (*_HAS.finditer(part), *_VERB_FIRST.finditer(part), *slavic, *_IS.finditer(part)):
        if match["noun"][:5].lower() in asked and not _NOT_ITS_OWN.search(part[: match.start()]):
            found = match
    return found.end() if found is not None else None


def is_formula(said: str) -> bool:
    """Returns whether a value is more than a number with its unit and contains no words."""
    return _WORDS.search(_FUNCTIONS.sub(" ", said)) is None and _OPERATES.search(said) is not None


_FUNCTIONS = lazy_pattern(r"(?:sin|cos|tan|ln|log|exp|sqrt|arctan|arcsin|arccos)(?![A-Za-z])")
_OPERATES = lazy_pattern(r"[=<>≤≥\[({|√π∞^²³]|[\w)]\s?[-−+*/·]\s?[\w(]|,\s")
