"""Reads text as a typed answer."""

from __future__ import annotations

import re
from dataclasses import replace as changed

from verifiers.lazy_pattern import lazy_pattern
from verifiers.marks import LETTER
from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.assignments import names
from verifiers.mathexpr.clean import clean, trim
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.forms import plain_words, text_words, whole_form
from verifiers.mathexpr.halves import quantity_with_half
from verifiers.mathexpr.letter_units import quantity
from verifiers.mathexpr.limits import MAX_ANSWER_CHARS, MAX_ITEMS, Unreadable, spend
from verifiers.mathexpr.local import plain_spelling
from verifiers.mathexpr.nodes import Node, number, symbol
from verifiers.mathexpr.parser import Parser
from verifiers.mathexpr.piecewise import ELSE, LEADS
from verifiers.mathexpr.quantities import NO_TAIL, REVERSING, compound, read_tail, split_tail
from verifiers.mathexpr.shapes import shaped
from verifiers.mathexpr.structures import based
from verifiers.mathexpr.tokens import Token, nesting, tokenize
from verifiers.units.reading import CELSIUS, DEGREE, FAHRENHEIT, Unit, is_unit, lookup

_PLAIN_NUMBER = lazy_pattern(r"[+-]?\d{1,200}(?:\.\d{1,200})?", re.ASCII)
_TEMPERATURE = lazy_pattern(
    r"(?:\\(?:text|mathrm|textrm)\s*\{\s*)?(?:\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z]))\s*(?:\\(?:text|mathrm|rm)\s*\{\s*)?([CF])\b\s*\}?"
)
_LETTER = lazy_pattern(r"\\(?:text|textit|textrm|mathrm)\{\s*([a-z])\s*\}")
_BASED = lazy_pattern(
    r"(?:\\(?:text|mathrm)\{|\()?([0-9A-Z]{1,60})[})]?_\{?(?:\\text\{|\()?([a-z]+|\d{1,2})[})]*"
    r"|\(?([0-9A-F]{1,60})\)?\s*(?:\\text\s*\{)?\s*\(?(?:in )?base ?\}?\s*"  # 101 (base 2)
    r"(\d{1,2}|two|three|four|five|six|seven|eight|nine)\s*\)?\}?"
)
_SMALL_BASES = frozenset("23456789")
_LETTERS_OF_16 = lazy_pattern(r"[A-F]{2,8}_\{?16\}?")
_HEXADECIMAL = lazy_pattern(r"[0-9a-f]{0,40}\d[0-9a-f]{0,40}_(?:\{16\}|16)")
_LINES = lazy_pattern(
    r"\\begin\{(cases|align\*?|aligned|alignat\*?|gathered|gather\*?|split|equation\*?|eqnarray\*?)\}(.*)\\end\{\1\}",
    re.DOTALL,
)
_BRACED_ARRAY = lazy_pattern(
    r"(?:\\left\s*)?\\(?:\{"
    r"|lbrace)\s*\\begin\{(array|aligned)\}\s*(?:\{[^{}]*\})?((?:(?!\\begin).)*)\\end\{\1\}\s*\\right\s*\.?",
    re.DOTALL,
)
_MAPS = lazy_pattern(  # f: x -> x^2; without a name of x only, as y = x^2
    r"\A(?:([a-zA-Z](?:\^\{-1\})?)\s*(?::|\\colon(?![a-z]))\s*([a-z])|x)\s*\\(?:long)?mapsto(?![a-z])\s*"
)
_FIRST_TAB = lazy_pattern(r"(?:\A|(?<=\\\\))\s*&")  # of a line
_RELATION = lazy_pattern(r"=|<|>|\\(?:le|ge|leq|geq|ne|neq|approx|lt|gt|implies|Rightarrow)(?![A-Za-z])")
_SPELLED = lazy_pattern(rf"(?<![\\A-Za-z])[^\W\d_]{LETTER}*")
_CASE = lazy_pattern(
    rf"(?:,|(?<![\s,]))\s*+(\\text\s*\{{\s*,?\s*(?:{'|'.join(sorted(LEADS - {'and', 'as'} | ELSE))})\b)"
)
_ALIGNED = lazy_pattern(r"&\s*(=|<|>|\\(?:le|ge|leq|geq|ne|neq|approx|lt|gt)(?![A-Za-z]))")
_HALF = lazy_pattern(
    r"[Hh]al[fvb]|[Mm]ezz|пол[а-я]{4}|quarter|половин|олтор|івтор|نصف|[半반]"
    r"|\b(?:[Mm]edi[oa]|demie?|[Mm]ei[oa]|po(?:ł\w*|l(?:torej|tora)?)|[Bb]ucuk|ruoi|[Nn]ua|[Ss]etengah|[Yy]arım)\b"
)
_DECIMAL_COMMA = lazy_pattern(
    r"([+-]?(?:\d+(?=,(?:\d{1,2}|\d{4,12})(?![\d,.]))|0(?=,\d{3}(?![\d,.]))"
    r"|[1-9]\d{0,2}(?:\.\d{3})+(?=,))),(\d{1,12})(?![\d,.])"
    r"(\D*|\s*\\(?:cdot|times)\s*10\s*\^\s*(?:-?\d|\{\s*-?\d{1,3}\s*\}))"
)
_SURE_DECIMAL = lazy_pattern(
    r"USD_|[€£¥₹₽%]|10\s*\^|\\text\{ (?:myriad|(?:hundred )?(?:thousand|million|billion))|EUR|\b(?:euros?|Euro)\b"
)
_TEXTED = lazy_pattern(r"\\(?:text|textbf|mathrm|mbox)\s*\{\s*([+-]?\d[\d.,]*(?:\s?:\s?\d+){0,3})\s*\}")
_BRACKETED = lazy_pattern(
    r"\[\s*([+-]?\d[\d.]{0,40}\s*(?:\\(?:text|mathrm)\s*\{[^{}]{1,40}\}|[A-Za-z]{3,20}|\\?%))\s*\]"
)
# Each character is read in one way only: a semicolon behind a backslash is space and separates nothing.
_BETWEEN = r"(?:[^(){}\[\],;\\]|\\[^(){}\[\]]|(?<=\d),(?=\d{1,2}(?!\d)))*+"
_SEMICOLONS = lazy_pattern(rf"\\\{{{_BETWEEN}(?:;{_BETWEEN})+\\\}}|[\[\](]{_BETWEEN}(?:;{_BETWEEN})+[\])\[]")
_COMMA = lazy_pattern(r"(?<=\d),(?=\d)")
_ANGLED = lazy_pattern(r"(?:(?<=\A)|(?<==)|(?<== ))<([^<>=]{1,200},[^<>=]{1,200})>\Z")  # the vector <2, -3, 1>
_OPEN_AT = lazy_pattern(r"(?:=|\\in)(?:\s|\\[,;:!])*\]")  # "L = ]2; 3]"
_SPACE = lazy_pattern(r"\\[,;:!]")
_UNIT_IN_BRACKETS = lazy_pattern(r"(?<=[\d}])(?:\s|\\[,;: ]|~)*[(\[]\s*\\(?:text|mathrm)\s*\{([^{}]{1,20})\}\s*[)\]]$")
_LED = lazy_pattern(r"\A(?:\\(?:[,;:! ]|q?quad(?![A-Za-z]))\s*)++(?=.)")  # spaces before a value
_FRENCH = lazy_pattern(r"([\[\]()])([^\[\]();,{}]{1,60})([,;])([^\[\]();,{}]{1,60})([\[\]()])")
_CONDITION = frozenset(
    "where for when if with such provided given unless except whenever as satisfying excluding assuming".split()
)
_LEAD = frozenset(
    "only about approximately approx exactly around roughly is are be equals equal the a an answer answers value values"
    " total of result final there gives we get so thus therefore hence to it its will need has x= either both yes"
    " solution solutions set domain range interval function maximum minimum max min sum number simplified expression"
    " equation point points coordinates vertex area perimeter volume length probability ratio price cost all".split()
)
_MEASURES = frozenset("rank rg card var cov std area vol volume perimeter trace nullity mean median".split())
_CURRENCY = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB"}
_SAME = ("=", "approx")
_NAME = r"[A-Za-z](?:_\{?\w\}?)?"
_ASSIGNMENT = lazy_pattern(rf"(?<![A-Za-z\\])({_NAME})\s*=")
_BULLET = lazy_pattern(rf"\s*(?:[-*•]|\d\.)\s+(?=[$*]*{_NAME}\s*=)")
_NEXT_ASSIGNMENT = lazy_pattern(
    rf"(?<=[\d}})])[$*.,;]*+(?:\s|\\q?quad(?![A-Za-z])|\\[,;:!])++(?:(?:[-*•]|\d\.)\s+)?[$*]*+(?={_NAME}\s*=)"
)
_OPERATORS = {
    word: sign
    for sign, words in {
        "*": "times|multiplied by|mal|fois|veces|vezes|volte|por|умножить на|乘以|乘",
        "/": "divided by|over|geteilt durch|divise par|dividido por|dividido entre|diviso|разделить на|除以",
        "+": "plus|mas|mais|piu|плюс|加", "-": "minus|moins|menos|meno|минус|减|減",
    }.items()
    for word in words.split("|")
}  # fmt: skip


