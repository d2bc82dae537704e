"""Splits cleaned text into tokens, in one pass of one regular expression."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from verifiers.extract import closing_brace
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.marks import LETTER
from verifiers.mathexpr.limits import MAX_DIGITS, MAX_TOKENS, Unreadable
from verifiers.units.reading import is_unit, lookup

_TOKEN = lazy_pattern(
    r"(?P<num>(?:(?<!\d,)[1-9]\d{0,2}(?:,\d{3})+(?![\d,]))(?:\.\d+|\.(?=\\overline|\\dot\b|\(\d))?|\d+\.\d+|\d+\.(?!\.)"
    r"|\.\d+|\d+)|(?P<exp>(?<=[\d.])[eE][+-]?\d+(?![\w.]))|(?P<letters>USD_|[A-Za-z]+)|(?P<cmd>\\(?:[A-Za-z]+\*?|.))"
    r"|(?P<op>\*\*|<=|>=|!=|==|->|=>|<>|\.\.\.+|\|\||[-+*/^_=<>,;:!|&'()\[\]{}%\"?#@])|(?P<space>\s+|~)"
    rf"|(?P<foreign>[^\W\d_]{LETTER}*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_OPEN = frozenset(["(", "[", "{", "lset", "langle", "lfloor", "lceil"])
_CLOSE = frozenset([")", "]", "}", "rset", "rangle", "rfloor", "rceil"])
# Within \\text{...}: a separator, or a number that is not part of a word.
_TEXT_PART = any_case(r"[,;]|\b(?:and|or)\b|(?<![^\W_])(?<![.^/-])\d+(?:[.,]\d+)*(?![^\W_])")
_LETTER_LIST = lazy_pattern(r"[A-Z](?:\s*+(?:,(?:\s++and\s)?|(?<=\s)and\s)\s*+[A-Z])++")
_CAPITAL = lazy_pattern(r"[A-Z]")
_DRESSED_NUMBER = lazy_pattern(
    r"[-+]?(?:USD_ )?\d[\d.,/]*(?:\s*%|\s*[A-Za-z](?:[A-Za-z ./^0-9]|(?<=\^)\{-?\d\}){0,40})?"
)
GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho"
    " sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi"
    " Omega ell hbar partial imath jmath aleph".split()
)
_SAME_LETTER = {"varepsilon": "epsilon", "vartheta": "theta", "varphi": "phi", "varrho": "rho", "varsigma": "sigma",
                "ell": "l", "imath": "i", "jmath": "j"}  # fmt: skip
FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "tg": "tan", "cot": "cot", "ctg": "cot", "sec": "sec", "csc": "csc",
    "sen": "sin", "senh": "sinh", "arcsen": "asin", "cotg": "cot", "arccotg": "acot",  # Romance languages
    "cosec": "csc", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctg": "atan", "arccot": "acot",
    "asin": "asin", "acos": "acos", "atan": "atan", "acot": "acot", "arcsec": "asec", "arccsc": "acsc", "asec": "asec",
    "acsc": "acsc", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "arsinh": "asinh", "arcosh": "acosh", "artanh": "atanh", "log": "log", "ln": "ln", "lg": "lg", "lb": "lb",
    "exp": "exp", "sqrt": "sqrt", "cbrt": "cbrt", "abs": "abs", "min": "min", "max": "max", "gcd": "gcd", "lcm": "lcm",
    "floor": "floor", "ceil": "ceil", "det": "det", "tr": "tr", "trace": "tr", "Tr": "tr", "arg": "arg", "Re": "re",
    "Im": "im", "sgn": "sgn", "sign": "sgn", "factorial": "factorial", "binomial": "binomial", "frac": "frac",
    "conjugate": "conj", "arcsech": "asech", "arccsch": "acsch", "arccoth": "acoth", "Abs": "abs",
    "cis": "cis", "diag": "diag",
}  # fmt: skip
_PLAIN_WORDS = {"pi": ("cmd", "pi"), "inf": ("cmd", "infty"), "infinity": ("cmd", "infty"), "oo": ("cmd", "infty")}
_OPERATOR_OF = {
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=",
    "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "ne": "!=", "neq": "!=", "lt": "<", "gt": ">", "less": "<",
    "approx": "approx", "simeq": "approx", "cong": "approx", "doteq": "approx", "sim": "approx", "equiv": "equiv",
    "in": "in", "notin": "notin", "cup": "cup", "bigcup": "cup", "cap": "cap", "bigcap": "cap", "setminus": "setminus",
    "backslash": "setminus", "smallsetminus": "setminus", "pm": "pm", "mp": "mp", "to": "->", "rightarrow": "->",
    "longrightarrow": "->", "mapsto": "->", "implies": "=>", "Rightarrow": "=>", "Longrightarrow": "=>", "colon": ":",
    "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "Vert": "|", "lVert": "|", "rVert": "|", "|": "|",
    "{": "lset", "}": "rset", "lbrace": "lset", "rbrace": "rset", "lbrack": "[", "rbrack": "]", "lparen": "(",
    "rparen": ")", "%": "%", "&": ",", "land": "and", "wedge": "and", "lor": "or", "vee": "or", "prime": "'",
    "ldots": "...",
    "cdots": "...", "dots": "...", "vdots": "...", "dotsc": "...", "dotsb": "...", "\\": "row", "newline": "row",
    "cr": "row", "lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil", "langle": "langle",
    "rangle": "rangle", "degree": "deg", "permil": "permil", "forall": "forall", "exists": "exists", "subset": "subset",
    "subseteq": "subset", "choose": "choose", "over": "over", "neg": "neg", "parallel": "parallel", "perp": "perp",
    "lnot": "neg",
}  # fmt: skip
_SKIPPED = frozenset(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm middle , ; : ! space thinspace"
    " medspace thickspace negthinspace negmedspace negthickspace enspace quad qquad displaystyle textstyle scriptstyle"
    " limits nolimits rm bf it boldsymbol mathstrut strut hfill nonumber hline vphantom allowbreak relax"
    " scriptscriptstyle ensuremath mathnormal mathop mathinner mathord mathclap smash notag".split()
) | {" ", "\n"}
_SPACES = frozenset(
    [",", ";", ":", " ", "\n", "space", "thinspace", "medspace", "thickspace", "enspace", "quad", "qquad"]
)
_TEXT = frozenset(
    "text textbf textit textrm textnormal mbox hbox emph textsf texttt textup textsc textmd underline".split()
)
_LETTERS = frozenset(
    "mathrm mathbf mathit mathsf mathtt mathcal mathscr mathfrak operatorname bm boldsymbol pmb".split()
)
_UNIT_LETTERS = frozenset("m s g h L N J W K".split())  # units if upright
_UNIT_CAPITALS = frozenset("A V C F T H".split())  # units if upright and after a number
_BLACKBOARD = {"R": "R", "Z": "Z", "N": "N", "Q": "Q", "C": "C"}
_EXTENDED = {"varnothing": "emptyset", "empty": "emptyset", "imaginaryunit": "i", "dfrac": "frac", "tfrac": "frac",
             "cfrac": "frac", "sfrac": "frac", "nicefrac": "frac", "dbinom": "binom", "tbinom": "binom",
             "infin": "infty", "bar": "overline", "intercal": "top", "measuredangle": "angle"}  # fmt: skip


class Token(NamedTuple):
    """`num` (value: raw digits), `sym`, `word`, `text`, `fn`, `cmd`, `begin`, `end`, or `op` (value: its spelling)."""

    kind: str
    value: str
    start: int
    spaced: bool  # white space precedes it


def nesting(token: Token) -> int:
    """Returns 1 for a token that opens a bracket or an environment, -1 for one that closes it, else 0."""
    if token.kind == "op":
        return (token.value in _OPEN) - (token.value in _CLOSE)
    return (token.kind == "begin") - (token.kind == "end")


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of a cleaned text.

    Raises:
        Unreadable: there are too many tokens, a number is too long, or a command lacks its argument.
    """
    tokens: list[Token] = []
    position, end, spaced = 0, len(text), False
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind, raw, start = str(match.lastgroup), match[0], position
        position = match.end()
        if kind == "space":
            spaced = True
            continue
        if kind == "num":
            if len(raw) > MAX_DIGITS:
                raise Unreadable(f"a number of more than {MAX_DIGITS} digits")
            tokens.append(Token("num", raw, start, spaced))
        elif raw == "||":
            tokens += [Token("op", "|", start, spaced), Token("op", "|", start, False)]
        elif kind == "op":
            tokens.append(Token("op", "..." if raw.startswith("...") else raw, start, spaced))
        elif kind == "letters":
            tokens.append(_letters(raw, start, spaced))
        elif kind == "foreign":
            tokens.append(Token("word", raw, start, spaced))
        elif kind == "exp":
            tokens.append(Token("exp", raw[1:], start, spaced))
        elif kind == "cmd":
            before = len(tokens)
            position = _command(tokens, text, raw[1:], start, position, spaced)
            if len(tokens) == before and raw[1:] in _SPACES:
                spaced = True
                continue
        else:
            tokens.append(Token("other", raw, start, spaced))
        spaced = False
        if len(tokens) > MAX_TOKENS:
            raise Unreadable(f"more than {MAX_TOKENS} tokens")
    return tokens


