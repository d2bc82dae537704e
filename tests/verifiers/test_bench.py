"""`python -m verifiers bench`: figures known in advance, for verifiers that are wrong in known ways."""

import json
import math
import time

import pytest

from verifiers import Completion, Problem, Reward, VerifierError
from verifiers.__main__ import main
from verifiers.audit import bench
from verifiers.audit.targets import reward_of


def generous(problem, completion):
    """Pays any text that contains the gold."""
    return problem.answer in completion.text


def moody(problem, completion):
    """Hangs, raises, dies or abstains."""
    if "hang" in completion.text:
        time.sleep(60)
    if "raise" in completion.text:
        raise RuntimeError("no")
    return problem.answer == completion.text


CASES = [
    {"gold": "7", "text": "7", "expected": True},
    {"gold": "7", "text": "it is 7", "expected": True, "prompt": "3+4?"},
    {"gold": 7, "text": "17", "expected": False},
    {"gold": "7", "text": "8", "expected": 0},
    {"gold": "7", "text": "hang", "expected": False},
    {"gold": "7", "text": "raise", "expected": True},
]


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in CASES))
    return path


def test_figures(cases, tmp_path, capsys, monkeypatch):
    words = ["bench", "test_bench:generous", "test_bench:moody", "math", "--cases", str(cases), "--timeout", "2"]
    words += ["--json", str(tmp_path / "b.json"), "--markdown", str(tmp_path / "b.md")]
    assert main(words) == 0
    report = json.loads((tmp_path / "b.json").read_text())
    loose, moods, ours = report["verifiers"]
    assert (loose["recall"]["value"], loose["specificity"]["value"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert loose["balanced_accuracy"]["value"] == pytest.approx(2 / 3)
    assert (moods["unscored"], moods["hangs"]) == (2, 1)
    assert (moods["recall"]["value"], moods["specificity"]["value"]) == (pytest.approx(1 / 3), 1.0)
    assert (ours["recall"]["value"], ours["specificity"]["value"]) == (pytest.approx(2 / 3), 1.0)
    assert [case["text"] for case in report["disagreements"]] == ["it is 7", "17", "raise"]
    assert report["disagreements"][1]["paid"] == {"test_bench:generous": True, "test_bench:moody": False, "math": False}
    table = (tmp_path / "b.md").read_text()
    assert table.splitlines()[0] == "|  | `test_bench:generous` | `test_bench:moody` | `math` |"
    assert "| recall, 3 right answers | 0.667 (0.208-0.939) |" in table
    assert table in (shown := capsys.readouterr().out)
    assert "ship with verifiers" not in shown


def test_wilson():
    """Calculated by hand, for 8 of 10 (Wilson 1927; R's prop.test without correction gives 0.4902 to 0.9433)."""
    found = bench._share([True] * 8 + [False] * 2)
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert bench._share([]) is None
    assert bench._balanced(found, None) is None


def test_the_bundled_cases():
    found = bench.bundled()
    groups = {case.group for case in found}
    assert "hacks" in groups
    assert len(groups) > 20
    right = sum(case.expected for case in found)
    assert 200 < right < len(found) - 200
    assert not any(case.expected for case in found if case.group == "hacks")


def test_bundled_cases_are_said_to_be_our_own(monkeypatch, cases, capsys):
    monkeypatch.setattr(bench, "bundled", lambda: list(bench.read_cases(cases))[:2])
    assert main(["bench", "math", "--timeout", "2"]) == 0
    assert "2 of the 2 cases ship with verifiers; `math` was developed with them" in capsys.readouterr().out


def test_a_formula_is_timed():
    reward = Reward("v", options={"v": {"use": "verifiers.audit.bench:Timed", "target": "math + 0.1*format"}})
    verdict = reward(Problem(answer="4"), bench.Completion("4")).verdicts["v"]
    assert verdict.score == pytest.approx(1 / 1.1)
    assert 0 <= float(verdict.detail) < 1000


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "7", "expected": True}, "mine.jsonl:1: no column 'gold'; the row has 'text', 'expected'"),
        ({"gold": math.nan, "text": "7", "expected": True}, "mine.jsonl:1: the gold must be"),
        ({"gold": None, "text": "7", "expected": True}, "mine.jsonl:1: the gold is missing"),
        ({"gold": "7", "expected": True}, "mine.jsonl:1: no column 'text'; the row has 'gold', 'expected'"),
        ({"gold": "7", "text": 7, "expected": True}, "mine.jsonl:1: text, and prompt"),
        ({"gold": "7", "text": "7"}, "mine.jsonl:1: expected must be true or false"),
        ({"gold": "7", "text": "7", "expected": "yes"}, "mine.jsonl:1: expected must be true or false"),
        ([], "mine.jsonl:1: a case must be an object"),
    ],
)
def test_bad_cases(row, message, tmp_path, capsys):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert main(["bench", "math", "--cases", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_mistakes_of_use(capsys):
    assert main(["bench", "mth"]) == 2
    assert "did you mean 'math'" in capsys.readouterr().err
    assert main(["bench", "math", "--no-bundled"]) == 2
    assert "there are no cases" in capsys.readouterr().err


def test_a_file_without_rows_and_a_report_that_cannot_be_written(cases, tmp_path, capsys):
    (tmp_path / "empty.jsonl").touch()
    assert main(["bench", "math", "--cases", str(tmp_path / "empty.jsonl")]) == 2
    assert "empty.jsonl has no rows" in capsys.readouterr().err
    assert main(["bench", "math", "--cases", str(cases), "--json", str(tmp_path / "none" / "r.json")]) == 2
    assert "r.json can't be written: there is no folder" in capsys.readouterr().err


def test_a_case_with_half_a_character_is_reported(tmp_path):
    path, report = tmp_path / "mine.jsonl", tmp_path / "r.json"
    path.write_text(json.dumps({"gold": "7", "text": "\ud800 8", "expected": True}))
    assert main(["bench", "math", "--cases", str(path), "--json", str(report)]) == 0
    assert json.loads(report.read_text())["disagreements"][0]["text"] == "\ud800 8"


@pytest.mark.parametrize(("body", "message"), [("1 / 0", "ZeroDivisionError"), ("raise SystemExit", "SystemExit")])
def test_a_function_whose_module_fails_is_named(tmp_path, monkeypatch, body, message):
    (tmp_path / "fails_for_tests.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=message):
        reward_of("verl:fails_for_tests:score", {})


def test_no_number_from_a_function_of_verl_is_no_verdict(tmp_path, monkeypatch):
    (tmp_path / "nan_for_tests.py").write_text("def score(**_): return float('nan')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(VerifierError, match="NaN"):
        reward_of("verl:nan_for_tests:score", {})(Problem(answer="7"), Completion("7"))


def endless(problem, completion):
    while True:
        pass


def leaving(problem, completion):
    raise SystemExit(3)


def broken(problem, completion):
    raise ValueError("boo")


@pytest.mark.parametrize(
    ("name", "reason"), [("endless", "no verdict within"), ("leaving", "SystemExit"), ("broken", "ValueError: boo")]
)
def test_a_verifier_that_never_answers(name, reason, cases, capsys):
    """It also fails at its first call, which loads what the verifier needs."""
    assert main(["bench", f"{__name__}:{name}", "--cases", str(cases), "--timeout", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "gave no verdict on 6 of 6 cases" in said
    assert reason in said
