"""Recognises answers by their whole wording: choices, yes and no, no solution, times, dates, numbers in words."""

from __future__ import annotations

import itertools
import re

from verifiers.extract.wordings import ALL_REALS, NO_SOLUTION, TRUTHS
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.marks import LETTER
from verifiers.mathexpr.answers import Answer, Piece
from verifiers.mathexpr.nodes import INFINITY, Node, number
from verifiers.mathexpr.number_words import number_in_words

_TEXT_COMMAND = lazy_pattern(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|mbox|hbox|math(?:rm|bf|it|sf)|operatorname|emph)\s*(?=\{)"
)
_WORD = lazy_pattern(
    rf"[^\W\d_]{LETTER}*|\d+(?:\.\d+)?|[<>=+*/^|%]|(?<=\d)!|(?<![^\W_])-(?=\s?[\d.])"
)  # a hyphen within words is no minus
_ARTICLES = frozenset(["a", "an", "the"])
_EMPTY = lazy_pattern(
    r"(?:there (?:is|are|exists?) )?(?:no|zero) (?:such |real |integer |integral |positive |valid |possible )*"
    r"(?:solutions?|"
    r"roots?|values?|answers?|functions?|pairs?|triples?|integers?|numbers?|intersections?)(?: (?:exists?|in (?:the )?"
    r"(?:reals?|real numbers|integers)|is possible"
    r"|satisf\w+(?!.*\b(?:but|except\w*|besides|apart|other|unless|so|then|only|however)\b).*))?"
    r"|none(?: exists?)?|(?:the )?empty set|null set|"
    r"(?:it is )?impossible|no such \w+(?: exists?)?|(?:die )?leere menge|(?:l)?ensemble vide|(?:el "
    r"|o )?conjunto (?:vacio|vazio)"
    r"|(?:l)?insieme vuoto|пустое множество|空集合?|공집합|المجموعة الخالية"
    r"|(?:(?:the |el |il |le |lo |o |das |la )?(?:system|systeme|sistema|equation|equacao|ecuacion|equazione|gleichung"
    r"|gleichungssystem) )?(?:is |est |es |e |ist )?(?:inconsistent|incompatible|impossible|impossibile|incompatibile"
    r"|imposible|impossivel|unlosbar)(?: (?:in|en|dans|over|em) (?:\\mathbb )?(?:the reals|r))?"
    rf"(?:[:,;] (?:{NO_SOLUTION}))?|(?:{NO_SOLUTION})"
)
_UNDEFINED = lazy_pattern(
    r"(?:the )?(?!not |never |no |nowhere )(?:\w+ )?"
    r"(?:does not exist|doesnt exist|dne|(?:is )?undefined|not defined|indeterminate)"
)
_ALL_REALS = lazy_pattern(
    r"(?:x (?:is|can be) )?(?:all|any|every) (?:reals?|real (?:numbers?|values?)(?: of [a-z])?|real [a-z])"
    r"|the real numbers|" + ALL_REALS
)
_TRUTHS = {"yes": "yes", "true": "yes", "no": "no", "false": "no", **TRUTHS}
_SAID_FIRST = lazy_pattern(r"\**([^\W\d_]{2,12}|[是对错])\**\s*[.,:;!—–，。、-]\**\s*(\S.*)", re.DOTALL)
_PLAIN_LETTERS = lazy_pattern(r"[*_]")
_LIMITS = any_case(
    r"\b(?:but|if|unless|only|except|maybe|perhaps|possibly|probably|or|wait|however|depends?|depending|although|though"
    r"|not really|not quite|when|whenever|provided|assuming|sometimes|wrong|incorrect|mistaken|sorry|i|we|you|let"
    r"|question|problem|task|aber|wenn|falls|nur|oder|ich|wir|mais|si|seulement|ou|je|nous|pero|solo|sólo|o|yo|mas|se"
    r"|ou|eu|ma|solo|не|но|если|только|или|я)\b|[?？]|但|如果|只有|或|しかし|もし|我|하지만|만약|لكن|إذا"
)  # words after a "Yes" that may limit or revoke it
_CHOICE = lazy_pattern(r"\(\s*([A-Z])\s*\)|([A-J])|([A-J])[.):]|\[([A-J])\]|([A-J])\s*\(")
_CHOICE_TEXT = lazy_pattern(r"(?:\(\s*([A-J])\s*\)|([A-J])\s*[.):])\s*[:.]?\s*(\S.*)", re.DOTALL)
_JOINS = any_case(
    r"(?:or|and|oder|und|ou|et|o|y|e|lub|или|и|veya)\b|[,;/|&]|\\(?:lor|vee|cup|text\{\s*or)|或|和|または|또는"
)
_OTHER_OPTION = lazy_pattern(r"(?:^|\s)\(?[A-J][).](?:\s|$)")
_CHOICE_WORD = any_case(
    r"(?:(?:the|la|el|a|o|il|le|die|der) )?(?:(?:correct )?(?:option|choice|answer|alternative|opcion|alternativa|letra"
    r"|respuesta|opcao|resposta|reponse|proposition|choix|opzione|risposta|antwort|вариант(?: ответа)?|الخيار|选项"
    r"|選択肢|विकल्प)(?: is)?:?\s*|(?<=a )|(?<=l )|(?<=e )|(?<=r ))\(?([A-J])\)?(?: (?:sikki(?:dir)?|şıkkı(?:dır)?))?\.?"
)  # "option B", "la opción B", "la B"
_REMAINDER = lazy_pattern(
    r"(\d+)\s*,?\s*(?:with |mit |avec |con |com |e |y |et |и |с )?(?:a |un |uno )?(?:r|rem|remainder|rest|reste|resto"
    r"|остаток|остатком|余り?|餘|あまり|나머지)\.?(?: of| von| de| di)?\s*(\d+)"
)
_CLOCK = any_case(r"(\d{1,2})\s*[:h]\s*(\d{2})(?:\s*:\s*(\d{2}))?\s*(?:hours|hrs)?\s*([ap])?(?:\.?\s*m\.?)?")
_HOUR = any_case(r"(\d{1,2})\s*(?:o'?\s*clock)?\s*(?:([ap])\.?\s*m\.?|o'?\s*clock(?:\s*([ap])\.?\s*m\.?)?)")
_CLOCK_EAST = lazy_pattern(
    r"(?:([上早]|凌晨|午前|오전)午?上?|(下午|晚上|午後|오후))?\s*(\d{1,2})\s*[時时点點시](?:\s*(\d{1,2})\s*(?:[分분]|minutes)|([半반])|[钟整])?"
)
_UHR = lazy_pattern(r"(\d{1,2})(?:[.:](\d{2}) uhr| uhr(?: (\d{1,2}))?)|(\d{1,2})[.:](\d{2}) uur")
_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = (
    lazy_pattern(
        rf"(?:(?P<w>\w+day),? )?(?:the )?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})(?:,? (?P<y>\d{{4}}))?"
    ),
    lazy_pattern(rf"(?:(?P<w>\w+day),? )?(?P<m>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y>\d{{4}}))?"),
    lazy_pattern(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"),
    lazy_pattern(r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})"),
)
_DATED = lazy_pattern(
    r"((?:[^\W\d_]+ ){0,3}(?:date|day|time|deadline|arrival|departure|end|due|datum|uhrzeit|ankunft|abfahrt|fecha|hora"
    r"|data|horario|heure|date limite|ora|orario|tijd|tid|godzina|tarih|saat|дата|время|срок)): (.{3,40})"
)  # "Due date: March 4"
_OTHER_DATE = lazy_pattern(
    r"\b(?:not?|wrong|false|old|incorrect|before|after|nicht|kein\w*|falsch\w*|no|pas|non|nie|не)\b"
)
_NO_WORDING = ("\\frac", "\\sqrt", "\\left", "\\begin", "\\pi", "\\{")


