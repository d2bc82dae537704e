"""Products of matrices that are written as letters: in a question about matrices, AB is not BA."""

from __future__ import annotations

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.evaluate import Matrix, Undefined, Unsupported, seed
from verifiers.mathexpr.limits import Budget
from verifiers.mathexpr.modular import fingerprint
from verifiers.mathexpr.nodes import Node, has_op, number, substitute, symbols, walk

_ASKS = any_case(r"\bmatri(?:x|ces?|zen|z|ci|cen|s)|\bmacierz|матриц|矩[阵陣]|行列|행렬|مصفوف")
_NO_MATRIX = frozenset("TIE")  # transposed, and the identity
_SIZE = 2
_IDENTITY = lazy_pattern(r"I|[IE]_\{([2-6])(?:\*\1)?\}")
_WRITTEN = frozenset({"matrix"})


def with_identity(first: Node, second: Node) -> tuple[Node, Node]:
    """Returns both nodes with I, I_2 and E_2 as identity matrices, where only the other is written out in full."""
    written_out = [node for node in (first, second) if has_op(node, _WRITTEN)]
    matrices = [part for node in written_out for part in walk(node) if part.op == "matrix"]
    sizes = {part.value if part.value**2 == len(part.args) else 0 for part in matrices}
    if len(sizes) != 1 or 0 in sizes:
        return first, second
    (size,) = sizes

    def written(node: Node, other: Node) -> Node:
        names = symbols(node) - symbols(other) if has_op(other, _WRITTEN) else ()
        found = {name: match for name in names if (match := _IDENTITY.fullmatch(name))}
        return substitute(node, {name: _identity(int(match[1] or size)) for name, match in found.items()})

    return written(first, second), written(second, first)


def _identity(size: int) -> Node:
    return Node("matrix", tuple(number(at % (size + 1) == 0) for at in range(size**2)), size)


def differ_as_matrices(first: Node, second: Node, prompt: str, budget: Budget) -> bool:
    """Returns whether expressions that are equal for numbers differ for matrices, in a question about these.

    Each capital letter is given a matrix. False if the expressions can't be evaluated so. Raises TooHard.
    """
    letters = {name for node in (first, second) for name in symbols(node) if len(name) == 1 and name.isupper()}
    if len(letters - _NO_MATRIX) < 2 or not _ASKS.search(prompt):
        return False
    values = {name: _matrix(name) for name in letters if name != "T"}
    try:
        (x, guessed), (y, guessed_too) = (fingerprint(substitute(node, values), 0, budget) for node in (first, second))
    except (Undefined, Unsupported):
        return False
    if guessed or guessed_too or not (isinstance(x, Matrix) or isinstance(y, Matrix)):
        return False
    x, y = (value.cells if isinstance(value, Matrix) else [value] * _SIZE**2 for value in (x, y))
    return bool(x != y)


def _matrix(name: str) -> Node:
    cells = range(_SIZE**2)
    identity = name in _NO_MATRIX
    return Node("matrix", tuple(number(at % 3 == 0 if identity else seed(name, at) % 97 + 1) for at in cells), _SIZE)