def _listed(text: str) -> str:
    """Returns assignments that only blanks, lines or bullets separate as a list: "x = 1 y = 2" is no product 1y."""
    lines = text.replace("\\\\", "\n")
    names = _ASSIGNMENT.findall(lines)
    if len(names) != text.count("=") or len(set(names)) != len(names) or "\\begin" in text:
        return text
    return _NEXT_ASSIGNMENT.sub(", ", _BULLET.sub("", lines, count=1))


def read(text: str) -> Answer:
    """Returns the answer that the text states.

    Raises:
        Unreadable: the text is not an answer that is understood.
        TooHard: reading it would exceed the budget.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise Unreadable(f"longer than {MAX_ANSWER_CHARS} characters")
    spend(len(text) >> 1)
    cleaned = trim(clean(plain_spelling(_listed(text) if text.count("=") > 1 else text)))
    if not cleaned:
        raise Unreadable("empty")
    if _PLAIN_NUMBER.fullmatch(cleaned):
        return Answer("scalar", Parser(tokenize(cleaned)).whole())
    texted = _TEXTED.fullmatch(cleaned) or (_BRACKETED.fullmatch(cleaned) if cleaned[0] == "[" else None)
    cleaned = texted[1] if texted else cleaned
    letter = _LETTER.fullmatch(cleaned)
    cleaned = letter[1] if letter else cleaned
    form = whole_form(cleaned)
    if form is not None:
        return form
    if _HEXADECIMAL.fullmatch(cleaned):
        cleaned = cleaned.upper()
    named = _BASED.fullmatch(cleaned)
    digits, base = (named[1] or named[3], named[2] or named[4]) if named else ("", "")
    product = not digits.isdigit() and base in _SMALL_BASES  # 4I_2
    if not product and (any(map(str.isdigit, digits)) or _LETTERS_OF_16.fullmatch(cleaned)):
        return Answer("scalar", based(digits, base))
    cleaned = _TEMPERATURE.sub(lambda match: rf"\text{{{'Celsius' if match[1] == 'C' else 'Fahrenheit'}}}", cleaned)
    if ";" in cleaned and "," in cleaned:  # between semicolons, commas are decimal commas
        cleaned = _SEMICOLONS.sub(lambda match: _COMMA.sub(".", match[0]), cleaned)
    if cleaned[-1] == ">":
        cleaned = _ANGLED.sub(r"\\langle \1 \\rangle", cleaned)
    cleaned = _LED.sub("", cleaned) if cleaned[0] == "\\" else cleaned
    bracketed = _UNIT_IN_BRACKETS.search(cleaned) if cleaned[-1] in ")]" else None
    if bracketed and is_unit(bracketed[1]):  # "20 [m/s]"
        cleaned = rf"{cleaned[: bracketed.start()]}\text{{ {bracketed[1]}}}"
    if cleaned[0] == "]" or cleaned[-1] == "[" or ("]" in cleaned and _OPEN_AT.search(cleaned)):
        cleaned = _FRENCH.sub(_french, _SPACE.sub(" ", cleaned))
    if "mapsto" in cleaned:
        cleaned = _MAPS.sub(lambda match: f"{match[1]}({match[2]}) = " if match[1] else "y = ", cleaned)
    cleaned = cleaned.replace("{dcases}", "{cases}")
    if "{array}" in cleaned or "{aligned}" in cleaned:
        cleaned = _BRACED_ARRAY.sub(_cases, cleaned)
    if cleaned.startswith(r"\begin{"):
        cleaned = _lines(cleaned)
    if len(cleaned) < 60 and _HALF.search(cleaned):
        half = quantity_with_half(plain_words(cleaned))
        if half is not None:
            return Answer("scalar", number(half[0]), unit=half[1])
    try:
        tokens = tokenize(cleaned)
        spend(2 * len(tokens))
        comma = _DECIMAL_COMMA.fullmatch(cleaned) if "," in cleaned else None
        if comma is not None:
            return _with_comma(tokens, comma)
        return _answer(tokens)
    except Unreadable:
        words = text_words(cleaned)
        if not any(len(word) > 1 or word > "\u3040" for word in _SPELLED.findall(_texts(cleaned))):
            raise
        prose = re.findall(r"(?<![\\A-Za-z])[^\W\d_]{3,}", _texts(cleaned))
        if len(prose) < 4 and re.search(r"[\^_={}\\+/]|\d\s*[-*]", _outside_text(cleaned)):
            raise  # unreadable maths, not prose
        return Answer("text", words=words)


def _with_comma(tokens: list[Token], comma: re.Match[str]) -> Answer:
    """Reads "3,5" as a list whose other reading, for a gold that is one number, is three and a half."""
    answer = _answer(tokens)
    try:
        point = _answer(tokenize(f"{comma[1].replace('.', '')}.{comma[2]}{comma[3]}"))
    except Unreadable:
        return answer
    if point.kind == "scalar" and ((comma[2][0] == "0" and len(comma[2]) > 1) or _SURE_DECIMAL.search(comma[3])):
        return point  # no list ends in "05", or in "50 €" without a space after the comma
    return changed(answer, comma=point) if answer.kind == "list" and point.kind == "scalar" else answer


def _texts(text: str) -> str:
    return re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|hbox)\b", " ", text)


def _outside_text(text: str) -> str:
    text = re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|hbox)\s*\{[^{}]*\}", " ", text)
    return re.sub(r"\\[,;:! ]", " ", text)


def _french(match: re.Match[str]) -> str:
    opening = {"]": "("}.get(match[1], match[1])
    closing = {"[": ")"}.get(match[5], match[5])
    return f"{opening}{match[2]}{match[3]}{match[4]}{closing}"


def _cases(match: re.Match[str]) -> str:
    return rf"\begin{{cases}}{_FIRST_TAB.sub('', match[2])}\end{{cases}}"


def _lines(text: str) -> str:
    """Joins the lines of aligned equations and systems to a list; a relation at the start continues the line before."""
    match = _LINES.fullmatch(text)
    if match is None:
        return text
    body = match[2]
    if match[1] == "cases":
        if "&" not in body:
            body = _CASE.sub(r" & \1", body)
        if "&" in _ALIGNED.sub(r"\1", body):
            return text  # a function by cases
        body = _ALIGNED.sub(r"\1", body)
    lines = [line.replace("&", " ").strip(" ,;\n\t") for line in re.split(r"\\\\(?:\s*\[[^\[\]]{1,12}\])?", body)]
    joined = ""
    for line in filter(None, lines):
        joined += ("" if not joined else " " if _RELATION.match(line) else " , ") + line
    return joined


# -- lists and conditions


def _with_operators(tokens: list[Token]) -> list[Token]:
    """Replaces operator words between two numbers by signs: "7 times 2"."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token, taken = tokens[index], 1
        if token.kind in ("word", "text") and result and result[-1].kind == "num":
            words = token.value.casefold()
            if index + 2 < len(tokens) and tokens[index + 1].kind == "word" == token.kind:
                two = f"{words} {tokens[index + 1].value.casefold()}"
                words, taken = (two, 2) if two in _OPERATORS else (words, 1)
            following = tokens[index + taken].kind if index + taken < len(tokens) else ""
            if words in _OPERATORS and following == "num":
                token = Token("op", _OPERATORS[words], token.start, True)
            else:
                taken = 1
        result.append(token)
        index += taken
    return result


