"""Finds "NOUN is VALUE" in languages without spaces or with the verb last: "方程为 VALUE", "방정식은 VALUE입니다"."""

from __future__ import annotations

import re
from typing import NamedTuple

from verifiers.lazy_pattern import any_case, lazy_pattern


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
_COMMA = lazy_pattern("[,，、;；:：]")
_PARTICLE = lazy_pattern("[的のはがをに]")
_OF_NOUN = lazy_pattern(
    r"的?(?:坐标|座标|值|表达式|解析式)?(?:就|则|即|应|便|恰好|正好)?$|の(?:座標|値|式|範囲)$|의 (?:좌표|값|식|범위)$"
)
_ANSWERS = frozenset("答案 结果 結果 解集 答え 解 답 정답 해 결과 cevap yanıt sonuç çözüm".split())
_WORDS = lazy_pattern(r"[^\W\d_]{2,}")
_FUNCTIONS = lazy_pattern(r"\b(?:sin|cos|tan|ln|log|exp|sqrt)\b")
_EASTERN_WORD = lazy_pattern("[ぁ-ヿ一-鿿가-힣]")


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
        unread = _EASTERN_WORD.search(said) or _WORDS.search(_FUNCTIONS.sub(" ", said))  # "(2, -3)일 것"
        return None if unread else (found.end(), said)
    return None


def _is_asked(noun: str, language: _Language, question: str) -> bool:
    stem = noun[language.stem :] if language.stem < 0 else noun[: language.stem]
    return noun.lower() in _ANSWERS or stem.lower() in question.lower()


def _repeats(led: str, language: _Language, question: str) -> bool:
    """Returns whether the last clause so far has only words of the question behind one that concludes ("所以")."""
    clause = language.concludes.sub(" ", _COMMA.split(led)[-1].strip(" *_"), count=1)
    words = _WORDS.findall(_OF_NOUN.sub("", clause))
    if language.stem < 0:
        words = [word for run in words for word in _PARTICLE.split(run) if len(word) > 1]
    return all(word in _ANSWERS or word.lower()[: abs(language.stem)] in question.lower() for word in words)
