"""Determines where each name of the test code comes from: the test code, the standard library, or the submission.

A name that the submission supplies sees its arguments. So the submission may supply only the entry point and what makes
the entry point's arguments: in `isclose(f(3), 2.5)`, its own `isclose` would be shown the expected value.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from verifiers.core import GoldError

_parsing = threading.Lock()  # because catch_warnings changes the whole process

# Modules in which names are looked up that test code uses without importing them.
_MODULES = ("typing", "collections", "functools", "itertools", "heapq", "bisect", "math")


@dataclass(frozen=True, slots=True)
class Names:
    """Names that test code uses and does not bind."""

    submission: list[str]  # the entry point first
    library: list[list[str | list[str]]] = field(default_factory=list)  # [name, the modules that may have it], ...
    helpers: str = ""  # code of the problem that binds some of them, which also runs on the trusted side


def resolve(entry: str, sources: Sequence[str], helpers: Sequence[str]) -> Names:
    """Determines the origin of each name.

    Args:
        sources: setup and tests.
        helpers: code the submission may use, if the problem shows some.
    """
    used = free_names(sources)
    shown = [code for code in helpers if code and set(used) & bound_names(code)]
    if shown:
        used = free_names([*shown, *sources])
    trees = [parsed(source) for source in sources]
    makers = _makers(entry, trees)
    imported = {name for tree in trees for name in _imports(tree)}
    library: list[list[str | list[str]]] = []
    for name in used:
        if name == entry:
            continue
        if name in sys.stdlib_module_names and name not in makers:
            library.append([name, [name]])
        else:
            where = ("collections",) if name in makers else _MODULES  # so a submission may define its own `gcd`
            library.append([name, [*sorted(imported), *(module for module in where if module not in imported)]])
    return Names([entry, *(name for name in used if name in makers and name != entry)], library, "\n".join(shown))


def _makers(entry: str, trees: Sequence[ast.AST]) -> set[str]:
    """Returns names called to make an argument of the entry point, or an argument of one of these."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    made = [
        (target.id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    found, inner = {entry}, set[str]()
    todo = [entry]
    while todo:
        name = todo.pop()
        roots: list[ast.AST] = []
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id == name:
                roots += [*call.args, *(keyword.value for keyword in call.keywords)]
        while roots:
            for node in ast.walk(roots.pop()):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in found:
                    found.add(node.func.id)
                    todo.append(node.func.id)
                elif isinstance(node, ast.Name) and node.id not in inner:  # a variable: follow how it was made
                    inner.add(node.id)
                    roots += [value for variable, value in made if variable == node.id]
    return found


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def free_names(sources: Sequence[str]) -> list[str]:
    """Returns names that the code uses and nowhere binds, except built-in ones."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    for source in sources:
        bound |= bound_names(source)
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used.setdefault(node.id)
    return [name for name in used if name not in bound and not hasattr(builtins, name)]


@functools.lru_cache(4096)
def bound_names(source: str) -> frozenset[str]:
    """Returns names that the code binds somewhere."""
    bound: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return frozenset(bound)


def without(source: str, entry: str) -> str:
    """Returns the code's imports and helpers, without the entry point; "" if the code is not complete Python."""
    try:
        tree = parsed(source)
    except GoldError:
        return ""
    return ast.unparse(ast.Module([node for node in tree.body if getattr(node, "name", None) != entry], []))


@functools.lru_cache(4096)
def parsed(source: str) -> ast.Module:
    """Parses the data set's code. Raises GoldError if it is not Python."""
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # users can do nothing about odd escapes in these texts
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise GoldError(f"test code does not compile: {error}: {source[:200]!r}") from error