def _answer(tokens: list[Token]) -> Answer:
    together = compound(tokens)
    if together is not None:
        return together
    kinds = [token.kind for token in tokens]
    if "num" in kinds and ("word" in kinds or "text" in kinds):
        tokens = _with_operators(tokens)
    tokens, over = _without_index(tokens)
    tokens, condition, declared = _split_condition(tokens)
    if over:
        condition, declared = condition or "integer", (*declared, over)
    pieces, joiners = _split_list(tokens)
    if len(pieces) > MAX_ITEMS:
        raise Unreadable(f"more than {MAX_ITEMS} items")
    if len(pieces) > 2 and _membership(pieces[-1]) and len(pieces[0]) > 1:  # y = A cos x + B sin x, A, B in R
        named = [piece[0].value for piece in pieces[1:-1] if len(piece) == 1 and piece[0].kind == "sym"]
        if len(named) == len(pieces) - 2:
            pieces, joiners, declared = [pieces[0], pieces[-1]], joiners[:1], (*declared, *named)
    if len(pieces) > 1:
        last, dropped = pieces[-1], _membership(pieces[-1])
        others = [token.value for piece in pieces[:-1] for token in piece]
        others += [letter for word in others if len(word) < 4 and word.isalpha() for letter in word]  # the c of "cx"
        assigned = {piece[0].value for piece in pieces[:-1] if len(piece) > 2 and piece[1].value == "="}
        if (
            dropped
            and (
                {"in", "="}.isdisjoint(others)
                or (len(pieces) == 2 and len(last) < len(others) and dropped in others)
                or (all("=" in [token.value for token in piece] for piece in pieces[:-1]) and dropped in others)
            )
            and dropped not in assigned
        ):
            over = {"N": "natural", "Q": "rational", "R": "real"}.get(last[-1].value[-1], "integer")
            condition, declared = condition or over, (*declared, dropped)
            pieces, joiners = pieces[:-1], joiners[:-1]
    answers = [_piece(piece) for piece in pieces]
    answer = answers[0] if len(answers) == 1 else _grouped(answers, joiners) or _joined(answers, joiners)
    if condition or declared:
        answer = changed(answer, condition=condition, bound=(*answer.bound, *declared))
    return answer