def plain_words(text: str) -> str:
    """Returns the text without LaTeX commands and outer punctuation: `\\text{No solution.}` is "No solution"."""
    text = _TEXT_COMMAND.sub("", text)
    text = re.sub(r"\\[,;:! ]|[{}~]", " ", text)
    return " ".join(text.split()).strip(' .,;!"')


def text_words(text: str) -> tuple[str, ...]:
    """Returns the words, numbers and signs by which two texts are compared: in lower case, without articles."""
    text = re.sub(r"\\(?=[A-Za-z])", " ", _TEXT_COMMAND.sub("", text)).casefold().replace("'", "")
    words = _WORD.findall(text)
    pairs = itertools.zip_longest(words, words[1:], fillvalue="")
    return tuple(word for word, following in pairs if not _is_article(word, following))


def _is_article(word: str, following: str) -> bool:
    """Returns whether the word is an article; "a" is one only before a word, and otherwise a name."""
    return word in _ARTICLES and (word != "a" or len(following) > 1 or not following)


def whole_form(text: str) -> Answer | None:
    """Returns the answer if the whole wording is known, else None."""
    if text.startswith(_NO_WORDING):
        return None
    plain = plain_words(text)
    if len(plain) > 200:
        return None
    lower = plain.casefold().replace("'", "").replace("no. of", "number of")
    if lower in _TRUTHS:
        return Answer("truth", words=(_TRUTHS[lower],))
    if len(plain) <= 4:
        choice = _CHOICE.fullmatch(plain)
        if choice:
            letter = next(group for group in choice.groups() if group)
            return Answer("choice", words=(letter,))
    worded = lower[:1].isalpha() and not lower[1:2].isdigit()
    if worded and _EMPTY.fullmatch(lower):
        return Answer("empty")
    if worded and _UNDEFINED.fullmatch(lower):
        return Answer("undefined")
    if worded and _ALL_REALS.fullmatch(lower):
        return Answer("region", pieces=(Piece(Node("neg", (INFINITY,)), False, INFINITY, False),))
    if lower in ("infinity", "positive infinity", "+infinity", "negative infinity", "minus infinity", "-infinity"):
        negative = lower[0] in "nm-"
        return Answer("scalar", Node("neg", (INFINITY,)) if negative else INFINITY)
    remainder = _REMAINDER.fullmatch(lower) if lower[-1:].isdigit() and not lower.isdigit() else None
    if remainder:
        return Answer("text", words=(remainder[1], "remainder", remainder[2]))
    labelled = _DATED.fullmatch(lower) if ": " in lower else None
    if labelled and not _OTHER_DATE.search(labelled[1]):
        return _time(labelled[2]) or _date(labelled[2])
    form = _choice(plain) or _time(lower) or _date(lower)
    value = number_in_words(lower) if form is None else None
    return form if value is None else Answer("scalar", number(value))


