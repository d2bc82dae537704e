"""What is refused before torch is imported, and what a first completion shows before a model is loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from r1lite.config import EvalConfig, GRPOConfig
from r1lite.errors import UserError
from r1lite.run.places import check_place
from r1lite.run.run_dir import RunDir
from r1lite.scoring.problems import try_scorer
from r1lite.scoring.scorer import make_scorer
from r1lite.tasks import Problems, Task, find
from r1lite.training.early import check_early
from verifiers import Problem

REWARDS = """
from verifiers import VerifierError

def fine(problem, completion): return 1.0
def crashes(problem, completion):
    found = {}
    return found["nothing"]
def text(problem, completion): return "good"
def too_high(problem, completion): return 3.0
def ends(problem, completion): raise SystemExit(3)
def hangs(problem, completion):
    while True: pass
def unsure(problem, completion): raise VerifierError("the judge is away")
"""
# (flags, what is said)
REFUSED = [
    (["grpo", "--reward", "math+"], "can't read the reward formula"),
    (["grpo", "--reward", "math + 0.1 format"], "(a weight is written 0.1*format)"),
    (["grpo", "--reward", "matt"], "did you mean 'math'?"),
    (["ppo", "--reward", "first_rewards:fin"], "did you mean 'fine'?"),
    (["grpo", "--reward", "bad_import:x"], "ValueError: not today in "),
    (["grpo", "--source", "nowhere.jsonl"], "no such file or folder"),
    (["sft", "--data", "x.jsonl", "--source", "nowhere.jsonl"], "no such file or folder"),
    (["grpo", "--task", "svamp", "--source", "bundled"], "has no bundled problems"),
    (["reject", "--task", "add_carry", "--source", "x.jsonl"], "generates its problems"),
    (["eval", "--task", "gsm8"], "did you mean 'gsm8k'?"),
    (["eval", "--verifier", "matt"], "--verifier: unknown verifier 'matt'"),
    (["grpo", "--out", "full"], "holds no run"),
    (["grpo", "--out", "full/file"], "not a folder"),
    (["grpo", "--out", "full/file/deeper"], "can't be written"),
    (["grpo", "--max-staleness", "1", "--replay-order", "full"], "--replay-order full: there is no run with rollouts/"),
    (["eval", "--against", "nothere"], "--against nothere: no such folder here"),
    (["grpo", "--model", "runs/x"], "--model runs/x: no such folder here"),
    (["eval", "--model", "~nobody-here/x"], "~nobody-here/x begins with ~ and the name of no user of this machine"),
    (["grpo", "--out", "~nobody-here/x"], "~nobody-here/x begins with ~ and the name of no user of this machine"),
    (["ppo", "--critic-model", "nothere"], "--critic-model nothere: no such folder here"),
    (["cold-start", "--rewrite", "model", "--rewrite-model", "no/where"], "--rewrite-model no/where: no such folder"),
    (["distill", "--teacher", "nothere@main"], "--teacher nothere@main: no such folder here"),
    (["reward-model", "--source", "x.jsonl", "--model", "nothere"], "--model nothere: no such folder here"),
    (["pretrain", "--out", "new", "--tokenizer", "nothere"], "--tokenizer nothere: no such folder here"),
    (["serve-engine", "--model", "nothere"], "--model nothere: no such folder here"),
    (["grpo", "--reward", "math + 0.2*rm:runs/judge"], "--reward rm:runs/judge: no such folder here"),
    (["eval", "--verifier", "rm:nothere"], "--verifier rm:nothere: no such folder here"),
    (["grpo", "nowhere.yaml"], "no such recipe"),
    (["grpo", "bad.yaml"], "did you mean 'lr'?"),
    (["grpo", "--learning-rate", "1"], "--learning-rate is called --lr here"),
    (["r1", "bad.yaml"], "unknown key"),
    (["grpo", "--config", "bad.yaml"], "--config: a recipe is the first argument and has no flag"),
    (["sft", "--recipe=bad.yaml"], "as in: r1lite sft recipe.yaml --steps 3"),
    (["grpo", "--steps", "3", "bad.yaml"], "bad.yaml: a recipe is the first argument"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    (tmp_path / "bad.yaml").write_text("learning_rte: 1\n")
    (tmp_path / "first_rewards.py").write_text(REWARDS)
    (tmp_path / "bad_import.py").write_text("raise ValueError('not today')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "first_rewards", raising=False)
    return tmp_path


def test_refusals_come_before_torch(folder):
    """All of them in one process, which has imported no torch at the end."""
    code = f"""