def _without_index(tokens: list[Token]) -> tuple[list[Token], str]:
    """Removes the index of a union over all integers; returns the tokens and the index's name ("" if there is none)."""
    for index, token in enumerate(tokens[:-8]):
        values = [part.value for part in tokens[index : index + 7]]
        if (
            token.value == "cup"
            and values[1:3] == ["_", "{"]
            and values[4:7] in (["in", "setZ", "}"], ["in", "Z", "}"])
        ):
            return [*tokens[:index], *tokens[index + 7 :]], tokens[index + 3].value
    return tokens, ""


def _grouped(answers: list[Answer], joiners: list[str]) -> Answer | None:
    """Groups solutions of several unknowns to tuples: "x = 1, y = 2; x = 3, y = 4". None for other lists."""
    outer = next((sign for sign in (";", "or", "and") if sign in joiners), "")
    if outer not in joiners or len(set(joiners)) < 2:
        return None
    groups: list[list[Answer]] = [[answers[0]]]
    for joiner, answer in zip(joiners, answers[1:], strict=True):
        if joiner == outer:
            groups.append([])
        groups[-1].append(answer)
    known = [sorted(names(tuple(group))) for group in groups]
    if not known[0] or any(group_names != known[0] for group_names in known):
        return None
    solutions = (tuple(sorted(group, key=lambda item: item.name)) for group in groups)
    return Answer("list", items=tuple(Answer("tuple", items=group, brackets="()") for group in solutions))


