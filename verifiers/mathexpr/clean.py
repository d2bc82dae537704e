"""Normalises spelling: Unicode, HTML, Markdown and damaged escapes become plain LaTeX."""

from __future__ import annotations

import re
import unicodedata

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.marks import MARKS
from verifiers.mathexpr.commands import plain_commands
from verifiers.mathexpr.dressing import undressed
from verifiers.mathexpr.pythonic import from_python

_CHARS = {
    "ł": "l", "Ł": "L", "đ": "d", "ß": "ss",
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "‒": "-", "―": "-",
    "➖": "-", "˗": "-", "×": r"\times ", "✕": r"\times ", "⋅": r"\cdot ",
    "·": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ", "∕": "/", "⁄": "/", "±": r"\pm ", "∓": r"\mp ",
    "≤": r"\le ", "≦": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "≧": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "≃": r"\approx ", "≅": r"\approx ", "∞": r"\infty ", "∈": r"\in ", "∉": r"\notin ", "∪": r"\cup ", "∩": r"\cap ",
    "∖": r"\setminus ", "∅": r"\emptyset ", "⌀": r"\emptyset ", "∀": r"\forall ", "∃": r"\exists ", "√": r"\sqrt ",
    "∛": r"\sqrt[3]", "∜": r"\sqrt[4]", "°": r"^\circ ", "º": r"^\circ ", "′": "'", "’": "'", "‘": "'", "″": "''",
    "“": '"', "”": '"', "→": r"\to ", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "⟨": r"\langle ",
    "⟩": r"\rangle ", "〈": r"\langle ", "〉": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "∧": r"\land ", "∨": r"\lor ", "…": r"\ldots ", "⋯": r"\cdots ", "‰": r"\permil ", "∶": ":",
    "∣": "|", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "、": ", ", "。": ". ", "，": ",", "：": ":", "；": ";", "（": "(", "）": ")", "【": "[", "】": "]", "％": "%",
    "℃": r"^\circ C", "℉": r"^\circ F", "ⅈ": "i", "ℯ": "e", "ℓ": r"\ell ", "⟹": r"\implies ", "⇒": r"\implies ",
    "或": r" \text{ or } ", "和": r" \text{ and } ", "且": r" \text{ and } ", "与": r" \text{ and } ",
    "△": r"\triangle ", "∠": r"\angle ", "≡": r"\equiv ", "∣∣": "||", "∥": r"\|", "¬": r"\neg ", "٫": ".", "٬": ",",
    "∴": " ", "✓": " ", "✔": " ", "✅": " ", "µ": r"\mu ",
}  # fmt: skip
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωϕϵΓΔΘΛΞΠΣΦΨΩϑ",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi"
        " omega phi epsilon Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega theta".split(),
        strict=True,
    )
)
_GREEK_WORD = lazy_pattern(
    r"((?<!\w)[Ͱ-Ͽ]{0,30}(?:[ΆΈΉΊΌΎΏΐάέήίόύώ]|(?<=ν)αι\b)[Ͱ-Ͽ]*)"
)  # "όχι" and "ναι" are no products
_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni", strict=True))
_SUB = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙₖₐₓ", "0123456789+-()nkax", strict=True))
_SUPER_RUN = lazy_pattern("[" + "".join(_SUPER) + "]+")
_RAISED_MINUS = lazy_pattern(r"(?<![\w)}])⁻(?=\d)")  # a sign, no exponent
_SUB_RUN = lazy_pattern("[" + "".join(_SUB) + "]+")
_VULGAR = lazy_pattern(r"[¼-¾⅐-⅞↉]")
_COMBINING = lazy_pattern("([0-9])[\u0305\u0304\u0307]")
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "overline", "\u0305": "overline", "\u0307": "dot",
            "\u20d7": "vec"}  # fmt: skip
_ACCENTED = lazy_pattern(  # a letter by itself, which is no word: the mean of x, the conjugate of z
    rf"(?<![^\W\d_])(?:([A-Za-z\u0370-\u03ff])([{''.join(_ACCENTS)}])|[āēīōūȳĀĒĪŌŪȲẋẏżŷẑ])(?![^\W\d_])"
)

_HTML = any_case(r"<(/?)(sup|sub|b|i|em|strong|u|br|p|span|math)\s*/?>")
_ENTITY = {"&lt;": "<", "&gt;": ">", "&le;": r"\le ", "&ge;": r"\ge ", "&nbsp;": " ", "&amp;": "&", "&times;": "*",
           "&pi;": r"\pi ", "&deg;": r"^\circ ", "&minus;": "-", "&infin;": r"\infty "}  # fmt: skip
