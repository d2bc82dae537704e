r"""Rewrites commands of LaTeX packages, and signs in braces, in plain LaTeX: `\SI{20}{\metre\per\second}`."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import lazy_pattern

_SIUNITX = lazy_pattern(
    r"\\(?:(?:SI|qty)\s*(?:\[[^\[\]]*\])?\s*\{([^{}]*)\}\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
    r"|(num|ang|si|unit)\s*(?:\[[^\[\]]*\])?\s*\{((?:[^{}]|\{[^{}]*\})*)\})"
)
_MACRO = lazy_pattern(r"\\([A-Za-z]+)\s*")
_MACROS = {"per": "/ ", "squared": "^2 ", "cubed": "^3 ", "square": "square ", "cubic": "cubic ", "percent": "%",
           "celsius": "°C", "degreeCelsius": "°C", "degree": "°", "euro": "€", "pounds": "£"}  # fmt: skip
_PREFIXES = frozenset("tera giga mega kilo hecto deci centi milli micro nano pico".split())
_CURRENCY = lazy_pattern(
    r"\\(?:(textdollar|mathdollar)|(pounds|textsterling|mathsterling)|(euro|texteuro)|(textyen))(?![A-Za-z])(?:\{\})?"
)
_CURRENCIES = ("\\$", "£", "€", "¥")
# A sign in braces or in a box of its own. "0^{-}" and "\\text{-}gon" keep theirs.
_SIGN = lazy_pattern(
    r"(?:\\(?:text\w{0,6}|math(?:rm|bf|bin|rel|ord|op))\s*|(?<![A-Za-z^_}\])]))"
    r"\{\s*([-+−–=×:]|\\times|\\cdot|\\div|\\colon|\\?\$|[€£¥₹°‰])\s*\}(?!\s*[A-Za-z^_}])"
)
_TIMES_TEN = lazy_pattern(  # "3 x 10^8"
    r"(?<=\d)(?:\s|\\[,;: ])*(?:[xX]|\\(?:text|mathrm)\s*\{\s*[xX×]\s*\})(?:\s|\\[,;: ])*"
    r"(?=\{?10\}?\s*(?:\^|\*\*|[⁻⁰-⁹]))"
)
_RAISED_O = lazy_pattern(  # "60^o", "60^{\\text{o}}": a letter for the degree sign
    r"(?<=[\d}])\s?\^\s?(?:o(?![A-Za-z])|\{\s*o\s*\}|\{\s*\\(?:text|mathrm)\s*\{\s*o\s*\}\s*\}"
    r"|\\(?:text|mathrm)\s*\{\s*o\s*\})"
)


def plain_commands(text: str) -> str:
    """Returns the text without commands of siunitx and of currencies, and with bare signs. Linear."""
    if "\\" in text:
        text = text.replace(r"\textsuperscript", "^")
        text = _SIUNITX.sub(_quantity, text)
        text = _CURRENCY.sub(lambda match: _CURRENCIES[match.lastindex - 1] if match.lastindex else "", text)
    if "{" in text:
        text = _SIGN.sub(lambda match: f"{match[1]} " if match[1][0] == "\\" != match[1][:-1] else match[1], text)
    if "^" in text or not text.isascii():
        text = _RAISED_O.sub(r"^\\circ ", _TIMES_TEN.sub(r" \\times ", text))
    return text


def _quantity(match: re.Match[str]) -> str:
    if match[3] == "num":
        return match[4]
    if match[3] == "ang":
        return rf"{match[4]}^\circ "
    unit = _MACRO.sub(_macro, match[4] if match[3] else match[2]).replace(".", " ").strip()
    value = match[1] or ""
    if unit in ("°C", "°", "%", "€", "£"):
        return value + {"%": r"\%"}.get(unit, unit)
    return rf"{value}\text{{ {unit}}}"


def _macro(match: re.Match[str]) -> str:
    name = match[1]
    return _MACROS.get(name) or (name if name in _PREFIXES else f"{name} ")
