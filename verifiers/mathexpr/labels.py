"""Names of quantities on the left of an equation: x, f(x), f(3), AB, cos A, a : b, A ∩ B, P(A ∪ B)."""

from __future__ import annotations

from fractions import Fraction

from verifiers.mathexpr.nodes import Node, symbols, walk
from verifiers.mathexpr.normal import normal

_SET_SIGNS = frozenset({"union", "cap", "minus_set"})
_MEASURES = frozenset({"max", "min", "sup", "inf", "deg", "dim"})


def _inverse(node: Node) -> tuple[str, tuple[str, ...]] | None:
    """Returns the name and the variable of "f^{-1}(x)", which is parsed as a product, or None."""
    if node.op != "mul" or len(node.args) != 2 or node.args[1].op != "sym" or node.args[0].op != "pow":
        return None
    base, power = node.args[0].args
    named = base.op == "sym" and base.value in ("f", "g", "h") and power == Node("num", (), Fraction(-1))
    return (f"{base.value}^-1", (node.args[1].value,)) if named else None


def name_of(node: Node) -> tuple[str, tuple[str, ...]]:
    """Returns (name, variables): ("x", ()) for "x = ...", ("f", ("x",)) for "f(x) = ...", ("", ()) for no name."""
    if node.op == "sym":
        base = node.value
        if "_{" in base and base.endswith("}") and len(base.partition("_{")[2]) == 2:
            index = base.partition("_{")[2][:-1]
            if index.isalpha():
                return base.partition("_{")[0], (index,)  # a_n is a function of n
        return base, ()
    if node.op == "apply":
        return _applied(node)
    if node.op == "mul" and len(node.args) == 2 and all(arg.op == "sym" for arg in node.args):
        first, second = node.args  # S(n) = ... is parsed as a product if S is no known function name
        function = first.value.isupper() or (first.value == "y" and second.value in ("x", "t"))
        if function and second.value.islower() and len(second.value) == 1:
            return first.value, (second.value,)
    inverse = _inverse(node)
    if inverse:
        return inverse
    segment = _segment(node)
    if segment:
        return segment, ()
    if node.op == "deriv" and node.args[0].op == "sym":
        return f"{node.args[0].value}'", ()
    if node.op == "div":
        return _derivative(node) or _ratio(node), ()
    sets = set_name(node)
    if sets:
        return sets, ()
    if node.op == "mul" and len(node.args) == 2 and node.args[0].op == "sym" and set_name(node.args[1]):
        return f"{node.args[0].value}({set_name(node.args[1])})", ()  # n(A ∪ B), the number of its elements
    inside = symbols(node)
    if node.op == "fn" and node.value in _MEASURES and len(node.args) == 1 and node.args[0].op in ("sym", "apply"):
        return f"{node.value} {spelled(node.args[0])}", ()
    if node.op in ("abs", "conj", "fn") and inside and all(map(_is_quantity, inside)):
        return f"{node.value or node.op} {' '.join(sorted(inside))}", ()  # |v|, cos A
    return "", ()


def _derivative(node: Node) -> str:
    """Returns "y'" for dy/dx, which is parsed as a quotient of products, or ""."""
    parts = [[factor.value for factor in arg.args if factor.op == "sym"] for arg in node.args if arg.op == "mul"]
    letters = [part[1] for part in parts if len(part) == 2 and part[0] == "d"]
    return f"{letters[0]}'" if len(letters) == 2 else ""


def _applied(node: Node) -> tuple[str, tuple[str, ...]]:
    """Names an applied function: f(x) is a function of x, f(3) a value, P(A) a probability."""
    names = [arg.value for arg in node.args if arg.op == "sym" and not arg.value.isupper()]
    if len(names) == len(node.args):
        return node.value, tuple(names)
    inner = node.args[0]
    if len(node.args) == 1 and inner.op == "apply" and all(arg.op == "sym" for arg in inner.args):
        return f"{node.value}({inner.value})", tuple(arg.value for arg in inner.args)  # f(g(x))
    if all(arg.op == "sym" or not symbols(arg) for arg in node.args):
        return f"{node.value}({','.join(map(spelled, node.args))})", ()
    if node.value[0].isupper():  # P(A ∩ B), P(X <= 2), P(A | B)
        events = [arg.value if _is_point(arg) else set_name(arg) or _event(arg) for arg in node.args]
        return (f"{node.value}({','.join(events)})", ()) if all(events) else ("", ())
    return "", ()


