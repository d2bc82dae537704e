"""Settings of PPO: those of its critic, and other defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.rl import RLConfig


class PPOConfig(RLConfig):
    """Proximal policy optimization (arXiv:1707.06347) with a critic, from verifiers or a reward model (rm:PATH)."""

    stage: ClassVar[str] = "ppo"

    advantage: Literal["gae"] = "gae"
    """Advantage estimator: generalized advantage estimation (arXiv:1506.02438). r1lite grpo has the others."""
    gae_lambda: float = Field(1.0, ge=0, le=1)
    """Lambda of GAE. 1: returns minus values, without bias (verl, OpenRLHF); lower values rely more on the critic
    (arXiv:1707.06347: 0.95)."""
    gae_lambda_alpha: float | None = Field(None, gt=0)
    """Length-adaptive lambda: 1 - 1/(this * l) for a completion of l tokens, instead of --gae-lambda (VAPO: 0.05)."""
    critic_gae_lambda: float | None = Field(None, ge=0, le=1)
    """Lambda of the returns that the critic learns; by default the policy's lambda (VAPO: 1)."""
    whiten_advantages: bool = True
    """Whiten the advantages of all tokens of a step to mean 0 and variance 1."""
    group_size: int = Field(1, ge=1)
    """Completions per problem (G); PPO works with one."""
    prompts_per_step: int = Field(128, ge=1)
    """Problems per step (P)."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Subtract the KL (--kl-coef) from each token's reward (InstructGPT), or add it to the loss."""
    kl_estimator: Literal["k1", "k2", "k3", "abs", "k1+", "k3+", "k3_corrected", "full"] = "k1"
    """Estimator of the KL per token; k1 is usual for --kl-in reward. --kl-in loss needs another one, such as k3."""
    critic: Literal["own", "shared"] = "own"
    """Backbone of the critic. own: a separate model, whose weights are all trained, even with --lora-rank; shared: the
    policy's, which then gets both gradients (less memory)."""
    critic_model: str | None = None
    """Initial weights of --critic own: a causal language model, a reward model, or a run of r1lite reward-model, with
    the policy's tokenizer. By default a copy of the policy."""
    critic_lr: float | None = Field(None, gt=0)
    """Peak learning rate of the critic; by default --lr."""
    critic_warmup_steps: int = Field(0, ge=0)
    """Number of first steps in which only the critic learns. The schedule of the policy's learning rate begins after
    them."""
    value_clip: float | None = Field(0.5, gt=0)
    """Value clipping: the value loss moves values at most this far from those before the step (reward units)."""
    value_huber: float | None = Field(None, gt=0)
    """Huber loss: beyond this, the critic's errors count linearly instead of squared (ReaLHF: 10)."""
    value_coef: float = Field(1.0, gt=0)
    """--critic shared: weight of the value loss in the backbone's gradient."""

    @property
    def has_token_advantages(self) -> bool:
        """True: each token has its own advantage."""
        return True

    def _contradictions(self) -> Iterator[str]:
        yield from super()._contradictions()
        if self.critic == "shared" and self.critic_model is not None:
            yield f"--critic-model {self.critic_model} is for --critic own; a shared critic uses the policy's backbone"
        if self.critic == "own" and self.value_coef != 1:
            yield (
                f"--value-coef {self.value_coef:g} weights the value loss of --critic shared; for --critic own set "
                "--critic-lr"
            )
        if self.gae_lambda_alpha is not None and self.gae_lambda != type(self).model_fields["gae_lambda"].default:
            yield "--gae-lambda-alpha and --gae-lambda both set lambda: choose one"
        if self.base_quantization != "none" and self.critic == "own" and self.critic_model is None:
            yield (
                f"--base-quantization {self.base_quantization}: a critic that begins as a copy of the policy can't "
                "train weights in 4 bits; use --critic shared, or name the model with --critic-model"
            )
        if self.loss == "a_star":
            yield "--loss a_star uses the optimal value and no critic: it is for r1lite grpo"
        if self.critic_warmup_steps >= self.steps:
            yield (
                f"--critic-warmup-steps {self.critic_warmup_steps} must be < --steps {self.steps}: the policy would "
                "never be trained"
            )

    def policy_lr_at(self, step: int) -> float:
        """See `RLConfig.policy_lr_at`."""
        alone = self.critic_warmup_steps
        return self.lr_at(max(0, step - alone), self.steps - alone)
