"""Parses compound forms: numerals, fractions, functions, brackets, sets, matrices, sums and integrals."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from verifiers.mathexpr.limits import MAX_CELLS, MAX_ITEMS, Unreadable
from verifiers.mathexpr.nodes import INFINITY, Node, has_op, number, symbol
from verifiers.mathexpr.piecewise import condition
from verifiers.mathexpr.tokens import Token, numeral

if TYPE_CHECKING:
    from verifiers.mathexpr.parser import Parser

_MATRICES = frozenset("matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix array".split())
_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
               "eleven": 11, "twelve": 12, "sixteen": 16}  # fmt: skip
_INVERSE = {"sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc", "sinh": "asinh",
            "cosh": "acosh", "tanh": "atanh"}  # fmt: skip
_OPERATIONS = {"factorial": "fact", "binomial": "binom", "abs": "abs", "conj": "conj"}
_MANY = frozenset(["min", "max", "gcd", "lcm", "diag"])  # functions of any number of arguments
_LONGEST_DIAGONAL = 6
_LONGEST_EVENT = 24  # tokens between the brackets of a conditional probability


def numeral_at(parser: Parser, token: Token) -> Node:
    """Parses a number with its exponent, repeating decimals, base, or the fraction of a mixed number."""
    raw, following = token.value, parser.peek()
    if following.kind == "exp":
        parser.at += 1
        if len(following.value) > 6:
            raise Unreadable("an exponent of ten that is too long")
        return scaled(raw, int(following.value))
    repeating = _repeating(parser, raw, following)
    if repeating is not None:
        return repeating
    if following.kind == "op" and following.value == "_" and "." not in raw:
        parser.at += 1
        return based(raw, parser.subscript())
    if "." not in raw and "," not in raw:
        mixed = _mixed(parser, raw, following)
        if mixed is not None:
            return mixed
    return scaled(raw)


def scaled(raw: str, exponent: int = 0) -> Node:
    """Returns a numeral as a node: `num` for an integer, `dec` with half a unit of the last place for a decimal."""
    value, places = numeral(raw)
    if abs(exponent) > 4000:
        raise Unreadable("an exponent of ten beyond 4000")
    scale = Fraction(10) ** exponent if exponent else Fraction(1)
    if places is None:
        return Node("num", (), value * scale if exponent else value)
    return Node("dec", (), (value * scale if exponent else value, scale / (2 * 10**places)))


def based(raw: str, subscript: str) -> Node:
    """Returns a numeral in a named base; the value of the node is (digits, base). Raises Unreadable."""
    word = subscript.strip(" ()").lower()
    base = _BASE_WORDS.get(word, int(word) if word.isdecimal() and len(word) < 3 else 0)
    if not 2 <= base <= 36:
        raise Unreadable(f"'{subscript}' is no base")
    try:
        int(raw, base)
    except ValueError as error:
        raise Unreadable(f"'{raw}' is no number in base {base}") from error
    return Node("base", (), (raw.lstrip("0").upper() or "0", base))


def _repeating(parser: Parser, raw: str, following: Token) -> Node | None:
    """Parses 0.(3), 0.\\overline{3}, 0.\\dot{3}, 0.1(6), 0.333..."""
    if "." not in raw:
        return None
    fixed = raw.partition(".")[2]
    if following.kind == "cmd" and following.value in ("overline", "dot"):
        period, used = "", 0
        while parser.peek(used).value in ("overline", "dot") and parser.peek(used).kind == "cmd":
            braced = parser.peek(used + 1).value == "{"
            digits = parser.peek(used + (2 if braced else 1))
            if digits.kind != "num" or not digits.value.isdigit():
                return None
            period += digits.value
            used += 4 if braced else 2
    elif following.value == "(" and not following.spaced and parser.peek(1).kind == "num":
        period, used = parser.peek(1).value, 3
        if parser.peek(2).value != ")" or not period.isdigit():
            return None
    elif following.value == "..." and len(fixed) >= 3:
        split = _period(fixed)
        if not split:
            raise Unreadable("decimals that continue without a visible period")
        parser.at += 1
        fixed, period = split
        return number(_repeated(raw.partition(".")[0], fixed, period))
    else:
        return None
    parser.at += used
    return number(_repeated(raw.partition(".")[0], fixed, period))


def _period(decimals: str) -> tuple[str, str] | None:
    """Returns (digits before it, period) if the decimals end in three or more digits of a period that occurs twice."""
    for start in range(len(decimals)):
        tail = decimals[start:]
        for length in range(1, len(tail) // 2 + 1):
            if len(tail) >= max(3, 2 * length) and all(tail[k] == tail[k % length] for k in range(len(tail))):
                return decimals[:start], tail[:length]
        if start > 40:
            break
    return None


def _repeated(whole: str, fixed: str, period: str) -> Fraction:
    shift = 10 ** len(fixed)
    value = Fraction(int((whole.replace(",", "") or "0") + fixed), shift)
    return value + Fraction(int(period), shift * (10 ** len(period) - 1))


def _mixed(parser: Parser, raw: str, following: Token) -> Node | None:
    """Parses the fraction of `1\\frac{1}{2}` and `1 1/2`; None unless it is a proper fraction of plain integers."""
    if following.kind == "cmd" and following.value == "frac":
        if not _plain_fraction(parser):
            return None
        mark = parser.at
        saved = list(parser.tokens[mark : mark + 8])
        parser.at += 1
        top, bottom = parser.argument(), parser.argument()
        if top.op == bottom.op == "num" and 0 < top.value < bottom.value and int(raw):
            return number(int(raw) + top.value / bottom.value)
        parser.tokens[mark : mark + 8] = saved
        parser.at = mark
    elif following.kind == "num" and following.spaced and parser.peek(1).value == "/" and parser.peek(2).kind == "num":
        top_raw, bottom_raw = following.value, parser.peek(2).value
        if top_raw.isdecimal() and bottom_raw.isdecimal() and 0 < int(top_raw) < int(bottom_raw):
            parser.at += 3
            return number(int(raw) + Fraction(int(top_raw), int(bottom_raw)))
    return None


def _plain_fraction(parser: Parser) -> bool:
    """Returns whether two arguments of digits alone follow the command. Consumes no tokens."""
    ahead = 1
    for _ in range(2):
        if parser.peek(ahead).value == "{" and parser.peek(ahead + 2).value == "}":
            digits, ahead = parser.peek(ahead + 1), ahead + 3
        else:
            digits, ahead = parser.peek(ahead), ahead + 1
            if digits.kind == "num" and len(digits.value) > 1:
                return digits.value.isdigit()  # \frac12
        if digits.kind != "num" or not digits.value.isdigit():
            return False
    return True


def fraction(parser: Parser, top: Node, bottom: Node) -> Node:
    """Returns a fraction, or the derivative that it denotes: d/dx applied to the next factor, or d f/dx."""
    if bottom.op == "mul" and len(bottom.args) == 2 and bottom.args[0] in (symbol("d"), symbol("partial")):
        mark = bottom.args[0]
        if top == mark and parser.starts_factor():
            return Node("deriv", (parser.power(), bottom.args[1]))
        if top.op == "mul" and top.args[0] == mark:
            rest = top.args[1:]
            return Node("deriv", (rest[0] if len(rest) == 1 else Node("mul", rest), bottom.args[1]))
    return Node("div", (top, bottom))


def function(parser: Parser, name: str) -> Node:
    """Parses a named function: `\\sin x`, `\\sin^2 x`, `\\sin^{-1} x`, `\\log_2 x`, `\\sqrt[3]{x}`, `max(a, b)`."""
    if name == "frac":
        parser.expect("(")
        raise Unreadable("a fraction without its command sign")
    parser.deeper()
    root = base = exponent = None
    if name == "sqrt" and parser.accept("["):
        root = parser.inner("]")
    while parser.is_op("^", "_"):
        if parser.take().value == "_":
            base = parser.argument() if name in ("log", "max", "min") else _refuse(name)
            continue
        exponent = parser.inner("}") if parser.accept("{") else parser.signed_exponent()
    arguments = _arguments(parser, name)
    parser.depth -= 1
    if name == "log" and base is None and len(arguments) == 2:  # log(8, 2), as SymPy prints it
        base, arguments = arguments[1], arguments[:1]
    wanted = 2 if name == "binomial" else 1
    if name not in _MANY and len(arguments) != wanted:
        raise Unreadable(f"'{name}' of {len(arguments)} arguments")
    if name == "cbrt" or root is not None:
        node = Node("root", (arguments[0], root or number(3)))
    elif name in _OPERATIONS:
        node = Node(_OPERATIONS[name], arguments)
    elif name == "exp":
        node = Node("pow", (Node("const", (), "e"), arguments[0]))
    elif name == "cis":
        node = cis(arguments[0])
    elif name == "diag":
        node = _diagonal(arguments)
    elif base is not None and name == "log":
        node = Node("fn", (*arguments, base), "logb")
    elif exponent == number(-1) and name in _INVERSE:
        return Node("fn", arguments, _INVERSE[name])
    else:
        node = Node("fn", arguments, name)
    return Node("pow", (node, exponent)) if exponent is not None else node


def cis(angle: Node) -> Node:
    """Returns the number of absolute value 1 with that argument."""
    cosine, sine = (Node("fn", (angle,), name) for name in ("cos", "sin"))
    return Node("add", (cosine, Node("mul", (Node("const", (), "i"), sine))))


def _diagonal(entries: tuple[Node, ...]) -> Node:
    size = len(entries)
    if not 1 < size <= _LONGEST_DIAGONAL or any(has_op(entry, frozenset({"matrix", "group"})) for entry in entries):
        raise Unreadable("a diagonal matrix of no such numbers")
    cells = (entries[row] if row == column else number(0) for row in range(size) for column in range(size))
    return Node("matrix", tuple(cells), size)


def _refuse(name: str) -> Node:
    raise Unreadable(f"a subscript of '{name}'")


def _arguments(parser: Parser, name: str) -> tuple[Node, ...]:
    """Parses the arguments: in brackets, in braces, or the factors up to the next + or -."""
    if parser.is_op("("):
        parser.at += 1
        return tuple(items(parser, ")"))
    if parser.is_op("{"):
        mark = parser.at
        parser.at += 1
        if name in _MANY:
            nodes = tuple(items(parser, "}"))
            return nodes[0].args if len(nodes) == 1 and nodes[0].op == "group" else nodes
        node = parser.inner("}")
        if node.op == "group":
            return node.args
        if parser.at == mark:
            raise Unreadable("an empty argument")
        return (node,)
    if parser.is_op("lset") and name in _MANY:
        parser.at += 1
        return tuple(items(parser, "rset"))
    if name == "sqrt":
        return (parser.argument_number(),)
    if parser.is_op("-"):
        return (parser.signed(),)
    factors = [parser.power()]
    while parser.starts_factor() and parser.peek().kind not in ("fn", "begin"):
        factors.append(parser.power())
    return (factors[0] if len(factors) == 1 else Node("mul", tuple(factors)),)


def items(parser: Parser, *closes: str) -> list[Node]:
    """Parses relations separated by commas up to a closing bracket, which is consumed."""
    nodes: list[Node] = []
    parser.deeper()
    bars, parser.bars = parser.bars, 0
    stops, parser.bar_stops = parser.bar_stops, False
    while True:
        nodes.append(parser.relation())
        if len(nodes) > MAX_ITEMS:
            raise Unreadable(f"more than {MAX_ITEMS} items")
        if parser.is_op(",", ";"):
            parser.at += 1
            continue
        parser.last_close = parser.expect(*closes)
        break
    parser.bars, parser.bar_stops = bars, stops
    parser.depth -= 1
    return nodes


def bracketed(parser: Parser, opening: str) -> Node:
    """Parses (a), [a], a tuple or an interval; one item in matching brackets is the item itself."""
    split_thousands(parser)
    nodes = items(parser, ")", "]")
    brackets = opening + parser.last_close
    if len(nodes) == 1:
        if brackets not in ("()", "[]"):
            raise Unreadable(f"'{opening}' closed by '{parser.last_close}'")
        inner = nodes[0]
        if parser.is_op("_") and inner.op == "num" and brackets == "()":
            parser.at += 1
            return based(str(inner.value), parser.subscript())
        return inner if inner.op != "group" else Node("group", (inner,), brackets)
    return Node("group", tuple(nodes), brackets)


def split_thousands(parser: Parser) -> None:
    """Splits numbers such as 100,101 in brackets at their commas, unless spaced commas separate the items."""
    if not parser.grouped:
        return
    depth, index, grouped = 0, parser.at, []
    while index < len(parser.tokens):
        token = parser.tokens[index]
        if token.kind == "op" and token.value in ("(", "[", "{", "lset"):
            depth += 1
        elif token.kind == "op" and token.value in (")", "]", "}", "rset"):
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and token.kind == "op" and token.value in (",", ";") and index + 1 < len(parser.tokens):
            if parser.tokens[index + 1].spaced:
                return
        elif depth == 0 and token.kind == "num" and "," in token.value:
            grouped.append(index)
        index += 1
    for index in reversed(grouped):
        token = parser.tokens[index]
        parts: list[Token] = []
        for part in token.value.split(","):
            parts += [Token("num", part, token.start, False), Token("op", ",", token.start, False)]
        parser.tokens[index : index + 1] = parts[:-1]


def braces(parser: Parser) -> Node:
    """Parses a LaTeX group, or a set in plain text: {1, 2}, {x | x > 0}, {}."""
    depth = 0
    for index in range(parser.at, len(parser.tokens)):
        token = parser.tokens[index]
        if token.kind != "op":
            continue
        if token.value in ("{", "(", "[", "lset"):
            depth += 1
        elif token.value in ("}", ")", "]", "rset"):
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and token.value in (",", ";"):
            return set_braces(parser, "}")
    if parser.is_op("}"):
        parser.at += 1
        return Node("set")
    if parser.peek().kind == "sym" and parser.peek(1).value in ("|", ":"):
        return set_braces(parser, "}")
    return parser.inner("}")


def set_braces(parser: Parser, close: str) -> Node:
    """Parses {a, b} or {x | conditions} after its opening brace."""
    if parser.accept(close):
        return Node("set")
    split_thousands(parser)
    parser.deeper()
    bars, stops, head = parser.bars, parser.bar_stops, parser.head
    parser.bars, parser.bar_stops, parser.head = 0, True, parser.depth
    nodes = [parser.relation()]
    member = nodes[0].op == "chain" and nodes[0].value == ("in",)
    builder = parser.is_op("|", ":") or (parser.is_op(";") and member)  # {x in R; x > 2}
    parser.head = head
    words: list[str] = []
    if builder:
        parser.at += 1
        parser.bar_stops = False
        nodes.append(parser.relation())
    while parser.is_op(",", ";", "and", "or"):
        words.append(parser.take().value)
        nodes.append(parser.relation())
        if len(nodes) > MAX_ITEMS:
            raise Unreadable(f"more than {MAX_ITEMS} items")
    if parser.is_op("|") and not builder:  # {pi/6 + 2k pi, 5 pi/6 + 2k pi | k in Z}
        parser.at += 1
        parser.bar_stops = False
        nodes, builder = [Node("set", tuple(nodes)), parser.relation()], True
    parser.bars, parser.bar_stops = bars, stops
    parser.expect(close)
    parser.depth -= 1
    if builder:
        return Node("builder", tuple(nodes), "or" if "or" in words else "and")
    return Node("set", tuple(nodes))


def angle(parser: Parser) -> Node:
    """Parses <a, b>, a vector, or <x | y> and <x|, brackets of quantum mechanics, which are kept as they are."""
    parser.deeper()
    stops, parser.bar_stops = parser.bar_stops, True
    nodes = [parser.relation()]
    kind = "<>"
    while parser.is_op(",", "|"):
        kind = "<|>" if parser.take().value == "|" else kind
        if kind == "<|>" and parser.peek().kind in ("end_of_text", "op") and not parser.is_op("-", "(", "{", "|"):
            parser.bar_stops = stops
            parser.depth -= 1
            return Node("group", tuple(nodes), "<|")
        nodes.append(parser.relation())
    parser.bar_stops = stops
    parser.expect("rangle")
    parser.depth -= 1
    return Node("group", tuple(nodes), kind)


def applied(parser: Parser, *, certain: bool) -> tuple[Node, ...] | None:
    """Parses the arguments of an unknown function, in (...) or {(...)}; None if no arguments follow.

    Args:
        certain: the name is that of a function. Otherwise only one letter in brackets is an argument, as in theta(x);
            theta(x + 1) may be a product.
    """
    wrapped = parser.is_op("{") and parser.peek(1).value == "("
    if wrapped and parser.peek(1).kind == "op":
        parser.at += 2
        arguments = tuple(items(parser, ")"))
        parser.expect("}")
        return arguments
    one_letter = parser.peek(1).kind == "sym" and parser.peek(2).value == ")"
    if parser.is_op("(") and (certain or one_letter):
        parser.at += 1
        return tuple(items(parser, ")"))
    return None


def conditional(parser: Parser) -> tuple[Node, ...] | None:
    """Parses the events of P(A | B): brackets with one bar in them; None if something else follows."""
    depth, bars = 0, 0
    for ahead in range(1, _LONGEST_EVENT):
        token = parser.peek(ahead)
        if token.kind not in ("op", "sym", "num") or (token.value in ("lset", "|") and depth):
            return None
        bars += token.value == "|"
        if token.value == ")" and not depth:
            break
        depth += (token.value == "(") - (token.value == ")")
    else:
        return None
    if bars != 1:
        return None
    parser.at += 1
    parser.bars += 1  # so that the bar opens no absolute value
    first = parser.relation()
    parser.bars -= 1
    parser.expect("|")
    second = parser.relation()
    parser.expect(")")
    return (first, second)


def matrix(parser: Parser, environment: str) -> Node:
    """Parses a matrix environment or cases; vmatrix is a determinant. Raises Unreadable."""
    if environment not in _MATRICES and environment != "cases":
        raise Unreadable(f"the environment '{environment}'")
    parser.deeper()
    rows: list[list[Node]] = [[]]
    while parser.peek().kind != "end":
        if parser.is_op("row"):
            parser.at += 1
            if parser.is_op("[") and parser.peek(2).value in ("pt", "em", "ex", "mm", "cm"):
                parser.at += 4
            if parser.peek().kind != "end":
                rows.append([])
            continue
        if parser.is_op("&", ",") or (parser.peek().value == "." and parser.peek().kind == "other"):
            parser.at += 1
            continue
        rows[-1].append(condition(parser) if environment == "cases" and len(rows[-1]) == 1 else parser.relation())
        if sum(map(len, rows)) > MAX_CELLS:
            raise Unreadable(f"a matrix of more than {MAX_CELLS} entries")
    parser.at += 1
    parser.depth -= 1
    columns = len(rows[0])
    if not columns or any(len(row) != columns for row in rows):
        raise Unreadable("a matrix whose rows differ in length")
    if environment == "cases":
        return Node("cases", tuple(cell for row in rows for cell in row), columns)
    node = Node("matrix", tuple(cell for row in rows for cell in row), columns)
    return Node("abs", (node,)) if environment == "vmatrix" else node


def bound(parser: Parser, kind: str) -> Node:
    """Parses \\sum_{k=1}^{n}, \\prod, \\int_a^b ... dx, \\lim_{x \\to a}, each with its body."""
    lower = upper = None
    name, side = "", ""
    while parser.is_op("_", "^"):
        if parser.take().value == "^":
            upper = parser.argument()
        elif kind == "int":
            lower = parser.argument()
        else:
            name, lower, side = _binding(parser, kind)
            upper = INFINITY if side == ">=" else upper  # n >= 0
    if kind == "int":
        integrand = parser.sum()
        body, name = _without_differential(integrand) or (integrand, "x")
        outer: tuple[Node, ...] = ()
        if body.op == "mul" and symbol("d") in body.args[:-1]:  # the dx of an integral around this one
            at = body.args.index(symbol("d"))
            body, outer = Node("mul", body.args[:at] or (number(1),)), body.args[at:]
        node = Node("int", (body,) if lower is None else (body, lower, upper or _refuse("int")), name)
        return Node("mul", (node, *outer)) if outer else node
    if lower is None or (upper is None and kind != "lim"):
        raise Unreadable(f"'{kind}' without its bounds")
    index, parser.index = parser.index, name if name == "i" else parser.index
    body = parser.product()
    parser.index = index
    if kind == "lim":
        return Node("lim", (body, lower, symbol("side" + side.replace("->", ""))), name)
    assert upper is not None
    return Node(kind, (body, lower, upper), name)


def _binding(parser: Parser, kind: str) -> tuple[str, Node, str]:
    """Parses `{k=1}` or `{x \\to 3^+}`: returns the bound name, its start or limit, and the side ("+", "-" or "")."""
    parser.expect("{")
    token = parser.take()
    if token.kind != "sym":
        raise Unreadable("a bound variable that is not a letter")
    name = token.value + ("_" + parser.subscript() if parser.accept("_") else "")
    sign = parser.expect("->") if kind == "lim" else parser.expect("=", ">=")
    parser.deeper()
    side, mark = "", parser.at
    while parser.peek(0).value != "}" and parser.at < len(parser.tokens):
        parser.at += 1
    end = parser.at
    if kind == "lim":  # 3^+ and 3^{+}
        tail = [token.value for token in parser.tokens[mark:end]]
        if tail[-2:] in (["^", "+"], ["^", "-"]):
            side = tail[-1]
            del parser.tokens[end - 2 : end]
        elif tail[-3:] in (["^", "{", "+"], ["^", "{", "-"]):
            side = tail[-1]
            del parser.tokens[end - 3 : end + 1]
    parser.at = mark
    lower = parser.relation()
    parser.expect("}")
    parser.depth -= 1
    return name, lower, side or sign


def _without_differential(node: Node) -> tuple[Node, str] | None:
    """Returns the integrand without its dx, and the x; None if there is no differential."""
    one = number(1)
    if node.op == "mul":
        for index in range(len(node.args) - 1):
            if node.args[index] == symbol("d") and node.args[index + 1].op == "sym":
                rest = node.args[:index] + node.args[index + 2 :]
                body = one if not rest else rest[0] if len(rest) == 1 else Node("mul", rest)
                return body, node.args[index + 1].value
        for index, factor in enumerate(node.args):
            inner = _without_differential(factor) if factor.op in ("div", "mul") else None
            if inner is not None:
                return Node("mul", (*node.args[:index], inner[0], *node.args[index + 1 :])), inner[1]
    if node.op in ("div", "neg", "add"):  # dx is in the numerator or the last term
        index = len(node.args) - 1 if node.op == "add" else 0
        inner = _without_differential(node.args[index])
        if inner is not None:
            return Node(node.op, (*node.args[:index], inner[0], *node.args[index + 1 :])), inner[1]
    return None


def modulus(parser: Parser) -> Node:
    """Parses the m of \\pmod{m} and (mod m), after a congruence."""
    if parser.accept("["):
        size = parser.argument_number()
        parser.expect("]")
        return size
    in_brackets = parser.accept("(")
    parser.take()
    size = parser.argument() if parser.is_op("{") else parser.argument_number()
    if in_brackets:
        parser.expect(")")
    return size


def quantified(parser: Parser) -> Node:
    """Parses \\forall x > 0, body."""
    kind = parser.take().value
    condition = parser.relation()
    if not parser.is_op(",", ":", ";"):
        raise Unreadable("a quantifier without its statement")
    parser.at += 1
    return Node("forall", (condition, parser.relation()), kind)