def _membership(tokens: list[Token]) -> str:
    """Returns the n of a piece "n in Z", which is a condition and not an answer; else ""."""
    values = [token.value for token in tokens]
    if len(values) == 3 and values[1] == "in" and values[2] in ("setZ", "setN", "setQ", "Z", "N", "setR", "R"):
        return tokens[0].value
    return ""


def _split_condition(tokens: list[Token]) -> tuple[list[Token], str, tuple[str, ...]]:
    depth = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if depth or index == 0 or not (token.kind in ("word", "text") or token.value == "forall"):
            continue
        first = token.value.split()[0].strip("(,").casefold() if token.value.split() else ""
        if first in _CONDITION or first == "forall":
            words = _condition_words(tokens[index:])
            while index and tokens[index - 1].value in (",", ";", "("):
                index -= 1
            return tokens[:index], " ".join(words), _declared(tokens[index:], words)
    start = _bracketed_condition(tokens)
    if start:
        words = _condition_words(tokens[start + 1 : -1])
        return tokens[:start], " ".join(words), _declared(tokens[start:], words)
    return tokens, "", ()


def _bracketed_condition(tokens: list[Token]) -> int:
    """Returns the index of the bracket that opens in "2x (x > 0)"; 0 if the text ends in no such condition."""
    if len(tokens) < 6 or tokens[-1].value != ")":
        return 0
    depth = 0
    for index in range(len(tokens) - 1, 0, -1):
        depth += (tokens[index].value == ")") - (tokens[index].value == "(")
        if not depth:
            inside = {token.value for token in tokens[index + 1 : -1] if token.kind == "op"}
            before = tokens[index - 1]
            beside = before.kind in ("num", "sym", "cmd") or before.value in (")", "}", "]")
            return index if beside and inside & {"in", "<", ">", "<=", ">=", "!="} else 0
    return 0


