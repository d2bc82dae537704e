"""Finds the name, weekday or date with which the last clause answers questions such as "Who is the tallest?"."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from verifiers.extract.asked_days import DAYS, MONTHS, names_of_days
from verifiers.extract.gates import Gated
from verifiers.extract.numerals import language_of
from verifiers.extract.spans import Span
from verifiers.extract.vocabulary import SAFE
from verifiers.lazy_pattern import any_case, lazy_pattern

_IS = (
    r"(?= (?:is|was|has|had|costs?|weighs?|did|won|runs?|ran|ist|war|hat|kostet|est|a|coûte|es|cuesta|é|è|custa"
    r"|costa)\b)"
)
_WHO = any_case(
    r"(?:^|[.!?,:;。\n]\s*)(?:and |et |und )?¿?(?:who|ai|kim|vem|which of (?:them|the \w+(?: \w+)?)"
    rf"|(?:which|welche[rs]?|cuál|qual|quale)(?: \w+){{0,3}}?{_IS}|l(?:equ|aqu)elle?{_IS}"
    r"|wer|wie(?= (?:is|heeft|loopt|was|krijgt)\b)|qui|qui[eé]n|chi|quem|кто|kto|siapa)(?!\w)"
    r"\s?(?P<predicate>[^.!?,:;\n]{2,80})"
)
_NAME = lazy_pattern(r"\b[^\W\d_a-zß-öø-ÿа-я][^\W\d_]{1,20}\b")
# The words after these are about somebody else or another rank.
_ELSE = any_case(
    r"[,;]|\b(?:than\b|who\b|second|third|fourth|next\b|almost\b|als\b|zweit|dritt|que\b|deuxième|troisième|segund[oa]"
    r"|tercer[oa]?|secondo|terzo|di\b|che\b|dan\b)|(?<!\w)(?:чем|втор|трет)"
)
_WORD = lazy_pattern(r"[^\W\d_]{4,}")
_ANY_WORD = lazy_pattern(r"[^\W\d_]{2,}")
_OF_NAME = any_case(r"\b(?:of|von|de|d['’]|di|van|av|от|у)\s*$")
_STEM = 5  # characters by which words are compared: "najstarszy" and "najstarsza"
# Words that bring in somebody else beside the person that is named.
_BESIDES = any_case(
    r"\b(?:than|but|except|unless|if|after|before|besides|would|als|außer|wenn|nach|vor|sauf|après|avant|después|antes"
    r"|depois|dopo|prima|po|przed|efter|före|voor|que (?=(?-i:[A-ZÀ-Þ]))|salvo|excepto|tranne|niż|oprócz|dan|utom|än)\b"
    r"|(?<!\w)(?:чем|кроме|если|после|до)(?!\w)"
)
# Words before a name that follows its description: "The tallest is Ben", "Самый старший — Петя".
_COPULA = any_case(
    r"(?:\b(?:is|was|ist|war|est|était|es|fue|era|é|foi|è|fu|are)|(?<!\w)это|—|–|\s-|:)\s*(?:(?:the|der|die|o|a|la"
    r"|el|il|le)\s+)?[*_\"“«]*$"
)
_RANKED = any_case(
    r"\b(?:not|second|third|fourth|next|almost|zweit\w*|dritt\w*|nicht|deuxième|troisième|pas|segund[oa]|tercer[oa]?|no"
    r"|não|secondo|terzo|non)\b|(?<!\w)(?:втор|трет|не\b)"
)
_RANK = any_case(
    r"\b(?:second|third|fourth|zweit\w*|dritt\w*|deuxième|troisième|segund[oa]|tercer[oa]?|terceir[oa]|secondo|terzo"
    r"|tweede|derde)\b|(?<!\w)(?:втор\w+|трет\w+)"
)
# "so nobody is taller than"
_NOBODY = any_case(
    r"\W*+(?:(?:so|and|thus|therefore|also|donc|así que|quindi)\s)*(?:nobody|no one|none|niemand|keine[rs]?|personne"
    r"|nadie|ninguém|nessuno|никто)\b[^.,;!?]{0,40}?\s(?P<more>[^\W\d_]{3,})\s(?:than|als|que|do que|di|чем)\s"
)
_WON = frozenset("won wins win winner gewonnen gewinnt gagné gagne ganó gana ganhou vinto vince".split())
_WINS = any_case(
    r"\b(?:winner|w[io]ns?|(?:came|comes?|finish(?:es|ed)|(?:crosses|crossed) the (?:finish(?:ing)? )?line) first"
    r"|(?:gold|first (?:place|prize)|the victory) goes|sieger\w*|gewinnt|gewann|gewonnen|gagnante?|gagne|ganadora?|ganó"
    r"|vencedora?|ganhou|vincitore|vincitrice|vince|vinto)\b"
)
_DID = any_case(r"\s(?:did|does|is|was|has|had|can|will|wins|won|hat|ist|war|it is)[\s.!*_]*")  # "Ben did."
_NOT = any_case(
    r"(?<!\w)(?:not|n['’]t|never|neither|nor|nicht|kein\w*|pas|no|não|non|niet|geen|inte|nie|не|değil|không|bukan|tidak"
    r"|if|unless|except|but|would|fails? to|refuses? to|anything but|far from|stops?|ceases? to)(?!\w)"
)
_RANKED_FIRST = lazy_pattern(r"谁(最[\u4e00-\u9fff])")
# "or" by language, because the same word may mean something else in another language.
_OR = {
    "en": "or", "de": "oder", "fr": "ou", "es": "[ou]", "pt": "ou", "it": "o", "nl": "of", "sv": "eller",
    "pl": "czy|lub|albo", "tr": "veya|yoksa|mi", "vi": "hay|hoặc", "id": "atau", "ru": "или", "ar": "أم|أو", "hi": "या",
}  # fmt: skip
_EITHER = (
    r"(?P<before>(?:[^.;:?!\n]|[.:](?=\d)){1,120}?),? (?:OR) (?P<after>(?:[^,.;:?!؟।\n]"
    r"|[.,:](?=\d)){1,40}?)\s*(?:[,?？؟।]|$)"
)
# Words that limit a question to a place or a measure; an answer need not repeat them: "cheaper per kg".
_WHERE = any_case(
    r"(?<=[^\W\d_]{4}) (?:over|per|in|at|on|for|among|between|auf|pro|für|unter|par|sur|parmi|por|entre|em|na|w|в|на"
    r"|среди)\s"
)
_ARTICLE = any_case(
    r"(?:\d[\d.,]*\s?[^\W\d_]{1,12}\.? (?:of |de |di |d['’]|van |av )?|a|an|the|one|een|de|het|ein|eine|einen"
    r"|der|die|das|un|une|le|la|les|el|los|las|o|os|as|um|uma|il|lo|uno|una|en|ett)(?:(?<=\s)|\s+)"
)
_MOST_WORDS = 3  # words of an alternative
# Things in a question that share a noun: "the blue box", "the red box".
_THE_THING = lazy_pattern(r"\b(?i:the|der|die|das|la|le|el|il|lo|de|het) ([^\W\d_]{3,}) ([^\W\d_]{3,})\b")
_DEGREES = frozenset(
    "more most less least fewer fewest plus moins mehr más menos mais meno meer minst mest daha".split()
)
_SHORT = frozenset("the est ist has had hat war was are der die das les los las dei una del del ont ils".split())
# "Maya is the tallest, not Jon.", "ein Mittwoch und kein Dienstag"
_DENIED_NAME = Gated(
    r"(?:[,;(—–]\s*|\s)(?:(?:and|but|und|et|y|e|en|och|i|и|а)\s)?(?:not|nicht|keine?|pas|no|non(?: pas)?|não|niet|geen"
    r"|inte|nie|ani|ni|не)\s(?:(?:the|an?|on|am|der|die|das|den|eine?|le|la|les|une?|el|los|il|lo|os?|uma?|de|het"
    r"|een|en|ett)\s)?(?P<name>[^\W\d_]{2,}(?:-[^\W\d_]+)?)(?=[\s*_\"”»')]*(?:[.,;!]|$))"
)
THAT_IS = any_case(
    r"^\W*(?:it['’]?s|it is|that['’]?s|that would be|c['’]est|es (?:ist|sind)|das ist|het is|det är|to jest|è|é"
    r"|es|это)\s"
)
# "Carla, who is therefore the tallest"
_WHO_IS = lazy_pattern(
    r",? (?:who|which|qui|der|die|das|que|quien|che|die|dat|som|который|которая|kt[óo]r[ya]) [^.;!?\n]*"
)
_ASIDE = lazy_pattern(r"^, [^,.;]{1,40}, ")
_FEW = 7  # words of a clause such as "so the winner is Ben"


def _at_the_end(text: str, clause: Span, matches: list[re.Match[str]], predicate: frozenset[str]) -> Span | None:
    """Returns the name that ends a clause, if the words before it include all the words of the asked predicate."""
    for match in matches:
        led, rest = text[clause[0] : match.start()], text[match.end() : clause[1]]
        if rest.lstrip(" *_\"”»'")[:1] in ("", ".", ",", "!") and _COPULA.search(led):
            said = {word.lower() for word in _WORD.findall(led)}
            return match.span() if predicate and predicate <= said and not _RANKED.search(led) else None
    return None


def _in_chinese(text: str, clause: Span, rank: str, prompt: str) -> Span | None:
    """Returns the name from the question that stands beside the asked superlative: 小红最高, 最高的是小红."""
    found = set()
    named = rf"{re.escape(rank)}的?(?:人|那个|同学)?是([\u4e00-\u9fff]{{1,3}})(?=[。.!！，,\s]|$)"
    behind = re.search(named, text[slice(*clause)])
    if behind is not None:
        span = clause[0] + behind.start(1), clause[0] + behind.end(1)
        return span if _is_named(behind[1], prompt) else None
    for match in re.finditer(re.escape(rank), text[slice(*clause)]):
        place = clause[0] + match.start()
        found |= {(place - size, place) for size in (3, 2) if _is_named(text[place - size : place], prompt)}
    return min(found) if len({place for _, place in found}) == 1 else None


def _is_named(name: str, prompt: str) -> bool:
    return name.isalpha() and name in prompt and name[-1] not in "中里的个人"


def asks_for_a_name(prompt: str) -> bool:
    """Returns whether a question asks for a name, a weekday, a month or a date."""
    return names_of_days(prompt[-600:]) != (None, False) or "谁" in prompt or _question(prompt[-600:]).names is not None


@dataclass(frozen=True, slots=True)
class _Choice:
    """The alternatives among which a question asks to choose, and the predicate that the right one must fit."""

    names: re.Pattern[str] | None = None
    predicate: frozenset[str] = frozenset()
    worded: bool = False  # the alternatives are adjectives or nouns, not names
    ranks: frozenset[str] = frozenset()  # of the one who is asked for: "second"


@functools.lru_cache(maxsize=256)
def _question(prompt: str) -> _Choice:
    asked = _WHO.search(prompt)
    sentence = prompt[max(prompt.rfind(stop, 0, len(prompt) - 2) for stop in (". ", "! ", "? ", "\n")) + 1 :]
    either = _alternatives(sentence, named=asked is not None)
    if asked is None:
        return _Choice(_any_of(either, prompt), frozenset(), True) if either else _Choice()
    names = frozenset(_NAME.findall(prompt)) - frozenset(_NAME.findall(asked[0][:12]))
    names = frozenset(name for name in names if name[0].isupper() and name.lower() not in SAFE)
    things = _THE_THING.findall(prompt)
    names |= {f"{kind} {thing}" for kind, thing in things if len({first for first, of in things if of == thing}) > 1}
    names = frozenset(f"{name}'s" if _owns(name, prompt) else name for name in names | either)
    said = _WORD.findall(_WHERE.split(asked["predicate"], maxsplit=1)[0]) or _WORD.findall(asked["predicate"])
    if _DEGREES.issuperset(word.lower() for word in said):  # "le plus âgé"
        said += [word for word in re.findall(r"\b[^\W\d_]{3}\b", asked["predicate"]) if word.lower() not in _SHORT]
    if not said and prompt[asked.end() :].lstrip().startswith("?"):
        words = _ANY_WORD.findall(asked["predicate"])
        said = [word for word in words if word.lower() not in SAFE] or words[:1]  # "Ai cao hơn?", "Who won?"
    spoken = {word for name in names for word in name.split()}
    predicate = frozenset(word.lower() for word in said if word not in spoken)
    ranks = frozenset(rank.lower() for rank in _RANK.findall(asked["predicate"]))
    return _Choice(_any_of(names, prompt), predicate, ranks=ranks) if names else _Choice()


def _owns(name: str, prompt: str) -> bool:
    """Returns whether a question names only things of a person, as in "Nora's with 36 or Ben's with 34?"."""
    return f"{name}'s" in prompt and re.search(rf"\b{re.escape(name)}(?!'s)", prompt) is None


def _alternatives(question: str, *, named: bool) -> frozenset[str]:
    """Returns the alternatives of a question such as "even, odd or neither?", or an empty set if they are numbers.

    `named`: a question word stands before the first alternative ("Who is older, Ana or Ben?").
    """
    conjunctions = "|".join({"or", _OR.get(language_of(question), "or")})
    if re.search(rf" (?:{conjunctions}) ", question, re.IGNORECASE) is None:  # rules out most questions at once
        return frozenset()
    found = re.search(_EITHER.replace("OR", conjunctions), question, re.IGNORECASE)
    if found is None:
        return frozenset()
    *listed, last = [part.strip(" \"'*_$") for part in (*re.split(r"[:,](?!\d)", found["before"]), found["after"])]
    first = listed[1:] if named and len(listed) > 1 else listed
    if first is listed:  # the words before the first alternative belong to the question
        first = [" ".join(first[0].split()[-len(last.split()) :]), *first[1:]]
    parts = {_ARTICLE.sub("", part, count=1) for part in (*first, last)}
    if any(len(part.split()) > _MOST_WORDS or not any(char.isalpha() for char in part) for part in parts):
        return frozenset()
    return frozenset(part for part in parts if len(part) > 2)


def _any_of(names: frozenset[str], prompt: str) -> re.Pattern[str]:
    longest = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, longest))})(?![^\W\d_])")


def asked_name(text: str, clause: Span, prompt: str, *, concluded: bool) -> Span | None:
    """Returns the alternative, usually a name, that a clause gives as the answer to the question, or None.

    `concluded`: a word such as "so" begins the clause. The clause then need not repeat the words of the question.
    """
    ranked = _RANKED_FIRST.search(prompt[-600:])
    if ranked is not None:
        return _in_chinese(text, clause, ranked[1], prompt)
    choice = _question(prompt[-600:])
    if choice.names is None:
        return None
    found = list(choice.names.finditer(text, *clause))
    if not found:
        return None
    part = text[slice(*clause)]
    only = len({match[0] for match in found}) == 1
    if only and not choice.worded and _has_the_rank(text, clause, found[0], choice):
        return found[0].span()
    if only and not (
        _NOT.search(part) if choice.worded else _RANKED.search(part) or _BESIDES.search(THAT_IS.sub(" ", part))
    ):
        name = found[-1]
        owned = text.startswith(("'s", "’s"), name.end()) or _OF_NAME.search(text, clause[0], name.start())
        said = {word.lower()[:_STEM] for word in _ANY_WORD.findall(part)}
        asked = bool(choice.predicate) and {word[:_STEM] for word in choice.predicate} <= said
        asked = asked or (not choice.predicate.isdisjoint(_WON) and _WINS.search(part) is not None)
        last = not text[name.end() : clause[1]].strip(" .!*_\"”»'")
        closes = last and len(part.split()) <= _FEW and (concluded or THAT_IS.match(part))
        if not owned and (choice.worded or asked or closes):
            return name.span()
    led = text[clause[0] : found[-1].start()]
    if only and not led.strip(" *_") and _DID.fullmatch(text, found[-1].end(), clause[1]):
        return found[-1].span()
    inverted = _at_the_end(text, clause, found, choice.predicate)
    if inverted is not None:
        return inverted
    for match in found:
        relative = _WHO_IS.match(text, match.end(), clause[1])
        spoken = {word.lower() for word in _WORD.findall(relative[0])} if relative else set()
        if relative and choice.predicate and choice.predicate <= spoken and not _RANKED.search(relative[0]):
            return match.span()
    first = found[0]
    if len(text[clause[0] : first.start()].split()) > 2:
        return None
    rest = _ELSE.split(_ASIDE.sub(" ", text[first.end() : clause[1]]), maxsplit=1)[0]
    words = {word.lower() for word in _WORD.findall(rest)}
    return first.span() if choice.predicate and choice.predicate <= words else None


def without_denied_names(text: str, sentence: Span, prompt: str) -> str:
    """Returns the text without the names, days and months of a question that a sentence only contrasts with others."""
    for found in _DENIED_NAME.finditer(text, *sentence):
        name = text[slice(*found.span("name"))]
        known = DAYS.fullmatch(name) or MONTHS.fullmatch(name)
        if known or (name[0].isupper() and re.search(rf"\b{name}\b", prompt)):
            text = f"{text[: found.start()]}{' ' * len(found[0])}{text[found.end() :]}"
    return text


def _has_the_rank(text: str, clause: Span, name: re.Match[str], choice: _Choice) -> bool:
    """Returns whether a clause gives a name the asked rank ("Dora is second") or says that nobody has more of it."""
    part = text[slice(*clause)]
    if choice.ranks:
        others = [rank for rank in _RANKED.findall(part) if rank.lower() not in choice.ranks]
        said = {word.lower() for word in _WORD.findall(part)}
        return not others and choice.ranks <= said and not _BESIDES.search(part)
    nobody = _NOBODY.fullmatch(text, clause[0], name.start())
    if nobody is None or text[name.end() : clause[1]].strip(" .!*_"):
        return False
    return any(nobody["more"].lower()[:4] == word[:4] for word in choice.predicate)


def opening_name(text: str, sentence: Span, prompt: str) -> Span | None:
    """Returns the name that is the whole sentence ("It's Maya."), or None."""
    names = _question(prompt[-600:]).names if prompt else None
    if names is None:
        return None
    begin = THAT_IS.match(text, *sentence)
    start = begin.end() if begin else sentence[0]
    found = names.search(text, start, sentence[1])
    if found is None or text[start : found.start()].strip(" *_¡") or text[found.end() : sentence[1]].strip(" *_.!,"):
        return None
    return found.span()