_ENTITIES = lazy_pattern("|".join(_ENTITY))
# A backslash lost to an escape in JSON or Python source: "\f" + "rac", "\t" + "ext", "\b" + "inom", "\r" + "ight".
_EATEN = lazy_pattern(
    r"\x0c(?=rac)|\t(?=ext|imes|heta|frac|an\b|o\b)|\x08(?=inom|eta|ar|oxed|egin|ig|f\b)|\r(?=ight|ho|m\b|angle)"
    r"|\n(?=eq\b|e\b|otin)"
)
_EATEN_LETTER = {"\x0c": "\\f", "\t": "\\t", "\x08": "\\b", "\r": "\\r", "\n": "\\n"}
_DOUBLED = lazy_pattern(r"\\\\(?=[A-Za-z]{2})")
_THOUSANDS = lazy_pattern(
    r"(?<=\d)(?<!\b0)(?:\s?(?:\\,)?\{,\s?\}(?:\\,)?|,\\!\s*|\\!,(?:\\!)?|\\text\s?\{,\s?\}|\\[,;: !]\s*|\{\\,\}"
    r"|[\u2009\u202f\u00a0~'])(?=\d{3}(?!\d))"
)
_SPACED_NUMBER = lazy_pattern(r"(?<![\d.,/^_{(\[])(?<![\d,;] )[1-9]\d{0,2}(?: \d{3})+(?![\d/]| \d|[,;] ?\d)")
_SPACED_DECIMAL = lazy_pattern(r"([+-]?[1-9]\d{0,2}(?: \d{3})+)(,\d{1,2}(?:\D.*)?)", re.DOTALL)
_GOING_ON = lazy_pattern(r"(?<=\d)\s?\.\.\.(?=\s*(?:≈|\\approx))")
_PREFIX = lazy_pattern(r"\\nabla\s*(?=[A-Za-z](?:\([^()=]*\))?\s*=)|\bm(?=\\angle)")  # labels of gradients and angles
_NO_SPACE = lazy_pattern(r"(?<=\d)\\!(?=\d)")
_DECIMAL_COMMA = lazy_pattern(r"(?<=\d)\{,\}(?=\d)")  # not a separator of thousands
_MARKUP = lazy_pattern(
    r"\*\*|__|`+|\$+|\\[()\[\]](?!\d*(?:pt|em|ex|mm|cm)\])"
    r"|\\(?:displaystyle|textstyle|limits|nolimits)(?![A-Za-z])|\\q?quad"
)
# A power as in Python; the signs of Markdown's bold have a space, or nothing, on one side.
_POWER = lazy_pattern(r"(?:(?<=[\d)\]}])|(?<=[A-Za-z])(?<![A-Za-z]{2}))( ?)\*\*\1(?=[\w(+-])", re.ASCII)
_ORDINAL = lazy_pattern(
    r"(?<=\d)\s*\^\s*(?:\{\s*)?(?:\\(?:text|textrm|mathrm|rm)\s*\{)?\s*(st|nd|rd|th)\s*(?:\}|(?![A-Za-z]))\s*\}?"
)
_UPRIGHT = lazy_pattern(r"\{\s*\\rm(?![A-Za-z])([^{}]*)\}|\\rm\s*\{([^{}]*)\}")
_END_MARK = lazy_pattern(r"(?<!\s)\s*+\\(?:square|Box)$")
_CHOSEN = lazy_pattern(
    r"(?<![\w}\\])(?:\{\s*\})?[_^](?:\{(?=\d+\})|(?=\d ?C))(\d{1,3})\}?\s*C\s*_\{?(\d{1,3})(?!\d)\}?", re.ASCII
)  # {}_{10}C_3
_NO_ZERO = lazy_pattern(r"(?<![\w}])\.(?=\\(?:overline|bar|dot)(?![A-Za-z]))")  # ".\\overline{3}"
_TEXT_POINT = lazy_pattern(r"(?:\s|\\[,;: ])*\\text\s*\{\s*[.,;]?\s*\}\s*$")
_STRAY_POINT = lazy_pattern(r"(?<=[}\w)])\.(?=\s*[\])])")
_ENDINGS = " \t\r\n.,;:。"
# A number with an eastern unit or noun within \\text: \\text{72人}. The unit is then put into \\text by itself.
_ALL_TEXT = lazy_pattern(r"^\s*\\text\s*\{\s*([-+]?\d[^{}\\]*[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])\s*\}\s*$")
_TIMES_TEN = lazy_pattern(  # "6.4\\mathrm{e}{-5}"
    r"(?<=\d)\s?\\(?:mathrm|text|operatorname)\{\s?[eE]\s?\}\s?\{?([-+]?\d{1,3})\}?"
)
_ALL_INTEGERS = lazy_pattern(  # "n = 0, ±1, ±2, ..."
    r",?(?:\s|\\q?quad(?![A-Za-z])|\\[,;: ]|\\text\{\s?(?:where|for|with)\s?\}|\(){0,12}+([A-Za-z])\s*=\s*0"
    r"(?:\s*,\s*(?:\\pm|±)\s*[1-4]){2,4}\s*,?\s*(?:\\[lc]?dots(?![A-Za-z])|\.{3})\s*\)?"
)
_IN = lazy_pattern(r"^([a-z]) in (?=[\[({])")  # "x in [2, 5)"
_OUT_OF = lazy_pattern(  # "1 in 6", "1 out of 6"; "6 in 1" is no share
    r"^\$?(?:\\text\s*\{\s*)?(?:a )?(\d{1,9})(?:\s*\\text\s*\{)?\s+(out of|in)\s+(?:every )?"
    r"(?:\}\s*)?(\d{1,9})(?: chance)?\s*\}?\$?$"
)
_FACTORIAL_EQUALS = lazy_pattern(r"(?<=[\w)}])!=")  # "5!=120"
_OR_WORDS = frozenset("o ou oder oppure или lub of".split())
_AND_IN_TEXT = lazy_pattern(  # "x=2\\ \\text{y}\\ x=3"
    r"\\text\s*\{\s*(y|et|und|oder|ou|o|oppure|и|или|lub|of)\s*\}(?=(?:\s|\\[ ,;]|~)*[A-Za-z]\s*=)"
)
_RAISED_FRACTION = lazy_pattern(r"\{\s?\}\^\{?(\d{1,4})\}?\s?(?:\\!)?/(?:\\!)?_\{?(\d{1,4})\}?")  # "{}^{3}\\!/_{4}"
_RAISED_UNIT = lazy_pattern(
    r"(?<=\d)\{\s?\}(?=\^\{?\\circ)|(?<=[m}])\{\s?\}(?=\^\{?-?[1-3]\}?(?!\s*[CP\d]))"
)  # "60{}^\\circ", "cm{}^2"
_UPRIGHT_C = lazy_pattern(r"\\mathrm\s?\{C\}(?=_)")
_ARC_MINUTES = lazy_pattern(r"(\d{1,3})(?:\^\{?\\circ\}?|°)\s?(\d{1,2})\s?(?:'|\\prime|′)(?!')")
# "1,00,000"; "1,10,100" is a list
_CODES = {"USD": " USD_ ", "EUR": "€", "GBP": "£", "INR": "₹", "Rs": "₹", "JPY": "¥"}
_CODE = lazy_pattern(  # before an amount
    r"(?:\\(?:text|mathrm)\s*\{\s*)?(?<![A-Za-z])(USD|EUR|GBP|INR|JPY|Rs)(?:\.(?=[\s}\d]))?(?:\s*\})?[\s~]*(?=\d)"
)
_INDIAN = lazy_pattern(r"(?<![\d,.])(?=[\d,]*,0)\d{1,2}(?:,\d{2}){1,3},\d{3}(?![\d,])")
_DIVISORS = lazy_pattern(  # "\\text{mcd}(48, 60)"
    r"(?<![^\W\d_])(?:\\(?:text|mathrm|operatorname)\s*\{\s*)?(?:(?P<gcd>mcd|MCD|mdc|MDC|ggT|pgcd"
    r"|PGCD|НОД|NWD|GCD|HCF|hcf)"
    r"|mcm|MCM|mmc|MMC|kgV|ppcm|PPCM|НОК|NWW|LCM)\}?\s*(?=(?:\\left\s*)?\()"
)
_MONEY_IN_TEXT = lazy_pattern(r"\\text\s*\{\s?(?:US|CA|AU|NZ|HK|NT|R)?\\?\$\s?\}(?=[\s~]*\d)")  # "\\text{R\\$ }6"
_PRIMES = lazy_pattern(r"\^\s*(?:\{\s*((?:\\prime\s*){1,4})\}|\\prime(?![A-Za-z]))")
_UPRIGHT_D = lazy_pattern(r"\\(?:text|mathrm|operatorname|textrm)\s?\{d\}(?=\s?(?:\\[,!]\s?)?(?:[A-Za-z^]|\\[a-z]{2}))")
_DIFFERENTIALS = lazy_pattern(r"(?<![A-Za-z\\])((?:d[a-z]){2,3})(?![A-Za-z])")  # "dydx"
_CONSTANT = lazy_pattern(
    r"(?<=\+)\s*(?:\\(?:text|textrm|mathrm|operatorname)\s*\{\s*(?:C|[CcKk]onst(?:ante?)?\.?)\s*\}"
    r"|const(?:ant)?(?![A-Za-z]))"
)
_COUNTRY = lazy_pattern(  # "US$", "\\text{US}\\$"
    r"(?<![A-Za-z\\])(?:(?:US|CA|AU|NZ|HK|NT|R|U\.S\.)\s?|\\text\s*\{(?:US|CA|AU|NZ|HK|NT|A|C|R)\s?\}\s*)(?=\\?\$)"
)


