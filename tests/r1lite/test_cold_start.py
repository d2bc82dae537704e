"""`r1lite cold-start`, and sets out of freshly sampled completions."""

import importlib.metadata
import json
import time
from pathlib import Path

import pytest
from curation_for_tests import lines, problems, stored, write

from r1lite.bundled import bundled
from r1lite.cli import main
from r1lite.config import ColdStartConfig, load
from r1lite.curation import generate
from r1lite.curation.rows import Candidate, Provenance
from r1lite.stages import cold_start
from r1lite.stages.cold_start import few_shot
from r1lite.tasks import Problems
from verifiers import Completion, Problem
from verifiers.__main__ import main as verifiers_main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A few bundled problems, as files of one's own."""
    made = tmp_path_factory.mktemp("problems")
    for split, chosen in (("train", problems(90)[10:]), ("test", problems(10))):
        rows = [{"id": name, "question": asked, "answer": f"#### {answer}"} for name, asked, _, answer in chosen]
        write(made / f"{split}.jsonl", rows)
    return made


def sampled(folder, out):
    return [
        *("reject", "--model", "nano", "--source", str(folder), "--samples", "3", "--out", str(out), "--quiet"),
        *("--filters", "correct", "format", "--seed", "5", "--no-difficulty-window", "--threads", "1"),
    ]


