"""Answers that are taken back, denied or offered beside another one, in 25 to 31 languages."""

from pathlib import Path

import pytest

from verifiers import Completion, Problem, resolve

LINES = (Path(__file__).resolve().parents[1] / "taken_back.txt").read_text(encoding="utf-8").splitlines()
FORMS = {
    "retraction": ["\\boxed{{90}}. {0}"],
    "alternative": ["\\boxed{{90 \\text{{ {0} }} 89}}", "\\boxed{{90}} {0} 89.", "<answer>90 {0} 89</answer>",
                    "#### 90 {0} 89", "**90** {0} 89"],
    "denial": ["{0}"],
}  # fmt: skip
WRITTEN = {"retraction": ["89"], "alternative": ["89"], "denial": ["90", "\\boxed{90}", "$90$", "**90**"]}


def texts(line):
    kind, _, phrase = line.split(" ", 2)
    return [form.format(phrase.format(written)) for form in FORMS[kind] for written in WRITTEN[kind]]


@pytest.mark.parametrize("line", LINES)
def test_is_not_paid(line):
    problem = Problem(prompt="?", answer="90")
    assert [text for text in texts(line) if resolve("math")(problem, Completion(text)).score] == []


def test_all_kinds_are_there():
    assert {line.split()[0] for line in LINES} == set(FORMS)
    assert resolve("math")(Problem(prompt="?", answer="90"), Completion("\\boxed{90}.")).score == 1.0