def clean(text: str) -> str:
    """Returns the text in the spelling that the tokenizer reads. Linear; for an answer, not a whole completion."""
    text = plain_commands(undressed(text if text.isascii() else _ALL_TEXT.sub(r"\1", text)))
    if not text.isascii():
        text = _plain_unicode(text)
    if not text.isprintable():
        text = _EATEN.sub(lambda match: _EATEN_LETTER[match[0]], text)
    if "&" in text:
        text = _ENTITIES.sub(lambda match: _ENTITY[match[0]], text)
    if "<" in text and _HTML.search(text):
        text = _HTML.sub(_html_tag, text)
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)
    if "{e" in text or "{E" in text:
        text = _TIMES_TEN.sub(r" \\times 10^{\1}", text)
    if "..." in text and ("≈" in text or "\\approx" in text):
        text = _GOING_ON.sub("", text)
    if "dots" in text or "..." in text:
        text = _ALL_INTEGERS.sub(r", \1 \\in \\mathbb{Z}", text)
    if " in " in text or " out of " in text:
        text = _OUT_OF.sub(_share, _IN.sub(r"\1 \\in ", text))
    if "!=" in text:
        text = _FACTORIAL_EQUALS.sub("! = ", text)
    if "text" in text and "=" in text:
        text = _AND_IN_TEXT.sub(lambda match: r"\text{or}" if match[1] in _OR_WORDS else r"\text{and}", text)
    if "{:}" in text and "\\text{:}" not in text:
        text = text.replace("{:}", ":")
    if "{}" in text or "{ }" in text:
        text = _RAISED_FRACTION.sub(r"\\frac{\1}{\2}", _UPRIGHT_C.sub("C", text))
        text = _RAISED_UNIT.sub("", text)
    if "nabla" in text or "m\\angle" in text:
        text = _PREFIX.sub("", text)
    if "\\prime" in text:
        text = _PRIMES.sub(lambda match: "'" * max(1, (match[1] or "").count("prime")), text)
    if "{d}" in text:
        text = _UPRIGHT_D.sub("d", text)
    if "\\int" in text:
        text = _DIFFERENTIALS.sub(lambda match: " ".join(match[1]), text)
    if "onst" in text or "{C}" in text:
        text = _CONSTANT.sub(" C", text)
    if "'" in text:
        text = _ARC_MINUTES.sub(lambda match: f"({match[1]}+{match[2]}/60)^\\circ ", text)
    if "," in text:
        text = _INDIAN.sub(lambda match: match[0].replace(",", ""), text)
    if "(" in text:
        text = _DIVISORS.sub(lambda match: "\\gcd " if match["gcd"] else "\\lcm ", text)
    if "$" in text:
        text = _COUNTRY.sub("", _MONEY_IN_TEXT.sub(r"\\$", text))
    if any(code in text for code in _CODES):
        text = _CODE.sub(lambda match: _CODES[match[1]], text)
    text = text.replace(r"\$", " USD_ ").replace(r"\_", "_").replace(r"\#", " ")
    if "$" in text:
        text = _dollars(text)
    if "**" in text and len(_POWER.findall(text)) == text.count("**"):
        text = _POWER.sub("^", text)
    text = _MARKUP.sub(lambda match: " \\; " if "quad" in match[0] else " ", text)
    text = _THOUSANDS.sub("", text)
    if "." in text:
        text = _NO_ZERO.sub("0.", _STRAY_POINT.sub("", text))
    text = text.strip()
    if "{,}" in text:
        text = _DECIMAL_COMMA.sub(".", text)
    if text.endswith("}"):
        text = _TEXT_POINT.sub("", text)
    if "\\rm" in text:
        text = _UPRIGHT.sub(lambda match: rf"\mathrm{{{match[1] or match[2] or ''}}}", text)
    if "C" in text and "_" in text:
        text = _CHOSEN.sub(r"\\binom{\1}{\2}", text)
    if text.endswith((r"\square", r"\Box")):
        text = _END_MARK.sub("", text)
    if "^" in text and any(ending in text for ending in ("th", "st", "nd", "rd")):
        text = _ORDINAL.sub(r"\1 ", text)
    if "\\!" in text:
        text = _NO_SPACE.sub("", text)
    if " " in text:
        decimal = _SPACED_DECIMAL.fullmatch(text) if "," in text else None
        text = decimal[1].replace(" ", "") + decimal[2] if decimal else text
        text = _SPACED_NUMBER.sub(lambda match: match[0].replace(" ", ""), text)
    return from_python(text)


