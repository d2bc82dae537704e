"""Parses and checks a problem's tests, in one of three styles."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verifiers.core import GoldError, Problem
from verifiers.sandbox import wire
from verifiers.sandbox.checkers import (
    NOTHING,
    Allowed,
    TextChecker,
    ValueChecker,
    is_named,
    text_checker,
    value_checker,
)
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.literal import comparisons, exactly
from verifiers.sandbox.names import Names, parsed, resolve, without


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """Calls of one function, and the value that each must return."""

    entry_point: str
    calls: list[Any]  # encoded [[args], [[name, value]...]] of each call
    given: list[Any]  # the arguments unencoded, for a checker and for the detail
    outs: list[Any]
    check: ValueChecker
    prefix: str = ""  # code the submission may use: helpers that the prompt shows
    own_checker: bool = False  # the checker is the user's or the tests', so a right answer may have any size
    test_of: Sequence[int] = ()  # the test that each call belongs to; (): each call is one


@dataclass(frozen=True, slots=True)
class AssertTests:
    """Test code that runs on the trusted side."""

    entry_point: str
    tests: list[str]
    setup: list[str]
    names: Names  # the origin of the test code's names
    prefix: str = ""
    prompt: str = ""  # put before a submission that only continues it
    compared: FunctionTests | None = None  # the same as calls and values, if the test code only compares these


@dataclass(frozen=True, slots=True)
class StdinTests:
    """Inputs of a whole program, and the output that each must give."""

    inputs: list[str]
    outputs: list[str]
    check: TextChecker


Tests = FunctionTests | AssertTests | StdinTests
_COMMON = {"style", "time_s", "memory_mib"}
_MOST = {"time_s": 60, "memory_mib": 4096}  # the most that data may request, unless the verifier's option is higher
_FIELDS = {
    "function": {"entry_point", "args", "kwargs", "outs", "checker", "prefix"},
    "asserts": {"entry_point", "tests", "setup", "prefix", "prompt"},
    "stdin": {"inputs", "outputs", "checker"},
}


def read(problem: Problem, allowed: Allowed = NOTHING) -> Tests:
    """Returns the tests; their checkers must be named ones or `allowed`. Raises GoldError that says what is allowed."""
    tests = problem.tests
    if not isinstance(tests, Mapping):
        found = problem.meta.get("tests")  # the column of a row, in another form
        hint = "" if found is None else f" (the row's 'tests' is {type(found).__name__})"
        raise GoldError(
            f"the problem has no tests{hint}; wanted: Problem(tests={{'style': 'function' | 'asserts' | 'stdin', ...}})"
            " (verifiers.sandbox.convert makes them from rows of known data sets)"
        )
    style = tests.get("style")
    if not isinstance(style, str) or style not in _FIELDS:
        raise GoldError(f"unknown test style {style!r}; known: {', '.join(_FIELDS)}")
    unknown = sorted(set(tests) - _FIELDS[style] - _COMMON, key=str)
    if unknown:
        raise GoldError(f"tests of style '{style}' have no field {unknown[0]!r}; known: {sorted(_FIELDS[style])}")
    if style == "function":
        return _function(tests, allowed)
    return _asserts(tests) if style == "asserts" else _stdin(tests, allowed)


def limits_for(problem: Problem, limits: Limits) -> Limits:
    """Returns the limits; the problem's own `time_s` and `memory_mib` take precedence over the verifier's."""
    own = {name: (problem.tests or {})[name] for name in ("time_s", "memory_mib") if name in (problem.tests or {})}
    if not own:
        return limits
    for name, most in _MOST.items():
        if isinstance(own.get(name), int | float) and own[name] > max(most, getattr(limits, name)):
            raise GoldError(f"tests: {name} is {own[name]}; a problem may request {most} at most")
    try:
        return replace(limits, **own)
    except (ValueError, TypeError) as error:
        raise GoldError(f"tests: {error}") from error


def _function(tests: Mapping[str, Any], allowed: Allowed) -> FunctionTests:
    entry = _entry_point(tests)
    given, outs = _sequence(tests, "args"), _sequence(tests, "outs")
    keywords = _sequence(tests, "kwargs") if "kwargs" in tests else [{}] * len(given)
    if not len(given) == len(outs) == len(keywords):
        raise GoldError(
            f"{len(given)} args, {len(keywords)} kwargs and {len(outs)} outs: there must be as many of each"
        )
    if not given:
        raise GoldError("there are no tests: 'args' is empty")
    calls = []
    for index, (args, kwargs) in enumerate(zip(given, keywords, strict=True)):
        if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
            raise GoldError(f"args[{index}] must be a list of arguments, kwargs[{index}] a mapping")
        try:
            calls.append([[_encoded(arg) for arg in args], [[str(k), _encoded(v)] for k, v in kwargs.items()]])
            _encoded(outs[index])
        except wire.WireError as error:
            raise GoldError(f"test {index}: {error}") from error
    check = value_checker(_checker(tests, "exact"), allowed)
    own = not is_named(_checker(tests, "exact"))
    return FunctionTests(entry, calls, list(given), list(outs), check, _code(tests, "prefix"), own)


def _encoded(value: Any) -> Any:
    def refuse(item: Any) -> Any:
        raise wire.WireError(f"{type(item).__name__} can't be an argument or a result; only built-in types can")

    return wire.encode(value, refuse)


def _asserts(tests: Mapping[str, Any]) -> AssertTests:
    entry = _entry_point(tests)
    sources = _sequence(tests, "tests")
    if not sources:
        raise GoldError("there are no tests: 'tests' is empty")
    for source in sources:
        if not isinstance(source, str):
            raise GoldError(f"tests must be texts, got {type(source).__name__}")
    return _assert_tests(
        entry, tuple(sources), _code(tests, "setup"), _code(tests, "prefix"), _text(tests, "prompt", "")
    )


@functools.lru_cache(1024)
def _assert_tests(entry: str, sources: tuple[str, ...], setup: str, prefix: str, prompt: str) -> AssertTests:
    if found := comparisons(entry, (setup,), sources):
        compared = FunctionTests(entry, found.calls, found.given, found.outs, exactly, prefix, test_of=found.tests)
        return AssertTests(entry, list(sources), [], Names([entry]), prefix, prompt, compared)
    used = {node.id for source in sources for node in ast.walk(parsed(source)) if isinstance(node, ast.Name)}
    if entry not in used:
        raise GoldError(f"no test mentions the entry point {entry!r}")
    names = resolve(entry, (setup, *sources), (prefix, without(prompt, entry) if prompt else ""))
    before = [code for code in (names.helpers, setup) if code]
    return AssertTests(entry, list(sources), before, names, prefix, prompt)


def _stdin(tests: Mapping[str, Any], allowed: Allowed) -> StdinTests:
    inputs, outputs = _sequence(tests, "inputs"), _sequence(tests, "outputs")
    if len(inputs) != len(outputs):
        raise GoldError(f"{len(inputs)} inputs and {len(outputs)} outputs: there must be as many of each")
    if not inputs:
        raise GoldError("there are no tests: 'inputs' is empty")
    if not all(isinstance(text, str) for text in (*inputs, *outputs)):
        raise GoldError("inputs and outputs must be texts")
    return StdinTests(list(inputs), list(outputs), text_checker(_checker(tests, "tokens"), allowed))


def _entry_point(tests: Mapping[str, Any]) -> str:
    name = tests.get("entry_point")
    if not isinstance(name, str) or not name.isidentifier():
        raise GoldError(f"'entry_point' must be the name of a function, got {name!r}")
    return name


def _sequence(tests: Mapping[str, Any], name: str) -> list[Any]:
    value = tests.get(name)
    if not isinstance(value, list | tuple):
        raise GoldError(f"'{name}' must be a list, got {type(value).__name__}")
    return list(value)


def _checker(tests: Mapping[str, Any], default: str) -> Any:
    value = tests.get("checker", default)
    if not isinstance(value, str | Mapping):
        raise GoldError(f"'checker' must be a name or {{'program': TEXT}}, got {type(value).__name__}")
    return value


def _text(tests: Mapping[str, Any], name: str, default: str) -> str:
    value = tests.get(name, default)
    if not isinstance(value, str):
        raise GoldError(f"'{name}' must be a text, got {type(value).__name__}")
    return value


def _code(tests: Mapping[str, Any], name: str) -> str:
    code = _text(tests, name, "")
    if code:
        parsed(code)
    return code