def _condition_words(tokens: list[Token]) -> list[str]:
    return [
        word for token in tokens for word in text_words(token.value) or ((token.value,) if token.kind == "op" else ())
    ]


def _declared(tokens: list[Token], words: list[str]) -> tuple[str, ...]:
    """Returns letters that a condition declares as integers or constants, so that their names are arbitrary."""
    if not {"integer", "integers", "constant", "constants", "arbitrary", "setz", "setn", "in", "any"} & set(words):
        return ()
    names = [token.value for token in tokens if token.kind == "sym"]
    names += [word for token in tokens if token.kind == "text" for word in re.findall(r"\b[a-zA-Z]\b", token.value)]
    return tuple(dict.fromkeys(name for name in names if name not in ("a", "Z", "N", "R")))


def _split_list(tokens: list[Token]) -> tuple[list[list[Token]], list[str]]:
    """Splits at top-level commas, semicolons, "and" and "or"; returns the pieces and the separators."""
    pieces: list[list[Token]] = [[]]
    joiners: list[str] = []
    depth = 0
    quantified = bool(tokens) and tokens[0].value in ("forall", "exists")
    for token in tokens:
        depth += nesting(token)
        if depth <= 0 and not quantified and token.kind == "op" and token.value in (",", ";", "and", "or", "&"):
            if pieces[-1]:
                pieces.append([])
                joiners.append(token.value)
            elif joiners and token.value in ("and", "or"):
                joiners[-1] = token.value  # ", and" is one separator
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
        if len({answer.name for answer in answers if answer.name}) > 1:
            return Answer("list", items=tuple(answers), joined_by=joint)  # x > 0 and y > 0
        if joint == "or":
            return Answer("region", pieces=together, name=name)
        if any(answer.brackets for answer in answers):  # intervals: a list of them is their union
            return Answer("list", items=tuple(answers))
        common = pieces[0]
        for part in pieces[1:]:
            common = regions.intersect(common, part)
        return Answer("region", pieces=common or (together if joint == "," else ()), name=name)
    if joint == "or" and any(answer.kind == "region" for answer in answers):
        parts = [_as_region(answer) for answer in answers]
        if all(part is not None for part in parts):
            names = {answer.name for answer in answers if answer.name}
            together = tuple(piece for part in parts if part is not None for piece in part)
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