def said_first(text: str) -> str:
    """Returns the "Yes" of "Yes, the lines are parallel."; "" if the rest may limit or revoke it."""
    match = _SAID_FIRST.fullmatch(text.strip())
    if match is None or _LIMITS.search(match[2]):
        return ""
    word = plain_words(_PLAIN_LETTERS.sub("", match[1])).casefold()
    if _TRUTHS.get(word) is None or any(_TRUTHS.get(other) for other in re.findall(r"[^\W\d_]+", match[2].casefold())):
        return ""
    return match[1]


def _choice(plain: str) -> Answer | None:
    worded = _CHOICE_WORD.fullmatch(plain)
    if worded and worded[1].isupper():
        return Answer("choice", words=(worded[1],))
    texted = _CHOICE_TEXT.fullmatch(plain)
    if texted and not _OTHER_OPTION.search(texted[3]) and not _JOINS.match(texted[3]):
        return Answer("choice", words=(texted[1] or texted[2], texted[3]))
    return None


def _time(lower: str) -> Answer | None:
    if lower in ("noon", "12 noon", "midnight", "12 midnight"):
        return Answer("clock", words=("12:00:00", "p" if "noon" in lower else "a"))
    match = _CLOCK.fullmatch(lower)
    if match:
        hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
        if hour > 24 or minute > 59 or second > 59:
            return None
        if match[3] and not match[4] and not any(part.startswith("0") for part in match.groups()[1:3]):
            return None  # 7:18:16 is a ratio, 7:08:16 a time
        parts = [part for part in (match[1], match[2], match[3]) if part]
        ratio = () if match[4] else tuple(Answer("scalar", number(int(part))) for part in parts)
        said = f"{hour}:{minute:02}:{second:02}", (match[4] or "").lower()
        return Answer(
            "clock", words=said, items=ratio, name="h" if "h" in lower[: match.end(2)] and not match[4] else ""
        )
    match = _HOUR.fullmatch(lower)
    if match and 0 < int(match[1]) <= 12:
        return Answer("clock", words=(f"{int(match[1])}:00:00", (match[2] or match[3] or "").lower()))
    east, uhr = _CLOCK_EAST.fullmatch(lower), _UHR.fullmatch(lower)
    if east or uhr:
        hour = int(east[3] if east else (uhr[1] or uhr[4]) if uhr else 0)
        minute = int(east[4] or (30 if east[5] else 0)) if east else 0
        minute = int(uhr[2] or uhr[3] or uhr[5] or 0) if uhr else minute
        half = "" if east is None else "a" if east[1] else "p" if east[2] else ""
        half = "a" if east and east[2] == "晚上" and hour == 12 else half  # midnight
        return Answer("clock", words=(f"{hour}:{minute:02}:00", half)) if hour < 25 and minute < 60 else None
    return None


def _date(lower: str) -> Answer | None:
    for pattern in _DATES:
        match = pattern.fullmatch(lower)
        if not match:
            continue
        parts = match.groupdict()
        year = parts.get("y") or ""
        if "a" in parts:  # day and month in either order
            a, b = int(parts["a"]), int(parts["b"])
            readings = [(m, d) for m, d in ((a, b), (b, a)) if 1 <= m <= 12 and 1 <= d <= 31]
        else:
            month = parts["m"]
            m = int(month) if month.isdigit() else _MONTHS[month[:3]]
            d = int(parts["d"])
            readings = [(m, d)] if 1 <= m <= 12 and 1 <= d <= 31 else []
        if readings:
            weekday = parts.get("w")
            words = tuple(dict.fromkeys(f"{year}-{m}-{d}" for m, d in readings))
            return Answer("date", words=words, label=(weekday,) if weekday else ())
    return None
