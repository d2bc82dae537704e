"""Finds words inside an answer that doubt it, compare it or state it twice."""

from __future__ import annotations

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.extract.words import VALUE, any_of, lacks, whole_words
from verifiers.lazy_pattern import any_case, lazy_pattern

# -- comparison, multiples and powers: the number beside them is not the value (English: `verify`'s own list)
COMPARES = Gated(
    whole_words(
        r"inférieure?s?|supérieure?s?|moins|plus|moitié|double|triple|carré|racine|kleiner|größer|weniger"
        r"|mehr|mindestens|höchstens|unter|über|hälfte|doppelte?|dreifache|quadrat|wurzel|menor|mayor|menos"
        r"|más|mitad|doble|cuadrado|raíz|maior|mais|metade|dobro|quadrado|raiz|minore|maggiore|meno|più|metà"
        r"|doppio|quadrato|radice|меньше|больше|менее|более|половин\w*|вдвое|удвоенн\w*|утроенн\w*|quadratwurzel|kubikwurzel|logarithmus|квадрат\w*|куб\w*|корень|أقل"
        r"|أكبر|أصغر|أكثر|ضعف|نصف|مربع|جذر|küçük|büyük|az|fazla|yarısı|katı|karesi|nhỏ hơn|lớn hơn|ít|nhiều"
        r"|bình phương|căn|kurang|lebih|mniej\w*|więcej|większ\w*|minder|meer|groter|helft|less|more|greater"
        r"|fewer|larger|smaller|least|most|under|over|below|above|between|within|кратн\w+|кратен|делится|почти"
    )
    + r"|小于|大于|少于|多于|超过|超過|至少|至多|不到|以上|以下|以内|以內|一半|半分|約数|倍"
    r"|(?:平方|立方)(?!厘米|分米|毫米|公?里|千米|米|公尺|メートル|センチ|キロ|[ckdm]?m)|根号|より|未満"
    r"|二乗|三乗|半分|割り切|整除|나누어|左右|前后|接近|将近|くらい|ぐらい|程度|近い|에 가까|에 가깝|정도|가량"
    r"|보다|이상|이하|미만|초과|절반|배수|제곱(?!미터|센티|킬로|㎝|cm|m)|से कम|से अधिक|आधा|वर्ग"
)
CONTRAST = Gated(
    rf"(?<!\bor)(?<!\bor )(?<!\s)\s*+,?\s*+\(?(?:(?<!\w)(?:(?:and |but )?not|rather than|instead of"
    rf"|(?:und )?(?:nicht|keinesfalls|keineswegs)|(?:et )?(?:surtout )?non|pas|y no|e non|e não|а (?:вовсе |совсем )?не"
    rf"|en niet|a nie)\s+|，?(?:而?不是|而非|并非)\s*)"
    rf"(?:{VALUE}(?:\s?(?!times\b|more\b|less\b)[^\W\d_]{{1,12}}[²³]?)?"
    rf"(?:,? (?:and|or|nor|und|oder|et|ni|y|e|и|i|en|of|и не|i nie) {VALUE})?\)?|\(?[A-J](?![A-Za-z])\)?[.。]?)\s*$"
    # The same in languages where the denial follows: "14個(15個ではありません)".
    rf"|\s*[(（]{VALUE}\s?[^\W\d_]{{0,3}}?"
    r"(?:(?:では|じゃ)(?:ありません|ない(?:です)?)|[이가]? ?(?:아닙니다|아니다|아님)|\s?değil)[.。]?[)）]\s*$"
)
# The same directly after an answer.
CONTRAST_AFTER = any_case(
    r"[\s,，]*+(?:(?:and|but|und|et|y|e|а) )?(?:(?:not|nicht|non(?: pas)?|pas|no|não|не|rather than"
    r"|instead of)\s+|而?不是|而非)"
    rf"{VALUE}(?=\s*[.,;!。，]|\s*$)"
)

_NUMBERS = lazy_pattern(r"\d+(?:[.,]\d+)*")


def without_contrast(text: str, span: Span) -> str:
    """Returns the text with blanks for the denial of another value behind the one at `span`: "60 (not 180)"."""
    position = span[1]
    stop = text.find("\n", position)
    stop = len(text) if stop < 0 else stop
    end = len(text[:stop].rstrip(" .。"))
    found = CONTRAST.search(text, position, end)
    if found is None or text[position : found.start()].strip(" *_`$"):
        return text
    values = [set(_NUMBERS.findall(part)) or {part.strip()} for part in (text[slice(*span)], found[0])]
    if not values[0].isdisjoint(values[1]):
        return text  # "360 cm, not 360 m"
    return f"{text[: found.start()]}{' ' * (end - found.start())}{text[end:]}"


