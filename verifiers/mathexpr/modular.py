"""Evaluation modulo large primes: exact on rational functions, whatever the size of their powers.

Anything else (a sine, a root, an integral) becomes an unknown that depends only on the values of its arguments.
Agreement then still proves equality, up to a chance of about 2^-59 per prime; disagreement proves nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from verifiers.mathexpr.evaluate import Undefined, Unsupported, Value, Walk, seed
from verifiers.mathexpr.exact import integer, rational
from verifiers.mathexpr.limits import Budget
from verifiers.mathexpr.nodes import BINDERS, Node, digest, has_op, symbols
from verifiers.mathexpr.nodes import walk as walk_over
from verifiers.mathexpr.normal import normal

# A prime p with p % 4 == 1 and the chain of Carmichael functions below it; exponents are reduced modulo the next one,
# so that towers of powers are never computed. Then a square root of -1 modulo p.
CHAINS = (
    ((2305843009213594061, 2305843009213594060, 16261822307292900, 10423894705560, 6204215268, 13945932),
     997188453977385214),
    ((1152921504606859333, 1152921504606859332, 592935379132140, 9409500, 3600, 60), 476036617136182372),
)  # fmt: skip
_MAX_FACTORIAL = 5000
_MOST_MOVES = 16
_POWER = frozenset({"pow"})
_UNMOVED: Mapping[str, int] = {}


@functools.lru_cache(maxsize=128)
def _factorial(count: int, prime: int) -> int:
    total = 1
    for factor in range(2, count + 1):
        total = total * factor % prime
    return total


class Modular:
    """Integers modulo a prime."""

    cost = heavy = 1

    def __init__(self, which: int, moved: Mapping[str, int] = _UNMOVED) -> None:
        self.moved = moved
        self.chain, self.root = CHAINS[which]
        self.prime = self.chain[0]
        self.guessed = False  # an unknown was used: disagreement proves nothing

    def number(self, value: Fraction) -> int:
        bottom = value.denominator % self.prime
        if bottom == 0:
            raise Unsupported("denominator")
        if bottom == 1:
            return value.numerator % self.prime
        return value.numerator * pow(bottom, -1, self.prime) % self.prime

    def constant(self, name: str) -> int:
        if name == "i":
            return self.root
        if name in ("inf", "empty", "R", "Z", "N", "Q", "C", "top"):
            raise Unsupported(name)
        self.guessed = True  # pi and e become unknowns: they satisfy no known algebraic relation
        return self.hashed("const", name)

    def symbol(self, name: str) -> int:
        """Returns the value of a free symbol: a 31-bit integer, so that it can be an exponent too."""
        return seed("symbol", name) % (1 << 31) + 3 + self.moved.get(name, 0)

    def hashed(self, *parts: object) -> int:
        return (seed(*parts) << 3) % self.prime

    def add(self, a: int, b: int) -> int:
        return (a + b) % self.prime

    def mul(self, a: int, b: int) -> int:
        return a * b % self.prime

    def inverse(self, a: int) -> int:
        if a == 0:
            raise Undefined
        return pow(a, -1, self.prime)

    def power(self, node: Node, walk: Walk) -> Value:
        base, exponent = walk.value(node.args[0]), node.args[1]
        exact = rational(exponent)
        if exact is not None and exact.denominator == 1:
            if base == 0 and exact <= 0:
                raise Undefined
            return pow(base, exact.numerator % (self.prime - 1), self.prime) if base else 0
        if exact is None and base:
            try:
                return pow(base, self._exponent(exponent, 1, walk), self.prime)
            except Unsupported:
                pass
        return self._unknown("pow", base, walk.value(exponent))

    def _exponent(self, node: Node, level: int, walk: Walk) -> int:
        """Returns an integer-valued expression modulo chain[level]. Raises Unsupported."""
        walk.budget.spend(1)
        modulus = self.chain[level]
        match node.op:
            case "num" if node.value.denominator == 1:
                return int(node.value.numerator % modulus)
            case "sym" if node.value not in walk.bound:
                return self.symbol(node.value) % modulus
            case "neg":
                return -self._exponent(node.args[0], level, walk) % modulus
            case "add":
                return sum(self._exponent(arg, level, walk) for arg in node.args) % modulus
            case "mul":
                total = 1
                for arg in node.args:
                    total = total * self._exponent(arg, level, walk) % modulus
                return total
            case "pow" if level + 1 < len(self.chain):
                small = rational(node.args[1])
                base = self._exponent(node.args[0], level, walk)
                below = self.chain[level + 1]  # Euler's theorem for any base: exponents at least as long as the modulus
                if small is not None:
                    if small.denominator != 1 or small < 0:
                        raise Unsupported("exponent")
                    exponent = (
                        small.numerator
                    )  # reduced if long: the cost of a power grows with the bits of its exponent
                    return pow(base, exponent % below + 64 * below if exponent > 64 * below else exponent, modulus)
                if _may_be_negative(node.args[1]):
                    raise Unsupported("exponent")
                return pow(base, self._exponent(node.args[1], level + 1, walk) + 64 * below, modulus)
        raise Unsupported("exponent")

    def function(self, name: str, values: list[Value], node: Node) -> int:
        exact = rational(node)
        if exact is not None:
            return self.number(exact)
        if name == "fact":
            count = integer(rational(node.args[0]), _MAX_FACTORIAL)
            if count is not None:
                return _factorial(count, self.prime)
        if name == "sqrt":
            return self._unknown("pow", values[0], self.number(Fraction(1, 2)))
        if name == "root" and rational(node.args[1]) == 2:
            return self._unknown("pow", values[0], self.number(Fraction(1, 2)))
        name = "log" if name == "ln" else name
        return self._unknown(name, *(sorted(values) if name in ("min", "max", "gcd", "lcm") else values))

    def _unknown(self, *parts: object) -> int:
        self.guessed = True
        return self.hashed(*parts)

    def opaque(self, node: Node, walk: Walk) -> int:
        """Returns an unknown for an integral, a limit or an unknown function, whatever its bound names."""
        parts: list[object] = [node.op]
        before = walk.bound
        if node.op in BINDERS and (node.op != "int" or len(node.args) > 1):
            walk.bound = {**before, node.value: self.hashed("bound", len(before))}
        else:
            parts.append(node.value)
        try:
            for index, arg in enumerate(node.args):
                parts.append(self._part(arg, walk))
                if index == 0:
                    walk.bound = before
        finally:
            walk.bound = before
        return self._unknown(*parts)

    def _part(self, node: Node, walk: Walk) -> object:
        try:
            value = walk.value(node)
        except (Unsupported, Undefined):
            return digest(normal(node))
        return value if isinstance(value, int) else tuple(value.cells)


def _may_be_negative(node: Node) -> bool:
    return node.op == "neg" or (node.op == "num" and node.value < 0) or any(map(_may_be_negative, node.args))


def fingerprint(node: Node, which: int, budget: Budget, moved: Mapping[str, int] = _UNMOVED) -> tuple[Value, bool]:
    """Returns the value modulo the `which`-th prime, and whether it involves unknowns. Raises as `Walk.value`.

    Args:
        moved: what to add to the values of symbols.
    """
    field = Modular(which, moved)
    walk = Walk(field, field.symbol, budget)
    return walk.value(node), field.guessed


def residues(nodes: Sequence[Node]) -> Iterator[dict[str, int]]:
    """Yields moves of symbols for which equal expressions must agree as well; the first moves none.

    A value of n is odd or even, and (-1)^n would be one of its two values for good. So the n of (-1)^n and (-2)^n takes
    both, and that of i^n takes all four residues. Of many names, 16 combinations are taken.
    """
    parts = [part for node in nodes if has_op(node, _POWER) for part in walk_over(node)]
    turning = [part for part in parts if part.op == "pow" and symbols(part.args[1]) and _turns(part.args[0])]
    names = sorted(set().union(*(symbols(part.args[1]) for part in turning)))
    kinds = 4 if any(part.op == "const" and part.value == "i" for part in parts) else 2
    every = kinds ** len(names) if len(names) < 5 else _MOST_MOVES + 1
    for move in range(min(every, _MOST_MOVES)):
        if every <= _MOST_MOVES:
            yield {name: move // kinds**at % kinds for at, name in enumerate(names)}
        else:
            # Squared, as the lowest bits of the hash, a sum of those of its parts, would change together.
            yield {name: (seed(name, move) ** 2 >> 40) % kinds for name in names}


def _turns(base: Node) -> bool:
    """Returns whether the powers of a base may return to what they were, up to a factor, as those of -2 and -x do."""
    value = rational(base)
    return value < 0 if value is not None else base.op not in ("sym", "const") or base.value == "i"


def small_seed(value: int) -> Fraction:
    """Returns a positive rational of at most 4 that replaces an unknown value in interval arithmetic."""
    return Fraction(value % (1 << 40) + 1, 1 << 38)