def set_name(node: Node) -> str:
    """Returns a name for unions, intersections, differences and complements of sets with capital names, or ""."""
    if node.op == "abs" and len(node.args) == 1:
        inner = set_name(node.args[0])
        return f"abs {inner}" if inner else ""
    if node.op == "group" and len(node.args) == 1 and node.value == "()":
        return set_name(node.args[0])
    if node.op == "pow" and _is_point(node.args[0]) and node.args[1].op == "sym" and node.args[1].value in ("c", "C"):
        return f"conj {node.args[0].value}"
    if node.op == "conj" and node.args[0].op in _SET_SIGNS:
        inner = set_name(node.args[0])
        return f"conj ({inner})" if inner else ""
    if node.op not in _SET_SIGNS:
        return ""
    parts = [
        arg.value
        if _is_point(arg)
        else f"conj {arg.args[0].value}"
        if arg.op == "conj" and _is_point(arg.args[0])
        else set_name(arg)
        for arg in node.args
    ]
    ordered = parts if node.op == "minus_set" else sorted(parts)
    return f"({node.op} {' '.join(ordered)})" if all(parts) else ""


def difference_name(node: Node) -> str:
    """Returns the set name of a difference A - B of two capitals, or ""."""
    first, *rest = node.args
    if len(rest) != 1 or rest[0].op != "neg" or not _is_point(first) or not _is_point(rest[0].args[0]):
        return ""
    return f"(minus_set {first.value} {rest[0].args[0].value})"


def _event(node: Node) -> str:
    """Returns the name of an event such as X <= 2, or ""."""
    if node.op != "chain" or not all(_is_point(arg) or not symbols(arg) for arg in node.args):
        return ""
    return " ".join((*map(spelled, node.args), *node.value))


def spelled(node: Node) -> str:
    """Returns a name for an argument or a constant that does not depend on its spelling."""
    form = normal(node)
    return str(form.value) if form.op in ("num", "sym") else repr(form)


def _segment(node: Node) -> str:
    """Returns the name of a segment or polygon (AB, |AB|, \\overline{AB}): its points sorted, or ""."""
    if node.op in ("abs", "conj") and len(node.args) == 1:
        node = node.args[0]
    if node.op != "mul" or len(node.args) > 4 or not all(_is_point(arg) for arg in node.args):
        return ""
    return "".join(sorted(arg.value for arg in node.args)) if len(set(node.args)) == len(node.args) else ""


def _is_point(node: Node) -> bool:
    return node.op == "sym" and len(node.value.rstrip("'")) == 1 and node.value[0].isupper()


def _is_quantity(name: str) -> bool:
    return name[:1].isupper() or name[:4] == "vec " or name in ("alpha", "beta", "gamma")


def _ratio(node: Node) -> str:
    """Returns the name of a ratio a : b : c of names or of a quotient of two lengths, or ""."""
    parts: list[Node] = []
    while node.op == "div" and node.value == ":":
        parts.insert(0, node.args[1])
        node = node.args[0]
    parts.insert(0, node)
    if len(parts) == 1:
        if node.op != "div" or not all(map(_segment, node.args)):
            return ""
        parts = list(node.args)
    names = [name_of(part)[0] if part.op != "div" else "" for part in parts]
    return " : ".join(names) if all(names) else ""


def occurs(name: Node, node: Node) -> bool:
    """Returns whether the named quantity occurs in the node."""
    if name.op == "sym":
        return name.value in symbols(node)
    return any(part == name or (part.op == "apply" and part.value == name.value) for part in walk(node))
