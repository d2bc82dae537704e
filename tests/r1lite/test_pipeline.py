"""Pipelines: recipes that can't be carried out are refused whole, and a kill anywhere changes nothing."""

import contextlib
import json
import re
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest
import yaml

from r1lite.bundled import bundled
from r1lite.cli import main
from r1lite.config import read_recipe, validated
from r1lite.config.pipeline import PipelineConfig
from r1lite.errors import UserError
from r1lite.pipeline.graph import Step, build
from r1lite.pipeline.steps import StepFiles, prepare
from r1lite.report.build import Report

ROOT = Path(__file__).resolve().parents[2]


def recipe(**changes):
    """A miniature of the whole: RL, rejection sampling, SFT, a student of a shape of its own."""
    rl = {"steps": 3, "lr": 1e-3, "prompts_per_step": 4, "group_size": 4, "save_every": 1}
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
    return {
        "common": {
            **{"task": "gsm8k", "source": "bundled", "template": "short", "max_completion_tokens": 40, "threads": 1},
            **{"eval_problems": 2, "eval_sample_problems": 1, "eval_samples": 1},
        },
        "models": {"base": "nano"},
        "stages": {
            "zero": {"stage": "grpo", "inputs": {"model": "base"}, "settings": rl},
            "set": {
                "stage": "reject",
                "inputs": {"rollouts": "zero"},
                "settings": {"workers": 1, "difficulty_window": False, "decontaminate": []},
            },
            "sft": {
                "stage": "sft",
                "inputs": {"model": "base", "data": "set"},
                "settings": {"steps": 3, "rows_per_step": 4, "lr": 5e-4, "save_every": 1},
            },
            "student": {
                "stage": "distill",
                "inputs": {"teacher": "zero", "data": "set"},
                "settings": {"student_shape": {**shape, "num_key_value_heads": 1}, "steps": 2, "rows_per_step": 4},
            },
        },
        "evaluate": {"eval_problems": 6, "eval_sample_problems": 4, "eval_samples": 2},
        "compare": {"base": "base", "Zero": "zero"},
        "observations": {"RL lifts": OBSERVED},
        **changes,
    }


