"""Runs that must come out the same whatever the number of ranks is."""

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
    "optimal token": ["--shard", "grad"],
    "own critic": ["--shard", "full"],
    "shared warm-up": ["--shard", "full"],
}
CASES = {
    **{name: ["grpo", *SIZES, *_GROUP, *flags] for name, flags in GRPO.items()},
    **{name: ["ppo", *SIZES, *flags] for name, flags in PPO.items()},
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
    if "value_samples" not in preset.values  # refused
}