# -- one piece: its value, its unit and the words beside it


def _piece(tokens: list[Token]) -> Answer:
    if len(tokens) > 1 and tokens[0].value.casefold() in ("negative", "minus") and tokens[1].kind in ("num", "cmd"):
        tokens = [Token("op", "-", tokens[0].start, False), *tokens[1:]]
    tokens, money = _without_currency(tokens)
    label: tuple[str, ...] = ()
    colon = next((i for i, token in enumerate(tokens) if token.value == ":" and token.kind == "op"), 0)
    if colon and all(
        token.kind in ("word", "text") or (token.kind == "num" and i) for i, token in enumerate(tokens[:colon])
    ):
        label = _prose(tokens[:colon])  # "Paolo: 18"
        tokens = tokens[colon + 1 :]
    named = _named(tokens)
    if named or _measured(tokens):
        tokens = tokens[[token.value for token in tokens].index("=") + 1 :]
    tokens = _without_lead(tokens[_event_end(tokens) :])
    try:
        head, words = split_tail(tokens)
    except Unreadable:
        stated = _stated_twice(tokens)
        if stated is None:
            raise
        return stated
    if not head:
        raise Unreadable("nothing")
    label = (*label, *named)
    if len(head) == 1 and head[0].kind == "word" and _is_word(head[0].value):
        raise Unreadable("a word")
    node = Parser(head).whole()
    tail = read_tail(words, rational(node)) if words else NO_TAIL
    if tail.percent:
        if node.op not in ("num", "dec", "neg", "div"):
            raise Unreadable("a percentage of something other than a number")
        node = Node("percent", (node,))
    if tail.scale != 1:
        node = Node("mul", (node, number(tail.scale)))
    answer = shaped(node)
    if words and answer.kind not in ("scalar", "list", "region", "tuple"):
        raise Unreadable("words after an answer of a type that has no unit")
    unit = tail.unit if tail.unit is not None else money
    if money is not None and tail.unit is not None and not set(money.dimension) & set(tail.unit.dimension):
        unit = money.times(tail.unit)  # "$15 per hour"
    label = (*label, *tail.label)
    if answer.kind == "scalar" and answer.node is not None and answer.node.op == "deg":
        angle = {"celsius": CELSIUS, "fahrenheit": FAHRENHEIT}.get(label[0] if label else "", DEGREE)
        answer, unit = changed(answer, node=answer.node.args[0]), angle if unit is None else unit
    elif (
        answer.kind == "scalar"
        and answer.node is not None
        and answer.node.op == "neg"
        and answer.node.args[0].op == "deg"
    ):
        answer, unit = changed(answer, node=Node("neg", answer.node.args[0].args)), DEGREE
    if unit is None and not label:
        return answer
    return changed(answer, unit=unit or answer.unit, label=(*answer.label, *label), noun=tail.noun)


