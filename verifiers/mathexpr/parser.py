"""Parses tokens to expression trees: precedence climbing with a depth cap, for LaTeX and plain maths.

Lowest to highest: relations, set operations, + -, * / and juxtaposition, signs, powers, postfix. No text is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr import structures
from verifiers.mathexpr.limits import MAX_DEPTH, MAX_ITEMS, MAX_MARKS, Unreadable, spend
from verifiers.mathexpr.nodes import MINUS_ONE, Node, number, symbol
from verifiers.mathexpr.tokens import Token

RELATIONS = frozenset("= == < > <= >= != <> approx equiv in notin -> subset".split()) | {"parallel", "perp"}
_SAME_RELATION = {"==": "=", "<>": "!="}
_OPENERS = frozenset(["(", "[", "{", "lset", "lfloor", "lceil", "langle"])
_FACTOR_KINDS = frozenset(["sym", "fn", "cmd", "begin", "word"])
_APPLIED = frozenset("fghFGHPQ") | {"phi", "psi"}
_CONSTANTS = {"i": "i", "e": "e"}
_COMMAND_CONSTANTS = {"pi": "pi", "infty": "inf", "emptyset": "empty", "setR": "R", "setZ": "Z", "setN": "N",
                      "setQ": "Q", "setC": "C", "i": "i", "top": "top"}  # fmt: skip
_DECORATED = frozenset("vec hat widehat tilde widetilde overrightarrow mathring underline check breve".split())
_NO_PRODUCT = frozenset(
    "and the for are not but yes all any one two six ten who how why was has had his her its".split()
)
_CHOSEN = lazy_pattern(r"([CA])_\{(\d{1,3})\}")
_END = Token("end_of_text", "", -1, False)
_SPELLINGS = {
    "": "the end",
    "row": r"'\\'",
    "lset": r"'\{'",
    "rset": r"'\}'",
    "langle": r"'\langle'",
    "rangle": r"'\rangle'",
}


def _quoted(value: str) -> str:
    """Returns a token in its LaTeX spelling, for a message."""
    return _SPELLINGS.get(value, f"'{value[:40]}'")


class Parser:
    """Parses one expression, relation or collection. Every step consumes a token, so the work is linear."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0  # open absolute-value bars
        self.bar_stops = False  # whether a bar ends the head of {x | ...}
        self.head = -1  # depth of the set whose head is being read; a colon ends the head only at this depth
        equivs = (index for index, token in enumerate(tokens) if token.value == "equiv")
        self.first_equiv = next(equivs, len(tokens))
        self.grouped = any(token.kind == "num" and "," in token.value for token in tokens)  # as in 1,234
        self.index = ""  # the name that a sum binds, where it is i
        self.last_close = ""  # the bracket that closed the latest list

    def whole(self) -> Node:
        """Returns all tokens as one expression. Raises Unreadable if they aren't one, TooHard if it is too large."""
        node = self.relation()
        if self.is_op("over") or (self.is_op("choose") and node.op in ("num", "sym")):
            node = self.stacked(node)
        if self.at < len(self.tokens):
            raise Unreadable(f"can't read beyond {_quoted(self.peek().value)}")
        return node

    # -- tokens

    def peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def is_op(self, *values: str) -> bool:
        token = self.tokens[self.at] if self.at < len(self.tokens) else _END
        return token.kind == "op" and token.value in values

    def take(self) -> Token:
        token = self.peek()
        if token is _END:
            raise Unreadable("the text ends too early")
        self.at += 1
        return token

    def accept(self, value: str) -> bool:
        if self.is_op(value):
            self.at += 1
            return True
        return False

    def expect(self, *values: str) -> str:
        if not self.is_op(*values):
            raise Unreadable(f"{_quoted(self.peek().value)} instead of {_quoted(values[0])}")
        return self.take().value

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH}")

    def nested(self, parse: Callable[[], Node]) -> Node:
        """Parses one level deeper. Raises Unreadable beyond MAX_DEPTH."""
        self.deeper()
        node = parse()
        self.depth -= 1
        return node

    def signs(self) -> bool:
        """Consumes signs, and returns whether together they are a minus."""
        negative = False
        while self.is_op("-", "+"):
            negative ^= self.take().value == "-"
        return negative

    # -- relations, sets, sums, products

    def relation(self) -> Node:
        """`a`, `a = b`, `a < b <= c`, or `\\forall x > 0, ...`."""
        if self.is_op("forall", "exists"):
            return structures.quantified(self)
        args, ops = [self.set_operation()], []
        while self.peek().kind == "op" and self.peek().value in RELATIONS:
            op = self.take().value
            ops.append(_SAME_RELATION.get(op, op))
            args.append(self.set_operation())
            if len(args) > MAX_ITEMS:
                raise Unreadable("a chain of too many relations")
        if ops in (["equiv"], ["="]) and self.modulus_follows():
            return Node("congruence", (*args, structures.modulus(self)))
        return Node("chain", tuple(args), tuple(ops)) if ops else args[0]

    def modulus_in_brackets(self) -> bool:
        """Returns whether the [7] of x = 3 [7] follows, which ends a congruence in French."""
        ahead = [self.peek(0).value, self.peek(1).kind, self.peek(2).value, self.peek(3).kind]
        return self.in_congruence() and ahead == ["[", "num", "]", _END.kind]

    def modulus_follows(self) -> bool:
        return self.is_op("mod") or self.modulus_in_brackets() or (self.is_op("(") and self.peek(1).value == "mod")

    def set_operation(self) -> Node:
        left = self.sum()
        while True:
            token = self.peek()
            if token.kind == "op" and token.value in ("cup", "cap", "setminus"):
                op = {"cup": "union", "cap": "cap", "setminus": "minus_set"}[token.value]
            elif token.value in ("U", "u") and token.kind == "sym" and left.op in ("group", "union", "set"):
                op = "union"
            else:
                return left
            self.at += 1
            right = self.sum()
            both = (*left.args, right) if left.op == op == "union" else (left, right)
            if len(both) > MAX_ITEMS:
                raise Unreadable("a union of too many sets")
            left = Node(op, both)

    def sum(self) -> Node:
        terms = [self.product()]
        while self.is_op("+", "-", "pm", "mp"):
            op = self.take().value
            term = self.product()
            numbers = terms[0].op == "const" and terms[0].value in ("R", "C", "Q", "Z", "N") and term.op == "set"
            if op == "-" and (terms[0].op in ("set", "builder") or numbers) and len(terms) == 1:
                terms = [Node("minus_set", (terms[0], term))]
            elif op == "+":
                terms.append(term)
            else:
                terms.append(Node("neg", (term,)) if op == "-" else Node(op, (term,)))
        return Node("add", tuple(terms)) if len(terms) > 1 else terms[0]

    def product(self) -> Node:
        factors = [self.signed()]
        while True:
            token = self.peek()
            if token.kind == "op" and token.value in ("*", "/", ":"):
                if token.value == ":" and self.bar_stops and self.depth == self.head:
                    return _product(factors)
                self.at += 1
                if token.value == "*":
                    factors.append(self.signed())
                    continue
                left = _product(factors)
                fraction = token.value == "/" and _is_number(left) and self.peek().kind == "num"
                right = self.power() if fraction else self.signed()  # 3/4x is (3/4)x, but a/bc is a/(bc)
                if fraction and right.op in ("deg", "percent") and right.args[0].op == "num":  # 2/3% is (2/3)%
                    factors = [right.with_args((Node("div", (left, right.args[0])),))]
                    continue
                factors = [Node("div", (left, right), ":" if token.value == ":" else None)]
            elif token.kind == "op" and token.value == "mod" and not self.in_congruence():
                self.at += 1
                factors = [Node("fn", (_product(factors), self.signed()), "mod")]
            elif self.starts_factor():
                factors.append(self.power())
            else:
                return _product(factors)

    def in_congruence(self) -> bool:
        return self.first_equiv < self.at

    def starts_factor(self) -> bool:
        """Returns whether a factor follows without a multiplication sign."""
        token = self.peek()
        if token.kind in _FACTOR_KINDS:
            return not (token.value in ("U", "u") and token.kind == "sym" and self.peek(1).value in ("(", "[", "lset"))
        if token.kind == "op":
            if (token.value == "(" and self.peek(1).value == "mod") or self.modulus_in_brackets():
                return False
            return (
                token.value in _OPENERS
                or token.value == "..."
                or (token.value == "|" and not self.bars and not self.bar_stops)
            )
        if token.kind != "num":
            return False
        before = self.tokens[self.at - 1]  # "2 3" is no product, "(2) 3", "5! 7" and "2^n 3" are
        raised = self.at > 1 and self.tokens[self.at - 2].value == "^" and token.spaced
        return before.kind == "cmd" or before.value in (")", "!", "]", "}") or raised

    def signed(self) -> Node:
        negative, sign = False, ""
        while self.is_op("+", "-", "pm", "mp"):
            op = self.take().value
            if op in ("pm", "mp"):
                sign = op
            negative ^= op == "-"
        factors = [self.power()]
        while self.starts_factor():  # -2x is -(2x)
            factors.append(self.power())
        node = _product(factors)
        if sign:
            node = Node(sign, (node,))
        return _negative(node) if negative else node

    # -- powers and other postfix signs

    def power(self) -> Node:
        self.deeper()
        node = self.primary()
        factorials = 0
        for _ in range(MAX_MARKS):
            if self.is_op("^", "**"):
                self.at += 1
                node = self.raised(node)
            elif self.is_op("!"):
                self.at += 1
                factorials += 1
                if factorials > 8:
                    raise Unreadable("too many factorials in a row")
                node = Node("fact", (node,))
            elif self.is_op("'") and node.op != "sym":
                self.at += 1
                node = Node("prime", (node,))
            elif self.is_op("deg"):
                self.at += 1
                node = Node("deg", (node,))
            elif self.is_op("%"):
                self.at += 1
                node = Node("percent", (node,))
            elif self.is_op("permil"):
                self.at += 1
                node = Node("div", (node, number(1000)))
            else:
                self.depth -= 1
                return node
        raise Unreadable(f"more than {MAX_MARKS} signs after one factor")

    def raised(self, base: Node) -> Node:
        """Returns `base` with the superscript after ^: a power, degree sign, transposition, conjugation or prime."""
        grouped = self.accept("{")
        marks = 0
        while self.peek().value in ("*", "'", "**") and self.peek().kind == "op":
            mark = self.take().value
            marks += len(mark)
            kind = "prime" if mark == "'" else "star"
            if not grouped:
                break
        if marks:
            if grouped:
                self.expect("}")
            else:
                while self.is_op("*" if kind == "star" else "'") and kind == "prime":
                    self.at += 1
                    marks += 1
            if base.op == "sym" and kind == "prime":
                return symbol(base.value + "'" * marks)
            return Node(kind, (base,)) if marks % 2 else base
        if self.peek().value in ("circ", "deg"):
            self.at += 1
            if grouped:
                self.expect("}")
            return Node("deg", (base,))
        if grouped:
            exponent = self.inner("}")
        else:
            negative = self.signs()
            self.deeper()
            exponent = self.primary()
            if self.is_op("^", "**"):
                self.at += 1
                exponent = self.raised(exponent)
            self.depth -= 1
            exponent = _negative(exponent) if negative else exponent
        chosen = _CHOSEN.fullmatch(base.value) if base.op == "sym" else None
        if chosen and exponent.op == "num":  # C_6^3, the notation of China and Russia
            ways = Node("binom", (number(int(chosen[2])), exponent))
            return ways if chosen[1] == "C" else Node("mul", (ways, Node("fact", (exponent,))))
        return Node("pow", (base, exponent))

    def inner(self, close: str) -> Node:
        """Parses up to the closing bracket and consumes it; bars outside of it don't count."""
        self.deeper()
        bars, self.bars = self.bars, 0
        stops, self.bar_stops = self.bar_stops, False
        node = self.relation()
        if self.is_op("over", "choose"):
            node = self.stacked(node)
        self.bars, self.bar_stops = bars, stops
        self.expect(close)
        self.depth -= 1
        return node

    def stacked(self, top: Node) -> Node:
        """Parses the lower half of {a \\over b} or {n \\choose k}."""
        kind = "div" if self.take().value == "over" else "binom"
        bottom = self.relation()
        if "chain" in (top.op, bottom.op):
            raise Unreadable("a relation over another")
        return Node(kind, (top, bottom))

    def argument(self) -> Node:
        """Parses one argument of a command: `{...}`, or a single digit, letter or command."""
        if self.accept("{"):
            return self.inner("}")
        token = self.peek()
        if token.kind == "num" and len(token.value) > 1 and token.value.isdigit():
            self.tokens[self.at] = token._replace(value=token.value[1:])
            return number(int(token.value[0]))
        if token.kind == "sym":  # only the letter: the b of \\int^b_a
            self.at += 1
            return Node("const", (), _CONSTANTS[token.value]) if token.value in _CONSTANTS else symbol(token.value)
        return self.nested(self.primary)

    def signed_exponent(self) -> Node:
        """Parses the exponent after a ^ without braces."""
        negative = self.signs()
        node = self.nested(self.argument)
        return _negative(node) if negative else node

    def argument_number(self) -> Node:
        """Parses an argument that may be a number of several digits: `\\sqrt 12` means the root of 12."""
        if self.peek().kind == "num":
            return self.nested(lambda: structures.numeral_at(self, self.take()))
        return self.argument()

    # -- primaries

    def primary(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return structures.numeral_at(self, token)
        if token.kind == "sym":
            return self.symbol(token)
        if token.kind == "fn":
            return structures.function(self, token.value)
        if token.kind == "cmd":
            return self.command(token.value)
        if token.kind == "begin":
            return structures.matrix(self, token.value)
        if token.kind == "word":
            return self.word(token.value)
        if token.kind != "op":
            raise Unreadable(f"can't read '{token.value[:40]}'")
        match token.value:
            case "(" | "[":
                return structures.bracketed(self, token.value)
            case "{":
                return structures.braces(self)
            case "lset":
                return structures.set_braces(self, "rset")
            case "lfloor" | "lceil":
                node = self.inner("r" + token.value[1:])
                return Node("fn", (node,), "floor" if token.value == "lfloor" else "ceil")
            case "langle":
                return structures.angle(self)
            case "|":
                self.deeper()
                self.bars += 1
                node = self.relation()
                closed = self.expect("|", "rangle")
                self.bars -= 1
                self.depth -= 1
                return Node("abs", (node,)) if closed == "|" else Node("group", (node, node), "|>")
            case "...":
                return symbol("...")
            case "-" | "+":
                self.at -= 1
                return self.nested(self.signed)
        raise Unreadable(f"{_quoted(token.value)} instead of a value")

    def symbol(self, token: Token) -> Node:
        """Parses a letter with primes and subscript, a constant, or an unknown function with its arguments."""
        name, primes, subscript = token.value, 0, ""
        while True:
            if self.is_op("'"):
                self.at += 1
                primes += 1
            elif self.is_op("_") and not subscript:
                self.at += 1
                subscript = self.subscript()
            else:
                break
        if name in _CONSTANTS and name != self.index and not subscript and not primes:
            return Node("const", (), _CONSTANTS[name])
        full = name + (f"_{{{subscript}}}" if subscript else "") + "'" * primes
        if name == "P" and self.is_op("("):
            events = structures.conditional(self)
            if events is not None:
                return Node("apply", events, full + " given")
        if full == "C" and [self.peek(ahead).kind for ahead in range(5)] == ["op", "num", "op", "num", "op"]:
            pair = structures.applied(self, certain=True)  # C(10, 3): a point, or the ways to choose
            return symbol(full) if pair is None else Node("apply", pair, full)
        if self.peek().kind == "op" and (name in _APPLIED or len(name) > 1):
            arguments = structures.applied(self, certain=name in _APPLIED)
            if arguments is not None:
                return Node("apply", arguments, full)
        return symbol(full)

    def subscript(self) -> str:
        """Parses a subscript, as plain text."""
        if not self.accept("{"):
            token = self.take()
            if token.kind == "op":
                raise Unreadable("a subscript without content")
            return token.value
        parts: list[str] = []
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "op" and token.value in "{}":
                depth += 1 if token.value == "{" else -1
                continue
            parts.append(token.value)
        return "".join(parts)

    def command(self, name: str) -> Node:
        if name in _COMMAND_CONSTANTS:
            return Node("const", (), _COMMAND_CONSTANTS[name])
        if name == "frac":
            top = self.argument()
            return structures.fraction(self, top, self.argument())
        if name == "binom":
            top = self.argument()
            return Node("binom", (top, self.argument()))
        if name == "overline":
            return Node("conj", (self.argument(),))
        if name in ("boxed", "fbox"):
            return self.argument()
        if name in ("sum", "prod", "int", "lim"):
            return structures.bound(self, name)
        if name in ("angle", "triangle", "square") and self.peek().kind in ("sym", "word"):
            return symbol(f"{name} {self.take().value}")
        if name == "angle" and self.at > 1:  # 2\\angle 60^\\circ, a complex number by its size and argument
            before = self.tokens[self.at - 2]
            if before.kind == "num" or before.value in (")", "}"):
                return structures.cis(self.nested(self.signed))
        if name == "complement":
            self.subscript() if self.accept("_") else None
            return Node("conj", (self.argument(),))
        if name in _DECORATED or name == "dot":
            node = self.argument()
            letters = node.args if node.op == "mul" else (node,)
            if all(letter.op in ("sym", "const") for letter in letters):
                return symbol(f"{name} {''.join(letter.value for letter in letters)}")
        raise Unreadable(f"unknown command '\\{name}'")

    def word(self, word: str) -> Node:
        """Parses up to three adjacent letters as a product. Raises Unreadable for a word."""
        if len(word) > 3 or not word.isalpha() or not word.isascii() or word.lower() in _NO_PRODUCT:
            raise Unreadable(f"the word '{word}'")
        spend(3 * len(word))
        letters = [Token("sym", letter, 0, False) for letter in word]
        self.tokens[self.at - 1 : self.at] = letters
        self.at -= 1
        return self.symbol(self.take())


def _product(factors: list[Node]) -> Node:
    """Returns the factors as one node; a set of one item among them is a braced group."""
    if len(factors) == 1:
        return factors[0]
    bare = [side.args[0] if side.op == "set" and len(side.args) == 1 else side for side in factors]
    first = bare[0].args if bare[0].op == "mul" else (bare[0],)
    return Node("mul", (*first, *bare[1:]))


def _is_number(node: Node) -> bool:
    return node.op in ("num", "dec") or (node.op == "neg" and node.args[0].op in ("num", "dec"))


def _negative(node: Node) -> Node:
    if node.op == "num":
        return Node("num", (), -node.value)
    if node.op == "dec":
        return Node("dec", (), (-node.value[0], *node.value[1:]))
    return Node("neg", (node,)) if node is not MINUS_ONE else number(1)