def _letters(raw: str, start: int, spaced: bool) -> Token:
    if len(raw) == 1:
        return Token("sym", raw, start, spaced)
    if raw in FUNCTIONS:
        return Token("fn", FUNCTIONS[raw], start, spaced)
    lower = raw.lower()
    if lower == "mod":
        return Token("op", "mod", start, spaced)
    if lower in _PLAIN_WORDS:
        return Token(*_PLAIN_WORDS[lower], start, spaced)
    if raw in GREEK:
        return Token("sym", _SAME_LETTER.get(raw, raw), start, spaced)
    if raw == "choose":
        return Token("op", "choose", start, spaced)
    if lower in ("and", "or", "xor"):
        return Token("op", "and" if lower == "and" else "or", start, spaced)
    return Token("word", raw, start, spaced)


def _command(tokens: list[Token], text: str, name: str, start: int, position: int, spaced: bool) -> int:
    """Appends the tokens of the command at `start`; returns the position after it."""
    name = name.rstrip("*") or name
    name = _EXTENDED.get(name, name)
    if name in _SKIPPED:
        if name in ("left", "right") and text[position : position + 1] == ".":
            return position + 1
        return position
    if name in _OPERATOR_OF:
        tokens.append(Token("op", _OPERATOR_OF[name], start, spaced))
    elif name in GREEK:
        tokens.append(Token("sym", _SAME_LETTER.get(name, name), start, spaced))
    elif name in FUNCTIONS and name != "frac":
        tokens.append(Token("fn", FUNCTIONS[name], start, spaced))
    elif name in _TEXT or name in _LETTERS:
        content, position = braced(text, position)
        tokens.extend(_styled(name, content, start, spaced))
        last = tokens[-1] if tokens else None
        before = tokens[-2] if len(tokens) > 1 else None
        if last and last.kind == "text" and _CAPITAL.fullmatch(last.value):
            if before is None or before.value in ("(", "[", ",", "lset", "="):
                tokens[-1] = last._replace(kind="sym")  # after a number it is a unit
        elif last and before and name == "mathrm" and last.value in _UNIT_CAPITALS and before.kind == "num":
            tokens[-1] = last._replace(kind="text")
    elif name in ("mathbb", "Bbb"):
        content, position = braced(text, position)
        known = _BLACKBOARD.get(content.strip())
        tokens.append(Token("cmd", "set" + known, start, spaced) if known else Token("sym", content, start, spaced))
    elif name in ("begin", "end"):
        content, position = braced(text, position)
        tokens.append(Token(name, content.strip().rstrip("*"), start, spaced))
        if name == "begin" and content.endswith("*") and text[position : position + 3] in ("[r]", "[l]", "[c]"):
            position += 3  # pmatrix*
        if name == "begin" and content.strip().startswith(("array", "tabular")):
            _, position = braced(text, position)
    elif name in ("phantom", "hspace", "vspace", "label", "tag"):
        _, position = braced(text, position)
    elif name in ("mod", "pmod", "bmod"):
        tokens.append(Token("op", "mod", start, spaced))
    elif name == "operatornamewithlimits":
        content, position = braced(text, position)
        tokens.append(_letters(content, start, spaced))
    else:
        tokens.append(Token("cmd", name, start, spaced))
    return position


