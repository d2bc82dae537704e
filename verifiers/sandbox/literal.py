"""Test code that only compares calls of the entry point with literals, as most of MBPP and HumanEval does.

It needs no process of its own: calls and expected values are read from the syntax tree, and nothing is executed. All
other test code is left to the oracle.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from verifiers.sandbox import wire
from verifiers.sandbox.names import parsed


@dataclass(slots=True)
class Comparisons:
    """Calls in order, what each must return, and the test that it belongs to."""

    calls: list[Any] = field(default_factory=list)  # encoded [[args], [[name, value]...]] of each call
    given: list[Any] = field(default_factory=list)
    outs: list[Any] = field(default_factory=list)
    tests: list[int] = field(default_factory=list)


class _OtherError(Exception):
    """The test code does something else."""


def comparisons(entry: str, setup: Sequence[str], tests: Sequence[str]) -> Comparisons | None:
    """Returns the comparisons if the test code consists of nothing else, otherwise None.

    A test is a series of `assert f(LITERALS) == LITERAL`, or `check(f)` with a function `check(candidate)` of the setup
    that is one. Sets are no arguments: the order of their items would depend on the hash seed of this process.
    """
    found = Comparisons()
    braces = any("{" in source for source in (*setup, *tests))
    try:
        functions = _functions(setup)
        for index, source in enumerate(tests):
            asserts = list(_asserts(parsed(source).body, entry, functions))
            if not asserts:
                return None  # the oracle reports tests that call nothing
            for call, expected in asserts:
                if braces and any(isinstance(node, ast.Set) for node in ast.walk(call)):
                    return None
                _add(found, call, expected)
                found.tests.append(index)
    except (_OtherError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError, wire.WireError):
        return None
    return found


def exactly(_given: Any, expected: Any, got: Any) -> bool:
    """A checker: `assert got == expected`, as Python evaluates it."""
    try:
        return bool(got == expected)
    except ArithmeticError:  # a signalling NaN
        return False


def _functions(setup: Sequence[str]) -> dict[str, tuple[str, list[ast.stmt]]]:
    """Returns name -> (parameter, body) of functions; before them, only statements without influence may stand."""
    functions: dict[str, tuple[str, list[ast.stmt]]] = {}
    for source in setup:
        for node in parsed(source).body:
            match node:
                case ast.FunctionDef(
                    name=name,
                    args=ast.arguments([], [ast.arg(parameter, None)], None, [], [], None, []),
                    body=body,
                    decorator_list=[],
                    returns=None,
                ):
                    functions[name] = (parameter, body)
                case ast.Expr(value=ast.Constant()):
                    pass
                case _ if functions:
                    raise _OtherError
                case ast.Assign(targets=[ast.Name()], value=value):
                    ast.literal_eval(value)
                case ast.Import(names=names) if all(map(_is_library, [alias.name for alias in names])):
                    pass
                case ast.ImportFrom(module=str(module), level=0) if _is_library(module):
                    pass
                case _:
                    raise _OtherError
    return functions


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _asserts(
    body: Sequence[ast.stmt], name: str, functions: dict[str, tuple[str, list[ast.stmt]]]
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yields call and expected value of each assertion about the function `name`."""
    for node in body:
        match node:
            case ast.Assert(test=ast.Constant(value=True)) | ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Assert(  # its message, if any, is made after it has failed
                test=ast.Compare(left=ast.Call(func=ast.Name(id=called)) as call, ops=[ast.Eq()], comparators=[value])
            ) if called == name:
                yield call, value
            case ast.Expr(value=ast.Call(func=ast.Name(id=called), args=[ast.Name(id=passed)], keywords=[])) if (
                passed == name and called != name and called in functions
            ):
                parameter, inner = functions[called]
                yield from _asserts(inner, parameter, {})
            case _:
                raise _OtherError


def _add(found: Comparisons, call: ast.Call, expected: ast.expr) -> None:
    args = [ast.literal_eval(arg) for arg in call.args]
    kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    if len(kwargs) < len(call.keywords):  # `**` or a repeated name
        raise _OtherError
    found.calls.append(
        [[wire.encode(arg, _refuse) for arg in args], [[key, wire.encode(kwargs[key], _refuse)] for key in kwargs]]
    )
    found.given.append(args)
    found.outs.append(ast.literal_eval(expected))
    wire.encode(found.outs[-1], _refuse)


def _refuse(value: Any) -> Any:
    raise wire.WireError(f"{type(value).__name__} is not data")
