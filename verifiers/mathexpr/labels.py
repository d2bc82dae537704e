"""What the left side of an equation names: x, f(x), f(3), AB, cos A, a : b."""

from __future__ import annotations

from verifiers.mathexpr.nodes import Node, symbols, walk
from verifiers.mathexpr.normal import normal


def name_of(node: Node) -> tuple[str, tuple[str, ...]]:
    """x of "x = ...", f and its variables of "f(x) = ...", "" for anything else."""
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
        first, second = node.args  # S(n) = ..., read as a product where S is no known function name
        if first.value.isupper() and second.value.islower() and len(second.value) == 1:
            return first.value, (second.value,)
    segment = _segment(node)
    if segment:
        return segment, ()
    if node.op == "div":
        return _ratio(node), ()
    inside = symbols(node)
    if node.op in ("abs", "conj", "fn") and inside and all(map(_is_quantity, inside)):
        return f"{node.value or node.op} {' '.join(sorted(inside))}", ()  # |v|, cos A: what is named is a quantity
    return "", ()


def _applied(node: Node) -> tuple[str, tuple[str, ...]]:
    """f(x) is a function of x; f(3) is a value, P(A) a probability."""
    names = [arg.value for arg in node.args if arg.op == "sym" and not arg.value.isupper()]
    if len(names) == len(node.args):
        return node.value, tuple(names)
    if all(arg.op == "sym" or not symbols(arg) for arg in node.args):
        return f"{node.value}({','.join(map(spelled, node.args))})", ()
    return "", ()


def spelled(node: Node) -> str:
    """One name for an argument or a constant, however it is written."""
    found = normal(node)
    return str(found.value) if found.op in ("num", "sym") else repr(found)


def _segment(node: Node) -> str:
    """AB of AB, |AB| and the same with a bar: two points or more."""
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
    """a : b : c of names, and the quotient of two lengths."""
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
    """Does what was named stand in the node?"""
    if name.op == "sym":
        return name.value in symbols(node)
    return any(found == name or (found.op == "apply" and found.value == name.value) for found in walk(node))