def _stated_twice(tokens: list[Token]) -> Answer | None:
    """Returns the first value of "16π cm² ≈ 50.27 cm²" or "12 cm = 0.12 m"; None for tokens of another form.

    Raises:
        Unreadable: the values differ.
    """
    opens = next((i for i, token in enumerate(tokens[:-1]) if token.value == "(" and tokens[i + 1].value in _SAME), 0)
    if opens and tokens[-1].value == ")":  # "16π cm² (≈ 50.27 cm²)"
        tokens = [*tokens[:opens], *tokens[opens + 1 : -1]]
    parts: list[list[Token]] = [[]]
    signs, depth = [], 0
    for token in tokens:
        depth += nesting(token)
        if not depth and token.value in _SAME:
            parts.append([])
            signs.append(token.value)
        else:
            parts[-1].append(token)
    name = [symbol(parts[0][0].value)] if len(parts[0]) == 1 and parts[0][0].kind == "sym" else []
    if not len(name) + 2 <= len(parts) < 5 or not all(parts):
        return None
    values = [compound(part) or quantity(_piece(part)) for part in parts[len(name) :]]
    first, nodes = values[0].unit, []
    for value in values:
        unit = value.unit or first
        if value.node is None or value.kind != "scalar" or not first or not unit or unit.dimension != first.dimension:
            return None
        scale = unit.scale / first.scale
        nodes.append(value.node if scale == 1 else Node("mul", (value.node, number(scale))))
    answer = shaped(Node("chain", (*name, *nodes), tuple(signs)))
    return changed(answer, unit=first, label=values[0].label) if answer.kind == "scalar" else None


def _is_word(letters: str) -> bool:
    """Returns whether the letters are a word: three or more with a vowel, and not the start of the alphabet."""
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
    """Removes the words before a value that do not change it."""
    index = 0
    while index < len(tokens) and tokens[index].kind in ("word", "text"):
        words = [word for word in re.findall(r"[^\W\d_]+", tokens[index].value.casefold())]
        if (
            not words
            or not all(word in _LEAD for word in words)
            or (tokens[index].kind == "text" and re.search(r"\d", tokens[index].value))
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
    """Returns the words before the sign of "Maximum = 2" and "proj_v u = (1, 2)", else ()."""
    sign = next((index for index, token in enumerate(tokens) if token.value == "=" and token.kind == "op"), 0)
    words = [token for token in tokens[:sign] if token.kind in ("word", "text")]
    others = [token for token in tokens[:sign] if token.kind not in ("word", "text")]
    if not words or words[0] is not tokens[0] or any(len(word.value) < 3 for word in words):
        return ()
    indexed = (
        len(tokens[1:]) > 1
        and tokens[1].value == "_"
        and all(token.kind == "sym" or token.value in ("_", "{", "}", "triangle") for token in others)
    )
    return _prose(words) if indexed or not others else ()


def _measured(tokens: list[Token]) -> bool:
    """Returns whether the tokens state a value of a named function, as in "rank(A) = 3"."""
    if len(tokens) < 6 or tokens[0].value.casefold() not in _MEASURES or tokens[0].kind not in ("word", "text"):
        return False
    sign = next((index for index, token in enumerate(tokens[:12]) if token.value == "="), 0)
    between = tokens[2 : sign - 1]
    return (
        sign > 3
        and (tokens[1].value, tokens[sign - 1].value) == ("(", ")")
        and all(token.kind in ("sym", "word", "text") or token.value in (",", "cap", "cup") for token in between)
    )


def _event_end(tokens: list[Token]) -> int:
    """Returns where the value in "P(sum is 6) = 5/36" starts, whose event is in words; 0 for all else."""
    if len(tokens) < 6 or tokens[0].value not in ("P", "Pr", "p", "E", "Var") or tokens[1].value != "(":
        return 0
    end = next((index for index, token in enumerate(tokens) if token.value == ")"), 0)
    in_words = any(token.kind in ("word", "text") for token in tokens[2:end])
    return end + 2 if in_words and [token.value for token in tokens[end + 1 : end + 2]] == ["="] else 0


def _prose(tokens: list[Token]) -> tuple[str, ...]:
    words = tuple(word for token in tokens for word in text_words(token.value))
    if set(words) & REVERSING:
        raise Unreadable("words that may change the value")
    return words