def write(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "recipe.yaml"


OBSERVED = {"row": "Zero", "than": "base", "measure": "accuracy", "wanted": "higher"}


def built(content):
    return build(validated(PipelineConfig, content))


# --- what is refused


def with_stage(name, **changes):
    content = recipe()
    content["stages"][name] = {**content["stages"].get(name, {}), **changes}
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (recipe(stages={}), "the recipe has none"),
        (with_stage("zero", inputs={"model": "sft"}), "not made by an earlier stage (it comes later); available: base"),
        (
            with_stage("sft", inputs={"model": "base", "data": "sett"}),
            "'sett' is not made by an earlier stage; available: set",
        ),
        (with_stage("sft", inputs={"model": "set", "data": "set"}), "'set', a reject, which makes data"),
        (with_stage("sft", inputs={"model": "base"}), "sft needs data"),
        (with_stage("zero", inputs={}), "grpo needs a model"),
        (with_stage("dpo", stage="dpo", inputs={"model": "base"}), "dpo needs data"),
        (with_stage("dpo", stage="dpo", inputs={"model": "base", "data": "set"}), "its data 'set' holds no pairs"),
        (with_stage("zero", inputs={"model": "base", "data": "x"}), "grpo takes no input 'data'; it takes model"),
        (with_stage("zero", stage="grop"), "unknown stage 'grop'; did you mean 'grpo'"),
        (with_stage("zero", stage="eval"), "unknown stage 'eval'"),
        (with_stage("zero", setings={}), "unknown key 'setings'"),
        (with_stage("zero", settings={"stepps": 3}), "grpo has no setting 'stepps'; did you mean 'steps'"),
        (with_stage("zero", settings={"steps": 0}), "steps must be >= 1"),
        (with_stage("zero", settings={"out": "x"}), "'out' can't be set"),
        (with_stage("student", settings={"beta": 2}), "stage 'student': beta must be <= 1"),
        (with_stage("a b", stage="grpo"), "a name consists of letters"),
        (recipe(common={"treads": 1}), "common: no stage has a setting 'treads'; did you mean 'threads'"),
        (recipe(common={"model": "nano"}), "'model' can't be the same for every stage"),
        (recipe(compare={"x": "nothing"}), "compare 'x': its model 'nothing' is not made by an earlier stage"),
        (recipe(compare={"x": {"modle": "zero"}}), "unknown key 'modle'"),
        (recipe(evaluate={"task": "gsm8k,svamp"}), "compare 'Zero': task gsm8k,svamp: a row of the table has one task"),
        (
            recipe(observations={"o": {"row": "x", "than": "base", "measure": "luck", "wanted": "more"}}),
            "measure is one",
        ),
        (recipe(observations={"o": {"row": "x"}}), "needs row, than, measure and wanted"),
    ],
)
def test_recipes_that_are_refused(content, message, tmp_path, capsys):
    argv = ["r1", str(write(tmp_path, content)), "--out", str(tmp_path / "out")]
    assert main(argv) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("base", "teacher", "message"),
    [
        ({}, "zero", "'fresh' trains its own"),
        ({"inputs": {"tokenizer": "base"}}, "zero", None),
        ({"settings": {"tokenizer": "nano"}}, "base", None),  # a folder's is known when it is read
        ({}, "tuned", None),
    ],
)
def test_on_policy_distillation_needs_one_tokenizer(base, teacher, message):
    content = recipe()
    stages = content["stages"]
    stages["fresh"] = {"stage": "pretrain", **base}
    stages["tuned"] = {"stage": "sft", "inputs": {"model": "fresh", "data": "set"}}
    stages["onp"] = {
        "stage": "distill",
        "inputs": {"model": "fresh", "teacher": teacher},
        "settings": {"method": "on-policy", "on_policy_share": 1.0, "steps": 1},
    }
    if message is None:
        built(content)
    else:
        with pytest.raises(UserError, match=message):
            built(content)


def test_all_mistakes_are_told_at_once():
    content = with_stage("zero", settings={"steps": 0, "lr": -1})
    content["stages"]["sft"]["inputs"]["model"] = "nothing"
    with pytest.raises(UserError) as caught:
        built(content)
    assert len(str(caught.value).splitlines()) == 3


def test_the_graph_knows_what_builds_on_what():
    graph = built(recipe())
    assert graph.ancestors("sft") == ["zero", "set", "sft"]
    assert graph.rows["Zero"] == "eval-Zero"
    assert graph.steps["eval-Zero"].needs == {"zero"}


@pytest.mark.parametrize(("name", "rows"), [("r1_nano", 13), ("r1_students", 8)])
def test_the_shipped_recipes_are_valid(name, rows):
    config = validated(PipelineConfig, read_recipe(bundled(f"recipes/{name}.yaml"), PipelineConfig))
    assert len(build(config).rows) == rows