import contextlib, io, json, sys
import r1lite.cli
for argv in {[argv for argv, _ in REFUSED]!r}:
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        code = r1lite.cli.main(argv)
    print(json.dumps([code, told.getvalue(), "torch" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(REFUSED), done.stderr
    for (argv, said), (code, told, torch) in zip(REFUSED, found, strict=True):
        assert (code, torch) == (2, False), (argv, told)
        assert said in told, (argv, told)
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        *("bad.yaml", "bad_import.py", "first_rewards.py", "full")
    ]


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        ("crashes", "raised KeyError: 'nothing' in {file}, line 7 "),
        ("text", "returned str; it must return a Verdict, a float or a bool; it is in {file}, line 8"),
        ("too_high", "returned 3.0; a score lies in [0, 1]; it is in {file}, line 9"),
        ("ends", "SystemExit"),
    ],
)
def test_a_reward_that_crashes_is_found_on_the_first_problem(folder, reward, said):
    config = GRPOConfig(task="gsm8k", source="bundled", reward=f"math + first_rewards:{reward}")
    task = find("gsm8k")
    scorer = make_scorer(task, config)
    try:
        with pytest.raises(UserError) as caught:
            try_scorer(task, config, scorer, Problems([Problem("1 + 1?", "2", id="p1")], [], ""))
        assert said.format(file=folder / "first_rewards.py") in str(caught.value)
    finally:
        scorer.close()


def test_a_reward_that_hangs_is_found_on_the_first_problem(folder):
    config = GRPOConfig(task="gsm8k", source="bundled", reward="first_rewards:hangs", score_timeout_s=0.5)
    scorer = make_scorer(find("gsm8k"), config)
    try:
        with pytest.raises(UserError, match=r"no verdict within 0.5 s(.*\n)+.*--score-timeout-s 0.5 is the limit"):
            try_scorer(find("gsm8k"), config, scorer, Problems([Problem("1 + 1?", "2", id="p1")], [], ""))
    finally:
        scorer.close()


def test_a_verifier_that_can_not_check_one_completion_is_a_doubt(folder):
    config = GRPOConfig(task="gsm8k", source="bundled", reward="math + first_rewards:unsure")
    scorer = make_scorer(find("gsm8k"), config)
    try:
        problems = Problems([Problem("1 + 1?", "2", id="p1")], [], "")
        (doubt,) = try_scorer(find("gsm8k"), config, scorer, problems)
        assert doubt == "a trial completion could not be checked: VerifierError: the judge is away"
    finally:
        scorer.close()


def test_an_evaluation_does_not_ask_the_reward(folder):
    task = Task("own", lambda source: Problems([], [], ""), reward="first_rewards:crashes")
    config = EvalConfig(task="gsm8k")
    scorer = make_scorer(task, config)
    try:
        assert try_scorer(task, config, scorer, Problems([], [Problem("1 + 1?", "2", id="p1")], "")) == []
    finally:
        scorer.close()


def test_the_trial_comes_before_the_model(folder, capsys):
    from r1lite.cli import main

    argv = ["grpo", "--model", "/no/model", "--device", "cpu", "--source", "bundled"]
    assert main([*argv, "--reward", "first_rewards:crashes"]) == 2
    assert "no such folder here" in capsys.readouterr().err  # said at once by the name alone
    (folder / "empty").mkdir()
    argv[2] = str(folder / "empty")  # a folder that is no model
    assert main([*argv, "--reward", "first_rewards:crashes"]) == 2
    assert "raised KeyError: 'nothing' in " in capsys.readouterr().err


def test_places_are_checked_as_they_are_made(tmp_path):
    """`check_place` makes nothing, and refuses what RunDir refuses."""
    held = tmp_path / "held"
    run = RunDir(held)
    run.write_config("lr: 1\n", stage="grpo", learned={"problems": "x"})
    run.close()
    (tmp_path / "file").write_text("")
    for place in (held, tmp_path / "file", tmp_path / "file" / "in"):
        with pytest.raises(UserError):
            check_place(place)
        with pytest.raises(UserError):
            RunDir(place)
    for place in (tmp_path / "new", tmp_path / "a" / "b", tmp_path):
        if place != tmp_path:
            check_place(place)
            assert not place.exists()
    check_early(GRPOConfig(out=str(held), resume=True))  # what a resumed run has is its own
    for name, said in (("x", "a run: --resume continues it"), ("manifest.json", "a finished run: --resume shows")):
        (held / name).write_text("{}")
        with pytest.raises(UserError, match=said):
            check_place(held)


def test_a_loader_of_ones_own_needs_no_check(folder):
    Path("first_task.py").write_text(
        "from r1lite.tasks import Problems, Task\n"
        "TASK = Task('own', lambda source: Problems([], [], ''), reward='math')\n"
    )
    check_early(GRPOConfig(task="first_task:TASK", source="whatever"))
