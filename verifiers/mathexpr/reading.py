"""Text to a typed answer."""

from __future__ import annotations

import re
from dataclasses import replace as changed
from fractions import Fraction

from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.clean import clean, trim
from verifiers.mathexpr.forms import SCALES, text_words, whole_form
from verifiers.mathexpr.limits import MAX_ANSWER_CHARS, MAX_ITEMS, Unreadable
from verifiers.mathexpr.nodes import Node, number
from verifiers.mathexpr.parser import Parser
from verifiers.mathexpr.shapes import shaped
from verifiers.mathexpr.structures import based
from verifiers.mathexpr.tokens import Token, numeral, tokenize
from verifiers.mathexpr.units import AMBIGUOUS, CELSIUS, DEGREE, FAHRENHEIT, Unit, lookup, read_unit

_PLAIN_NUMBER = re.compile(r"[+-]?\d{1,200}(?:\.\d{1,200})?", re.ASCII)
_TEMPERATURE = re.compile(r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm|rm)\s*\{\s*)?([CF])\b\s*\}?")
_BASED = re.compile(r"(?:\\text\{)?([0-9A-Z]{1,60})\}?_\{?(?:\\text\{)?([a-z]+|\d{1,2})\}*")
_FRENCH = re.compile(r"([\[\]()])([^\[\]();,{}]{1,60})([,;])([^\[\]();,{}]{1,60})([\[\]()])")
_OPEN = frozenset(["(", "[", "{", "lset", "langle", "lfloor", "lceil"])
_CLOSE = frozenset([")", "]", "}", "rset", "rangle", "rfloor", "rceil"])
_CONDITION = frozenset(
    "where for when if with such provided given unless except whenever as satisfying excluding assuming".split()
)
_LEAD = frozenset(
    "only about approximately approx exactly around roughly is are be equals equal the a an answer answers"
    " value values total of result final there gives we get so thus therefore hence to it its will need has x="
    " either both yes solution solutions set domain range interval function maximum minimum max min sum number"
    " simplified expression equation point points coordinates vertex area perimeter volume length probability"
    " ratio price cost all".split()
)
_REVERSING = frozenset(
    "not no never without less more greater fewer least most than over under between below above beyond minus"
    " negative half double twice thrice other neither nor except but square squared root cube cubed times"
    " divided plus unknown larger bigger smaller higher lower exceeds exceeding within cannot"
    " can't isn't wrong incorrect false almost nearly".split()
)
_CURRENCY = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB"}
_ORDINAL = frozenset(["st", "nd", "rd", "th"])


