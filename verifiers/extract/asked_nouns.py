"""Finds the expression that a sentence gives for what the question names: "So the period is π.", "The roots are ...".

Numbers with their units are found elsewhere. Here the value is whatever stands between the verb and the end of the
sentence, such as an interval, an equation or a list of roots; the verifier has to be able to read all of it. Languages
without spaces or with the verb last have patterns of their own: "方程为 VALUE", "방정식은 VALUE입니다".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from verifiers.extract.asked import Asked
from verifiers.extract.clauses import opposed, reports, supposes
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import UNREAL
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

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
_FUNCTIONS = lazy_pattern(r"(?:sin|cos|tan|ln|log|exp|sqrt|arctan|arcsin|arccos)(?![A-Za-z])")
_OPERATES = lazy_pattern(r"[=<>≤≥\[({|√π∞^²³]|[\w)]\s?[-−+*/·]\s?[\w(]|,\s")
_COMMA = lazy_pattern("[,，、;；:：]")
_PARTICLE = lazy_pattern("[的のはがをに]")
_OF_NOUN = lazy_pattern(
    r"的?(?:坐标|座标|值|表达式|解析式)?(?:就|则|即|应|便|恰好|正好)?$|の(?:座標|値|式|範囲)$|의 (?:좌표|값|식|범위)$"
)
_EASTERN_ANSWERS = frozenset("答案 结果 結果 解集 答え 解 답 정답 해 결과 cevap yanıt sonuç çözüm".split())
_EASTERN_FUNCTIONS = lazy_pattern(r"\b(?:sin|cos|tan|ln|log|exp|sqrt)\b")
_EASTERN_WORD = lazy_pattern("[ぁ-ヿ一-鿿가-힣]")


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
    for clause in filter(None, (led, rest)):
        if opposed(clause, language) or reports(clause, wanted) or UNREAL.search(clause):
            return None
    if supposes(part) or CORRECTION.search(part) or "?" in part or ". " in said:
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


class _Language(NamedTuple):
    says: re.Pattern[str]  # from the noun to where the value begins; the value goes on to the end or the verb
    verb: re.Pattern[str]
    concludes: re.Pattern[str]  # words that may begin the clause
    stem: int  # the first (or last, without spaces) characters of the noun that the question must contain


_LANGUAGES = (
    _Language(
        says=lazy_pattern(
            r"(?P<noun>[一-鿿]{2,12})(?<![不非])(?:就是|则是|應是|应是|应为|应该是|即为|便是|恰好是|正好是|等于|等於|是|为|為)"
            r"[:：]?\s?(?=[^一-鿿]+$)"
        ),
        verb=lazy_pattern("$"),
        concludes=lazy_pattern(
            r"^(?:所以|因此|因而|于是|从而|故|那么|综上(?:所述)?|由此(?:可[得知见])?|可[得知见]|这样|得到?|则|即)?"
            r"(?:所求的?|该|这个|其|它的)?"
        ),
        stem=-2,
    ),
    _Language(
        says=lazy_pattern(
            r"(?P<noun>[ぁ-ヿ一-鿿]{2,12})は[、,]?\s?(?=[^ぁ-ヿ一-鿿、]+(?:[ぁ-ん求分出]{1,10})?[。.]?\s?$)"
        ),
        verb=lazy_pattern(
            r"\s?(?:である|です|だ|(?:と|に)(?:なる|なります)|と(?:分か|わか|求ま)(?:る|ります)|と求められ(?:る|ます))$"
        ),
        concludes=lazy_pattern(
            r"^(?:したがって|従って|よって|ゆえに|すなわち|つまり|以上(?:から|より)|これ(?:から|より)|この)?(?:求める)?"
        ),
        stem=-2,
    ),
    _Language(
        says=lazy_pattern(
            r"(?P<noun>[가-힣]{2,8}(?:의 (?:좌표|값|식|범위))?)(?:은|는|이|가)\s(?=[^가-힣]+(?:[가-힣 ]{1,8})?\.?\s?$)"
        ),
        verb=lazy_pattern(r"\s?(?:입니다|이다|예요|이에요|[이가] (?:됩니다|된다|돼요)|(?:과|와) 같(?:습니다|다))$"),
        concludes=lazy_pattern(r"^(?:따라서|그러므로|즉|결국|그래서|이때|이)?\s?(?:구하는|구하고자 하는|이)?\s?"),
        stem=2,
    ),
    _Language(
        says=lazy_pattern(
            r"(?<![^\W\d_])(?P<noun>[^\W\d_]{3,})\s(?=(?:[-−]?[\d(\[{√π]|[A-Za-z](?:\([A-Za-z]\))?\s?[=<>≤≥+*/−-])"
            r".{0,80}(?:['’]?(?:d[ıiuü]r|t[ıiuü]r)|\solur|\solarak|\sbulunur|\selde edilir)[.*\s]*$)"
        ),
        verb=lazy_pattern(
            r"(?:['’]?(?:d[ıiuü]r|t[ıiuü]r)|\s(?:olur|olarak (?:bulunur|elde edilir)|bulunur|elde edilir|şeklindedir"
            r"|noktasıdır|olmalıdır|aralığıdır|denklemidir))$"
        ),
        concludes=any_case(
            r"^(?:o h[âa]lde|buna göre|dolayısıyla|sonuç olarak|yani|böylece|bu durumda|öyleyse|demek ki|bu nedenle"
            r"|istenen)?\s?"
        ),
        stem=4,
    ),
)


def eastern_noun_value(part: str, question: str) -> tuple[int, str] | None:
    """Returns where the value begins that a sentence gives to a noun of the question, and the value, or None."""
    for language in _LANGUAGES:
        found = language.says.search(part)
        if found is None:
            continue
        if not (_is_asked(_OF_NOUN.sub("", found["noun"]), language, question)
                and _repeats(part[: found.end("noun")], language, question)):  # fmt: skip
            return None
        said = part[found.end() :].rstrip(" .!*_\n。！")
        verb = language.verb.search(said)
        said = said[: verb.start()] if verb is not None else said
        unread = _EASTERN_WORD.search(said) or _WORDS.search(_EASTERN_FUNCTIONS.sub(" ", said))  # "(2, -3)일 것"
        return None if unread else (found.end(), said)
    return None


def _is_asked(noun: str, language: _Language, question: str) -> bool:
    stem = noun[language.stem :] if language.stem < 0 else noun[: language.stem]
    return noun.lower() in _EASTERN_ANSWERS or stem.lower() in question.lower()


def _repeats(led: str, language: _Language, question: str) -> bool:
    """Returns whether the last clause so far has only words of the question behind one that concludes ("所以")."""
    clause = language.concludes.sub(" ", _COMMA.split(led)[-1].strip(" *_"), count=1)
    words = _WORDS.findall(_OF_NOUN.sub("", clause))
    if language.stem < 0:
        words = [word for run in words for word in _PARTICLE.split(run) if len(word) > 1]
    return all(word in _EASTERN_ANSWERS or word.lower()[: abs(language.stem)] in question.lower() for word in words)
