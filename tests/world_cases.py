"""Runs that must come out the same whatever the number of ranks is."""

import json

from r1lite.config.presets import PRESETS

SIZES = [
    *("--template", "short", "--steps", "3", "--max-completion-tokens", "6", "--lr", "3e-3", "--warmup-steps", "0"),
    *("--prompts-per-step", "5", "--eval-problems", "5", "--eval-sample-problems", "3", "--eval-samples", "2"),
    *("--score-workers", "0", "--threads", "1", "--trust", "--no-report", "--quiet", "--save-every", "3"),
    *("--reward", "reward_for_tests:digits"),
]
# Five prompts for two and four ranks: uneven shares.
_GROUP = ["--group-size", "3"]
_PARTS = ["--reward", "0.5*reward_for_tests:digits + 0.5*reward_for_tests:has_7"]
GRPO = {
    "plain": [],
    # Many groups have no signal, so that there is little to deal, and refills are asked for.
    "dynamic sampling": ["--dynamic-sampling", "--reward", "reward_for_tests:has_7", "--max-refills", "2"],
    "no signal": ["--reward", "reward_for_tests:any_text"],
    "curriculum": ["--curriculum", "--reward", "reward_for_tests:has_7"],
    "retired": ["--retire-solved", "0.5"],
    "whitening": ["--whiten-advantages", "--minibatches", "2"],
    "kl in the reward": [
        *("--advantage", "reinforce_pp", "--kl-coef", "0.1", "--kl-in", "reward", "--kl-estimator", "k1"),
        *("--kl-target", "0.1"),
    ],
    "kl in the loss": ["--kl-coef", "0.1", "--reference-decay", "0.9", "--updates-per-rollout", "2"],
    "exact kl": ["--kl-coef", "0.1", "--kl-estimator", "full"],
    "entropy quantiles": ["--top-entropy-share", "0.3", "--entropy-coef", "0.05", "--minibatches", "2"],
    "entropy target": ["--entropy-target", "5", "--entropy-coef", "0.02"],
    "gdpo": ["--advantage", "gdpo", *_PARTS],
    "optimal token": ["--advantage", "optimal_token"],
    "covariance": ["--loss", "clip_cov", "--cov-share", "0.5", "--cov-low", "0.01", "--updates-per-rollout", "2"],
    "recorded tokens": ["--record-tokens"],
    "stopped early": ["--updates-per-rollout", "3", "--stop-kl", "1e-4"],
    "adapter": ["--lora-rank", "4", "--kl-coef", "0.1", "--updates-per-rollout", "2"],
    "adapter, exact kl": ["--lora-rank", "4", "--kl-coef", "0.1", "--kl-estimator", "full"],
    "small micro-batches": ["--micro-batch-tokens", "40", "--aggregation", "prompt_mean", "--minibatches", "2"],
}
PPO = {
    "own critic": ["--updates-per-rollout", "2", "--minibatches", "2", "--kl-coef", "0.05", "--kl-target", "0.1"],
    "shared critic": ["--critic", "shared", "--value-coef", "0.5"],
    "warm-up": ["--critic-warmup-steps", "2"],
    "shared warm-up": ["--critic", "shared", "--critic-warmup-steps", "2"],
}
# What is tried with the model in parts; the same numbers as whole.
IN_PARTS = {
    "plain": ["--shard", "full", "--gradient-checkpointing"],
    "kl in the loss": ["--shard", "full"],
    "exact kl": ["--shard", "grad"],
    "small micro-batches": ["--shard", "full"],
    "adapter": ["--shard", "full"],
    "adapter, exact kl": ["--shard", "grad", "--gradient-checkpointing"],
    "dpo of an adapter": ["--shard", "full"],
    "optimal token": ["--shard", "grad"],
    "own critic": ["--shard", "full"],
    "shared warm-up": ["--shard", "full"],
    "packed sft": ["--shard", "full"],
    "dpo": ["--shard", "grad"],
    "distill, half a set": ["--shard", "full"],
}
# Sets and pairs lie where world_data() puts them.
_LEARNS = [
    *("--template", "short", "--steps", "3", "--max-completion-tokens", "12", "--lr", "3e-3", "--rows-per-step", "5"),
    *("--eval-problems", "5", "--eval-sample-problems", "3", "--eval-samples", "2", "--score-workers", "0"),
    *("--threads", "1", "--trust", "--no-report", "--quiet", "--save-every", "3"),
]
_ON_POLICY = ["distill", *_LEARNS, "--method", "on-policy", "--teacher", "{teacher}"]
SUPERVISED = {
    "sft": ["sft", *_LEARNS, "--data", "{set}", "--micro-batch-tokens", "40"],
    "packed sft": ["sft", *_LEARNS, "--data", "{set}", "--packing", "on", "--packed-tokens", "30"],
    "dpo": ["dpo", *_LEARNS, "--data", "{pairs}", "--micro-batch-tokens", "60"],
    "dpo of an adapter": ["dpo", *_LEARNS, "--data", "{pairs}", "--lora-rank", "4"],
    "ipo": ["dpo", *_LEARNS, "--data", "{pairs}", "--loss", "ipo"],
    "distill": [*_ON_POLICY, "--on-policy-share", "1"],
    "distill, half a set": [*_ON_POLICY, "--on-policy-share", "0.4", "--data", "{set}"],
}
REWARD_MODEL = [
    *("reward-model", "--epochs", "1", "--batch-pairs", "8", "--lr", "3e-3", "--threads", "1", "--no-report"),
    *("--template", "short", "--quiet", "--quiet", "--micro-batch-tokens", "60", "--save-every", "3"),
]
EVALUATED = [
    *("eval", "--task", "gsm8k", "--template", "short", "--max-completion-tokens", "12", "--eval-problems", "7"),
    *("--eval-sample-problems", "5", "--eval-samples", "2", "--threads", "1", "--no-report", "--quiet"),
]
CASES = {
    **{name: ["grpo", *SIZES, *_GROUP, *flags] for name, flags in GRPO.items()},
    **{name: ["ppo", *SIZES, *flags] for name, flags in PPO.items()},
    **SUPERVISED,
}
# Sampled from servers, by the main rank for all.
_URLS = ["--engine", "vllm-server", "--engine-url", "{server}", "--engine-url", "{other}"]
_SERVED = [*_URLS, "--prove-weights-every", "1"]
SERVED = {
    "served plain": [*CASES["plain"], *_SERVED],
    "served kl": [*CASES["kl in the loss"], *_SERVED],
    "served refills": [*CASES["dynamic sampling"], *_SERVED],
    "served and interrupted": [
        *(*CASES["plain"], *_SERVED, "--interrupt-thinking-after", "4", "--max-completion-tokens", "90"),
    ],
    "served critic": [*CASES["own critic"], *_SERVED],
    "served adapter": [*CASES["adapter"], *_SERVED],
    "served sft": [*CASES["sft"], *_URLS],
    "served distill": [*CASES["distill"], *_URLS],
}
IN_PARTS |= {
    "served kl": ["--shard", "full"],
    "served critic": ["--shard", "grad"],
    "served adapter": ["--shard", "grad"],
    "served sft": ["--shard", "full"],
}
# Papers' numbers that are too large for three steps of six tokens.
_SMALLER = {
    "scalerl": ["--interrupt-thinking-after", "4", "--max-completion-tokens", "90"],
    "vapo": ["--critic-warmup-steps", "1"],
}
PRESET_CASES = {
    name: [
        *(preset.stage, *SIZES, "--preset", name, "--max-prompt-tokens", "40"),
        *(["--group-size", "4"] if preset.stage == "grpo" else []),
        *(["--minibatches", str(min(2, preset.values["minibatches"]))] if "minibatches" in preset.values else []),
        *_SMALLER.get(name, []),
    ]
    for name, preset in PRESETS.items()
}


def world_data(folder):
    """A set, pairs to tune by, pairs to train a reward model on: the paths by what stands for them in a command."""
    tables = {
        "set": [{"prompt": f"{i}+{i % 7}?\n", "completion": f"{i + i % 7}" + "." * (i % 5)} for i in range(40)],
        "pairs": [
            {"prompt": f"what is {n}+1?", "chosen": f"{n + 1}", "rejected": "no" + "." * (n % 3)} for n in range(24)
        ],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {name: str(folder / f"{name}.jsonl") for name in tables}


def over_mark(pids, rank):
    """A file that is there once a rank has nothing more to do but to end; it holds its CPU seconds."""
    return pids.with_name(f"{pids.name}-over-{rank}")
