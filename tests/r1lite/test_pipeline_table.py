"""The table of a pipeline: what its evaluations say, what its stages cost, and what is observed in it."""

import json
import os

import pytest
from test_pipeline import built, recipe

from r1lite.config import validated
from r1lite.config.pipeline import PipelineConfig
from r1lite.pipeline.children import Meter
from r1lite.pipeline.graph import build
from r1lite.pipeline.steps import StepFiles, finish
from r1lite.pipeline.table import compare, markdown, parameters


def evaluated(folder, name, right, thinking="we add it up", sampled=4):
    """An evaluation as r1lite eval leaves it, of four problems with two samples each."""
    place = StepFiles(folder, name)
    place.run.mkdir(parents=True)
    rows = []
    for number in range(4):
        answer = {
            "text": f"<think>{thinking}</think><answer>4</answer>",
            "correct": number < right,
            "well_formed": True,
        }
        rows.append(
            {
                **{
                    "task": "gsm8k",
                    "problem_id": str(number),
                    "problem": f"p{number}",
                    "question": "2+2?",
                    "gold": "4",
                },
                **{"greedy": answer, "samples": [answer, {**answer, "well_formed": False}]},
            }
        )
    (place.run / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    measured = {"pass_at_k": 0.5, "pass_at_k_interval": [0.1, 0.9], "k": 2, "mean_tokens": 9.0, "problems": 4}
    summary = {"model": "nano", "tasks": {"gsm8k": {**measured, "sampled_problems": sampled}}}
    (place.run / "summary.json").write_text(json.dumps(summary))


def test_the_table_and_what_is_seen_in_it(tmp_path):
    wanted = {"higher": True, "kept": True, "lower": False}
    observations = {name: {"row": "Zero", "than": "base", "measure": "accuracy", "wanted": name} for name in wanted} | {
        "form": {"row": "Zero", "than": "base", "measure": "format", "wanted": "higher"}
    }
    config = validated(PipelineConfig, recipe(compare={"base": "base", "Zero": "zero"}, observations=observations))
    evaluated(tmp_path, "eval-base", 0)
    evaluated(tmp_path, "eval-Zero", 4, sampled=3)
    (tmp_path / "zero.json").write_text(
        json.dumps({"stage": "grpo", "outcome": "finished", "cpu_s": 12.0, "wall_s": 14.0, "made": {}})
    )
    found = compare(config, build(config), tmp_path)
    assert found["rows"]["base"]["accuracy"][0] == 0.0
    assert found["rows"]["Zero"]["accuracy"][0] == 1.0
    assert found["rows"]["Zero"]["format"][0] == 0.5
    assert found["rows"]["Zero"]["cpu_s_in_all"] == 12.0
    assert found["rows"]["base"]["cpu_s_in_all"] is None
    assert {name: found["observations"][name]["seen"] for name in wanted} == wanted
    assert found["observations"]["form"]["seen"] is False
    text = markdown(found)
    assert "| Zero | 100.0 (" in text
    assert "over problems: 4 answered greedily, 3 to 4 sampled. " in text
    assert "| language (T=1) |" in text
    assert found["rows"]["Zero"]["language"][0] == 1.0
    assert "**form**: **not seen**: format of Zero 50.0%, of base 50.0%" in text


@pytest.mark.parametrize("thinking", ["4 + 6 = 10", "I guess 10"])
def test_a_column_is_shown_only_where_it_was_measured(thinking, tmp_path):
    """Formulas have no language, and two words are no evidence of one; nothing was sampled, so there is no pass@k."""
    of_language = {"row": "Zero", "than": "base", "measure": "language", "wanted": "higher"}
    content = recipe(compare={"base": "base", "Zero": "zero"}, observations={"words": of_language})
    config = validated(PipelineConfig, content)
    for name in ("eval-base", "eval-Zero"):
        evaluated(tmp_path, name, 4, thinking)
        summary = tmp_path / name / "summary.json"
        found = json.loads(summary.read_text())
        found["tasks"]["gsm8k"] |= {"pass_at_k": None, "pass_at_k_interval": None}
        summary.write_text(json.dumps(found))
    found = compare(config, build(config), tmp_path)
    text = markdown(found)
    assert "| | accuracy (T=1) | greedy | format (T=1) | tokens | parameters |" in text
    assert "anguage" not in text.partition("## Observations")[0]
    assert "unknown: language was not measured" in text


def test_an_outcome_says_on_how_many_problems_it_was_measured(tmp_path):
    """A stage's own evaluation often has far fewer than the table's."""
    at = [{"pass_at_1": rate, "problems": 50} for rate in (0.26, 0.94)]
    trained = {"eval_before": at[0], "eval_after": at[1], "steps": 40, "checkpoint": str(tmp_path)}
    steps = built(recipe()).steps
    for name, summary, said in (
        ("sft", {**trained, "eval_before": None, "eval_after": None}, "40 steps, not evaluated"),
        ("zero", trained, "greedy 26.0% -> 94.0% of 50 problems, 40 steps"),
        ("eval-Zero", {"tasks": {"gsm8k": {"pass_at_1": 0.9, "problems": 1000}}}, "gsm8k 90.0% of 1,000 problems"),
    ):
        files = StepFiles(tmp_path, name)
        files.run.mkdir()
        (files.run / "summary.json").write_text(json.dumps(summary))
        assert finish(steps[name], files, cpu_s=1.0, wall_s=1.0)["outcome"] == said


def test_parameters_are_counted_without_loading(tiny_path):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_path)
    assert parameters(str(tiny_path)) == sum(p.numel() for p in model.parameters())
    assert parameters("nano") == 1_116_288
    assert parameters("/nowhere") is None


def test_a_stage_costs_what_all_its_parts_cost(tmp_path):
    path = tmp_path / "zero.usage"
    Meter(path).write()
    assert json.loads(path.read_text())["cpu_s"] > 0
    path.write_text(json.dumps({"cpu_s": 1e6, "wall_s": 2e6}))  # of a part that was killed
    meter = Meter(path)
    for _ in range(2):  # that of this process counts once
        meter.write()
        found = json.loads(path.read_text())
        assert 1e6 < found["cpu_s"] <= 1e6 + sum(os.times()[:4]) + 1
        assert 2e6 < found["wall_s"] < 2e6 + 60
