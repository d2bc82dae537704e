"""Settings by paper: `--preset dapo`. `r1lite show-preset dapo` prints them; no torch here.

A preset lies above our defaults and below everything else: the recipe of a bundled model, your recipe, your flags. It
sets what its paper names and leaves the rest alone.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.errors import UserError


@dataclass(frozen=True, slots=True)
class Preset:
    """A published method. `settings`: field -> (value, where it is from)."""

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
        },
    ),
    "cispo": Preset(
        "Clipped importance-sampling weights",
        "MiniMax-M1, arXiv:2506.13585",
        {
            "advantage": ("grpo", "sec. 3.1"),
            "loss": ("cispo", "sec. 3.1"),
            "cispo_cap": (5.0, "not in the paper, which tunes it; as TRL recommends"),
            "aggregation": ("token_mean", "sec. 3.1"),
            "kl_coef": (0.0, "sec. 3.1: no KL"),
        },
    ),
    "sapo": Preset(
        "Soft adaptive policy optimization",
        "arXiv:2511.20347",
        {
            "advantage": ("grpo", "as GRPO"),
            "loss": ("sapo", "the method"),
            "sapo_tau_positive": (1.0, "experiments"),
            "sapo_tau_negative": (1.05, "experiments"),
            "aggregation": ("sequence_mean", "as GRPO"),
            "kl_coef": (0.0, "left out"),
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
            "kl_coef": (0.05, "as TRL; the paper: 0.03 and 0.10, by data set"),
            "group_size": (4, "the experiments' larger k"),
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
            "kl_coef": (0.01, "as OpenRLHF"),
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
            "kl_coef": (1e-3, "as OpenRLHF"),
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
            "updates_per_rollout": (1, "strictly on policy"),
            "minibatches": (1, "strictly on policy"),
        },
    ),
    "maxrl": Preset(
        "Maximum likelihood reinforcement learning",
        "arXiv:2602.02710",
        {
            "advantage": ("maxrl", "(r - mean) / mean"),
            "kl_coef": (0.0, "no KL"),
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
        },
    ),
    "gdpo": Preset(
        "Group reward-decoupled normalization",
        "arXiv:2601.05242",
        {
            "advantage": ("gdpo", "each reward normalised by itself, then the sum over the batch"),
            "loss": ("clip", "as GRPO"),
        },
    ),
    "high_entropy": Preset(
        "DAPO on the fifth of the tokens with the highest entropy",
        "arXiv:2506.01939",
        {
            **{name: (value, f"as DAPO, arXiv:2503.14476 {source}") for name, (value, source) in _DAPO.items()},
            "top_entropy_share": (0.2, "the 20 % of the title's 80/20 rule"),
        },
    ),
    "ppo": Preset(
        "Proximal policy optimization, as for language models",
        "arXiv:1707.06347; InstructGPT, arXiv:2203.02155",
        {
            "advantage": ("gae", "1707.06347 eq. 11"),
            "gamma": (1.0, "2203.02155: no discount"),
            "gae_lambda": (1.0, "as verl and OpenRLHF; 2203.02155: 0.95"),
            "loss": ("clip", "1707.06347 eq. 7"),
            "clip_low": (0.2, "1707.06347 sec. 6.1"),
            "clip_high": (0.2, "1707.06347 sec. 6.1"),
            "aggregation": ("token_mean", "1707.06347 eq. 7"),
            "whiten_advantages": (True, "as verl and OpenRLHF"),
            "value_clip": (0.5, "as verl and OpenRLHF"),
            "kl_in": ("reward", "2203.02155 eq. 2"),
            "kl_estimator": ("k1", "2203.02155 eq. 2"),
            "kl_coef": (0.02, "2203.02155"),
        },
        stage="ppo",
    ),
    "r1_zero": Preset(
        "DeepSeek-R1-Zero",
        "arXiv:2501.12948, with the figures of its 2025 edition in Nature",
        {
            "template": ("r1_zero", "table 1"),
            "advantage": ("grpo", "sec. 2.2.1"),
            "loss": ("clip", "sec. 2.2.1"),
            "aggregation": ("sequence_mean", "sec. 2.2.1"),
            "clip_low": (1.0, "clip ratio 10: no lower bound, since a ratio is never below 0"),
            "clip_high": (10.0, "clip ratio 10"),
            "kl_in": ("loss", "sec. 2.2.1"),
            "kl_estimator": ("k3", "sec. 2.2.1"),
            "kl_coef": (1e-3, "training details"),
            "reference_refresh_steps": (400, "training details"),
            "lr": (3e-6, "training details"),
            "temperature": (1.0, "training details"),
            "group_size": (16, "training details"),
            "prompts_per_step": (32, "training details"),
            "updates_per_rollout": (1, "training details"),
            "max_completion_tokens": (32768, "training details: until step 8,200, then 65,536"),
            "steps": (10400, "training details"),
        },
    ),
}


def preset_values(name: str, stage: str) -> dict[str, Any]:
    """What a preset sets. Raises ValueError for a name that isn't one of this stage's."""
    preset = PRESETS.get(name)
    if preset is None:
        near = difflib.get_close_matches(name, PRESETS, 1)
        raise ValueError(
            f"--preset '{name}' is unknown; "
            + (f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(PRESETS))}")
        )
    if preset.stage != stage:
        raise ValueError(f"--preset {name} is for r1lite {preset.stage}, not for r1lite {stage}")
    return preset.values


def describe(name: str) -> str:
    """A preset as text: a line for each field, with its source."""
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
    """`r1lite show-preset [NAME...]`: all names without one. Returns the exit code; raises UserError."""
    if any(word in ("-h", "--help") for word in arguments):
        print("usage: r1lite show-preset [NAME ...]\n\nPrints what presets set, and where each value is from.")
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