def _share(match: re.Match[str]) -> str:
    whole = match[2] == "in" and int(match[1]) >= int(match[3])
    return match[0] if whole else f"{match[1]}/{match[3]}"


def _dollars(text: str) -> str:
    """Marks `$5` and `$5.00` as money: a single sign before a number, while `$x$` is maths."""
    text = text.strip()
    if text.count("$") == 1 and re.fullmatch(r"[-+(]?\s*\$\s*[-+]?[\d.].*", text, re.DOTALL):
        return text.replace("$", " USD_ ")
    return re.sub(r"\$(?=\s*USD_)", "", text)


def _html_tag(match: re.Match[str]) -> str:
    name = match[2].lower()
    if name not in ("sup", "sub"):
        return " "
    if match[1]:
        return "}"
    return "^{" if name == "sup" else "_{"


def _plain_unicode(text: str) -> str:
    text = _COMBINING.sub(r"\\overline{\1}", unicodedata.normalize("NFC", text))
    text = _ACCENTED.sub(_accented, _RAISED_MINUS.sub("-", text))
    text = _SUPER_RUN.sub(lambda match: "^{" + "".join(_SUPER[char] for char in match[0]) + "}", text)
    text = _SUB_RUN.sub(lambda match: "_{" + "".join(_SUB[char] for char in match[0]) + "}", text)
    text = _VULGAR.sub(_vulgar, text)
    parts = _GREEK_WORD.split(text)  # every second part is a word
    parts[::2] = ("".join(_plain_char(char) for char in part) for part in parts[::2])
    return "".join(parts)


