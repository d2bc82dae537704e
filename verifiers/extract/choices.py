"""Finds the one option that the closing clauses call right: "A is wrong. Option B is correct.", "La correcta es la B."

A clause counts only if all of its words say that one letter is right or wrong. Other words could reverse its meaning.
"""

from __future__ import annotations

from verifiers.extract.spans import Span
from verifiers.extract.words import any_of
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 600  # characters before the end in which clauses are searched
_LATEST = 80  # characters before the end in which a letter must occur
_LETTER = r"[(*$]{0,4}[A-J][)*$]{0,4}(?![\w'’])"
_NOUN = (
    r"(?i:options?|choices?|answers?|statements?|opción|alternativas?|respuestas?|opções|opção|letra|resposta|réponse"
    r"|proposition|option|choix|opzione|risposta|alternativa|antwort(?:möglichkeit)?|aussage|вариант(?:\s+ответа)?"
    r"|ответ|утверждение|optie|antwoord|odpowiedź|seçenek|şık|phương án|đáp án|jawaban|pilihan|الخيار|الإجابة|विकल्प"
    r"|उत्तर|選択肢|选项|選項|선택지|보기)"
)
RIGHT = (
    r"(?i:correct|right|true|valid|the\s+(?:correct|right|best)\s+(?:one|answer|option|choice)|the\s+(?:answer|one)"
    r"|(?:la\s+|el\s+)?(?:respuesta\s+|opción\s+)?(?:correct[ao]|verdader[ao])|(?:a\s+|o\s+)?(?:corret[ao]|cert[ao]"
    r"|verdadeir[ao])"
    r"|(?:la\s+)?(?:bonne(?:\s+réponse)?|correcte?|juste|exacte|vraie)|(?:la\s+)?(?:corrett[ao]|giust[ao]|ver[ao])"
    r"|(?:die\s+)?(?:richtige?|korrekt|wahr)(?:\s+antwort)?|верн(?:ый|ое|о|ая)|правильн(?:ый|ое|о|ая)|juist|correct"
    r"|poprawna|prawidłowa|doğru(?:dur)?|đúng|benar|صحيحة?|الصحيحة?|सही)"
)
_WRONG = (
    r"(?i:(?:\w+ly\s+)?(?:wrong|incorrect|false|invalid|untrue|impossible|excluded|ruled\s+out|eliminated)"
    r"|not\s+(?:correct|right|true|valid)|incorrect[ao]|fals[ao]|incorret[ao]|errad[ao]|fausse|incorrecte|faux"
    r"|errat[ao]|sbagliat[ao]|falsch|nicht\s+richtig|неверн(?:ый|ое|о|ая)|неправильн(?:ый|ое|о|ая)|onjuist|fout"
    r"|niet\s+juist|błędna|yanlış(?:tır)?|sai|salah|خاطئ|خاطئة|गलत)"
)
_IS = r"(?i:is|are|was|must\s+be|es|é|est|è|ist|—|-|:|to|jest|là|adalah|هو|هي|on)"
_ARTICLE = r"(?i:(?:the|la|el|a|o|il|le|l['’]|die|der|het|de)\s*)?"
_LEAD = (
    r"(?:[\s>*_#-]*+(?i:(?:so|thus|hence|therefore|then|and|but|finally|only|clearly|consequently|thereby|overall"
    r"|por\s+(?:lo\s+)?tanto|entonces|así\s+que|solo|sólo|portanto|logo|assim|donc|ainsi|seule?|quindi|dunque|solo|also"
    r"|daher|somit|nur|значит|поэтому|следовательно|таким\s+образом|только|dus|więc|إذن|لذلك|अतः|इसलिए|所以|因此|故"
    r"|综上|从而|只有|而|よって|したがって|ゆえに|따라서|그러므로)(?![^\W\d_])[\s,:，、]*+|){1}[\s>*_#-]*+)"
)
_CJK_RIGHT = "正确|正確|对|對|正しい|正解|맞(?:다|습니다)|옳(?:다|습니다)|올바른|정답"
_CJK_WRONG = "错误|錯誤|错|錯|不正确|不正確|不对|不對|誤り|間違い|間違っている|正しくない|틀(?:리다|렸다|립니다)"
_CJK_LEAD = r"(?:(?:所以|因此|故|综上|从而|只有|而|よって|したがって|ゆえに|따라서|그러므로)[，、,:：\s]*)?"
_CLAUSES = lazy_pattern(
    r"(?<=[\s)*A-Za-zÀ-ÿ])[.!](?=[\s*_]|$)|(?<=\d)\.(?=\s+[^\W\d_])|[。！;；\n]|,(?=[\s\u4e00-\u9fff])|，|、|।"
)
_ENDS = ".!。！;；\n।"
_STANDS = lazy_pattern(r"[A-J](?<![A-Za-z].)(?![A-Za-z])")  # the search skips to the class, which is first
_ONLY_LEAD = lazy_pattern(_LEAD)
# A conclusion after a comma. The words before it are its reason, unless they are a condition.
_CONCLUDING = any_case(
    r"\s*(?:so|thus|hence|therefore|donc|also|daher|somit|así que|por tanto|portanto|logo|quindi|dunque|значит|поэтому)"
    r"(?![^\W\d_])|\s*(?:所以|因此|故|よって|따라서)"
)
_CONDITIONAL = any_case(
    r"(?<![^\W\d_])(?:if|unless|were|would|suppose\w*|assum\w+|wenn|falls|si|se|если|says?|said|thinks?|claims?|not"
    r"|whether)"
    r"(?![^\W\d_])|如果|假设|もし|만약|[?？]"
)