def test_sampled_killed_and_resumed_is_the_same(folder, tmp_path, forks):
    whole, out = tmp_path / "whole" / "set", tmp_path / "killed" / "set"
    assert main(sampled(folder, whole)) == 0
    process = forks.start(sampled(folder, out))
    deadline = time.monotonic() + 600
    while not (out / "samples" / "part-000000.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert main(["reject", "--resume", "--out", str(out), "--quiet"]) == 0
    for name in ("train.jsonl", "rejected.jsonl", "manifest.json", "README.md", "problems.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["steps"][0]["entered"] == 240
    row = lines(whole / "train.jsonl")[0]
    assert row["prompt"] == row["question"] + "\n"
    known = row["provenance"]
    assert (known["model"], known["seed"], known["temperature"], known["max_tokens"]) == ("nano", 5, 1.0, 96)
    assert (known["engine"], known["engine_version"]) == ("transformers", importlib.metadata.version("transformers"))
    assert known["model_hash"].startswith("sha256:")
    assert verifiers_main(["replay", str(whole), "--workers", "0"]) == 0


def test_few_shot_prompts_are_not_in_the_rows(folder, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"model: nano\nsource: {folder}\nsamples: 8\nmax_problems: 24\nfilters: [correct]\nthreads: 1\n"
        "examples:\n- question: Tom has 3 pens and buys 4. How many pens has he?\n"
        "  completion: <think>3 + 4 = 7</think><answer>7</answer>\n"
    )
    config = load(ColdStartConfig, [str(recipe), "--template", "short"])
    before, separator = few_shot(config)
    assert before == (
        "Tom has 3 pens and buys 4. How many pens has he?\n<think>3 + 4 = 7</think><answer>7</answer>\n\n"
    )
    assert separator == "\n\n"
    code = main(["cold-start", str(recipe), "--out", str(tmp_path / "set"), "--quiet"])
    rows = [row for path in sorted((tmp_path / "set" / "samples").glob("part-*")) for row in lines(path)]
    assert code in (0, 1)  # nano has never seen two problems in a row: perhaps nothing is right
    assert len(rows) == 24 * 8
    assert all(row["prompt"] == row["question"] + "\n" and "\n\n" not in row["completion"] for row in rows)
    asked = json.loads((tmp_path / "set" / "samples" / "about.json").read_text())
    assert asked["stop_text"] == "\n\n"
    assert rows[0]["num_prompt_tokens"] > 30 + len(rows[0]["prompt"].split())


def test_rows_hold_the_prompt_that_the_model_saw(tiny_model, tiny_tokenizer):
    """Also for a task with a template of its own."""
    config = ColdStartConfig(task="mbpp", template="short", decontaminate=["none"], max_completion_tokens=8)
    problem = Problem("Add one.")
    material = generate._material("")(config, Problems([problem], [problem], ""), None, tiny_model, tiny_tokenizer)
    _, asked, rendered = material.value
    assert "The answer is the whole program" in asked[0].text
    (row,) = generate.rows(asked, rendered, [[Completion("a")]], None)
    assert row["prompt"] == asked[0].text
    # Examples have the form of the problem.
    shown = config.model_copy(update={"examples": [{"question": problem.prompt, "completion": "b"}]})
    assert few_shot(shown)[0] == f"{asked[0].text}b\n\n"


def test_rewritten_by_rules(tmp_path):
    rows = [
        {**row, "completion": f"**First** we work.\n\n\n{work}\n#### {row['answer'] if n % 3 else 0}"}
        for n, (row, (_, _, work, _)) in enumerate(zip(stored(30, 1), problems(30), strict=True))
    ]
    source = write(tmp_path / "rows.jsonl", [{**row, "finish_reason": "stop"} for row in rows])
    argv = ["cold-start", "--rollouts", str(source), "--quiet", "--workers", "1"]
    assert main([*argv, "--out", str(tmp_path / "plain")]) == 1  # no tags: nothing has the format
    assert main([*argv, "--out", str(tmp_path / "set"), "--rewrite", "rules"]) == 0
    made = lines(tmp_path / "set" / "train.jsonl")
    assert 15 < len(made) <= 20
    for row in made:
        assert row["completion"].startswith("<think>First we work.\n\n")
        assert row["original"].startswith("**First**")
        assert row["provenance"]["rewritten"] == "rules 2"
        assert "<<" not in row["completion"]
        assert "####" not in row["completion"]
    right = {row["problem_id"]: row["num_correct"] for row in lines(tmp_path / "set" / "problems.jsonl")}
    assert sum(right.values()) == 20  # of what was sampled
    assert verifiers_main(["replay", str(tmp_path / "set"), "--workers", "0"]) == 0


def test_a_model_that_the_machine_chooses_to_rewrite_is_named(monkeypatch):
    monkeypatch.setattr(cold_start, "run_on_rollouts", lambda config, rewriting: {"name": rewriting.name})
    asked = {"rollouts": "rows.jsonl", "rewrite": "model", "device": "cpu"}
    assert cold_start.run(ColdStartConfig(task="countdown_small", **asked)) == {"name": "model nano-countdown"}
    assert cold_start.run(ColdStartConfig(task="countdown_small", rewrite_model="own", **asked))["name"] == "model own"


@pytest.mark.quick
def test_a_question_about_a_name_of_the_rewriting_prompt_stays_whole():
    item = Candidate(Problem("What is {completion}?"), Completion("{question}"), "", 0, None, Provenance())
    filled = cold_start._filled("Q: {question} A: {completion} {other}", item)
    assert filled == "Q: What is {completion}? A: {question} {other}"


def test_rewritten_by_a_model(tmp_path, monkeypatch):
    """The path is whole; what nano makes of such a prompt is wrong, and is dropped for that."""
    source = write(tmp_path / "rows.jsonl", [{**row, "finish_reason": "stop"} for row in stored(4, 2)])
    argv = ["cold-start", "--rollouts", str(source), "--quiet", "--workers", "1", "--rewrite", "model"]
    argv += [
        "--rewrite-model",
        "nano",
        "--rewrite-prompt",
        "{question}\n{completion}\n",
        "--max-completion-tokens",
        "48",
    ]
    code = main([*argv, "--filters", "correct", "--out", str(tmp_path / "set")])
    rows = lines(tmp_path / "set" / "rewritten" / "part-000000.jsonl")
    assert code in (0, 1)
    assert len(rows) == 8
    rewritten = [row for row in rows if row["original"] is not None]
    assert rewritten
    assert all(row["original_correct"] and row["provenance"]["rewritten"] == "model nano" for row in rewritten)
    assert all(row["original"] is None for row in rows if not row["original_correct"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("examples: [{question: a}]", "number 1 needs question and completion"),
        ("examples: [{question: a, completion: b}]\nrollouts: x.jsonl", "nothing is sampled"),
        ("examples: [{question: a, completion: b}]\ntemplate: chat", "for base models"),
        ("rewrite_prompt: nothing", "must contain {question}"),
        ("filters: [langage]", "did you mean 'language'"),
        ("exampels: []", "did you mean 'examples'"),
    ],
)
def test_bad_recipes(tmp_path, capsys, text, message):
    (tmp_path / "bad.yaml").write_text(text)
    assert main(["cold-start", str(tmp_path / "bad.yaml"), "--model", "nano", "--out", str(tmp_path / "set")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("name", ["cold-start-nano.yaml", "cold-start-qwen2.5-0.5b.yaml"])
def test_recipes_are_sound(name):
    from r1lite.curation.filters import chain
    from verifiers import Reward

    config = load(ColdStartConfig, [str(bundled(f"recipes/{name}"))])
    assert chain(config.filters, Reward("math"), {})
    judge = Reward("math * format")
    from verifiers import Completion, Problem

    for example in config.examples:
        answer = example["completion"].rpartition("<answer>")[2].partition("<")[0]
        assert judge(Problem(answer=answer), Completion(example["completion"])).reward == 1.0


def test_gsm8k_goes_through(shared_data, tmp_path):
    """The real files, whatever nano makes of them: sampled, verified, kept away from the real test set."""
    argv = ["reject", "--model", "nano", "--source", str(shared_data / "gsm8k"), "--samples", "4"]
    argv += ["--max-problems", "16", "--no-difficulty-window", "--filters", "correct", "--max-prompt-tokens", "400"]
    code = main([*argv, "--out", str(tmp_path / "set"), "--quiet", "--threads", "1"])
    assert code in (0, 1)
    rows = [row for path in sorted((tmp_path / "set" / "samples").glob("part-*")) for row in lines(path)]
    assert len(rows) == 16 * 4
    if code == 0:
        manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
        assert manifest["evaluation_sets"] == {"gsm8k test": 1319}


def test_gsm8k_gold_solutions_go_through(shared_data, tmp_path):
    """Its worked solutions as completions: all are right, and hardly any is in the test set."""
    rows = [
        {"question": row["question"], "answer": row["answer"], "completion": row["answer"]}
        for row in lines(shared_data / "gsm8k" / "train.jsonl")[:1500]
    ]
    source = write(tmp_path / "rows.jsonl", rows)
    argv = ["cold-start", "--rollouts", str(source), "--rewrite", "rules", "--max-rows", "1000", "--quiet"]
    argv += ["--decontaminate", str(shared_data / "gsm8k" / "test.jsonl"), "--workers", "1"]
    assert main([*argv, "--out", str(tmp_path / "set")]) == 0
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    steps = {step["step"]: step for step in manifest["steps"]}
    assert steps["correct"]["left"] == 1500
    assert steps["decontaminate"]["entered"] - steps["decontaminate"]["left"] <= 3
    assert manifest["data"]["rows"] == 1000