def _accented(match: re.Match[str]) -> str:
    plain = unicodedata.normalize("NFD", match[0])
    return rf"\{_ACCENTS[plain[1]]}{{{plain[0]}}}"


def _vulgar(match: re.Match[str]) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", match[0]).partition("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}" if bottom else match[0]


def _plain_char(char: str) -> str:
    if char.isascii():
        return char
    if char in _CHARS:
        return _CHARS[char]
    if "\u3371" <= char <= "\u33df":  # "㎠", a unit in one character
        unit = unicodedata.normalize("NFKC", char)
        return rf"\text{{ {unit[:-1]}}}^{unit[-1]}" if unit[-1] in "23" else rf"\text{{ {unit}}}"
    if char in _GREEK:
        return f"\\{_GREEK[char]} "
    if "①" <= char <= "⑳":
        return f"{ord(char) - 0x245F}, "
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if "\u0334" <= char <= "\u0338":
        return char  # strikes out what it is written over
    if category == "Cf" or (category == "Mn" and char not in MARKS):
        return ""
    if category == "Zs":
        return " "
    if category in ("Ll", "Lu"):
        # Letters of mathematical typefaces and of full width are what they look like.
        if "\U0001d400" <= char <= "\U0001d7ff" or "\uff21" <= char <= "\uff5a" or char == "ℎ":
            char = unicodedata.normalize("NFKC", char)
        base = unicodedata.normalize("NFD", char)[0]
        return base if base.isascii() else f"\\{_GREEK[char]} " if char in _GREEK else char
    folded = unicodedata.normalize("NFKC", char)
    return folded if folded.isascii() else char


def trim(text: str) -> str:
    """Strips punctuation that ends a sentence, and keeps that which ends an expression, such as "..."."""
    text = text.strip()
    while text and text[-1] in _ENDINGS:
        if text.endswith(("...", "\\,", "\\;", "\\:", "\\!")):
            break
        text = text[:-1]
    return text
