"""The audit: our verifiers pass it, and known faults are found."""

import importlib.util
import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given

from verifiers import VERIFIERS, Completion, Problem, Reward, Verdict, VerifierError, resolve
from verifiers.__main__ import main
from verifiers.audit import audit
from verifiers.audit.cases import near_misses
from verifiers.audit.growth import exponent
from verifiers.audit.probe import timed
from verifiers.audit.report import Report
from verifiers.audit.samples import sample
from verifiers.pool import Pool
from verifiers.testing import answers, assert_passes_audit, hostile_text

SIZES = (2_000, 8_000, 32_000)
OPTIONS = {"overlong": {"unit": "chars"}, "length": {"unit": "chars"}}
OF_STYLE = {"format", "language", "length", "overlong", "repetition", "thinking"}
STYLE = "a verifier of style: it compares with no known answer"
PROBLEM = Problem(prompt="What is 700 + 800?", answer="1500")


@pytest.fixture(autouse=True)
def _import_from_tests(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))


@pytest.mark.quick
def test_families_without_a_case_are_not_shown_as_passed():
    report = Report("mine", "", "answer", [])
    report.family("gold")
    assert "gold           not tried  0/0" in report.as_text()
    assert "<td>0/0<td>not tried" in report.as_html()
    assert json.loads(report.as_json())["families"]["gold"]["score"] is None


@pytest.fixture
def shorter(monkeypatch):
    """An eighth of the longest texts: there are 30 of them, and each is judged three times."""
    monkeypatch.setattr("verifiers.audit.run._HUGE", 25_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(VERIFIERS) - {"reasoning_gym"}))
def test_ours_pass(name, shorter):
    report = assert_passes_audit(name, options=OPTIONS.get(name), min_recall=1.0, largest=32_000)
    assert report.passed
    assert all(family.score == 1.0 for family in report.families.values()), report.as_text()
    assert report.kind == ("style" if name in OF_STYLE else "program" if name == "code" else "answer")
    assert (STYLE in report.as_text().splitlines()[0]) == ("near_misses" not in report.families) == (name in OF_STYLE)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
def test_reasoning_gym_s_scorers_pass(shorter):
    problems = sample("reasoning_gym")[::4]  # one of each task
    report = assert_passes_audit("reasoning_gym", problems, largest=32_000, limit_s=600)
    assert report.families["gold"].score == 1.0  # what else its scorers refuse is theirs to decide


@pytest.mark.parametrize(
    ("sin", "families"),
    [
        ("substring", {"near_misses", "hedges", "injection"}),
        ("by_hash", {"determinism"}),
        ("raising", {"huge", "empty"}),
    ],
)
def test_sins_are_found(sin, families, shorter):
    report = audit(f"audited_for_tests:{sin}", [PROBLEM], workers=1, sizes=SIZES, timeout_s=5.0, maths=False)
    assert not report.passed
    assert families <= {finding.family for finding in report.findings if finding.severity == "high"}


@pytest.mark.parametrize(
    ("reason", "found"), [("TLE", []), ("refused", ["0.0 refused () first, then 0.0 compared ()"])]
)
def test_time_that_ran_out_once_is_measured_again(tmp_path, monkeypatch, reason, found, shorter):
    monkeypatch.setenv("STALLED_ONCE", str(tmp_path / "mark"))
    monkeypatch.setenv("STALLED_REASON", reason)
    report = audit("audited_for_tests:stalled_once", [PROBLEM], workers=1, sizes=(2_000,), maths=False)
    details = [finding.detail for finding in report.findings if finding.family == "determinism"]
    assert sorted({detail.split(" with")[0] for detail in details}) == found


def test_a_call_that_was_late_once_is_made_again(tmp_path, monkeypatch, shorter):
    monkeypatch.setenv("STALLED_ONCE", str(tmp_path / "mark"))
    report = audit(
        "audited_for_tests:asleep_once", [PROBLEM], workers=1, sizes=(2_000,), timeout_s=2.0, maths=False, kind="answer"
    )
    assert (tmp_path / "mark").exists()
    assert not [finding for finding in report.findings if "no verdict within" in finding.detail]


def test_a_hang_is_found(shorter):
    report = audit("audited_for_tests:hanging", [PROBLEM], workers=1, sizes=(2000, 8000), timeout_s=0.2, maths=False)
    assert any("no verdict within" in finding.detail for finding in report.findings if finding.family == "growth")


def test_an_audit_ends_whatever_hangs(shorter):
    began = time.monotonic()
    report = audit("audited_for_tests:sleepy", [PROBLEM], workers=1, sizes=SIZES, timeout_s=0.2, maths=False)
    assert time.monotonic() - began < 60
    assert not report.passed
    assert any("calls hung" in note for note in report.notes)
    assert {"huge", "injection"} <= {
        finding.family for finding in report.findings if "no verdict within" in finding.detail
    }


