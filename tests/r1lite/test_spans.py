"""A verdict says where in the completion's text the answer stands that was judged."""

import json

import pytest

from r1lite.run.run_dir import RunDir
from r1lite.types import Group, Rollout
from verifiers import Completion, Problem, Reward, resolve
from verifiers.__main__ import main
from verifiers.rows import rows
from verifiers.segments import answering, answering_span

OPTIONS = "Which?\nA) red\nB) green"
ASIDE = "<think>It is 3 or 42 or B.</think> So:\n"

# verifier, options, problem, completion, what stands at the span (None = no answer was found)
CASES = [
    ("math", {}, Problem(answer="42"), f"{ASIDE}<answer> 42 </answer>", "42"),
    ("math", {}, Problem(answer="42"), f"{ASIDE}\\boxed{{43}}", "43"),
    ("math", {}, Problem(answer="1/2"), f"{ASIDE}the answer is $\\frac{{1}}{{2}}$.", "$\\frac{1}{2}$"),
    ("math", {}, Problem(answer="42"), "#### 42", "42"),
    ("math", {}, Problem(answer="42"), "<think>42", None),
    ("exact", {}, Problem(answer="red"), f"{ASIDE}<answer>\nred </answer>", "red"),
    ("exact", {}, Problem(answer="red"), "<think>red</think>  blue ", "blue"),
    ("exact", {"where": "text"}, Problem(answer="red"), "  red\n", "red"),
    ("exact", {}, Problem(answer="red"), "<answer>red</answer><answer>red</answer>", None),
    ("regex", {"pattern": r"\d+"}, Problem(), f"{ASIDE}<answer>7</answer>", "7"),
    ("json_schema", {"schema": {"type": "object"}}, Problem(), "<think>{}</think>{} ", "{}"),
    ("json_schema", {"schema": {"type": "object"}}, Problem(), "<answer>[</answer>", "["),
    ("choice", {}, Problem(OPTIONS, "B"), f"{ASIDE}<answer> B) green</answer>", "B) green"),
    ("choice", {}, Problem(OPTIONS, "B"), f"{ASIDE}The option that fits is: B\nMany {'words ' * 40}", "B"),
    ("countdown", {}, Problem(answer="6", meta={"numbers": [2, 3]}), f"{ASIDE}<answer>2 * 3</answer>", "2 * 3"),
    (
        "knights_knaves",
        {},
        Problem(answer="Zoey is a knight."),
        "<think>hm</think>Zoey is a knave.",
        "Zoey is a knave.",
    ),
]


@pytest.mark.parametrize(("name", "options", "problem", "text", "found"), CASES)
def test_the_span_is_the_answer(name, options, problem, text, found):
    verdict = resolve(name, **options)(problem, Completion(text))
    if found is None:
        assert verdict.span is None
        assert verdict.score == 0.0
    else:
        assert text[slice(*verdict.span)].strip() == found
        assert (verdict.answer or found) == found or name == "math"


@pytest.mark.parametrize("text", ["", " a ", "<think>x</think>", "<think>x</think> <answer> y </answer>z", "<think>x"])
def test_answering_is_the_text_at_its_span(text):
    span = answering_span(text)
    assert answering(text) == (None if span is None else text[slice(*span)])


def test_rollouts_keep_spans(tmp_path):
    text = "<think>3 * 4</think><answer>12</answer>"
    problem, reward = Problem("3 * 4?", "12", id="p"), Reward("math + 0.1*format")
    completion = Completion(text, (1, 2), (-0.1, -0.2))
    rollout = Rollout(completion, reward(problem, completion), 0.0, True, True)
    run_dir = RunDir(tmp_path / "run")
    run_dir.write_rollouts(1, [Group(problem, "3 * 4?", (5,), (rollout,))])
    run_dir.close()
    (file,) = (tmp_path / "run" / "rollouts").iterdir()
    ((_, row),) = rows(file)
    spans = {verdict["verifier"]: verdict["span"] for verdict in row["verdicts"]}
    assert text[slice(*spans["math"])] == "12"
    assert spans["format"] is None


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_score_keeps_spans(tmp_path, suffix):
    file, out = tmp_path / "rows.jsonl", tmp_path / f"out{suffix}"
    file.write_text(json.dumps({"prompt": "3 * 4?", "answer": "12", "completion": "it is \\boxed{12}"}) + "\n")
    assert main(["score", str(file), "--reward", "math", "--workers", "0", "--out", str(out)]) == 0
    from verifiers.commands import results

    (row,) = results.read(out)
    assert row["verdicts"]["math"]["span"] == [13, 15]
