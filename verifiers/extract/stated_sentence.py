"""The last sentence of a text while it is narrowed to the clause that answers, and the words of the question."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from verifiers.extract.asked import Asked
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.quantities import quantities
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import ASKS_TIME, AT_FIRST
from verifiers.lazy_pattern import any_case, lazy_pattern

UNSURE = Extraction(None, "unsure")  # the text does not commit to a value
NO_ANSWER = Extraction(None, "none")  # nothing shows that the sentence answers
ASKED = 300  # characters of a question
MOST_BEFORE = 40  # quantities read in the question, and in the text before the sentence
_WHICH = any_case(
    r"\b(?:which|what|welche[mnrs]?|quel(?:le)?|qué|qual|quale|che|welk[e]?|vilke[nt]|który\w*"
    r"|jaki\w*)\s+([^\W\d_]{3,})"
)
_ASKED_NAME = lazy_pattern(
    r"(?<![^\W\d_])(?i:find|determine|compute|values? (?:of|for)|what(?: is|['’]s)?|which|solve for|the|finde|bestimme"
    r"|berechne|wert(?:e)? (?:von|für)|welche[sn]?|was ist|trouve[rz]?|valeurs? de|que vaut"
    r"|quel(?:le)?(?: est)?|halla|encuentra|calcula|valor(?:es)? de|cu[áa]l es|encontre|ache|trova|valor[ei] di|найдите"
    r"|значени[ея]|чему равно|求|solve)\s*"
    r"(?:(?i:the|all|a|real|positive|values? of|value of|die|le|la|el|o)\s+)*+[$\\(]*([A-Za-zα-ω])"
    r"(?![\w(^'’]|\s*[(^*/+\-−])"
)
_ASKED_PLACE = any_case(
    r"\b(?:where|(?:at|for|on|in) (?:what|which)|when|wo|wann|(?:für|bei|an) welche\w*|où|quand|(?:pour|en) quel\w*"
    r"|dónde|cuándo|(?:para|en) (?:qué|cuál)|onde|quando|(?:para|em) qu(?:e|al)|dove|(?:per|in) qual\w*)\b"
    r"|(?<!\w)(?:где|когда|(?:при|для|в) как\w+)|何処|どこ|いつ|のとき|哪里|何时|什么时候|어디|언제"
)
_TWO_WORDS = lazy_pattern(r"\b(\w+)\s+(?=(\w+))")
# A denial and the word that it denies.
_DENIAL = any_case(
    r"((?<!\w)(?:not|nicht|keine?|pas|no|non|não|не|niet|inte|nie|không|tidak)(?!\w)(?:\s+(?:l[ao]s?|les?"
    r"|se|es|sie|ihn|them|it)(?=\s))?|ない|没有?|未|不)\s*([^\W\d_]{1,5})"
)
_ASKED_WITH = Gated(
    r"\b(by|at|to|in|from|for|with|on|after|um|auf|mit|nach|in|de|à|en|avec|dans|con|per|di|com|em|por|na|w|o|z|med|met"
    r"|op|на|в|за|с)"
    r"\s+(?:what|which|how|wie|welch\w*|combien|quel\w*|cuánt\w+|qué|quant[oiae]s?|qual[ei]?|che|ile|jak\w+|hoeveel"
    r"|welk\w*|hur|vilk\w+|сколько|как\w+)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What the words of a question show about the answer."""

    denials: frozenset[str]  # beginnings of the words that the question denies
    at_first: bool  # the question asks for an initial state
    time: bool  # the question asks how long or when
    prepositions: frozenset[str]  # "by" of "by how much", "in" of "in which year"
    which: frozenset[str]  # beginnings of the words after "which"
    names: frozenset[str]  # of the unknowns that it asks for: "find x"
    asks_where: bool  # the question asks where or for which values


@dataclass(slots=True)
class Sentence:
    """The last sentence that counts. Its span begins later and ends earlier with each part that is set aside."""

    text: str
    span: Span
    earlier: list[Span]  # the sentences before it
    start: int  # where reading begins in the text
    end: int
    language: str
    prompt: str
    question: Question
    wanted: Asked
    asked: Sequence[Quantity]  # the values of the question
    before: Sequence[Quantity]  # the values of the text before it
    must_contrast: bool  # it counts only if it states a value instead of one that it denies
    whole: Span = (0, 0)  # the sentence with its asides, its premises and its reason
    inside: Sequence[Quantity] = ()  # the values among which is the answer
    denied: set[object] = field(default_factory=set)  # the keys of the values that it denies
    contrasted: bool = False  # it states a value instead of another one
    premised: bool = False  # the clause that answers follows from another clause
    reasoned: bool = False  # a reason follows the clause that answers
    named: bool = False  # the clause that answers names the person or ordinal that the question asks about

    given: frozenset[object] = frozenset()  # the keys of the values of the question

    def __post_init__(self) -> None:
        self.whole = self.span
        self.given = frozenset(quantity.key for quantity in self.asked)

    @property
    def part(self) -> str:
        return self.text[slice(*self.whole)]

    def begin_at(self, position: int) -> None:
        """Leaves out what precedes the position, a condition or a "yes"."""
        self.span = self.whole = (position, self.span[1])


@functools.lru_cache(maxsize=256)
def question_words(asked: str) -> Question:
    return Question(
        frozenset(_denied(found) for found in _DENIAL.finditer(asked)),
        AT_FIRST.search(asked) is not None,
        ASKS_TIME.search(asked) is not None,
        frozenset(found[1].lower() for found in _ASKED_WITH.finditer(asked)),
        frozenset(found[1].lower()[:5] for found in _WHICH.finditer(asked)),
        frozenset(found[1] for found in _ASKED_NAME.finditer(asked)),
        _ASKED_PLACE.search(asked) is not None,
    )


def _denied(denial: re.Match[str]) -> str:
    """Returns the beginning of the denied word; in scripts without spaces between words, its first character."""
    return denial[2].lower() if denial[1].isascii() or denial[1][0] < "\u3000" else denial[2][0]


def without_asked_denials(text: str, sentence: Span, denials: frozenset[str]) -> str:
    """Returns the text without denials that the question uses too ("do not like tea" after "how many do not like")."""
    if not denials:
        return text
    part = _DENIAL.sub(
        lambda denial: " " * len(denial[1]) + denial[0][len(denial[1]) :] if _denied(denial) in denials else denial[0],
        text[slice(*sentence)],
    )
    return text[: sentence[0]] + part + text[sentence[1] :]


@functools.lru_cache(maxsize=256)
def pairs_of_words(asked: str) -> frozenset[tuple[str, str]]:
    """Returns each word of a question paired with the next word."""
    return frozenset((found[1].lower(), found[2].lower()) for found in _TWO_WORDS.finditer(asked))


@functools.lru_cache(maxsize=256)
def values_of_question(prompt: str, language: str) -> Sequence[Quantity]:
    """Returns the quantities of a question. They are cached, because all completions of a group share the question."""
    return quantities(prompt, 0, len(prompt), language)[-MOST_BEFORE:]
