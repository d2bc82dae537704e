"""Conversion of rows of public data sets to `Problem.tests`, one function per data set."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Mapping
from typing import Any

from verifiers.core import GoldError
from verifiers.sandbox.names import parsed, without


def from_humaneval(row: Mapping[str, Any]) -> dict[str, Any]:
    """HumanEval: `prompt`, `test` with its `check(candidate)`, `entry_point`.

    Helpers that the prompt shows are given to both sides separately: a test that calls `poly` gets the data set's own,
    not the submission's.
    """
    prompt, test, entry = _texts(row, "prompt", "test", "entry_point")
    helpers = without(prompt, entry)
    return {
        "style": "asserts",
        "entry_point": entry,
        "setup": f"{helpers}\n{test}",
        "tests": [f"check({entry})"],
        "prefix": helpers,
        "prompt": prompt,
    }


def from_mbpp(row: Mapping[str, Any]) -> dict[str, Any]:
    """MBPP, full (`test_setup_code`) or sanitized (`test_imports`): `test_list` of asserts.

    The entry point is the function that the asserts call. If they call several, `code`, the gold solution, decides
    which one; otherwise it is not used.
    """
    tests, imports = row.get("test_list"), row.get("test_imports") or []
    for name, texts in (("test_list", tests), ("test_imports", imports)):
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise GoldError(f"'{name}' must be a list of texts, got {texts!r:.80}")
    if not tests:
        raise GoldError("there are no tests: 'test_list' is empty")
    setup = [str(row.get("test_setup_code") or ""), *imports]
    called = _called(tests)
    defined = _defined(str(row.get("code", "")))
    candidates = (
        [name for name in called if name in defined] or [n for n in called if not hasattr(builtins, n)] or called
    )
    if not candidates:
        raise GoldError(f"no test calls a function: {tests[0]!r}")
    return {
        "style": "asserts",
        "entry_point": candidates[0],
        "setup": "\n".join(line.replace("\r\n", "\n") for line in setup if line),
        "tests": list(tests),
    }


def from_code_contests(row: Mapping[str, Any], *, checker: str = "tokens") -> dict[str, Any]:
    """CodeContests as SandboxFusion stores it: `test`, a JSON list of {"input": {"stdin"}, "output": {"stdout"}}."""
    try:
        cases = json.loads(row["test"]) if isinstance(row["test"], str) else row["test"]
        inputs = [case["input"]["stdin"] for case in cases]
        outputs = [case["output"]["stdout"] for case in cases]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise GoldError(f"the row has no tests: {type(error).__name__}: {error}") from error
    return {"style": "stdin", "inputs": inputs, "outputs": outputs, "checker": checker}


def from_apps(row: Mapping[str, Any] | str) -> dict[str, Any]:
    """APPS' tests as TACO, PRIME and verl store them, also as JSON text: `inputs`, `outputs`, for a function `fn_name`.

    A field that is null, as Arrow fills it, counts as absent. An input or output of a program may be a list of lines.
    The arguments of a function are a list, or a text with the JSON of one argument per line; a result that is a text is
    JSON. If every result is a list of one item, the item alone is accepted too, because some of these sets wrap return
    values. `assert_case`, a list of assert statements, makes tests in assert style.

    Raises: GoldError.
    """
    try:
        fields = json.loads(row) if isinstance(row, str) else row
    except (ValueError, RecursionError) as error:
        raise GoldError(f"the tests are not valid JSON: {error}") from error
    if not isinstance(fields, Mapping):
        raise GoldError(f"tests must be an object with 'inputs' and 'outputs', got {type(fields).__name__}")
    if fields.get("assert_case") is not None:
        return from_mbpp({"test_list": fields["assert_case"]})
    inputs, outputs, entry = fields.get("inputs"), fields.get("outputs"), fields.get("fn_name")
    if not isinstance(inputs, list | tuple) or not isinstance(outputs, list | tuple):
        raise GoldError(
            f"tests need the lists 'inputs' and 'outputs'; they have {', '.join(map(str, fields)) or 'nothing'}"
        )
    if entry is None:
        return {
            "style": "stdin",
            "inputs": [_lines(text) for text in inputs],
            "outputs": [_lines(text) for text in outputs],
        }
    args = [[_json(line) for line in one.split("\n")] if isinstance(one, str) else one for one in inputs]
    outs = [_json(one) if isinstance(one, str) else one for one in outputs]
    made = {"style": "function", "entry_point": entry, "args": args, "outs": outs}
    if outs and all(isinstance(out, list) and len(out) == 1 for out in outs):
        made["checker"] = "item"
    return made


def _lines(text: Any) -> Any:
    return "\n".join(map(str, text)) if isinstance(text, list | tuple) else text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GoldError(f"a test's value is not valid JSON: {text[:60]!r}") from error


def _texts(row: Mapping[str, Any], *names: str) -> list[str]:
    values = [row.get(name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            raise GoldError(f"the row has no text '{name}'")
    return [str(value) for value in values]


def _called(tests: list[str] | tuple[str, ...]) -> list[str]:
    """Returns names of called functions: those that more tests call first, then in order of appearance."""
    counts: dict[str, int] = {}
    for source in tests:
        nodes = ast.walk(parsed(source))
        names = {node.func.id: None for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])


def _defined(code: str) -> set[str]:
    try:
        tree = parsed(code)
    except GoldError:
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