def read(text: str) -> Answer:
    """The answer that the text gives.

    Raises: Unreadable if it gives none that is understood; TooHard where reading it would cost too much.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise Unreadable(f"longer than {MAX_ANSWER_CHARS} characters")
    cleaned = trim(clean(text))
    if not cleaned:
        raise Unreadable("empty")
    if _PLAIN_NUMBER.fullmatch(cleaned):
        return Answer("scalar", Parser(tokenize(cleaned)).whole())
    form = whole_form(cleaned)
    if form is not None:
        return form
    named = _BASED.fullmatch(cleaned)
    if named and any(char.isdigit() for char in named[1]):
        return Answer("scalar", based(named[1], named[2]))
    cleaned = _TEMPERATURE.sub(lambda match: rf"\text{{{'Celsius' if match[1] == 'C' else 'Fahrenheit'}}}", cleaned)
    if cleaned[0] == "]" or cleaned[-1] == "[":
        cleaned = _FRENCH.sub(_french, cleaned)
    if cleaned.startswith(r"\begin{cases}") and cleaned.endswith(r"\end{cases}") and "&" not in cleaned:
        cleaned = cleaned[13:-11].replace(r"\\", " , ")  # a system of equations
    try:
        return _answer(tokenize(cleaned))
    except Unreadable:
        words = text_words(cleaned)
        if not any(
            len(word) > 1 and word.isalpha() for word in re.findall(r"(?<![\\A-Za-z])[^\W\d_]+", _texts(cleaned))
        ):
            raise
        prose = re.findall(r"(?<![\\A-Za-z])[^\W\d_]{3,}", _texts(cleaned))
        if len(prose) < 4 and re.search(r"[\^_={}\\+/]|\d\s*[-*]", _outside_text(cleaned)):
            raise  # maths that can't be read is no prose
        return Answer("text", words=words)


def _texts(text: str) -> str:
    return re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|hbox)\b", " ", text)


def _outside_text(text: str) -> str:
    text = re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|hbox)\s*\{[^{}]*\}", " ", text)
    return re.sub(r"\\[,;:! ]", " ", text)


def _french(match: re.Match[str]) -> str:
    opening = {"]": "("}.get(match[1], match[1])
    closing = {"[": ")"}.get(match[5], match[5])
    return f"{opening}{match[2]}{match[3]}{match[4]}{closing}"


# -- lists and conditions


def _answer(tokens: list[Token]) -> Answer:
    tokens, condition, declared = _split_condition(tokens)
    pieces, joiners = _split_list(tokens)
    if len(pieces) > MAX_ITEMS:
        raise Unreadable(f"more than {MAX_ITEMS} items")
    if len(pieces) > 1:
        last, dropped = pieces[-1], _membership(pieces[-1])
        if (dropped and not any(token.value in ("in", "=") for piece in pieces[:-1] for token in piece)) or (
            dropped and len(pieces) == 2 and len(last) < len(pieces[0]) and _mentions(pieces[0], dropped)
        ):
            condition, declared = condition or "integer", (*declared, dropped)
            pieces, joiners = pieces[:-1], joiners[:-1]
    answers = [_piece(piece) for piece in pieces]
    found = answers[0] if len(answers) == 1 else _joined(answers, joiners)
    if condition or declared:
        found = changed(found, condition=condition, bound=(*found.bound, *declared))
    return found


def _membership(tokens: list[Token]) -> str:
    """n of a last piece "n in Z": where a parameter lives is a condition and no answer."""
    values = [token.value for token in tokens]
    if len(values) == 3 and values[1] == "in" and values[2] in ("setZ", "setN", "setQ", "Z", "N", "setR", "R"):
        return tokens[0].value
    return ""


def _mentions(tokens: list[Token], name: str) -> bool:
    return any(token.value == name for token in tokens)


def _split_condition(tokens: list[Token]) -> tuple[list[Token], str, tuple[str, ...]]:
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.value in _OPEN) - (token.value in _CLOSE)
        if depth or index == 0 or token.kind not in ("word", "text"):
            continue
        first = token.value.split()[0].strip("(,").casefold() if token.value.split() else ""
        if first in _CONDITION:
            words = _condition_words(tokens[index:])
            while index and tokens[index - 1].value in (",", ";", "("):
                index -= 1
            return tokens[:index], " ".join(words), _declared(tokens[index:], words)
    return tokens, "", ()


def _condition_words(tokens: list[Token]) -> list[str]:
    return [
        word for token in tokens for word in text_words(token.value) or ((token.value,) if token.kind == "op" else ())
    ]


def _declared(tokens: list[Token], words: list[str]) -> tuple[str, ...]:
    """Letters that a condition declares as integers or constants: their names mean nothing."""
    if not {"integer", "integers", "constant", "constants", "arbitrary", "setz", "setn", "in", "any"} & set(words):
        return ()
    names = [token.value for token in tokens if token.kind == "sym"]
    names += [word for token in tokens if token.kind == "text" for word in re.findall(r"\b[a-zA-Z]\b", token.value)]
    return tuple(dict.fromkeys(name for name in names if name not in ("a", "Z", "N", "R")))


def _split_list(tokens: list[Token]) -> tuple[list[list[Token]], list[str]]:
    """Pieces between top-level commas, semicolons, "and" and "or", and what joins them."""
    pieces: list[list[Token]] = [[]]
    joiners: list[str] = []
    depth = 0
    quantified = bool(tokens) and tokens[0].value in ("forall", "exists")
    for token in tokens:
        if token.kind == "begin" or (token.kind == "op" and token.value in _OPEN):
            depth += 1
        elif token.kind == "end" or (token.kind == "op" and token.value in _CLOSE):
            depth -= 1
        if depth <= 0 and not quantified and token.kind == "op" and token.value in (",", ";", "and", "or", "&"):
            if pieces[-1]:
                pieces.append([])
                joiners.append(token.value)
            elif joiners and token.value in ("and", "or"):
                joiners[-1] = token.value  # ", and" is one joint
            continue
        pieces[-1].append(token)
    if not pieces[-1]:
        pieces.pop()
        joiners = joiners[: len(pieces) - 1]
    if not pieces:
        raise Unreadable("nothing but separators")
    if len(pieces) == 2 and joiners == ["and"] and pieces[0][-1].kind == "word" and pieces[0][-1].value == "between":
        raise Unreadable("a range in words")
    return pieces, joiners


def _joined(answers: list[Answer], joiners: list[str]) -> Answer:
    joint = "or" if "or" in joiners else "and" if "and" in joiners else ","
    if all(answer.kind in ("region", "empty") for answer in answers):
        pieces = [answer.pieces for answer in answers]
        name = answers[0].name
        together = tuple(piece for part in pieces for piece in part)
        if joint == "or":
            return Answer("region", pieces=together, name=name)
        if any(answer.brackets for answer in answers):  # written as intervals: a list of them is their union
            return Answer("list", items=tuple(answers))
        common = pieces[0]
        for part in pieces[1:]:
            common = regions.intersect(common, part)
        return Answer("region", pieces=common or (together if joint == "," else ()), name=name)
    if joint == "or" and any(answer.kind == "region" for answer in answers):
        found = [_as_region(answer) for answer in answers]
        if all(part is not None for part in found):
            names = {answer.name for answer in answers if answer.name}
            together = tuple(piece for part in found if part is not None for piece in part)
            return Answer("region", pieces=together, name=names.pop() if len(names) == 1 else "")
    items = tuple(item for answer in answers for item in (answer.items if answer.kind == "list" else (answer,)))
    if len(items) > MAX_ITEMS:
        raise Unreadable(f"more than {MAX_ITEMS} items")
    units = [item.unit for item in items if item.kind == "scalar"]
    if units and units[-1] is not None and all(unit is None for unit in units[:-1]) and len(units) == len(items):
        items = tuple(changed(item, unit=units[-1]) for item in items)  # "3, 4 and 5 cm"
    return Answer("list", items=items, joined_by=joint)


def _as_region(answer: Answer) -> regions.Pieces | None:
    if answer.kind == "region":
        return answer.pieces
    if answer.kind == "scalar" and answer.node is not None and answer.name:
        return (regions.point(answer.node),)
    return None


# -- one piece: words beside it, its unit, its value


def _piece(tokens: list[Token]) -> Answer:
    compound = _compound(tokens)
    if compound is not None:
        return compound
    if len(tokens) > 1 and tokens[0].value.casefold() in ("negative", "minus") and tokens[1].kind in ("num", "cmd"):
        tokens = [Token("op", "-", tokens[0].start, False), *tokens[1:]]
    tokens, money = _without_currency(tokens)
    label: tuple[str, ...] = ()
    colon = next((i for i, token in enumerate(tokens) if token.value == ":" and token.kind == "op"), 0)
    if colon and all(
        token.kind in ("word", "text") or (token.kind == "num" and i) for i, token in enumerate(tokens[:colon])
    ):
        label = _prose(tokens[:colon], anything=True)  # "Paolo: 18"
        tokens = tokens[colon + 1 :]
    tokens = _without_lead(tokens)
    head, tail = _split_tail(tokens)
    if not head:
        raise Unreadable("words only" if tail else "nothing")
    named = _named(head)
    label = (*label, *named)
    if named:
        head = head[[token.value for token in head].index("=") + 1 :]
    if len(head) == 1 and head[0].kind == "word" and _is_word(head[0].value):
        raise Unreadable("a word")
    node = Parser(head).whole()
    scale, words = Fraction(1), [token.value for token in tail]
    words = [word for text in words for word in re.findall(r"[A-Za-z_€£¥₹₽¢°%Ω]+\.?|\d+|[/^*-]", text)]
    while words and words[0].lower() in SCALES:
        scale *= SCALES[words.pop(0).lower()]
    percent = bool(words) and words[0].lower() in ("percent", "pct") and node.op in ("num", "dec", "neg", "div")
    if percent:
        node, words = Node("percent", (node,)), words[1:]
    if scale != 1:
        node = Node("mul", (node, number(scale)))
    found = shaped(node)
    unit = money
    if words:
        if found.kind not in ("scalar", "list", "region", "tuple") and words:
            raise Unreadable("words after an answer that takes none")
        read_as = read_unit(words)
        if read_as is None and {word.lower() for word in words} & _REVERSING:
            raise Unreadable("words that may turn the value around")
        unit = read_as if read_as is not None else unit
        if read_as is None:
            label = (*label, *(word.casefold().rstrip(".") for word in words if word.isalpha()))
            inner = _unit_before_label(words)
            unit = inner if inner is not None else unit
    if found.kind == "scalar" and found.node is not None and found.node.op == "deg":
        angle = {"celsius": CELSIUS, "fahrenheit": FAHRENHEIT}.get(label[0] if label else "", DEGREE)
        found, unit = changed(found, node=found.node.args[0]), angle if unit is None else unit
    elif (
        found.kind == "scalar" and found.node is not None and found.node.op == "neg" and found.node.args[0].op == "deg"
    ):
        found, unit = changed(found, node=Node("neg", found.node.args[0].args)), DEGREE
    return changed(found, unit=unit if unit is not None else found.unit, label=(*found.label, *label))


def _compound(tokens: list[Token]) -> Answer | None:
    """ "2 hours 30 minutes", "5 feet 6 inches": the sum, in the first unit."""
    parts = [token for token in tokens if not (token.kind == "op" and token.value in ("and", ","))]
    if len(parts) < 4 or len(parts) % 2 or len(parts) > 8 or any(part.kind != "num" for part in parts[::2]):
        return None
    units = [lookup(part.value) if part.kind in ("word", "text", "sym") else None for part in parts[1::2]]
    first = units[0]
    if first is None or not first.dimension:
        return None
    total = Fraction(0)
    for part, unit in zip(parts[::2], units, strict=True):
        if unit is None or unit.dimension != first.dimension or (total and unit.scale >= first.scale):
            return None
        total += numeral(part.value)[0] * unit.scale / first.scale
    return Answer("scalar", number(total), unit=first)


def _is_word(letters: str) -> bool:
    """Three or more letters with a vowel are a word, unless they are the start of the alphabet."""
    return (
        len(letters) > 2 and bool(set(letters.casefold()) & set("aeiou")) and letters.casefold() not in ("abc", "abcd")
    )


def _without_currency(tokens: list[Token]) -> tuple[list[Token], Unit | None]:
    money: Unit | None = None
    kept = []
    for token in tokens:
        name = _CURRENCY.get(token.value) if token.kind == "other" else "USD" if token.value == "USD_" else None
        if name is None:
            kept.append(token)
        else:
            money = lookup(name)
    return kept, money


def _without_lead(tokens: list[Token]) -> list[Token]:
    """Without words before the value that do not change it."""
    index = 0
    while index < len(tokens) and tokens[index].kind in ("word", "text"):
        words = [word for word in re.findall(r"[^\W\d_]+", tokens[index].value.casefold())]
        if not all(word in _LEAD for word in words) or (
            tokens[index].kind == "text" and re.search(r"\d", tokens[index].value)
        ):
            break
        index += 1
        while index < len(tokens) and tokens[index].value in (":", "=") and index + 1 < len(tokens):
            index += 1
    while index and index < len(tokens) and tokens[index].value == "approx":
        index += 1
    if tokens and tokens[0].value in ("approx", "=", ":") and index == 0:
        index = 1
    return tokens[index:] if index < len(tokens) else tokens


def _named(tokens: list[Token]) -> tuple[str, ...]:
    """The words of "Maximum = 2"."""
    for index, token in enumerate(tokens):
        if token.value == "=" and token.kind == "op":
            if index and all(part.kind in ("word", "text") and len(part.value) > 2 for part in tokens[:index]):
                return _prose(tokens[:index], anything=True)
            return ()
    return ()


def _prose(tokens: list[Token], *, anything: bool) -> tuple[str, ...]:
    words = tuple(word for token in tokens for word in text_words(token.value))
    if not anything or set(words) & _REVERSING:
        raise Unreadable("words that may turn the value around")
    return words


def _split_tail(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """The expression, and the words (unit, noun) after it."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.value in _OPEN) - (token.value in _CLOSE)
        elif token.kind in ("begin", "end"):
            depth += 1 if token.kind == "begin" else -1
        if depth or not index or token.kind not in ("word", "text", "sym", "op", "other"):
            continue
        if not _starts_unit(tokens, index):
            continue
        tail = tokens[index:]
        rest = [t for t in tail if t.kind not in ("word", "text")]
        plain = all(
            t.kind in ("sym", "num", "other") or t.value in ("/", "^", "-", "*", "{", "}", "(", ")", "'") for t in rest
        )
        if plain:
            return tokens[:index], [t for t in tail if t.value not in ("(", ")")]
    return tokens, []


def _starts_unit(tokens: list[Token], index: int) -> bool:
    token, before = tokens[index], tokens[index - 1]
    if token.kind == "text":
        return True
    if token.kind == "word":
        if token.value in _ORDINAL and before.kind == "num" and not token.spaced:
            return True
        known = lookup(token.value) is not None or token.value.lower() in SCALES or token.value == "per"
        return len(token.value) > 3 or (
            known and before.kind in ("num", "op", "sym") and (token.spaced or before.kind == "num")
        )
    if token.kind == "other":
        return token.value in "¢°"
    follows = index + 1 < len(tokens) and tokens[index + 1].value in ("/", "per")
    after = tokens[index + 2].value if index + 2 < len(tokens) else ""
    return (  # "5 m/s": a letter is a unit if the whole tail can only be one
        token.kind == "sym" and token.value in AMBIGUOUS and before.kind == "num" and token.spaced and follows
        and (after in ("s", "h") or lookup(after) is not None)
    )  # fmt: skip


def _unit_before_label(words: list[str]) -> Unit | None:
    """The unit of "40 cm of rope"."""
    for end in range(min(len(words) - 1, 4), 0, -1):
        found = read_unit(words[:end])
        if found is not None and found.dimension:
            return found
    return None
