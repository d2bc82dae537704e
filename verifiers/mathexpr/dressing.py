r"""Rewrites what surrounds a value for the tokenizer: type size and colour, check marks, "and" and "or" in other
languages, Chinese, Japanese and Korean counters and units.

Nothing that could change a value is dropped.
"""

from __future__ import annotations

import re

from verifiers.extract.words import lacks
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.languages import ASCII_WORDS, in_english

_SIZE = (
    r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge|bigstar|blacksquare|qed|qedsymbol"
    r"|checkmark|therefore|because|ding\{\d+\}|centering|noindent|newline|smallskip|medskip|bigskip)(?![A-Za-z])"
)
_COLOR = (
    r"\\color\s*(?:\[\w+\])?\s*\{[\w,.! -]{1,40}\}|\\(?:textcolor|colorbox)\s*(?:\[\w+\])?\s*\{[\w,.! -]{1,40}\}"
    r"|\\bbox\s*\[[^\[\]]{0,60}\]|\\fcolorbox\s*\{\w{1,20}\}\s*\{\w{1,20}\}"
)
_LINES = (
    r"align|equation|gather|multline|eqnarray|split|aligned|gathered"  # read as lines if begin and end are both present
)
_DISPLAY = r"\\(?:begin|end)\s*\{(?:displaymath|math|center)\}"
_DRESS = lazy_pattern(rf"(?:\\[,;: ]\s*)?{_SIZE}|{_COLOR}|{_DISPLAY}")
_BROKEN = lazy_pattern(rf"\\(?:begin|end)\s*\{{(?:{_LINES})\*?\}}")
_STRUCK = any_case(r"~~[^~\n]*~~|<(?:s|del|strike)>[^<]*</(?:s|del|strike)>")
_EMPHASIS = lazy_pattern(r"\s*([*_])(?![*_\s])([^*_\n]+)(?<!\s)\1\s*([.,;]?)\s*")

# -- "and", "or"
_OR = (
    "oder|ou|oppure|или|либо|或者?|または|又は|あるいは|もしくは|또는|혹은|أو|یا|या|veya|ya da|lub|albo|of|eller"
    "|atau|hoặc|nebo|sau"
)
_AND = "und|et|та|和|及|以及|且|與|与|と|および|그리고|및|와|과|و|और|ve|en|och|og|dan|và|oraz|és|și"
_TEXT_JOINT = any_case(
    rf"\\(?:text|textbf|textrm|textit|mbox|hbox)\s*\{{(?:\s*[,，、]?\s*(?:(?P<or>{_OR})|{_AND})\s*"
    rf"|\s+(?:(?P<o>o)|[yeиi])\s+)\}}"
)
_BARE_JOINT = any_case(
    rf"(?<=[\d$)}}\]%])(?:\s+(?:(?P<or>{_OR})|{_AND}|[yeи](?=\s+(?:[$\d-]|[a-z]\s*=))|(?P<o>o)(?=\s+(?:[$\d-]"
    rf"|[a-z]\s*=)))\s+"
    rf"|\s*(?:(?P<cjk>或者?|または|又は|あるいは|もしくは|또는|혹은)|和|以及|及|と|および|그리고|[와과])\s*)"
    r"(?=[-+−\d$\\({A-Za-z])"
)
_FOREIGN = ASCII_WORDS | frozenset(f"{_OR}|{_AND}|y|e|o".replace("ya da", "ya").split("|"))

# -- counters and units after a number
_COUNTERS = "個|个|つ|개|名|人|本|只|枚|张|張|辆|輛|棵|条|條|件|种|種|组|組|匹|册|冊|台|명|마리|권|장|대|그루"
_UNITS = {
    name: unit
    for unit, names in {
        r"\text{ cm}^2": "平方厘米", r"\text{ m}^2": "平方米", r"\text{ km}^2": "平方千米", r"\text{ cm}^3": "立方厘米",
        r"\text{ m}^3": "立方米", r"\text{ mm}": "毫米", r"\text{ cm}": "厘米 公分", r"\text{ dm}": "分米",
        r"\text{ km}": "千米 公里", r"\text{ m}": "米", r"\text{ kg}": "千克 公斤", r"\text{ g}": "克",
        r"\text{ hours}": "小时 小時 時間 시간", r"\text{ minutes}": "分钟 分鐘 分", r"\text{ seconds}": "秒 초",
        r"\text{ days}": "天", r"\text{ yuan}": "元", r"\text{ yen}": "円", r"^\circ ": "度",
    }.items()
    for name in names.split()
}  # fmt: skip
_COUNTED = lazy_pattern(
    rf"(?<=[\d$}}*])\s{{0,9}}\*{{0,3}}\s{{0,9}}(?:\\text\s*\{{\s*)?(?:(?:{_COUNTERS})|({'|'.join(_UNITS)}))(?:\s*\}})?(?=\s*[*。.．,，;；]*\s*$)"
)


def undressed(text: str) -> str:
    """Returns the text without type size, colour and marks, with "and", "or" and counters in English. Linear."""
    if "\\" in text:
        text = _DRESS.sub(" ", text)
        if ("\\begin" in text) != ("\\end" in text):
            text = _BROKEN.sub(" ", text)
    if "~~" in text or "</" in text:
        text = _STRUCK.sub(" ", text)
    if text[:1] in "*_ " and ("*" in text or "_" in text):
        emphasis = _EMPHASIS.fullmatch(text)
        text = emphasis[2] + emphasis[3] if emphasis else text
    if "\\" in text:
        text = _TEXT_JOINT.sub(_joint, text)
    if not lacks(text, _FOREIGN):
        if " " in text or not text.isascii():
            text = _BARE_JOINT.sub(_joint, text)
        text = in_english(text)
    if not text.isascii():
        text = _COUNTED.sub(lambda match: _UNITS[match[1]] if match[1] else " ", text)
    return text


def _joint(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return r" \text{ or } " if groups["or"] or groups["o"] or groups.get("cjk") else r" \text{ and } "
