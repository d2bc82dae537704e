"""Parts of a chain of thought that are in no language (code, formulas, links), and the prose hidden in them."""

from __future__ import annotations

import re

from verifiers.language.scripts import EAST_ASIAN
from verifiers.lazy_pattern import lazy_pattern

_FENCE = lazy_pattern(r"(```+|~~~+)")
_INLINE = lazy_pattern(r"`([^`\n]{1,400})`")
_LINK = lazy_pattern(r"(?:https?://|www\.)[^\s<>\"'，。）]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+")
# Every pattern here starts only at the start of a word, or is bounded: a megabyte of any text takes linear time.
_NAME = lazy_pattern(
    r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\((?=[^\s)])|\b[A-Za-z]+(?:_\w+|\d\w*)|\b[a-z]+[A-Z]\w*"
    r"|(?<![\w/])\w+(?:/\w+){2,}",
    re.ASCII,
)
_MAYBE_NAME = lazy_pattern(r"[A-Za-z][(_/0-9]|[a-z][A-Z]")
_DELIMITER = lazy_pattern(
    r"\\(?:begin|end)\{(?:equation|align|gather|array|cases|[bpvBV]?matrix|multline|split|aligned)\*?\}"
    r"|\\[\[\]()]|\$\$|(?<!\\)\$"
)
_OPENS = {"\\[": "\\]", "\\(": "\\)", "$$": "$$", "$": "$"}
_TEXT = lazy_pattern(r"\\(?:text|mbox|textrm|textbf|textit|mathrm|operatorname|texttt|hbox)\s*\{([^{}]*)\}")
_COMMAND = lazy_pattern(r"\\[A-Za-z]+\*?")
_WORDS = lazy_pattern(r"\b(?:[^\W\d_]{2,40}(?:['’][^\W\d_]{1,40})?[,;:]? {1,9}){3,200}[^\W\d_]{2,40}")
_CODE_WORDS = lazy_pattern(
    r"\b(?:def|return|import|from|for|while|if|elif|else|in|not|and|or|is|class|lambda|yield|with|as|try|except|raise|"
    r"const|let|var|function|new|public|static|void|int|float|char|include|using|namespace|struct|print|None|True|False)\b"
)
_COMMENT = lazy_pattern(r"(?:#|//|--|%|/\*|\*)\s*(.+)|[\"']{1,3}([^\"'\n]{12,})[\"']{1,3}")
_MAX_MATHS = 2000  # characters of one formula; if the next dollar sign is farther away, it is money


def without_neutral(text: str) -> str:
    """Returns the text without neutral parts; prose inside code or formulas stays, because hiding it must not pay."""
    text = _without_fences(text)
    text = _INLINE.sub(lambda m: f" {_prose(m[1])} ", text)
    text = _LINK.sub(" ", text)
    if "$" in text or "\\" in text:
        text = _without_maths(text)
        text = _TEXT.sub(lambda m: f" {m[1]} ", text)
        text = _COMMAND.sub(" ", text)
    return _NAME.sub(" ", text) if _MAYBE_NAME.search(text) else text


def _without_fences(text: str) -> str:
    parts = _FENCE.split(text)
    if len(parts) == 1:
        return text
    kept, inside = [parts[0]], False
    for fence, part in zip(parts[1::2], parts[2::2], strict=True):
        del fence
        inside = not inside
        kept.append("\n".join(map(_code_line, part.split("\n"))) if inside else part)
    return "\n".join(kept)


def _code_line(line: str) -> str:
    """Returns the prose of a line of code: comments, strings, and lines that are not code."""
    found = _COMMENT.search(line)
    if found:
        return _prose(found[1] or found[2])
    return _prose(_CODE_WORDS.sub("_", line))


def _prose(text: str) -> str:
    """Returns runs of four or more words, and everything that is Chinese or Japanese."""
    kept = _WORDS.findall(text)
    if EAST_ASIAN.search(text):
        kept += ["".join(EAST_ASIAN.findall(text))]
    return " ".join(kept)


def _without_maths(text: str) -> str:
    """Removes formulas, in one pass over their delimiters."""
    kept, position, opened = [], 0, None
    for match in _DELIMITER.finditer(text):
        sign = match[0]
        if opened is None:
            closing = _OPENS.get(sign) or (sign.replace("begin", "end", 1) if sign.startswith("\\begin") else None)
            if closing and not (sign == "$" and text[match.end() : match.end() + 1].isspace()):
                opened = (match, closing)
            continue
        first, closing = opened
        far = match.start() - first.end() > _MAX_MATHS
        if sign == closing and not far and not (sign == "$" and _money(text, first.end(), match.start())):
            kept += [text[position : first.start()], " ", _formula(text[first.end() : match.start()]), " "]
            position, opened = match.end(), None
        elif sign == "$" == closing or far:  # the first dollar sign was money: start again from here
            opened = (match, _OPENS[sign]) if sign in _OPENS else None
    return "".join([*kept, text[position:]])


def _money(text: str, start: int, end: int) -> bool:
    """True if the text between two dollar signs is an amount and a sentence, not a formula."""
    inside = text[start:end]
    return "\n" in inside or (inside[:1].isdigit() and "\\" not in inside and _WORDS.search(inside) is not None)


def _formula(inside: str) -> str:
    """Returns the prose in a formula: the content of text commands, and words that are not symbols."""
    words = " ".join(_TEXT.findall(inside))
    rest = _COMMAND.sub("_", _TEXT.sub("_", inside))
    return f"{words} {_prose(rest)}"
