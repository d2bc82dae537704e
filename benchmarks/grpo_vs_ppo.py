"""GRPO compared with PPO on the same task, model and number of samples: learning and memory.

    python benchmarks/grpo_vs_ppo.py --out DIR --seeds 0 1

Learning: nano on its bundled problems with 16 x 8 completions per step; only the learner differs. Accuracy is greedy on
held-out problems; seconds are CPU seconds of the steps, so other programs don't count. Memory: a random Qwen2 with 25 M
parameters, three steps, each line in its own process. Weights, gradients and AdamW's moments are counted exactly from
the tensors; the last column is the peak resident memory above that of the first line. PPO with a shared backbone trains
one model with two heads. The reward models are random, since their scores don't affect memory.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout's own r1lite, installed or not
LEARNING = {
    "GRPO": ("grpo", []),
    "PPO, critic of its own": ("ppo", []),
    "PPO, shared backbone": ("ppo", ["--critic", "shared", "--value-coef", "0.1"]),
}
KL = ["--kl-coef", "0.01"]
MEMORY = {
    "GRPO, rules, no KL": ("grpo", []),
    "GRPO, rules, KL": ("grpo", KL),
    "GRPO, reward model, KL": ("grpo", [*KL, "--reward", "RM"]),
    "PPO shared, rules, KL": ("ppo", [*KL, "--critic", "shared"]),
    "PPO, rules, KL": ("ppo", KL),
    "PPO, reward model, KL": ("ppo", [*KL, "--reward", "RM"]),
}
WIDTH, LAYERS = 512, 6  # shape of the model for the memory measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--part", choices=["both", "learning", "memory"], default="both")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # in a child process: the run as JSON
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_one(**json.loads(arguments.one))))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part != "memory":
        _learning(arguments.out, arguments.seeds, arguments.steps)
    if arguments.part != "learning":
        _memory(arguments.out)


def _learning(out: Path, seeds: list[int], steps: int) -> None:
    flags = ["--model", "nano", "--prompts-per-step", "16", "--group-size", "8", "--steps", str(steps)]
    flags += ["--eval-every", str(max(1, steps // 6)), "--eval-problems", "300", "--eval-sample-problems", "2"]
    flags += ["--eval-samples", "2", "--quiet"]
    print("| | seed | CPU s a step | of it learning |", *(f"{n} |" for n in _marks(steps)))
    print("| --- " * (4 + len(_marks(steps))) + "|")
    for name, (stage, more) in LEARNING.items():
        for seed in seeds:
            run = out / f"{stage}-{'-'.join(more).replace('--', '') or 'plain'}-{seed}"
            found = _in_a_process(stage, [*flags, *more, "--seed", str(seed), "--out", str(run)])
            accuracies = [f"{100 * found['accuracy'][str(n)]:.1f} |" for n in _marks(steps)]
            seconds = (found[key] / steps for key in ("cpu_s", "learn_cpu_s"))
            print(f"| {name} | {seed} |", *(f"{value:.2f} |" for value in seconds), *accuracies, flush=True)
    print(f"\nGreedy accuracy in % on 300 held-out problems by number of samples; {steps} steps of 128 samples.")


def _marks(steps: int) -> list[int]:
    every = max(1, steps // 6)
    return [128 * step for step in range(0, steps + 1, every)]


def _memory(out: Path) -> None:
    policy, reward = out / "policy", out / "reward"
    _make_models(policy, reward)
    flags = ["--model", str(policy), "--prompts-per-step", "2", "--group-size", "4", "--steps", "3", "--quiet"]
    flags += ["--source", "bundled", "--template", "short", "--max-completion-tokens", "24", "--eval-problems", "2"]
    flags += ["--eval-sample-problems", "1", "--eval-samples", "1", "--threads", "1", "--score-workers", "0"]
    parts = ("policy", "reference", "critic", "reward model")
    print(
        "\n| MB: weights + gradient + moments | models |", *(f"{part} |" for part in parts), "sum | peak over first |"
    )
    print("| --- " * (4 + len(parts)) + "|")
    first = None
    for name, (stage, more) in MEMORY.items():
        run = out / f"memory-{name.replace(' ', '-').replace(',', '')}"
        flag = [f"rm:{reward}" if word == "RM" else word for word in more]
        rules = [] if "RM" in more else ["--reward", "grpo_vs_ppo:varied"]
        found = _in_a_process(stage, [*flags, *flag, *rules, "--out", str(run)])
        first = first if first is not None else found["peak_rss_mb"]
        held = found["held"]
        cells = [_cell(held[part]) if part in held else "- |" for part in parts]
        total = sum(sum(sizes) for sizes in held.values())
        models = sum(sizes[0] > 1 for sizes in held.values())  # a shared critic is a head of some kB
        print(f"| {name} | {models} |", *cells, f"{total:.0f} | {found['peak_rss_mb'] - first:+.0f} |", flush=True)


def varied(problem: Any, completion: Any) -> float:
    """A rule that gives random completions different rewards, so that there are updates and moments."""
    return hashlib.sha256(completion.text.encode()).digest()[0] / 255


def _cell(sizes: list[float]) -> str:
    return (" + ".join(f"{size:.0f}" for size in sizes) if sizes[1] else f"{sizes[0]:.0f}") + " |"


def _make_models(policy: Path, reward: Path) -> None:
    import torch
    from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification

    from r1lite.nano import nano_path

    tokenizer = AutoTokenizer.from_pretrained(nano_path())
    config = Qwen2Config(
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=len(tokenizer),
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(policy)
    config.num_labels = 1
    config.r1lite_reward = {"template": "short", "centre": 0.0, "scale": 1.0}
    Qwen2ForSequenceClassification(config).save_pretrained(reward)
    for place in (policy, reward):
        tokenizer.save_pretrained(place)


def _in_a_process(stage: str, flags: list[str]) -> dict[str, Any]:
    job = json.dumps({"stage": stage, "flags": flags})
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--out", ".", "--one", job]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(flags)}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _one(stage: str, flags: list[str]) -> dict[str, Any]:
    """One run, in this process."""
    import r1lite.grpo.loop
    from r1lite.config import GRPOConfig, PPOConfig, load
    from r1lite.grpo.assembly import make_learner, train

    kept: dict[str, Any] = {}
    spent = {"cpu_s": 0.0, "learn_cpu_s": 0.0}

    def making(config: Any, setup: Any) -> Any:
        kept.update(setup=setup, learner=make_learner(config, setup))
        return _Timed(kept["learner"], spent)

    step = r1lite.grpo.loop.Loop.step

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return step(*arguments)
        finally:
            spent["cpu_s"] += time.process_time() - began

    r1lite.grpo.loop.Loop.step = timed  # type: ignore[assignment, method-assign]
    stages: dict[str, type[GRPOConfig | PPOConfig]] = {"grpo": GRPOConfig, "ppo": PPOConfig}
    config = load(stages[stage], flags)
    with contextlib.redirect_stdout(sys.stderr):
        summary = train(config, making)
    assert config.out is not None  # always among the flags
    out = Path(config.out)
    at = {0: summary["eval_before"]["pass_at_1"], summary["steps"]: summary["eval_after"]["pass_at_1"]}
    records = out / "evaluations.jsonl"
    for line in records.read_text().splitlines() if records.exists() else []:
        at[json.loads(line)["step"]] = json.loads(line)["pass_at_1"]
    return {
        **spent,
        "accuracy": {128 * number: value for number, value in at.items()},
        "held": _held(kept["setup"], kept["learner"]),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


class _Timed:
    """A learner with timed updates."""

    def __init__(self, learner: Any, spent: dict[str, float]) -> None:
        self._learner, self._spent = learner, spent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def learn(self, *arguments: Any) -> Any:
        began = time.process_time()
        try:
            return self._learner.learn(*arguments)
        finally:
            self._spent["learn_cpu_s"] += time.process_time() - began


def _held(setup: Any, learner: Any) -> dict[str, tuple[float, float, float]]:
    """MB of weights, gradient and optimizer moments, by model."""
    held = {"policy": _sizes(learner.policy.model, learner.trainer)}
    if learner.reference is not None:
        held["reference"] = _sizes(learner.reference.model, None)
    if learner.critic is not None:
        held["critic"] = _sizes(learner.critic.model.model, learner.critic.trainer)
    for name, verifier in setup.scorer.reward.verifiers.items():
        if name.startswith("rm:"):
            held["reward model"] = _sizes(verifier.model, None)
    return held


def _sizes(model: Any, trainer: Any) -> tuple[float, float, float]:
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if trainer is None:
        return weights / 1e6, 0.0, 0.0
    gradient = sum(p.numel() * p.element_size() for p in trainer.parameters)
    states = trainer.optimizer.state.values()
    moments = sum(v.numel() * v.element_size() for state in states for v in state.values() if hasattr(v, "numel"))
    return weights / 1e6, gradient / 1e6, moments / 1e6


if __name__ == "__main__":
    main()