def test_the_documented_recipe_is_valid():
    text = (ROOT / "r1lite" / "stages" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- checked by tests/r1lite/test_pipeline.py -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert list(built(yaml.safe_load(block)).rows) == ["base", "Zero", "SFT on rejection-sampled"]


def test_check_shows_the_stages_and_runs_nothing(tmp_path, capsys):
    assert main(["r1", str(write(tmp_path, recipe())), "--check", "--out", str(tmp_path / "out")]) == 0
    assert "student" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


# --- whole pipelines


def of_few(problems, content):
    """The recipe with these problems."""
    return {**content, "common": {**content["common"], "source": str(problems)}}


def outcome(out):
    """All that must be the same in two runs: what was learnt, kept and answered."""
    stages = out / "stages"
    found = {path.relative_to(stages): path.read_bytes() for path in sorted(stages.rglob("*.safetensors"))}
    for name in ("train.jsonl", "problems.jsonl"):
        found |= {path.relative_to(stages): path.read_bytes() for path in sorted(stages.rglob(name))}
    table = json.loads((out / "comparison.json").read_text())
    for row in table["rows"].values():
        del row["cpu_s"], row["cpu_s_in_all"]
    return found, table


def reported(out):
    """The page of a pipeline that was run: its graph, its table, and each stage's own page."""
    head = Report([out]).head
    nodes = {node["name"]: node for node in head["pipeline"]["nodes"]}
    assert {name: node["from"] for name, node in nodes.items() if not name.startswith("eval-")} == {
        "zero": ["nano"],
        "set": ["zero"],
        "sft": ["nano", "set"],
        "student": ["zero", "set"],
    }
    assert {node["state"] for node in nodes.values()} == {"finished"}
    runs = {run["name"]: run for run in head["runs"]}
    assert {"zero", "set", "sft", "student"} <= set(runs)
    assert runs["zero"]["curves"]["steps"] == [1, 2, 3]
    assert [chunk["label"] for chunk in runs["zero"]["chunks"] if chunk["label"].startswith("step")] == [
        "step 1",
        "step 2",
        "step 3",
    ]


def kill(process):
    """At once, without notice. Returns when its stages have noticed: they end by themselves."""
    stages = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 120
    for stage in stages:
        with contextlib.suppress(psutil.NoSuchProcess):
            while stage.is_running() and stage.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, stage
                time.sleep(0.01)


def test_a_pipeline_killed_over_and_over_ends_as_one_that_never_was(tmp_path, capsys, forks, few_problems):
    argv = ["r1", str(write(tmp_path, of_few(few_problems, recipe()))), "--out"]
    whole = forks.start([*argv, str(tmp_path / "whole"), "--jobs", "2"])
    out = tmp_path / "killed"
    for awaited in ("stages/zero/metrics.jsonl", "stages/sft/config.yaml"):
        process = forks.start([*argv, str(out)])
        deadline = time.monotonic() + 120
        while not (out / awaited).exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        kill(process)
    spent = {path.stem: json.loads(path.read_text())["cpu_s"] for path in (out / "stages").glob("*.usage")}
    assert spent["zero"] > 0
    out = out.rename(tmp_path / "moved")
    process = forks.start([*argv, str(out)])
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, said + errors
    assert "begin     zero" not in said  # it was finished before the second kill, or is gone on with
    assert "RL lifts" in said
    assert whole.communicate(timeout=300)[0]
    assert whole.returncode == 0
    assert outcome(out) == outcome(tmp_path / "whole")
    reported(out)
    for name, cpu_s in spent.items():  # what was interrupted counts too
        record = json.loads((out / "stages" / f"{name}.json").read_text())
        assert record["cpu_s"] >= round(cpu_s, 1), name
    # Finished: nothing is run again, and other settings are noticed.
    stamps = {path: path.stat().st_mtime_ns for path in (out / "stages").glob("*.json")}
    assert main([*argv, str(out), "--quiet"]) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "stages").glob("*.json")} == stamps
    other = write(tmp_path / "other", of_few(few_problems, with_stage("sft", settings={"steps": 2})))
    assert main(["r1", str(other), "--out", str(out)]) == 2
    shown = capsys.readouterr().err
    assert "stage 'sft' was begun with other settings" in shown
    assert "steps: 3 became 2" in shown
    # What a finished stage made is noticed if it changes or goes.
    for change, message in CHANGES:
        copy = tmp_path / "copy"
        shutil.copytree(out, copy)
        change(copy / "stages")
        assert main([*argv, str(copy), "--quiet"]) == 2
        assert message in capsys.readouterr().err
        shutil.rmtree(copy)


def test_only_the_place_of_an_input_may_change(tmp_path):
    step, files = Step("sft", "sft", {"data": "set"}), StepFiles(tmp_path, "sft")
    prepare(step, {"data": "/a/stages/set", "source": "/a/stages/set"}, files)
    assert prepare(step, {"data": "/b/stages/set", "source": "/a/stages/set"}, files) == {"data": "/b/stages/set"}
    for changed in ({"data": "/b/stages/set2"}, {"data": "/b/set"}, {"source": "/b/stages/set"}):
        with pytest.raises(UserError, match="was begun with other settings"):
            prepare(step, {"data": "/b/stages/set", "source": "/a/stages/set", **changed}, files)


