"""kill -9 at random moments, saves included: the run always continues, and ends bit for bit as if nothing had been."""

import json
import zlib
from pathlib import Path

import pytest
from fleet_for_tests import FakeVLLM

from verifiers.rows import rows

TESTS = Path(__file__).resolve().parents[1]
SAVE_EVERY = 2
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "6", "--lr", "3e-3", "--prompts-per-step", "2"),
    *("--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--updates-per-rollout", "2"),
    *("--minibatches", "2", "--kl-coef", "0.01", "--reward", "reward_for_tests:digits", "--score-workers", "0"),
    *("--threads", "1", "--save-every", str(SAVE_EVERY), "--warmup-steps", "2", "--lr-schedule", "cosine", "--quiet"),
]
CASES = {
    "grpo": (9, 16, ["--group-size", "3", "--eval-every", "7"]),
    "ppo": (4, 9, ["--critic-warmup-steps", "2", "--kl-target", "0.1", "--gae-lambda", "0.9"]),
}


def play(job, place, forks):
    path = place / f"{Path(job['out']).name}.json"
    path.write_text(json.dumps(job))
    code, said, errors = forks.run([path], script=TESTS / "kills_for_tests.py", timeout=900)
    assert code == 0, said + errors
    return [json.loads(line) for line in said.splitlines()]


def outcome(out, steps):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    evaluations = out / "evaluations.jsonl"
    return (
        {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())},
        [{key: value for key, value in line.items() if key not in CLOCKS} for line in metrics],
        evaluations.read_text() if evaluations.exists() else "",
        (out / "checkpoints" / f"step-{steps:06d}" / "model.safetensors").read_bytes(),
        json.loads((out / "eval_after.json").read_text()),
    )


@pytest.mark.slow
@pytest.mark.parametrize("stage", CASES)
def test_killed_at_random_moments(stage, tiny_path, sums_path, tmp_path, forks):
    kills, steps, more = CASES[stage]
    out = {name: tmp_path / name for name in ("whole", "killed")}
    fixed = [stage, "--model", str(tiny_path), "--source", str(sums_path), *FLAGS, "--steps", str(steps), *more]
    jobs = {
        name: {
            "seed": 5,
            "kills": kills if name == "killed" else 0,
            "argv": [*fixed, "--out", str(place)],
            "resume": [stage, "--resume", "--trust", "--out", str(place), "--quiet"],
            "out": str(place),
        }
        for name, place in out.items()
    }
    assert play(jobs["whole"], tmp_path, forks) == []
    told = play(jobs["killed"], tmp_path, forks)
    assert len(told) == kills
    best = 0
    for kill in told:
        # A checkpoint that was there is never lost, and no more than the steps since it is.
        assert kill["checkpoint"] >= best
        assert kill["recorded"] - kill["checkpoint"] <= SAVE_EVERY
        assert kill["damaged"] == []
        best = kill["checkpoint"]
    assert {kill["when"] for kill in told} == {"start", "step", "save"}
    assert outcome(out["killed"], steps) == outcome(out["whole"], steps)
    assert not list((out["killed"] / "checkpoints").glob(".*"))


def delay(body):
    """Seconds. Every fourth completion is still under way when new weights come, whatever a step takes."""
    drawn = zlib.crc32(f"{body['seed']}".encode())
    return 2.0 if drawn % 4 == 0 else drawn % 97 / 2000


@pytest.mark.slow
def test_killed_while_sampling_ahead(tiny_path, sums_path, tmp_path, forks):
    """Each continuation goes on in the order that is recorded: an uninterrupted run in that order ends with the same
    bytes. A server's completions follow from the bytes of its weights, so each that is asked of other weights shows."""
    kills, steps, servers = 8, 16, [FakeVLLM(delay=delay) for _ in range(2)]
    killed, again = tmp_path / "killed", tmp_path / "again"
    fixed = [
        *("grpo", "--model", str(tiny_path), "--source", str(sums_path), *FLAGS, "--group-size", "3"),
        *("--max-completion-tokens", "24", "--steps", str(steps), "--max-staleness", "2", "--engine", "vllm-server"),
        *(part for server in servers for part in ("--engine-url", server.url)),
        *("--canary-tokens", "0", "--prove-weights-every", "0"),
    ]
    resume = ["grpo", "--resume", "--trust", "--out", str(killed), "--quiet"]
    job = {"seed": 7, "kills": kills, "argv": [*fixed, "--out", str(killed)], "resume": resume, "out": str(killed)}
    try:
        told = play(job, tmp_path, forks)
        assert len(told) == kills
        assert sum(server.aborted for server in servers) > 0
        for server in servers:
            server.delay = 0.0
        replay = [*fixed, "--replay-order", str(killed), "--out", str(again)]
        assert play({**job, "kills": 0, "argv": replay, "out": str(again)}, tmp_path, forks) == []
    finally:
        for server in servers:
            server.stop()
    rollouts, _, _, weights, after = outcome(killed, steps)
    assert (rollouts, weights, after) == tuple(outcome(again, steps)[place] for place in (0, 3, 4))
    # What had been learnt from since the checkpoint is learnt from again, in the same order.
    now = {name: zlib.crc32(content) for name, content in rollouts.items()}
    assert all(now[name] == crc for kill in told for name, crc in kill["rollouts"].items())
    assert any(kill["recorded"] > kill["checkpoint"] for kill in told)
    made = [row for path in sorted((killed / "rollouts").iterdir()) for _, row in rows(path)]
    assert any(row.get("stretches") for row in made)
    assert all(0 <= row["step"] - 1 - row["policy_version"] <= 2 for row in made)
    assert any(row["step"] - 1 - row["policy_version"] == 2 for row in made)
    kept = [json.loads(line)[0] for line in (killed / "arrivals.jsonl").read_text().splitlines()]
    assert kept == list(range(kept[0], kept[-1] + 1))
    assert len(kept) < 2 * steps  # those that no checkpoint needs are gone
