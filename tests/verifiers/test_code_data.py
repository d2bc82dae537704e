"""Public data sets, where they are available: every gold solution passes, and no emptied one does."""

from __future__ import annotations

import ast
import gzip
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifiers import Completion, Problem, Verdict
from verifiers.sandbox import CodeVerifier, from_code_contests, from_humaneval, from_mbpp, probe

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Row = dict[str, Any]


def lines(path: Path) -> list[Row]:
    if not path.exists():
        pytest.skip(f"{path} is not here")
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def emptied(code: str, entry: str) -> str:
    """Returns the program with an empty body of its entry point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(code)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            node.body = [ast.Pass()]
    return ast.unparse(tree)


HUMANEVAL = ("humaneval/HumanEval.jsonl.gz", 164, from_humaneval, lambda row: row["prompt"] + row["canonical_solution"])
MBPP = ("mbpp/mbpp.jsonl", 974, from_mbpp, lambda row: row["code"])
SANITIZED = ("mbpp/sanitized-mbpp.json", 427, from_mbpp, lambda row: row["code"])
ALL = pytest.mark.exhaustive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "number", "convert", "gold", "share"),
    [
        (*HUMANEVAL, 2), (*MBPP, 12), (*SANITIZED, 8),
        *(pytest.param(*data, 1, marks=ALL) for data in (HUMANEVAL, MBPP, SANITIZED)),
    ],
)  # fmt: skip
def test_gold_passes_and_emptied_gold_does_not(
    path: str, number: int, convert: Callable[[Row], Row], gold: Callable[[Row], str], share: int
) -> None:
    rows = lines(DATA / path)
    assert len(rows) == number
    if not {"full", "ns"} & set(probe.report().works):
        pytest.skip(f"no namespaces here: {probe.report().missing['ns']}")
    # One of so many, and all rows with what few have: code or imports before the tests.
    rows = [
        row for i, row in enumerate(rows) if i % share == 0 or row.get("test_setup_code") or row.get("test_imports")
    ]
    tests = [convert(row) for row in rows]
    right = [(Problem(tests=test), Completion(gold(row))) for test, row in zip(tests, rows, strict=True)]
    empty = [(p, Completion(emptied(c.text, str((p.tests or {})["entry_point"])))) for p, c in right]
    with CodeVerifier(time_s=10) as verifier:
        for pairs, score in ((right, 1), (empty, 0)):
            verdicts = verifier.verify_many(pairs)
            wrong = [(i, v) for i, v in enumerate(verdicts) if not isinstance(v, Verdict) or v.score != score]
            assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("most", [10, pytest.param(1_000, marks=ALL)])
def test_stdin_problems_run(most: int) -> None:
    rows = lines(DATA / "code_contests" / "sample.jsonl")
    assert len(rows) == 20
    with CodeVerifier(servers=2) as verifier:
        for row in rows:
            tests = from_code_contests(row)
            longest = sorted(zip(tests["inputs"], tests["outputs"], strict=True), key=lambda case: -len(case[0]))[:most]
            wanted = dict(longest)
            tests |= {"inputs": [given for given, _ in longest], "outputs": [text for _, text in longest]}
            right = f"import sys\nprint({wanted!r}[sys.stdin.read()], end='')"
            assert verifier(Problem(tests=tests), Completion(right)).reason == "AC"
            assert verifier(Problem(tests=tests), Completion("print('no such answer')")).score == 0