def _write_more(path):
    with path.open("a") as file:
        file.write("\n")


def _remove(*paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


CHANGES = (
    (lambda stages: _write_more(stages / "set" / "train.jsonl"), "the data that stage 'set' made in "),
    (lambda stages: _write_more(next(stages.glob("zero/rollouts/*"))), "the rollouts that stage 'zero' made in "),
    (lambda stages: _remove(stages / "set"), "stage 'set' is finished, but "),
    (
        lambda stages: _remove(stages / "zero", stages / "zero.json"),
        "is finished, but 'zero', which it builds on, is not: remove ",
    ),
)


@pytest.mark.slow
def test_a_base_killed_in_the_middle_is_gone_on_with(tmp_path, forks):
    """Not from step 0; and what was finished before is named."""
    sizes = {"vocab_size": 300, "tokenizer_problems": 200, "hidden_size": 16, "intermediate_size": 16, "layers": 1}
    steps = {"chain_steps": 4000, "habit_steps": 1, "batch_size": 4, "heads": 1, "kv_heads": 1, "context": 128}
    base = {"stage": "pretrain", "settings": {**sizes, **steps, "text": "add_carry", "threads": 1}}
    short = {**base, "settings": {**base["settings"], "chain_steps": 1}}
    content = recipe(stages={"short": short, "base": base}, compare={}, observations={}, models={})
    out, argv = tmp_path / "out", ["r1", str(write(tmp_path, content)), "--out", str(tmp_path / "out")]
    process = forks.start(argv)
    deadline = time.monotonic() + 200
    while not (out / "stages" / ".base.begun" / "state.pt").exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    kill(process)
    process, deadline = forks.start(argv), time.monotonic() + 200
    log = out / "stages" / "base.log"
    while "continuing after step" not in log.read_text() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=100)
    assert int(re.search(r"continuing after step (\d+) of 4001", log.read_text())[1]) >= 25
    assert "finished  short (1 of 2 stages done)" in said
    assert "resume    base: r1lite pretrain" in said
    assert "stopped   base" in said


def test_pairs_of_a_set_are_learnt_from(tmp_path, forks, few_problems):
    rows = [
        {"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n), "sample": sample, "seed": str(sample),
         "finish_reason": "stop", "completion": f"<think>{n} + {n} = {2 * n}</think><answer>{2 * n + sample}</answer>"}
        for n in range(3, 9) for sample in (0, 1)
    ]  # fmt: skip
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rollouts = {"rollouts": str(tmp_path / "rollouts.jsonl"), "pairs": 1, "workers": 1, "decontaminate": []}
    stages = {
        "set": {"stage": "reject", "settings": rollouts},
        "tuned": {"stage": "dpo", "inputs": {"model": "base", "data": "set"}, "settings": {"steps": 2}},
    }
    content = of_few(few_problems, recipe(stages=stages, compare={"DPO": "tuned"}, observations={}))
    process = forks.start(["r1", str(write(tmp_path, content)), "--out", str(tmp_path / "out")])
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, said + errors
    made = json.loads((tmp_path / "out" / "stages" / "tuned.json").read_text())["made"]["model"]
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["rows"]["DPO"]["model"] == "tuned"
    assert (tmp_path / "out" / "stages" / made / "model.safetensors").exists()


def test_a_stage_that_fails_says_why_and_leaves_the_others(tmp_path, forks, few_problems):
    content = of_few(few_problems, recipe(compare={}, observations={}))
    content["stages"]["zero"]["settings"]["steps"] = 1
    # No pass rate of a group of 4 lies in this window, so the set has no row.
    window = {"difficulty_window": True, "pass_rate_above": 0.97, "pass_rate_below": 0.98}
    content["stages"]["set"]["settings"] |= window
    code, _, shown = forks.run(["r1", write(tmp_path, content), "--out", tmp_path / "out"])
    assert code == 1
    assert "stage 'set' failed (exit 1)" in shown
    assert "no rows are left" in shown
    stages = tmp_path / "out" / "stages"
    assert [path.name for path in stages.glob("*.json")] == ["zero.json"]