def _says(value: str) -> str:
    return any_of(
        rf"{_ARTICLE}(?:{_NOUN}\s+)?(?P<{{0}}1>{_LETTER})(?:\s+{_NOUN})?\s+(?:{_IS}\s+)?{value}(?:\s+है)?",
        rf"{_ARTICLE}(?:(?:{value})\s+{_NOUN}|{_NOUN}\s+(?:{value})"
        rf"|{value})\s*{_IS}\s*{_ARTICLE}(?:{_NOUN}\s+)?(?P<{{0}}2>{_LETTER})",
    )


def _cjk(value: str) -> str:
    return any_of(
        rf"(?:选项|選項|選択肢|선택지|보기)?\s*(?P<{{0}}3>{_LETTER}|[A-J])\s*(?:选项|選項|项|項)?\s*(?:是|也是|は"
        rf"|が|는|은|가|이)?\s*(?:{value})(?:的|です|だ|である)?",
        rf"(?:{value})(?:的|な|한)?\s*(?:选项|選項|选择|選択肢|선택지|보기)?\s*(?:是|为|為|は|는"
        rf"|은)\s*[:：]?\s*(?P<{{0}}4>{_LETTER}|[A-J])(?:です|である|입니다|이다)?",
    )


_STATED = lazy_pattern(
    any_of(
        _LEAD + any_of(_says(RIGHT).replace("{0}", "right"), _says(_WRONG).replace("{0}", "wrong")),
        r"\s*" + _CJK_LEAD + any_of(
            _cjk(_CJK_RIGHT).replace("{0}", "right"),
            _cjk(_CJK_WRONG).replace("{0}", "wrong"),
        ),
        rf"\s*(?:{_NOUN}\s+)?(?P<wrong5>{_LETTER})\s+(?:fails|can(?:not|['’]t)\s+be\s+(?:right|correct|true))",
        r"\s*(?:所以|因此|故|综上)[，、,:：\s]*(?:应该?|應該?)?(?:选|選)(?:择|擇|项|項)?\s*(?P<right7>[A-J])",
        r"(?:सही\s+विकल्प|सही\s+उत्तर)\s+(?P<right5>[A-J])\s+है",
        r"(?i:letra|doğru\s+(?:seçenek|cevap))\s+(?P<right6>[A-J])(?:['’]d[ıi]r|\s+şıkkıdır)?",
    )
    + r"[\s.!。*_]*"
)  # fmt: skip


def chosen(text: str, start: int, end: int) -> Span | None:
    """Returns the span of the only letter that the closing clauses call right, or None if there is no such letter."""
    low = max(start, end - _LOOK)
    if not _STANDS.search(text, max(low, end - _LATEST), end):
        return None
    right: list[Span] = []
    wrong: set[str] = set()
    stop = end
    marks = [match.span() for match in _CLAUSES.finditer(text, low, end)]
    for begin, after in _between(marks, low, end):
        found = _STATED.fullmatch(text, begin, after)
        if found is None:
            if _ONLY_LEAD.fullmatch(text, begin, after) is None:
                break
            stop = begin if right else stop
            continue
        stop = begin
        for name, value in found.groupdict().items():
            if value is None:
                continue
            if name.startswith("right"):
                right.append(found.span(name))
            else:
                wrong.add(value.strip("()*$ "))
    letters = {text[slice(*span)].strip("()*$ ") for span in right}
    if len(letters) != 1 or letters & wrong or not _begins(text, low, start, stop):
        return None
    return right[0]


def _between(marks: list[Span], low: int, end: int) -> list[Span]:
    """Returns the clauses between the punctuation marks, from last to first."""
    return [(low if index == 0 else marks[index - 1][1], marks[index][0] if index < len(marks) else end)
            for index in range(len(marks), -1, -1)]  # fmt: skip


def _begins(text: str, low: int, start: int, index: int) -> bool:
    """Returns whether a sentence, or a conclusion after a comma, begins at the index without a condition before it."""
    if _CONCLUDING.match(text, index) and text[:index].rstrip().endswith((",", "，", "、")):
        low_of = max((text.rfind(sign, low, index) for sign in _ENDS), default=-1)
        return _CONDITIONAL.search(text, max(low_of, low), index) is None
    before = text[max(start, index - 8) : index].rstrip(" \t*_>#-")
    opened = before.rstrip("\n")[-1:] in (":", "：")  # "It is not so that:"
    return not opened and (index <= low == start or not before or before[-1] in _ENDS)