def test_a_start_that_never_ends_ends_the_audit(monkeypatch):
    monkeypatch.setattr("verifiers.audit.run._SHORTEST_START_S", 0.5)
    with pytest.raises(VerifierError, match=r"not ready in 0\.5 s.*does importing or preparing its verifiers hang\?"):
        audit("trouble_for_tests:NeverPrepared", [PROBLEM], workers=1, limit_s=1.5, maths=False)


def test_code_that_ends_the_program_is_no_success(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "1+1?", "answer": "2", "completion": "2"}\n')
    for argv, message in (
        (["audit", "ending_for_tests:score"], "it must not end the program when it is imported"),
        (["audit", "trouble_for_tests:EndsWhenMade"], "__init__() raised SystemExit: 0"),
    ):
        assert main(argv) == 2
        assert message in capsys.readouterr().err
    assert main(["score", str(rows), "--reward", "trouble_for_tests:ends", "--workers", "0"]) == 1  # a row is unscored
    assert "raised SystemExit" in capsys.readouterr().out


def test_what_there_was_no_time_for_is_a_finding():
    report = audit("audited_for_tests:slow", [PROBLEM], workers=1, sizes=SIZES, limit_s=2.0, maths=False)
    untried = [finding for finding in report.findings if finding.family == "time"]
    assert all("the audit's limit of 2 s ended" in finding.detail for finding in untried)
    assert any(finding.text for finding in untried)  # a loaded machine also leaves out the empty completions
    assert not report.passed


FORMULAS = [  # formula, what is paid for wrong answers
    ("math + 0.1*format + language + 0.2*length", {"language", "length"}),
    ("math * (0.5 + 0.5*language) + 0.1*format - overlong", set()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "ungated"), FORMULAS)
def test_formulas(formula, ungated, monkeypatch):
    monkeypatch.setattr("verifiers.audit.run._HUGE", 2_000)  # how each of them bears long texts is tried above
    options = {name: {"unit": "chars"} for name in ("overlong", "length") if name in formula}
    report = audit(formula, sample("math")[:2], options=options, workers=1, sizes=(2_000,))
    found = [finding for finding in report.findings if finding.family == "gating"]
    assert {
        name for name in ("language", "length") for f in found if f"'{name}' is paid for wrong" in f.detail
    } == ungated
    assert report.passed == (not ungated), report.as_text()
    assert report.families["gold"].score == 1.0
    for finding in found:
        score = Reward(formula, options=options)(Problem("?", finding.gold, language="en"), Completion(finding.text))
        assert score.verdicts["math"].score == 0.0
        assert score.reward == finding.score > 0


@pytest.mark.parametrize(
    ("target", "kind", "told", "passed"),
    [
        ("audited_for_tests:no_hedging", None, "style", True),
        ("audited_for_tests:polite", None, "style", True),
        ("trl:audited_for_tests:trl_manner", None, "style", True),
        ("audited_for_tests:by_hash", None, "style", False),  # what it says changes, and that is found
        # Whoever pays everything is not let off as a judge of style.
        ("audited_for_tests:always", None, "answer", False),
        ("audited_for_tests:always", "style", "style", True),
        ("audited_for_tests:substring", None, "answer", False),
    ],
)
def test_a_verifier_of_style_is_named_in_the_first_line(target, kind, told, passed, shorter):
    report = audit(target, sizes=(2_000, 8_000), kind=kind, workers=1, maths=False)
    first = report.as_text().splitlines()[0]
    assert (report.kind, report.passed, STYLE in first) == (told, passed, told == "style"), report.as_text(show=3)
    assert {"determinism", "growth", "huge"} <= set(report.families)
    assert ("near_misses" in report.families) == (told == "answer")
    if "always" in target and kind is None:
        assert "pass --kind style" in report.notes[0]


def test_options_of_a_formula_stand_under_names():
    with pytest.raises(ValueError, match="must be keyed by its verifiers' names"):
        audit("math + format", options={"policy": "lenient"})


def test_quadratic_time_is_told_from_linear(monkeypatch):
    monkeypatch.setattr("verifiers.audit.run._HUGE", 2_000)  # growth is measured on other texts
    sizes = (1000, 4000, 16000)
    assert exponent(sizes, [0.01 * (n / 1000) ** 2 for n in sizes]) == pytest.approx(2.0)
    assert exponent(sizes, [0.01 * n / 1000 for n in sizes]) == pytest.approx(1.0)
    assert exponent(sizes, [0.0001, 0.0002, 0.0004]) is None  # too quick to tell
    report = audit(
        "audited_for_tests:quadratic", [PROBLEM], workers=1, sizes=(2_000, 8_000, 16_000), timeout_s=1.0, maths=False
    )
    assert any("time grows like" in finding.detail for finding in report.findings)