def _styled(name: str, content: str, start: int, spaced: bool) -> list[Token]:
    """Returns the tokens of `\\text{...}` or of letters in another typeface: words, or the letters themselves."""
    stripped = content.strip()
    if not stripped:
        return []
    if stripped in FUNCTIONS and stripped != "lb" and (name in _LETTERS or stripped not in ("min", "max", "sec")):
        return [Token("fn", FUNCTIONS[stripped], start, spaced)]
    if stripped.lower() in ("and", "or", "and/or"):
        return [Token("op", "and" if stripped.lower() == "and" else "or", start, spaced)]
    if stripped in (",", ";", "choose"):
        return [Token("op", stripped.replace(";", ","), start, spaced)]
    plain = stripped.replace("'", "")
    if name not in ("mathbf", "bm", "boldsymbol", "pmb", "mathcal") and not plain.isalpha() and is_unit(stripped):
        return [Token("text", stripped, start, spaced)]
    if name in _LETTERS and plain.isalpha():
        primes = [Token("op", "'", start, False)] * stripped.count("'")
        kind = "sym" if len(plain) == 1 else "word"
        if name == "mathrm" and (plain in _UNIT_LETTERS or (len(plain) > 1 and lookup(plain) is not None)):
            kind = "text"
        return [Token(kind, plain, start, spaced), *primes]
    if name in _LETTERS and len(content) < 200 and "\\" + name not in content:
        return tokenize(content)
    if len(stripped) < 60 and (_LETTER_LIST.fullmatch(stripped) or _DRESSED_NUMBER.fullmatch(stripped)):
        return tokenize(stripped)
    return _text_parts(stripped, start, spaced)


