"""PPO: what the critic adds to reinforcement learning."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.rl import RLConfig


class PPOConfig(RLConfig):
    """Proximal policy optimization (arXiv:1707.06347) with a critic, from verifiers or a reward model (rm:PATH)."""

    stage: ClassVar[str] = "ppo"

    advantage: Literal["gae"] = "gae"
    """Generalized advantage estimation (arXiv:1506.02438) is what a critic is for; others are r1lite grpo's."""
    gae_lambda: float = Field(1.0, ge=0, le=1)
    """1: returns less values, no bias (verl, OpenRLHF); lower trusts the critic more (arXiv:1707.06347: 0.95)."""
    gae_lambda_alpha: float | None = Field(None, gt=0)
    """Give a completion of l tokens the lambda 1 - 1/(this * l) instead of --gae-lambda (VAPO: 0.05)."""
    critic_gae_lambda: float | None = Field(None, ge=0, le=1)
    """Lambda of the returns that the critic learns; by default the policy's (VAPO: 1, with another for the policy)."""
    whiten_advantages: bool = True
    """Shift and scale the advantages of all tokens of a step to mean 0 and variance 1."""
    group_size: int = Field(1, ge=1)
    """Completions per problem (G); PPO needs no siblings."""
    prompts_per_step: int = Field(128, ge=1)
    """Problems a step (P)."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Take the KL (--kl-coef) off each token's reward (InstructGPT), or add it to the loss."""
    kl_estimator: Literal["k1", "k2", "k3", "abs", "k1+", "k3+", "k3_corrected", "full"] = "k1"
    """Estimate of that KL per token; k1 for --kl-in reward, k3 is usual for --kl-in loss."""
    critic: Literal["own", "shared"] = "own"
    """The critic's backbone: its own, trained apart, or the policy's, which then gets both gradients (less memory)."""
    critic_model: str | None = None
    """Where a critic of its own begins: a causal language model, or a reward model or run of r1lite reward-model, with
    the policy's tokenizer. By default a copy of the policy."""
    critic_lr: float | None = Field(None, gt=0)
    """Peak learning rate of the critic; by default --lr."""
    critic_warmup_steps: int = Field(0, ge=0)
    """Steps at the beginning in which the critic learns alone."""
    value_clip: float | None = Field(0.5, gt=0)
    """The value loss holds on to values that moved further than this from those before the step (reward units)."""
    value_huber: float | None = Field(None, gt=0)
    """Errors of the critic beyond this count in proportion to their size, not to its square (ReaLHF: 10)."""
    value_coef: float = Field(1.0, gt=0)
    """Weight of the value loss in a shared backbone's gradient."""

    @property
    def has_token_advantages(self) -> bool:
        """Each token has an advantage of its own."""
        return True

    def _contradictions(self) -> list[tuple[bool, str]]:
        return [
            *super()._contradictions(),
            (
                self.critic == "shared" and self.critic_model is not None,
                f"--critic-model {self.critic_model} is for --critic own; a shared critic has the policy's backbone",
            ),
            (
                self.critic == "own" and self.value_coef != 1,
                f"--value-coef {self.value_coef:g} weighs the value loss in a shared backbone; for --critic own set "
                "--critic-lr",
            ),
            (
                self.gae_lambda_alpha is not None and self.gae_lambda != type(self).model_fields["gae_lambda"].default,
                "--gae-lambda-alpha and --gae-lambda are two ways to set lambda: choose one",
            ),
            (
                self.loss == "a_star",
                "--loss a_star fits rewards less the optimal value, and needs no critic: it is for r1lite grpo",
            ),
            (
                self.critic_warmup_steps >= self.steps,
                f"--critic-warmup-steps {self.critic_warmup_steps} leaves none of --steps {self.steps} to the policy",
            ),
        ]