def test_memory_is_that_of_the_worker_whatever_its_parent_holds():
    ballast = b"1" * (300 << 20)
    hungry = Reward("v", options={"v": {"use": "audited_for_tests:hungry"}})
    with Pool(timed(hungry), workers=1) as pool:
        *_, last = pool.map([(PROBLEM, Completion(text)) for text in ("x", "x" * 2000)])
    assert len(ballast) > 100 << 20
    assert 30 < json.loads(last.verdicts["v"].detail)["mib"] < 100


def test_command_writes_json_and_html(tmp_path, capsys):
    data = tmp_path / "problems.jsonl"
    data.write_text(json.dumps({"question": "6*7?", "answer": "42"}) + "\n")
    files = ["--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html")]
    command = [
        "audit",
        "audited_for_tests:substring",
        "--data",
        str(data),
        "--workers",
        "1",
        "--largest",
        "8000",
        "--no-maths",
    ]
    assert main([*command, *files]) == 1
    assert "FAILED" in capsys.readouterr().out
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["passed"] is False
    assert report["families"]["hedges"]["score"] < 1
    assert "<h2>Findings</h2>" in (tmp_path / "a.html").read_text()
    assert main(["audit", "nothing:at_all"]) == 2
    data.write_text(json.dumps({"question": "6*7?"}) + "\n")
    assert main(["audit", "math", "--data", str(data)]) == 2
    assert "has no gold" in capsys.readouterr().err


@pytest.mark.quick
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--options", "[1]"], "--options must be an object"),
        (["--options", "[" * 100_000], "--options is not JSON"),
        (["--json", "/none/a.json"], "there is no folder /none"),
        *([[option, "nan"], "it must be a number"] for option in ("--timeout", "--limit")),  # no deadline would pass
        *([[option, "0"], "it must be a whole number"] for option in ("--workers", "--largest")),
    ],
)
def test_options_that_no_audit_can_use(capsys, more, message):
    assert _exit_code(["audit", "format", *more]) == 2
    assert message in capsys.readouterr().err


def _exit_code(arguments):
    try:
        return main(arguments)
    except SystemExit as error:
        return error.code


@pytest.mark.quick
def test_a_deadline_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="timeout_s > 0"):
        audit("format", timeout_s=float("nan"))


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("verl:audited_for_tests:verl_style", "hashes"),
        ("trl:audited_for_tests:trl_style", "answer_tag"),
        ("trl:audited_for_tests:trl_double", "answer_tag"),
    ],
)
def test_other_libraries_signatures(target, form, shorter):
    report = audit(target, [PROBLEM], workers=1, sizes=(2000,), maths=False)
    assert report.forms == [form]
    assert report.families["gold"].score == 1.0


def test_a_failed_audit_is_an_assertion():
    with pytest.raises(AssertionError, match="a wrong answer is paid"):
        assert_passes_audit("audited_for_tests:substring", [PROBLEM], largest=8000)


@given(answers(PROBLEM, forms=["answer_tag", "box", "think_box", "hashes"]))
def test_right_answers_in_many_spellings(completion):
    assert resolve("math")(PROBLEM, completion).score == 1.0


@pytest.mark.parametrize("name", ["math", "format", "language", "repetition", "exact", "knights_knaves", "countdown"])
def test_hostile_text_never_raises(name):
    verify = resolve(name)
    gold = "Zoey is a knight" if name == "knights_knaves" else "1500"
    problem = Problem(prompt="What?", answer=gold, language="en", meta={"numbers": [1, 2]})

    @given(hostile_text())
    def check(text):
        assert isinstance(verify(problem, Completion(text)), Verdict)

    check()


def test_cases_are_reproducible():
    from verifiers.audit.cases import answer_cases

    first, second = (list(answer_cases(PROBLEM, ["7"], ["box"], random.Random(1))) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("gold", "others"),
    [
        ("C", ["(C)", "c", r"\text{(C)}"]),
        ("1/2", ["0.5", r"\frac{1}{2}", r"$\dfrac12$"]),
        ("1000", ["1,000", "1000.0"]),
        ("0.5", ["50%", r"50\%"]),
        ("5 cm", ["5", "x = 5"]),
        ("Yes", ["true", r"\text{True}"]),
        (r"\infty", ["infinity", r"+\infty"]),
    ],
)
def test_another_spelling_of_the_gold_is_no_near_miss(gold, others):
    found = near_misses(Problem(answer=gold), others[:2], random.Random(0))
    found += near_misses(Problem(answer=gold), others[2:], random.Random(0))
    assert "another problem's answer" not in dict(found)
    assert "another problem's answer" in dict(near_misses(Problem(answer=gold), ["1/3", "no"], random.Random(0)))
    assert dict(near_misses(Problem(answer="0.5"), [], random.Random(0)))["one more in the last place"] == "0.6"
