"""`r1lite eval`: the same numbers however it is run, several tasks at once, two models compared, mistakes by name."""

import contextlib
import json
import shutil

import pytest
from conftest import make_tiny_model

from r1lite.cli import main
from r1lite.config import EvalConfig, load
from r1lite.errors import RunError, UserError
from r1lite.evaluation.comparison import learnt, read_rows
from r1lite.evaluation.measure import Answer, Solved, breakdown, measure, summarize
from r1lite.rollout import CompletionEngine
from r1lite.scoring.scorer import make_scorer
from r1lite.stages.evaluate import results, run
from r1lite.tasks import find
from r1lite.training import machine
from r1lite.training.resolve import resolve_config
from r1lite.types import Prompt
from verifiers import Completion, Problem
from verifiers.sandbox import probe

SHORT = ["--template", "short", "--max-completion-tokens", "8", "--eval-samples", "2", "--quiet"]


class Scripted(CompletionEngine):
    """An engine that says what it is told: texts by prompt, the greedy one first."""

    def __init__(self, texts):
        self.texts, self.asked = texts, []

    def generate(self, prompts, seeds, sampling):
        self.asked.append((sampling.temperature, [list(group) for group in seeds]))
        rows = [self.texts[prompt[0]] for prompt in prompts]
        return [
            [Completion(text, tuple(range(len(text)))) for text in (row[:1] if sampling.temperature == 0 else row[1:])]
            for row in rows
        ]


def tagged(answer):
    return f"<think>so</think><answer>{answer}</answer>"


PROBLEMS = [
    Problem("a", "1/2", id="a", meta={"difficulty": "1", "source": "x"}),
    Problem("b", "3", id="b", meta={"difficulty": "10", "source": "x"}),
    Problem("c", "4", id="c", meta={"difficulty": "2"}),
]
TEXTS = [
    [tagged("0.5"), tagged("0.5"), tagged("1/2"), tagged("7"), tagged("7 ")],  # a tie: two right ways, two wrong
    [tagged("4"), tagged("3"), tagged("4"), tagged("4"), "nothing"],
    ["4", tagged("4"), tagged("4"), tagged("5"), tagged("6")],
]


def measured(**changes):
    config = EvalConfig(**{"task": "gsm8k", "eval_samples": 4, **changes})
    scorer = make_scorer(find("gsm8k"), config)
    engine = Scripted(TEXTS)
    prompts = [Prompt(problem, problem.prompt, (i,)) for i, problem in enumerate(PROBLEMS)]
    solved = measure(engine, prompts, scorer, config)
    return summarize(solved, scorer, k=config.eval_samples, votes=config.maj_at), solved, engine


