"""Settings of published papers: `--preset dapo`. `r1lite show-preset dapo` prints them. This module doesn't load torch.

A preset overrides r1lite's defaults; the recipe of a bundled model, your recipe and your flags override the preset. It
sets only what its paper specifies.

Batches are the paper's: a rollout of `prompts_per_step * group_size` completions is dealt to `minibatches` optimizer
steps, `updates_per_rollout` times. A bundled model's recipe replaces sizes (prompts, group, lengths, learning rate,
steps) but never the number of minibatches or passes, so that as many updates are off policy as in the paper. The
recipe's learning rate, which is for one update per rollout, is divided by the square root of the number of updates.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.errors import UserError
from verifiers.core import did_you_mean


@dataclass(frozen=True, slots=True)
class Preset:
    """A published method. `settings`: field -> (value, its source)."""

    title: str
    paper: str
    settings: Mapping[str, tuple[Any, str]]
    stage: str = "grpo"

    @property
    def values(self) -> dict[str, Any]:
        """The settings without their sources."""
        return {name: value for name, (value, _) in self.settings.items()}


_DAPO = {
    "advantage": ("grpo", "eq. 9"),
    "loss": ("clip", "eq. 8"),
    "clip_low": (0.2, "sec. 4.1"),
    "clip_high": (0.28, "sec. 3.1 and 4.1: clip-higher"),
    "aggregation": ("token_mean", "eq. 8, sec. 3.3"),
    "dynamic_sampling": (True, "eq. 11, sec. 3.2"),
    "overlong_penalty": (1.0, "eq. 13, sec. 3.4; its buffer is a fifth of the longest completion, as in the paper"),
    "kl_coef": (0.0, "sec. 2.3: no KL"),
    "lr": (1e-6, "sec. 4.1"),
    "lr_schedule": ("constant", "sec. 4.1"),
    "warmup_steps": (20, "sec. 4.1"),
    "prompts_per_step": (512, "sec. 4.1"),
    "group_size": (16, "sec. 4.1"),
    "minibatches": (16, "sec. 4.1: 16 updates a rollout step"),
    "max_completion_tokens": (20480, "sec. 4.1: 16,384 and 4,096 of the penalty's buffer"),
    "temperature": (1.0, "sec. 4.1"),
}

_ENTROPY_MECHANISM = {
    "aggregation": ("token_mean", "the authors' recipe/dapo"),
    "kl_coef": (0.0, "the authors' recipe/dapo"),
    "lr": (5e-7, "the authors' recipe/dapo"),
    "temperature": (1.0, "the authors' recipe/dapo"),
    "prompts_per_step": (256, "the authors' recipe/dapo"),
    "group_size": (8, "the authors' recipe/dapo"),
    "minibatches": (8, "the authors' recipe/dapo: 256 / 32"),
    "max_completion_tokens": (8192, "the authors' recipe/dapo"),
}

PRESETS: dict[str, Preset] = {
    "grpo": Preset(
        "Group relative policy optimization",
        "DeepSeekMath, arXiv:2402.03300",
        {
            "advantage": ("grpo", "sec. 4.1.2"),
            "loss": ("clip", "eq. 3"),
            "aggregation": ("sequence_mean", "eq. 3"),
            "kl_in": ("loss", "eq. 3"),
            "kl_estimator": ("k3", "eq. 4"),
            "kl_coef": (0.04, "sec. 4.2"),
            "lr": (1e-6, "sec. 4.2"),
            "group_size": (64, "sec. 4.2"),
            "prompts_per_step": (16, "sec. 4.2: 1,024 completions"),
            "max_completion_tokens": (1024, "sec. 4.2"),
            "updates_per_rollout": (1, "sec. 4.2"),
        },
    ),
    "dr_grpo": Preset(
        "GRPO done right: no bias from length or from the group's spread",
        "arXiv:2503.20783",
        {
            "advantage": ("dr_grpo", "sec. 3.2: no division by the std"),
            "loss": ("clip", "sec. 3.1"),
            "aggregation": ("constant", "sec. 3.2: divided by the generation budget"),
            "kl_coef": (0.0, "sec. 3.1: no KL"),
            "lr": (1e-6, "the authors' README"),
            "temperature": (1.0, "the authors' README"),
            "prompts_per_step": (128, "the authors' README: rollout_batch_size"),
            "group_size": (8, "the authors' README: num_samples"),
            "minibatches": (8, "the authors' README: 1,024 completions, train_batch_size 128"),
            "updates_per_rollout": (1, "the authors' README: num_ppo_epochs"),
            "max_completion_tokens": (3000, "the authors' README: generate_max_length"),
        },
    ),
    "dapo": Preset("Decoupled clip and dynamic sampling", "arXiv:2503.14476", _DAPO),
    "gspo": Preset(
        "Group sequence policy optimization",
        "arXiv:2507.18071",
        {
            "advantage": ("grpo", "sec. 4.1"),
            "loss": ("clip", "sec. 4.1"),
            "ratio_level": ("sequence", "sec. 4.1"),
            "aggregation": ("sequence_mean", "sec. 4.1"),
            "clip_low": (3e-4, "sec. 5.1"),
            "clip_high": (4e-4, "sec. 5.1"),
            "minibatches": (4, "sec. 5.1"),
            "kl_coef": (0.0, "sec. 4.1: left out"),
            "lr": (1e-6, "verl's examples/gspo_trainer"),
            "prompts_per_step": (256, "verl's examples/gspo_trainer"),
            "group_size": (16, "verl's examples/gspo_trainer"),
            "max_completion_tokens": (8192, "verl's examples/gspo_trainer"),
        },
    ),
    "cispo": Preset(
        "Clipped importance-sampling weights",
        "MiniMax-M1, arXiv:2506.13585",
        {
            "advantage": ("grpo", "sec. 3.1"),
            "loss": ("cispo", "eq. 4 and 5: no lower bound"),
            "cispo_cap": (5.0, "not found: the paper tunes it and gives no value; as TRL's paper index for ScaleRL"),
            "aggregation": ("token_mean", "eq. 4"),
            "kl_coef": (0.0, "sec. 3.1: no KL"),
            "dynamic_sampling": (True, "sec. 3.1: as DAPO"),
            "overlong_penalty": (1.0, "sec. 3.1: the length penalty of DAPO"),
            "fp32_head": (True, "sec. 3.2"),
            "adam_beta2": (0.95, "sec. 3.2"),
            "minibatches": (16, "sec. 3.1: 16 rounds of off-policy updates a generation batch"),
            "prompts_per_step": (256, "not found; a multiple of its rounds"),
        },
    ),
    "sapo": Preset(
        "Soft adaptive policy optimization",
        "arXiv:2511.20347",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("sapo", "the method"),
            "sapo_tau_positive": (1.0, "verl's examples/sapo_trainer; TRL's paper index"),
            "sapo_tau_negative": (1.05, "verl's examples/sapo_trainer; TRL's paper index"),
            "aggregation": ("sequence_mean", "as GRPO"),
            "kl_coef": (0.0, "left out"),
            "minibatches": (4, "verl's examples/sapo_trainer/run_qwen3_8b_fsdp.sh: 256 / 64; its 30B: 256 / 32"),
            "lr": (1e-6, "verl's examples/sapo_trainer"),
            "prompts_per_step": (256, "verl's examples/sapo_trainer"),
            "group_size": (16, "verl's examples/sapo_trainer"),
            "max_completion_tokens": (8192, "verl's examples/sapo_trainer"),
        },
    ),
    "gmpo": Preset(
        "Geometric-mean policy optimization",
        "arXiv:2507.20673",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("gmpo", "the method"),
            "clip_low": (0.4, "the ratio within (e^-0.4, e^0.4)"),
            "clip_high": (0.4, "the ratio within (e^-0.4, e^0.4)"),
            "aggregation": ("sequence_mean", "the method"),
            "kl_coef": (0.0, "the authors' scripts: beta"),
            "lr": (1e-6, "the authors' scripts"),
            "prompts_per_step": (128, "the authors' scripts: rollout_batch_size"),
            "group_size": (8, "sec. 4"),
            "minibatches": (8, "the authors' scripts: 1,024 completions, train_batch_size 128"),
            "updates_per_rollout": (1, "the authors' scripts: num_ppo_epochs"),
            "max_completion_tokens": (3000, "the authors' scripts: generate_max_length"),
        },
    ),
    "rloo": Preset(
        "REINFORCE leave-one-out",
        "arXiv:2402.14740",
        {
            "advantage": ("rloo", "the estimator"),
            "loss": ("reinforce", "a completion is one action; no clipping"),
            "aggregation": ("sequence_sum", "a completion is one action"),
            "kl_in": ("reward", "the objective's reward"),
            "kl_estimator": ("k1", "the objective's reward"),
            "kl_coef": (0.03, "appendix C; 0.10 on another data set"),
            "lr": (1e-6, "appendix C"),
            "group_size": (4, "the experiments' larger k"),
            "prompts_per_step": (128, "appendix C: batches of 512"),
            "updates_per_rollout": (1, "on policy"),
            "minibatches": (1, "on policy"),
        },
    ),
    "reinforce_pp": Preset(
        "REINFORCE++",
        "arXiv:2501.03262",
        {
            "advantage": ("reinforce_pp", "returns of tokens, whitened over the batch"),
            "gamma": (1.0, "no discount"),
            "loss": ("clip", "PPO's clip on tokens"),
            "clip_low": (0.2, "as PPO"),
            "clip_high": (0.2, "as PPO"),
            "aggregation": ("token_mean", "as PPO"),
            "kl_in": ("reward", "per token"),
            "kl_estimator": ("k1", "per token"),
            "kl_coef": (1e-4, "OpenRLHF's train_reinforce_llama_ray_hybrid_engine.sh (07d58e1)"),
            "lr": (5e-7, "OpenRLHF's train_reinforce_llama_ray_hybrid_engine.sh"),
            "prompts_per_step": (128, "the same script: rollouts of 1,024 completions, there of as many prompts"),
            "group_size": (8, "the same: 1,024 / 128"),
            "minibatches": (8, "the same: rollout_batch_size 1,024, train_batch_size 128"),
            "updates_per_rollout": (1, "the same: max_epochs"),
            "max_completion_tokens": (1024, "the same: generate_max_len"),
        },
    ),
    "reinforce_pp_baseline": Preset(
        "REINFORCE++ with the group's mean as its baseline",
        "arXiv:2501.03262",
        {
            "advantage": ("reinforce_pp_baseline", "r - mean of the group, whitened over the batch"),
            "loss": ("clip", "PPO's clip on tokens"),
            "aggregation": ("token_mean", "as PPO"),
            "kl_in": ("loss", "as OpenRLHF"),
            "kl_estimator": ("k2", "as OpenRLHF"),
            "kl_coef": (1e-5, "OpenRLHF's examples/scripts/train_reinforce_baseline_*.sh"),
            "prompts_per_step": (128, "OpenRLHF's examples/scripts/train_reinforce_baseline_*.sh"),
            "group_size": (8, "OpenRLHF's examples/scripts/train_reinforce_baseline_*.sh"),
            "minibatches": (1, "OpenRLHF's scripts: rollouts and batches of 1,024 completions: on policy"),
            "updates_per_rollout": (1, "OpenRLHF's scripts: max_epochs"),
        },
    ),
    "opo": Preset(
        "On-policy RL with the optimal baseline",
        "arXiv:2505.23585",
        {
            "advantage": ("opo", "the length-weighted baseline"),
            "loss": ("reinforce", "strictly on policy"),
            "aggregation": ("sequence_sum", "what the baseline is derived for"),
            "kl_coef": (0.0, "no KL"),
            "prompts_per_step": (1024, "verl's docs/algo/opo.md, by the authors"),
            "updates_per_rollout": (1, "strictly on policy"),
            "minibatches": (1, "strictly on policy"),
        },
    ),
    "maxrl": Preset(
        "Maximum likelihood reinforcement learning",
        "arXiv:2602.02710",
        {
            "advantage": ("maxrl", "(r - mean) / mean"),
            "kl_coef": (0.0, "the authors' qwen3_experiments/run_qwen3_training.sh"),
            "lr": (1e-6, "the authors' qwen3_experiments/run_qwen3_training.sh"),
            "max_grad_norm": (0.3, "the same: GRAD_CLIP"),
            "prompts_per_step": (256, "the same: FULL_BATCH_SIZE"),
            "group_size": (16, "the same: NUM_PER_PROMPT_ROLLOUTS"),
            "minibatches": (1, "the same: PPO_MINI_BATCH_SIZE is the whole batch"),
            "updates_per_rollout": (1, "the same: PPO_EPOCHS"),
            "max_completion_tokens": (4096, "the same: MAX_RESPONSE_LENGTH"),
        },
    ),
    "lite_ppo": Preset(
        "Lite PPO: group mean, batch std, token mean",
        "arXiv:2508.08221",
        {
            "advantage": ("batch_scaled", "the method"),
            "loss": ("clip", "as PPO"),
            "aggregation": ("token_mean", "the method"),
            "kl_coef": (0.0, "no KL"),
            "temperature": (0.99, "as TRL's paper index quotes it"),
            "top_p": (0.99, "as TRL's paper index quotes it"),
            "top_k": (100, "as TRL's paper index quotes it"),
            "biased_sampling": (True, "what top_p and top_k need; importance weights correct for what they cut off"),
            "group_size": (8, "as TRL's paper index quotes it: num_return_sequences"),
            "prompts_per_step": (128, "as TRL's paper index quotes it: 1,024 completions a rollout"),
            "minibatches": (8, "as TRL's paper index quotes it: of 128 completions each"),
            "updates_per_rollout": (1, "as TRL's paper index quotes it: ppo_epochs"),
        },
    ),
    "gdpo": Preset(
        "Group reward-decoupled normalization",
        "arXiv:2601.05242",
        {
            "advantage": ("gdpo", "each reward normalised by itself, then the sum over the batch"),
            "loss": ("clip", "as GRPO"),
            "lr": (5e-6, "the authors' recipe for GSM8K"),
            "group_size": (16, "the authors' recipe for GSM8K: num_generations"),
            "max_completion_tokens": (1024, "the authors' recipe for GSM8K"),
            "prompts_per_step": (128, "verl's examples/gdpo_trainer"),
            "minibatches": (4, "verl's examples/gdpo_trainer: 128 / 32"),
        },
    ),
    "dppo": Preset(
        "Divergence proximal policy optimization: a trust region on probabilities",
        "arXiv:2602.04879",
        {
            "advantage": ("dr_grpo", "as Dr. GRPO: no division by the std"),
            "loss": ("dppo", "the method"),
            "dppo_divergence": ("tv", "binary total variation"),
            "clip_low": (0.15, "verl's examples/dppo_trainer, by the authors; kl: 0.05"),
            "clip_high": (0.15, "verl's examples/dppo_trainer, by the authors; kl: 0.05"),
            "aggregation": ("constant", "verl's examples/dppo_trainer: seq-mean-token-sum-norm"),
            "kl_coef": (0.0, "verl's examples/dppo_trainer"),
            "lr": (1e-6, "verl's examples/dppo_trainer"),
            "prompts_per_step": (256, "verl's examples/dppo_trainer"),
            "group_size": (16, "verl's examples/dppo_trainer"),
            "minibatches": (8, "verl's examples/dppo_trainer: 256 / 32"),
            "max_completion_tokens": (8192, "verl's examples/dppo_trainer"),
        },
    ),
    "vespo": Preset(
        "Variational sequence-level soft policy optimization",
        "arXiv:2602.10693",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("vespo", "the method"),
            "vespo_k_positive": (2.0, "sec. 3.4; the authors' recipe/vespo"),
            "vespo_lambda_positive": (3.0, "sec. 3.4; the authors' recipe/vespo"),
            "vespo_k_negative": (3.0, "sec. 3.4; the authors' recipe/vespo"),
            "vespo_lambda_negative": (2.0, "sec. 3.4; the authors' recipe/vespo"),
            "aggregation": ("token_mean", "as TRL"),
            "kl_coef": (0.0, "no KL"),
            "lr": (1e-6, "the authors' recipe/vespo/run/sync/vespo_N_8.sh"),
            "prompts_per_step": (2048, "the authors' recipe/vespo/run/sync/vespo_N_8.sh"),
            "group_size": (8, "the authors' recipe/vespo/run/sync/vespo_N_8.sh"),
            "minibatches": (8, "the authors' recipe/vespo/run/sync/vespo_N_8.sh: 2,048 / 256"),
            "max_completion_tokens": (15360, "the authors' recipe/vespo/run/sync/vespo_N_8.sh"),
        },
    ),
    "luspo": Preset(
        "Length-unbiased sequence policy optimization: GSPO times the completion's length",
        "arXiv:2602.05261",
        {
            "advantage": ("grpo", "as GSPO"),
            "loss": ("clip", "as GSPO"),
            "ratio_level": ("sequence", "as GSPO"),
            "aggregation": ("sequence_sum", "the method: the loss of a completion times its length"),
            "clip_low": (2e-3, "sec. 5.1, as TRL's paper index quotes it"),
            "clip_high": (2.5e-3, "sec. 5.1, as TRL's paper index quotes it"),
            "kl_coef": (0.0, "as GSPO"),
            "minibatches": (4, "not found; as GSPO, arXiv:2507.18071 sec. 5.1"),
            "prompts_per_step": (256, "not found; as verl's examples/gspo_trainer"),
            "group_size": (16, "not found; as verl's examples/gspo_trainer"),
        },
    ),
    "clip_cov": Preset(
        "The entropy mechanism: tokens of high covariance are left out",
        "arXiv:2505.22617",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("clip_cov", "the method"),
            "cov_share": (2e-4, "the authors' recipe/dapo/7b_clip_cov.sh"),
            "cov_low": (1.0, "the authors' recipe/dapo/7b_clip_cov.sh"),
            "cov_high": (5.0, "the authors' recipe/dapo/7b_clip_cov.sh"),
            "clip_low": (1.0, "the authors' recipe/dapo/7b_clip_cov.sh: no lower bound"),
            "clip_high": (1.0, "the authors' recipe/dapo/7b_clip_cov.sh"),
            **_ENTROPY_MECHANISM,
        },
    ),
    "kl_cov": Preset(
        "The entropy mechanism: tokens of high covariance are held to the old policy",
        "arXiv:2505.22617",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("kl_cov", "the method"),
            "cov_share": (2e-3, "the authors' recipe/dapo/7b_kl_cov.sh: k_percent 0.2"),
            "kl_cov_coef": (1.0, "the authors' recipe/dapo/7b_kl_cov.sh"),
            **_ENTROPY_MECHANISM,
        },
    ),
    "optimal_token": Preset(
        "The optimal token baseline",
        "arXiv:2602.07078",
        {
            "advantage": ("optimal_token", "the method"),
            "loss": ("clip", "as PPO"),
            "aggregation": ("token_mean", "as verl"),
            "kl_coef": (0.0, "verl's examples/otb_trainer"),
            "lr": (1e-6, "verl's examples/otb_trainer, by the authors"),
            "prompts_per_step": (128, "verl's examples/otb_trainer"),
            "group_size": (8, "verl's examples/otb_trainer"),
            "minibatches": (1, "verl's examples/otb_trainer: on policy"),
            "max_completion_tokens": (2048, "verl's examples/otb_trainer"),
        },
    ),
    "a_star_po": Preset(
        "Optimal advantage regression",
        "A*-PO, arXiv:2505.20686",
        {
            "advantage": ("a_star", "rewards minus the optimal value"),
            "value_samples": (8, "the authors' scripts/apo_gsm8k.sh: num_gen_to_use, from the initial reference"),
            "loss": ("a_star", "the regression"),
            "aggregation": ("sequence_mean", "the regression"),
            "value_beta": (0.5, "the authors' scripts/apo_gsm8k.sh: beta1"),
            "a_star_beta": (1e-3, "the authors' scripts/apo_gsm8k.sh: beta2"),
            "lr": (1e-6, "the authors' scripts/apo_gsm8k.sh"),
            "prompts_per_step": (256, "the authors' scripts/apo_gsm8k.sh"),
            "group_size": (1, "the authors' README: one generation per prompt"),
            "minibatches": (2, "the authors' scripts/apo_gsm8k.sh: 256 / 128"),
            "max_completion_tokens": (1024, "the authors' scripts/apo_gsm8k.sh"),
        },
    ),
    "pass_at_k": Preset(
        "Pass@k training",
        "arXiv:2508.10751",
        {
            "advantage": ("pass_at_k", "sec. 2.4, eq. 14 and 15"),
            "advantage_k": (4, "sec. 3.4: 4, 8 and 16 are compared; the value of other experiments was not found"),
            "loss": ("clip", "app. A.2: DAPO's clip-higher and token mean, and none of its other parts"),
            "clip_low": (0.2, "app. A.2"),
            "clip_high": (0.28, "app. A.2"),
            "aggregation": ("token_mean", "app. A.2"),
            "kl_coef": (0.0, "app. A.2: no regularization"),
            "lr": (1e-6, "app. A.2"),
            "warmup_steps": (10, "app. A.2"),
            "prompts_per_step": (128, "app. A.2"),
            "group_size": (32, "app. A.2"),
            "minibatches": (4, "app. A.2: minibatches of 32 prompts"),
        },
    ),
    "scalerl": Preset(
        "ScaleRL: the methods that scaled best in a large comparison",
        "arXiv:2510.13786",
        {
            "advantage": ("batch_scaled", "sec. 4: batch-level normalization"),
            "loss": ("cispo", "sec. 4: truncated importance sampling"),
            "cispo_cap": (5.0, "app. A.17: 4, 5 and 8 did equally well"),
            "aggregation": ("prompt_mean", "sec. 4: prompt-level averaging"),
            "fp32_head": (True, "sec. 4: FP32 logits"),
            "dynamic_sampling": (True, "sec. 3.2: zero-variance filtering; the paper doesn't refill the batch"),
            "retire_solved": (0.9, "sec. 3.2: no-positive-resampling, pass rates of 0.9 and more"),
            "kl_coef": (0.0, "sec. 2: no KL"),
            "lr": (5e-7, "app. A.3"),
            "lr_schedule": ("constant", "app. A.3"),
            "warmup_steps": (100, "app. A.3"),
            "weight_decay": (0.01, "app. A.3"),
            "group_size": (16, "sec. 2, app. A.3"),
            "prompts_per_step": (384, "app. A.3: 48 prompts per update, and 8 updates per rollout"),
            "minibatches": (8, "sec. 3.1, app. A.11: PipelineRL with k = 8: weights are up to 8 updates old"),
            "interrupt_thinking_after": (12288, "sec. 2, app. A.3; the phrase: sec. 4; TRL: 10,240 to 12,288"),
            "max_completion_tokens": (14336, "sec. 2, app. A.3: 12,288 for thinking and 2,048 for the solution"),
        },
    ),
    "high_entropy": Preset(
        "DAPO on the 20 % of tokens with the highest entropy",
        "arXiv:2506.01939",
        {
            **{name: (value, f"as DAPO, arXiv:2503.14476 {source}") for name, (value, source) in _DAPO.items()},
            "top_entropy_share": (0.2, "the 20 % of the title's 80/20 rule"),
        },
    ),
    "ppo": Preset(
        "Proximal policy optimization, as used for language models",
        "arXiv:1707.06347; InstructGPT, arXiv:2203.02155",
        {
            "advantage": ("gae", "1707.06347 eq. 11"),
            "gamma": (1.0, "2203.02155 app. C.4: no discount"),
            "gae_lambda": (1.0, "as verl and OpenRLHF; not in 2203.02155; 1707.06347 tables 3 to 5: 0.95"),
            "loss": ("clip", "1707.06347 eq. 7"),
            "clip_low": (0.2, "1707.06347 sec. 6.1"),
            "clip_high": (0.2, "1707.06347 sec. 6.1"),
            "aggregation": ("token_mean", "1707.06347 eq. 7"),
            "whiten_advantages": (True, "as verl and OpenRLHF"),
            "value_clip": (0.5, "as verl and OpenRLHF"),
            "minibatches": (4, "1707.06347 table 5: 128 x 8 samples, minibatches of 32 x 8; 2203.02155 app. C.4: 8"),
            "updates_per_rollout": (3, "1707.06347 table 5: 3 epochs; 2203.02155 app. C.4: 1"),
            "kl_in": ("reward", "2203.02155 eq. 2"),
            "kl_estimator": ("k1", "2203.02155 eq. 2"),
            "kl_coef": (0.02, "2203.02155 app. C.4"),
        },
        stage="ppo",
    ),
    "vapo": Preset(
        "Value-based augmented PPO for reasoning",
        "arXiv:2504.05118",
        {
            "advantage": ("gae", "sec. 4.1"),
            "gamma": (1.0, "sec. 5.1"),
            "gae_lambda_alpha": (0.05, "sec. 5.1: lambda = 1 - 1/(0.05 l)"),
            "critic_gae_lambda": (1.0, "sec. 5.1: decoupled GAE"),
            "critic_warmup_steps": (50, "sec. 5.1: value pretraining"),
            "loss": ("clip", "eq. 8"),
            "clip_low": (0.2, "sec. 5.1: clip-higher"),
            "clip_high": (0.28, "sec. 5.1: clip-higher"),
            "aggregation": ("token_mean", "sec. 5.1: token-level loss"),
            "positive_nll_coef": (0.1, "eq. 9 and 10, sec. 5.1"),
            "kl_coef": (0.0, "eq. 10 has none"),
            "lr": (1e-6, "sec. 5.1"),
            "critic_lr": (2e-6, "sec. 5.1"),
            "lr_schedule": ("constant", "sec. 5.1; the length of its warm-up was not found"),
            "prompts_per_step": (512, "sec. 5.1: group sampling"),
            "group_size": (16, "sec. 5.1: group sampling"),
            "minibatches": (16, "sec. 5.1: 8,192 completions, minibatches of 512"),
        },
        stage="ppo",
    ),
    "r1_zero": Preset(
        "DeepSeek-R1-Zero",
        "arXiv:2501.12948; figures: Methods of the Nature paper, doi:10.1038/s41586-025-09422-z",
        {
            "template": ("r1_zero", "table 1"),
            "advantage": ("grpo", "sec. 2.2.1"),
            "loss": ("clip", "sec. 2.2.1"),
            "aggregation": ("sequence_mean", "sec. 2.2.1"),
            "clip_low": (1.0, "as below: no lower bound, since a ratio is never below 0"),
            "clip_high": (10.0, "Methods, for R1's first RL stage; no value for R1-Zero is given"),
            "kl_in": ("loss", "sec. 2.2.1"),
            "kl_estimator": ("k3", "sec. 2.2.1"),
            "kl_coef": (1e-3, "Methods"),
            "reference_refresh_steps": (25, "Methods: every 400 steps of 512 outputs; a step here is 16 of those"),
            "lr": (3e-6, "Methods"),
            "temperature": (1.0, "Methods"),
            "group_size": (16, "Methods"),
            "prompts_per_step": (512, "Methods: rollouts of 8,192 outputs"),
            "minibatches": (16, "Methods: 32 questions, 512 outputs each"),
            "updates_per_rollout": (1, "Methods: a single inner epoch"),
            "max_completion_tokens": (32768, "Methods: until step 8,200, then 65,536"),
            "steps": (650, "Methods: 10,400 steps of 512 outputs"),
        },
    ),
}


def preset_values(name: str, stage: str) -> dict[str, Any]:
    """The settings of a preset. Raises ValueError if the name is unknown or the preset is for another stage."""
    preset = PRESETS.get(name)
    if preset is None:
        hint = did_you_mean(name, PRESETS, f"known: {', '.join(sorted(PRESETS))}")
        raise ValueError(f"--preset '{name}' is unknown; {hint}")
    if preset.stage != stage:
        raise ValueError(f"--preset {name} is for r1lite {preset.stage}, not for r1lite {stage}")
    return preset.values


def describe(name: str) -> str:
    """A preset as text: one line per field, with its source."""
    preset = PRESETS[name]
    shown = {field: _shown(value) for field, value in preset.values.items()}
    width, height = max(map(len, shown)), max(map(len, shown.values()))
    lines = [
        f"  {field:<{width}}  {shown[field]:<{height}}  {source}" for field, (_, source) in preset.settings.items()
    ]
    return "\n".join([f"{name}: {preset.title} ({preset.paper}); r1lite {preset.stage} --preset {name}", *lines])


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def main(arguments: Sequence[str]) -> int:
    """Runs `r1lite show-preset [NAME...]`; without names, lists presets. Returns the exit code; raises UserError."""
    if any(word in ("-h", "--help") for word in arguments):
        print("usage: r1lite show-preset [NAME ...]\n\nPrints the settings of presets with the source of each value.")
        return 0
    if not arguments:
        width = max(map(len, PRESETS))
        for name, preset in PRESETS.items():
            print(f"{name:<{width}}  {preset.title} ({preset.paper})")
        return 0
    for name in arguments:
        if name not in PRESETS:
            try:
                preset_values(name, "")
            except ValueError as error:
                raise UserError(str(error).removeprefix("--")) from None
        print(describe(name), file=sys.stdout)
    return 0