def _text_parts(text: str, start: int, spaced: bool) -> list[Token]:
    """Returns the words of a text; numbers, and separators at its ends or beside numbers, are tokens of their own."""
    parts = [part for part in _split_keeping(text) if part.strip()]
    tokens: list[Token] = []
    for index, part in enumerate(parts):
        plain = part.strip()
        beside = [parts[at].strip() for at in (index - 1, index + 1) if 0 <= at < len(parts)]
        separates = len(beside) < 2 or any(not near[0].isalpha() or near.lower() in ("and", "or") for near in beside)
        if plain[0].isdigit() and _TEXT_PART.fullmatch(plain):
            tokens.append(Token("num", plain, start, True))
        elif plain in (",", ";") and separates:
            tokens.append(Token("op", ",", start, spaced))
        elif plain.lower() in ("and", "or") and separates:
            tokens.append(Token("op", plain.lower(), start, spaced))
        elif tokens and tokens[-1].kind == "text":
            tokens[-1] = tokens[-1]._replace(value=f"{tokens[-1].value} {plain}")
        else:
            tokens.append(Token("text", plain, start, spaced))
    return tokens


def _split_keeping(text: str) -> list[str]:
    parts, position = [], 0
    for match in _TEXT_PART.finditer(text):
        parts += [text[position : match.start()], match[0]]
        position = match.end()
    return [*parts, text[position:]]


def braced(text: str, position: int) -> tuple[str, int]:
    """Returns the content of the braces (or the one character) after `position`, and the position after it."""
    while position < len(text) and text[position] == " ":
        position += 1
    if position >= len(text):
        raise Unreadable("a command without its argument")
    if text[position] != "{":
        return text[position], position + 1
    close = closing_brace(text, position, len(text))
    if close is None:
        raise Unreadable("a brace that is never closed")
    return text[position + 1 : close], close + 1


def numeral(raw: str) -> tuple[Fraction, int | None]:
    """Returns the value of a numeral and the number of its decimals (None for an integer)."""
    plain = raw.replace(",", "")
    whole, dot, decimals = plain.partition(".")
    if not dot or not decimals:
        return Fraction(int(whole or "0")), None
    return Fraction(int((whole or "0") + decimals), 10 ** len(decimals)), len(decimals)