def test_numbers_by_hand():
    found, solved, _ = measured()
    assert found["pass_at_1"] == pytest.approx(2 / 3)
    assert found["sampled_accuracy"] == pytest.approx((2 / 4 + 1 / 4 + 2 / 4) / 3)
    assert found["pass_at_k"] == 1.0
    # 1 - C(wrong, 2) / C(4, 2): one of six pairs is all wrong for a and c, three of six for b
    assert found["pass_curve"] == pytest.approx({"1": 1.25 / 3, "2": (5 / 6 + 3 / 6 + 5 / 6) / 3, "4": 1.0})
    assert found["maj_at_k"] == pytest.approx((0.5 + 0 + 1) / 3)  # 1/2 and 0.5 vote together
    assert found["format_rate"] == pytest.approx(2 / 3)
    assert (found["k"], found["votes"], found["problems"], found["unscored"]) == (4, 4, 3, 0)
    assert found["pass_at_1_interval"][0] < 2 / 3 < found["pass_at_1_interval"][1]
    assert measured(maj_at=2)[0]["maj_at_k"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert breakdown(solved, "source").keys() == {"x"}
    parts = breakdown(solved, "difficulty")
    assert list(parts) == ["1", "2", "10"]
    assert (parts["2"]["pass_at_1"], parts["2"]["sampled_accuracy"]) == (1.0, 0.5)


def test_fewer_problems_and_a_single_sample():
    found, solved, engine = measured(eval_problems=1, eval_sample_problems=2, eval_samples=4)
    assert (found["problems"], found["sampled_problems"], len(solved)) == (1, 2, 2)
    assert [len(group) for group in engine.asked[1][1]] == [4, 4]
    assert EvalConfig(eval_problems=40).sampled_problems == 40
    assert EvalConfig().sampled_problems == 200
    config = EvalConfig(eval_samples=1)
    scorer = make_scorer(find("gsm8k"), config)
    solved = measure(Scripted([row[:2] for row in TEXTS]), [Prompt(PROBLEMS[0], "a", (0,))], scorer, config)
    assert summarize(solved, scorer, k=1)["maj_at_k"] is None


def test_what_can_t_be_judged_is_no_wrong_answer():
    config = EvalConfig(eval_samples=1)
    scorer = make_scorer(find("gsm8k"), config)
    problem = Problem("a", "", id="a")
    with pytest.raises(RunError, match="are unscored"):
        measure(Scripted([["1", "1"]]), [Prompt(problem, "a", (0,))], scorer, config)


def test_unscored_completions_enter_no_rate():
    scorer = make_scorer(find("gsm8k"), EvalConfig())
    good, unscored = Answer("4", 2, True, True, "4", "equal"), Answer("4", 9, None, None, None, "failed")
    solved = [Solved(PROBLEMS[2], answer, (answer, unscored)) for answer in (good, unscored)]
    solved[1] = Solved(PROBLEMS[1], unscored, (good, unscored))
    found = summarize(solved, scorer, k=1)
    assert (found["format_rate"], found["sampled_format_rate"], found["mean_tokens"]) == (1.0, 1.0, 2.0)
    without = summarize([Solved(PROBLEMS[2], Answer("4", 2, True, None, "4", "equal"), (good,))], scorer, k=1)
    assert without["format_rate"] is None
    shown = {"tasks": {"gsm8k": without}, "model": "nano", "temperature": 1.0}
    assert list(results(shown).columns[1].cells)[4] == "-"


def test_a_formula_says_what_is_right():
    found, _, _ = measured(verifier="math * format")
    assert found["pass_at_1"] == pytest.approx(1 / 3)
    with pytest.raises(UserError, match=r"^--verifier: .*did you mean 'math'"):
        measured(verifier="mth")


def test_a_verifier_of_yours_that_hangs_costs_one_answer():
    config = EvalConfig(eval_samples=12, verifier="batch_verifiers_for_tests:here", score_timeout_s=1.0)
    scorer = make_scorer(find("gsm8k"), config)
    texts = ["4", *["4", "wrong", "4"] * 3, "hangs", "4", "4"]
    with contextlib.closing(scorer):
        (solved,) = measure(Scripted([texts]), [Prompt(PROBLEMS[0], "a", (0,))], scorer, config)
    assert [sample.correct for sample in solved.samples] == [True, False, True] * 3 + [None, True, True]
    assert "no verdict within 1 s" in solved.samples[9].reason
    assert solved.samples[9].text == "hangs"


def evaluated(*argv):
    assert main(["eval", *argv]) == 0


def test_the_command(tiny_path, sums_path, tmp_path, capsys):
    out = tmp_path / "run"
    evaluated("--model", str(tiny_path), "--source", str(sums_path), "--out", str(out), *SHORT[:-1])
    text = capsys.readouterr().out
    assert "greedy" in text
    assert "maj@2" in text
    summary = json.loads((out / "summary.json").read_text())
    assert summary["tasks"]["gsm8k"]["problems"] == 8
    assert summary["comparison"] is None
    rows = [json.loads(line) for line in (out / "problems.jsonl").read_text().splitlines()]
    assert [row["problem_id"] for row in rows] == [f"test-{i}" for i in range(8)]
    assert all(len(row["samples"]) == 2 and row["greedy"]["correct"] in (True, False) for row in rows)


@pytest.mark.slow
def test_several_tasks_one_batch_size_or_another_and_a_comparison(tiny_path, sums_path, tmp_path, capsys):
    tasks = ["--task", "gsm8k,add_carry", "--eval-problems", "6", "--eval-sample-problems", "4", *SHORT]
    model = ["--model", str(tiny_path), "--source", f"gsm8k={sums_path}"]
    evaluated(*model, *tasks, "--out", str(tmp_path / "a"))
    evaluated(*model, *tasks, "--out", str(tmp_path / "b"), "--rollout-rows", "1", "--against", str(tmp_path / "a"))
    a, b = (json.loads((tmp_path / name / "summary.json").read_text()) for name in "ab")
    assert list(a["tasks"]) == ["gsm8k", "add_carry"]
    assert a["tasks"] == b["tasks"]
    assert (tmp_path / "a" / "problems.jsonl").read_bytes() == (tmp_path / "b" / "problems.jsonl").read_bytes()
    found = b["comparison"]["add_carry"]
    assert (found["greedy"]["difference"], found["greedy"]["p_value"], found["greedy"]["test"]) == (
        0,
        1,
        "McNemar exact",
    )
    assert found["sampled"]["problems"] == 4
    assert "Compared with" in capsys.readouterr().out
    evaluated(*model, *tasks, "--out", str(tmp_path / "c"), "--seed", "1")
    assert (tmp_path / "c" / "problems.jsonl").read_bytes() != (tmp_path / "a" / "problems.jsonl").read_bytes()


def test_another_model_is_measured_as_well(tiny_path, sums_path, tmp_path, capsys):
    argv = ["--model", str(tiny_path), "--source", str(sums_path), *SHORT, "--eval-problems", "4"]
    evaluated(*argv, "--out", str(tmp_path / "run"), "--against", str(tiny_path))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["comparison"]["gsm8k"]["greedy"]["difference"] == 0
    assert (tmp_path / "run" / "against" / "summary.json").exists()
    assert capsys.readouterr().out.count("Test problems, ") == 2
    evaluated("--resume", "--out", str(tmp_path / "run"))
    assert "Compared with" in capsys.readouterr().out


def test_the_other_model_gets_the_same_problems(tiny_path, tmp_path, monkeypatch):
    """The default source depends on the model, as some recipes set how much is evaluated."""
    rows = [{"question": f"{i} dogs?", "answer": f"#### {i}"} for i in range(9)]
    monkeypatch.setattr("r1lite.training.machine.hub_reachable", lambda: True)
    monkeypatch.setattr("r1lite.tasks.sources.hub_rows", lambda *place, **options: rows)
    monkeypatch.setitem(machine.RECIPES, "nano", "recipes/countdown-nano.yaml")  # has eval_problems and eval_samples
    out = tmp_path / "run"
    argv = ["--model", str(tiny_path), "--device", "cpu", "--template", "short", "--max-completion-tokens", "4"]
    evaluated(*argv, "--eval-sample-problems", "2", "--out", str(out), "--against", "nano", "--no-report")
    mine, theirs = ([row["problem"] for row in read_rows(path)["gsm8k"]] for path in (out, out / "against"))
    assert len(mine) == 9
    assert theirs == mine
    summary = json.loads((out / "summary.json").read_text())
    assert summary["comparison"]["gsm8k"]["sampled"]["problems"] == 2
    assert json.loads((out / "against" / "summary.json").read_text())["tasks"]["gsm8k"]["k"] == 8


def test_a_failure_of_the_other_model_keeps_the_results_of_this_one(tiny_path, sums_path, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(tiny_path, other)
    settings = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**settings, "max_position_embeddings": 9}))
    out = tmp_path / "run"
    argv = ["--model", str(tiny_path), "--source", str(sums_path), *SHORT[:-1], "--no-report", "--out", str(out)]
    assert main(["eval", *argv, "--against", str(other)]) == 2
    assert "the model's context is 9" in capsys.readouterr().err
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["tasks"]["gsm8k"]["problems"], summary["comparison"]) == (8, None)
    assert not (out / "against").exists()
    evaluated("--resume", "--out", str(out), "--no-report")
    assert f"the comparison with {other} was not made" in " ".join(capsys.readouterr().out.split())
    evaluated(*argv[:-1], str(tmp_path / "next"), "--against", str(out))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--task", "gsm9k"], "did you mean 'gsm8k'"),
        (["--task", "gsm8k,gsm8k"], "several different tasks"),
        (["--task", "gsm8k,svamp", "--source", "{sums}"], "--source gsm8k=PATH,svamp=PATH"),
        (["--task", "gsm8k,svamp", "--source", "math={sums}"], "is no TASK=PATH"),
        (["--task", "svamp", "--source", "{sums}"], "no column 'Body'"),
        (["--maj-at", "1"], "--maj-at must be >= 2, got 1: maj@1 would be pass@1"),
        (["--maj-at", "9"], "--maj-at must be <= --eval-samples"),
        (["--against", "{sums}"], "neither a finished evaluation"),
        (["--against", "no/such-model"], "--against no/such-model: no such folder here"),
        (["--resume"], "holds no run yet"),
    ],
)
def test_mistakes(argv, message, tiny_path, sums_path, tmp_path, capsys):
    argv = [word.replace("{sums}", str(sums_path)) for word in argv]
    given = [] if "--source" in argv else ["--source", str(sums_path)]
    out = tmp_path / "run"
    assert main(["eval", *given, *argv, "--model", str(tiny_path), "--out", str(out), "--template", "short"]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_comparing_other_problems_is_refused(tiny_path, sums_path, tmp_path, capsys):
    model = ["--model", str(tiny_path), *SHORT]
    evaluated(*model, "--source", str(sums_path), "--out", str(tmp_path / "a"))
    other = tmp_path / "other"
    other.mkdir()
    for split in ("train", "test"):
        rows = [json.loads(line) for line in (sums_path / f"{split}.jsonl").read_text().splitlines()]
        rows[3]["answer"] = "#### 0"
        (other / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for argv, message in (
        (["--source", str(other)], "has other problems of gsm8k (the first one: 'test-3')"),
        (["--source", str(sums_path), "--eval-problems", "4", "--eval-sample-problems", "4"], "has 8 problems"),
        (["--task", "add_carry"], "has no add_carry, only gsm8k"),
    ):
        assert main(["eval", *model, *argv, "--out", str(tmp_path / "b"), "--against", str(tmp_path / "a")]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "b").exists()


def test_what_was_learnt_of_problems_with_one_id():
    before, after = (
        [
            {
                **dict.fromkeys(("problem", "question", "gold"), n),
                **{"problem_id": "x", "greedy": {"text": f"{when} {n}", "correct": on}},
            }
            for n in "12"
        ]
        for when, on in (("before", False), ("after", True))
    )
    assert [pair["before"]["text"] for pair in learnt(before, after)] == ["before 1", "before 2"]


def test_flags_given_twice_are_joined():
    argv = ["--task", "gsm8k", "--source=gsm8k=a", "--seed", "1", "--task=svamp", "--source", "svamp=b", "--seed", "2"]
    config = load(EvalConfig, argv)
    assert (config.tasks, config.source, config.seed) == (["gsm8k", "svamp"], "gsm8k=a,svamp=b", 2)


def test_code_without_isolation_is_refused(tiny_path, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "_trouble", lambda level: "not on this machine")
    path = tmp_path / "test.jsonl"
    row = {"task_id": 11, "text": "Add one.", "code": "def f(x): return x + 1", "test_list": ["assert f(1) == 2"]}
    path.write_text(json.dumps(row) + "\n")
    config = load(EvalConfig, ["--task", "mbpp", "--source", str(path), "--test-source", str(path)])
    with pytest.raises(UserError, match="--task mbpp: code can't be isolated"):
        run(config.model_copy(update={"model": str(tiny_path), "out": str(tmp_path / "run")}))


@pytest.mark.parametrize("name", ["gsm8k"])
def test_public_problems_through_nano(name, shared_data, tmp_path):
    evaluated("--model", "nano", "--source", str(shared_data / name), "--out", str(tmp_path / "run"), "--quiet",
              "--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2")  # fmt: skip
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["tasks"][name]
    assert found["problems"] == 4
    assert len(found["by_difficulty"]) >= 1


@pytest.mark.parametrize(("more", "noted"), [([], True), (["--template", "short"], False)])
def test_settings_of_the_models_run_are_listed_if_there_are_any(more, noted, tmp_path):
    model = tmp_path / "checkpoints" / "step-000001"
    make_tiny_model().config.save_pretrained(model)
    (tmp_path / "config.yaml").write_text("template: short\nstop_text: null\n")
    (tmp_path / "environment.json").write_text('{"stage": "grpo"}')
    asked = ["--model", str(model), "--device", "cpu", "--task", "gsm8k", "--source", "bundled", *more]
    _, notes = resolve_config(load(EvalConfig, asked))
    assert notes.get("settings", "").endswith(": template short") == noted
    assert ("settings" in notes) == noted


@pytest.mark.parametrize(
    ("context", "limit"), [(160, 80), (1024, 512), (1300, 788), (1536, 1024), (4096, 1024), (None, 1024)]
)
def test_the_default_length_fits_the_models_context(context, limit, tmp_path):
    """Prompts are left half of it, 512 tokens at most; what was asked for stands."""
    changes = {} if context is None else {"max_position_embeddings": context}
    config = make_tiny_model(**changes).config
    if context is None:
        config.max_position_embeddings = 32_768
    config.save_pretrained(tmp_path)
    asked = ["--model", str(tmp_path), "--device", "cpu", "--task", "gsm8k", "--source", "bundled"]
    settled, notes = resolve_config(load(EvalConfig, asked))
    assert settled.max_completion_tokens == limit
    assert ("completions have at most" in notes.get("model", "")) == (limit < 1024)
    settled, notes = resolve_config(load(EvalConfig, [*asked, "--max-completion-tokens", "1000"]))
    assert settled.max_completion_tokens == 1000
    assert "model" not in notes
