"""Which problems are sampled, and what moves between steps: dynamic sampling, curriculum, reference, coefficients."""

import json
import signal
import time
from pathlib import Path

import pandas
import pytest

from r1lite.cli import main
from r1lite.grpo import choice
from r1lite.grpo.choice import Curriculum
from r1lite.types import Group, Prompt, Rollout
from verifiers import Completion, Problem, Score

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "12", "--steps", str(STEPS), "--lr", "3e-3"),
    *("--prompts-per-step", "4", "--group-size", "3", "--eval-problems", "4", "--eval-sample-problems", "2"),
    *("--eval-samples", "2", "--threads", "1", "--save-every", "2", "--micro-batch-tokens", "200"),
]
# All that a step remembers of the steps before it.
MEMORY = [
    *("--reward", "reward_for_tests:has_7", "--dynamic-sampling", "--max-refills", "2", "--curriculum"),
    *("--kl-coef", "0.05", "--kl-target", "0.001", "--kl-horizon", "100", "--entropy-target", "5"),
]
REFERENCES = {"refreshed": ["--reference-refresh-steps", "3"], "following": ["--reference-decay", "0.5"]}


def prompts(count):
    return [Prompt(Problem(f"q{i}", id=f"p{i}"), f"q{i}", (i,)) for i in range(count)]


def group(problem_id, *correct):
    rollouts = tuple(Rollout(Completion(""), Score(1.0), 0.0, verdict, None) for verdict in correct)
    return Group(Problem("", id=problem_id), "", (1,), rollouts)


def arguments(tiny_path, sums_path, out, *more):
    return ["grpo", "--model", str(tiny_path), "--source", str(sums_path), *FLAGS, "--out", str(out), *more]


def metrics_of(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_an_epoch_holds_every_problem_once():
    some = prompts(7)
    seen = [prompt.problem.id for step in range(7) for prompt in choice.by_epochs(some, step, 3, seed=1)]
    for epoch in range(3):
        assert sorted(seen[7 * epoch : 7 * epoch + 7]) == sorted(prompt.problem.id for prompt in some)


def test_refills_are_fresh_while_they_can_be():
    some = prompts(6)
    used = {"p0", "p1", "p2"}
    ids = [prompt.problem.id for prompt in choice.refill(some, used, 4, 1, 5, seed=0)]
    assert set(ids[:3]) == {"p3", "p4", "p5"}
    assert set(ids[3:]) < used
    assert ids == [prompt.problem.id for prompt in choice.refill(some, used, 4, 1, 5, seed=0)]
    assert len(choice.refill(some, used, 4, 1, 20, seed=0)) == 20


def test_the_curriculum_prefers_what_is_sometimes_solved():
    some = prompts(30)
    curriculum = Curriculum()
    curriculum.observe([group(f"p{i}", *[i < 10] * 8) for i in range(20)])  # 10 solved, 10 hopeless, 10 never seen
    curriculum.observe([group("p0", None, None)])  # no verdict: no news
    drawn = [p.problem.id for step in range(60) for p in curriculum.choose(some, "train", step, 5, seed=0)]
    counts = [sum(drawn.count(f"p{i}") for i in range(start, start + 10)) for start in (0, 10, 20)]
    assert counts[2] > 1.6 * max(counts[:2])  # weights .09, .09, .25
    assert min(counts[:2]) > 0
    assert curriculum.rate("p0") == pytest.approx(0.9)
    again = Curriculum()
    again.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
    chosen = [[p.problem.id for p in c.choose(some, "train", 9, 5, seed=0)] for c in (curriculum, again)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 5
    assert len(curriculum.choose(some[:2], "train", 0, 5, seed=0)) == 5


def test_dynamic_sampling_fills_the_step_and_counts(tiny_path, sums_path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    out = tmp_path / "run"
    flags = ["--reward", "reward_for_tests:has_7", "--dynamic-sampling", "--quiet", "--steps", "3"]
    assert main(arguments(tiny_path, sums_path, out, *flags)) == 0
    for step, metrics in enumerate(metrics_of(out), 1):
        rows = pandas.read_json(out / "rollouts" / f"step-{step:06d}.jsonl.gz", lines=True)
        assert metrics["refills"] > 0
        groups = [rows["advantage"][i : i + 3] for i in range(0, len(rows), 3)]
        assert len(groups) > 4  # what was passed over is kept for the record, after what was learnt from
        taught = [bool((group != 0).any()) for group in groups]
        assert taught == [True] * (4 - metrics["groups_missing"]) + [False] * (len(groups) - sum(taught))
        assert rows["token_ids"].map(len).sum() == metrics["tokens"]


def test_refills_end(tiny_path, sums_path, tmp_path, monkeypatch):
    (tmp_path / "never.py").write_text("def never(problem, completion):\n    return 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    flags = ["--reward", "never:never", "--dynamic-sampling", "--max-refills", "2", "--quiet", "--steps", "1"]
    assert main(arguments(tiny_path, sums_path, tmp_path / "run", *flags)) == 0
    (metrics,) = metrics_of(tmp_path / "run")
    assert (metrics["refills"], metrics["groups_missing"], metrics["updates"]) == (2, 4, 0)


def test_overlong_completions_are_left_out(tiny_path, sums_path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    flags = ["--reward", "reward_for_tests:digits", "--overlong-filter", "--max-completion-tokens", "1", "--quiet"]
    argv = arguments(tiny_path, sums_path, tmp_path / "run", *flags, "--steps", "1", "--kl-coef", "0.1")
    assert main(argv) == 0
    (metrics,) = metrics_of(tmp_path / "run")
    rows = pandas.read_json(tmp_path / "run" / "rollouts" / "step-000001.jsonl.gz", lines=True)
    assert metrics["truncated"] > 0.8
    assert (metrics["updates"] > 0) == bool((rows["finish_reason"] == "stop").any())


def outcome(out):
    clocks = {"generate_s", "score_s", "train_s", "step_s"}
    weights = (out / "checkpoints" / f"step-{STEPS:06d}" / "model.safetensors").read_bytes()
    kept = [{key: value for key, value in line.items() if key not in clocks} for line in metrics_of(out)]
    return kept, {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())}, weights


@pytest.mark.parametrize("reference", list(REFERENCES))
def test_what_moves_between_steps_survives_a_kill(reference, tiny_path, sums_path, tmp_path, forks, monkeypatch):
    """Dynamic sampling, curriculum, reference, adaptive KL and entropy: bit-identical after kill -9 and --resume."""
    monkeypatch.syspath_prepend(ROOT / "tests")
    flags = [*MEMORY, *REFERENCES[reference]]
    assert main(arguments(tiny_path, sums_path, tmp_path / "whole", *flags, "--quiet")) == 0
    killed = tmp_path / "killed"
    process = forks.start(arguments(tiny_path, sums_path, killed, *flags, "--quiet"))
    deadline = time.monotonic() + 600
    while not (killed / "rollouts" / "step-000005.jsonl.gz").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "summary.json").exists()
    assert main(["grpo", "--resume", "--trust", "--out", str(killed), "--quiet"]) == 0
    assert outcome(killed) == outcome(tmp_path / "whole")
    whole = metrics_of(tmp_path / "whole")
    assert len({line["kl_coef"] for line in whole}) > 1
    assert len({line["entropy_coef"] for line in whole}) > 1
    assert any(line["refills"] for line in whole)
    if reference == "refreshed":
        assert whole[3]["kl"] == pytest.approx(0, abs=1e-6)  # the reference is the policy again
        assert whole[2]["kl"] > 1e-6
