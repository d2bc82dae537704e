"""Rows and completions are data: checkers, schemas, templates, formulas and patterns run and fetch nothing."""

import json

import pytest

from verifiers import VERIFIERS, Completion, Problem, Reward, VerifierError, resolve
from verifiers.__main__ import main as verifiers_main

CHECKERS = [
    "evil_for_tests:check",
    "subprocess:call",
    {"program": "import evil_for_tests\ndef check(given, expected, got):\n    return True"},
    {"use": "evil_for_tests:check"},
]


@pytest.mark.parametrize("checker", CHECKERS, ids=str)
@pytest.mark.parametrize("style", ["function", "stdin"])
def test_a_row_s_checker_runs_nothing_here(tmp_path, marker, capsys, checker, style):
    function = {"entry_point": "f", "args": [[1]], "outs": [1]}
    whole = {"inputs": ["1"], "outputs": ["1"]}
    tests = {"style": style, **(function if style == "function" else whole), "checker": checker}
    program = "def f(x): return x" if style == "function" else "print(1)"
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"tests": tests, "completion": f"```python\n{program}\n```"}) + "\n"
    )
    assert verifiers_main(["score", "rows.jsonl", "--reward", "code", "--workers", "0", "--out", "out.jsonl"]) == 1
    (found,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert found["reward"] is None
    assert "checker" in found["error"]
    assert not marker.exists()


CODE = "__import__('pathlib').Path({marker!r}).touch()"
FORMS = (
    "{code}",
    "<answer>{code}</answer>",
    "\\boxed{{{code}}}",
    "```python\n{code}\n```",
    "[{code}]",
    "{{{code}: 1}}",
)
PROBLEM = Problem(
    "2+2? (A) 3 (B) 4",
    "4",
    meta={"numbers": [2, 2], "schema": {"type": "integer"}, "choices": ["3", "4"], "reasoning_gym": "countdown",
          "entry": {"answer": "2+2", "metadata": {"numbers": [2, 2], "target": 4}}},
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(VERIFIERS) - {"code"}))
def test_a_completion_is_never_run(tmp_path, name):
    if name == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    path = tmp_path / "marker"
    verify = resolve(name, **({"pattern": "4"} if name == "regex" else {}))
    for form in FORMS:
        text = form.format(code=CODE.format(marker=str(path)))
        for problem in (PROBLEM, Problem(text, text, meta={**PROBLEM.meta, "schema": text})):
            try:
                verify(problem, Completion(text))
            except VerifierError:
                continue
    assert not path.exists()


def test_a_schema_fetches_nothing(tmp_path, monkeypatch):
    import socket
    import urllib.request

    def refuse(*arguments, **more):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    (tmp_path / "schema.json").write_text("true")
    places = ["http://127.0.0.1:9/x", "https://example.com/s.json", f"file://{tmp_path}/schema.json", "schema.json"]
    for place in places:
        for schema in ({"$ref": place}, {"$dynamicRef": place}, {"$schema": place}, {"$id": place, "$ref": "#/x"}):
            try:
                found = resolve("json_schema")(Problem("?", meta={"schema": schema}), Completion("<answer>1</answer>"))
            except VerifierError:
                continue
            assert set(schema) == {"$schema"}, found


def test_a_row_s_template_is_filled_in_by_replacement():
    from r1lite.tasks.prompts import render

    for text in ("{question.__class__}", "{0.__class__.__mro__}", "{question!r:>{width}}"):
        assert render("Q: {question}", text, None) == f"Q: {text}"
    assert render("{question.__class__} {question}", "x", None) == "{question.__class__} x"


def test_a_formula_is_no_program():
    for text in (
        "__import__('os')",
        "math.__class__",
        "(lambda: 1)()",
        "[math]",
        "math if math else math",
        "math or 1",
    ):
        with pytest.raises(ValueError, match=r"formula|unknown verifier"):
            Reward(text)


BIG = [
    "a{1000000000}",
    "(?:(?:(?:a{1000}){1000}){1000}){1000}",
    "(" * 3000 + "a" + ")" * 3000,
    "a" * 20_000,
    "[]a]{,900000}",
]


@pytest.mark.parametrize("pattern", [*BIG, "("], ids=lambda text: text[:30])
def test_a_pattern_is_compiled_in_bounded_time(pattern):
    from verifiers.patterns import compiled

    with pytest.raises(ValueError, match=r"nested|characters|missing"):
        compiled(pattern)
    with pytest.raises(ValueError, match="pattern"):
        resolve("regex", pattern=pattern)
    with pytest.raises(VerifierError, match="pattern"):
        resolve("regex")(Problem("?", pattern), Completion("<answer>a</answer>"))
    with pytest.raises(VerifierError, match=r"pattern|recursion"):
        resolve("json_schema")(Problem("?", meta={"schema": {"pattern": pattern}}), Completion("<answer>1</answer>"))


@pytest.mark.parametrize(
    "pattern", [r"(\d{4}-){3}\d{2}", r"[^]]{2,500}\{9999999\}", "(a|b){1000}(?:c{10}){10}", r"\p{L}{1,5}"]
)
def test_usual_patterns_are_compiled(pattern):
    from verifiers.patterns import compiled

    assert compiled(pattern).pattern == pattern