# -- inside an answer
_HEDGE = any_case(
    any_of(
        r"(?<![^\W\d_])(?<!\\)"
        + any_of(
            "maybe", "perhaps", "possibly", "wait", "hmm+", "or so", "not sure", "unsure", "i guess", "nope",
            "actually", "i mean", "i think", "i believe", "(?:oder"
            "|or) mehr", "ou plus", "o más", "not certain",
            "vielleicht", "möglicherweise", "eventuell", "warte", "nein", "peut-être", "attends", "quiz[áa]s?",
            "tal vez", "a lo mejor", "espera",
            "talvez", "forse", "aspetta", "misschien", "kanske", "może", "belki", "mungkin", "có lẽ",
            "может быть", "возможно", "наверное", "либо", "подожди\\w*", "нет", "ربما", "قد يكون", "لعله",
        )
        + r"(?![^\W\d_])",
        "也许|或许|可能|大概|等等|不对", "たぶん|おそらく|かもしれ|いや|待って", "아마|혹시|잠깐", "शायद",
        # "7 to 8", "7 versus 8", "7 no 8"
        r"\d[\s})]*(?:\\text\w*\{\s*)?[(,]?\s*(?:to|till|until|through|versus|vs\.?|no|not|but|不是|bis|à|до"
        r"|至|到|から|부터|إلى|से)[\s},]*[({\\$]*\s*-?\d",
    )
)  # fmt: skip
# For each ASCII alternative above, one word that every match contains.
_HEDGING = frozenset(
    "maybe perhaps possibly wait hmm so sure unsure guess nope actually mean think believe mehr plus certain"
    " vielleicht eventuell warte nein attends quiza quizas vez mejor espera talvez forse aspetta misschien kanske"
    " belki mungkin to till until through versus vs no not but bis".split()
)


def hedge(text: str) -> str:
    """Returns the word inside an answer that offers or doubts it, or ""."""
    if lacks(text, _HEDGING) and "mmm" not in text.lower():
        return ""
    match = _HEDGE.search(text)
    return match[0] if match else ""


RESTATEMENT = any_case(
    r"(?<![\s,;])[\s,;]*+(?:\\text\w*+\{\s*+)?[(,]?\s*+(?:\bor,? equivalently|\bor in other words|\bequivalently"
    r"|\bin other words|\bthat is(?: to say)?|\bi\.\s?e\.|\bwhich (?:is|equals)(?: (?:also|equal to|the same as))?"
    r"|\bor simply|\bor just|\balso written(?: as)?|\bd\.\s?h\.|\bc['’]est-à-dire|\bes decir|\bou seja|\bcioè"
    r"|\bsoit(?=\s[$\d])|\bdas heißt|\bo sea|\bossia|\bczyli|\bdat is|то есть|即|也就是|すなわち|즉)"
    r"[\s,:]*\}?\s*"
)
_RESTATING = frozenset(
    "equivalently other that i which simply just also d c es ou soit das o ossia czyli dat".split()
)  # as in _HEDGING
OR_VALUE = lazy_pattern(r"(?<=\$),?\s+or\s+(?=\$)|(?<=[$%\d]),\s+or\s+(?=[$\d])")
_GLOSS = lazy_pattern(r"([^()]+?)\s+\(\s*([^()]+?)\s*\)")
_NUMBER_WORDS = lazy_pattern(r"[A-Za-z]{3,}(?:[ -][A-Za-z]{3,})*")


def restated(answer: str, *, one: bool) -> tuple[str, ...]:
    """Returns the parts of "7, or equivalently $\\frac{14}{2}$" or "7 (seven)", or () if nothing is stated twice.

    The parts are one answer only if all of them agree. With `one`, values joined by "or" count as stated twice too.
    """
    if len(answer) > 300:
        return ()
    parts = [answer] if lacks(answer, _RESTATING) else RESTATEMENT.split(answer)
    if len(parts) == 1 and one and "or" in answer:
        parts = OR_VALUE.split(answer)
    if len(parts) == 1 and answer.endswith(")"):
        gloss = _GLOSS.fullmatch(answer)
        worded = gloss is not None and any(_NUMBER_WORDS.fullmatch(part) for part in gloss.groups())
        if gloss and worded and gloss[1].count("$") % 2 == 0:
            lettered = len(gloss[2]) == 1 and gloss[2].isupper()  # "option (B)"
            parts = parts if lettered else [gloss[1], gloss[2]]
    kept = tuple(part.strip(" ,;") for part in parts if part.strip(" ,;"))
    return kept if 1 < len(kept) < 4 else ()
