"""The objective: advantages, policy loss, KL, entropy, corrections; and which completions are learnt from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from r1lite.config.base import Section
from r1lite.config.names import named

LOSS_NAMES = (
    *("clip", "cispo", "sapo", "gmpo", "reinforce", "dppo", "vespo"),
    *("clip_cov", "kl_cov", "dro", "a_star"),
)
_OF_ROWS = ("gmpo", "a_star")  # losses with one value per completion
_OF_VESPO = ("vespo_k_positive", "vespo_lambda_positive", "vespo_k_negative", "vespo_lambda_negative")
_CLIPPED = ("clip", "clip_cov")  # losses that contain PPO's clip
_BOUNDED = (*_CLIPPED, "gmpo", "dppo")  # losses with --clip-low and --clip-high


class ObjectiveConfig(Section):
    """The RL objective. r1lite/rl/README.md has every formula with its source."""

    # --- the policy loss -------------------------------------------------------------------------------------------
    loss: str = "clip"
    """Policy loss: clip (PPO, GRPO, DAPO; with --ratio-level sequence: GSPO), cispo, sapo, gmpo, dppo, vespo, clip_cov,
    kl_cov, dro, a_star, reinforce; or your own, module:function."""
    ratio_level: Literal["token", "sequence", "completion"] = "token"
    """Level of the ratio new/old policy. token: one ratio per token; sequence: the geometric mean over the completion
    (GSPO); completion: the product over the completion (RLOO)."""
    clip_low: float = Field(0.2, ge=0)
    """Lower clip bound: 1 - this for the ratio new/old policy (1: no bound); for gmpo, -this for the log ratio; for
    dppo, the largest divergence of a token that became less likely."""
    clip_high: float = Field(0.2, ge=0)
    """Upper clip bound: 1 + this for the ratio new/old policy; for gmpo, this for the log ratio; for dppo, the largest
    divergence of a token that became more likely."""
    clip_dual: float | None = Field(None, gt=1)
    """Dual clip: the loss of a token with negative advantage A is at most this * |A| (verl uses 3)."""
    clip_delta: float | None = Field(None, gt=1)
    """Upper bound of the ratio itself, for negative advantages too (INTELLECT-2's two-sided clip)."""
    cispo_cap: float = Field(5.0, ge=1)
    """cispo: largest weight of a token, as an absolute ratio."""
    sapo_tau_positive: float = Field(1.0, gt=0)
    """sapo: temperature of the gate for positive advantages."""
    sapo_tau_negative: float = Field(1.05, gt=0)
    """sapo: temperature of the gate for other advantages."""
    dppo_divergence: Literal["tv", "kl"] = "tv"
    """dppo: divergence that is bounded. tv: change of the token's probability; kl: binary KL, the token against all
    others."""
    vespo_k_positive: float = Field(2.0, gt=0)
    """vespo: exponent of a completion's weight for positive advantages."""
    vespo_lambda_positive: float = Field(3.0, gt=0)
    """vespo: decay of a completion's weight for positive advantages."""
    vespo_k_negative: float = Field(3.0, gt=0)
    """vespo: exponent of a completion's weight for other advantages."""
    vespo_lambda_negative: float = Field(2.0, gt=0)
    """vespo: decay of a completion's weight for other advantages."""
    cov_share: float = Field(2e-4, gt=0, le=1)
    """clip_cov: share of an update's tokens that is left out; kl_cov: share that is held to the old policy. At least
    one token."""
    cov_low: float = 1.0
    """clip_cov: leave out only tokens whose covariance of log-probability and advantage is above this."""
    cov_high: float = 5.0
    """clip_cov: leave out only tokens whose covariance of log-probability and advantage is below this."""
    kl_cov_coef: float = Field(1.0, gt=0)
    """kl_cov: weight of |log ratio| at the chosen tokens."""
    dro_beta: float = Field(0.05, gt=0)
    """dro: strength of the pull towards the old policy."""
    a_star_beta: float = Field(1e-3, gt=0)
    """a_star: reward that a completion loses per nat of distance from the reference."""
    value_samples: int = Field(0, ge=0)
    """a_star: completions per problem, sampled from the reference before training, that estimate the problem's optimal
    value (A*-PO: 8); 0: estimate it from the group's own rewards."""
    aggregation: Literal["token_mean", "sequence_mean", "sequence_sum", "prompt_mean", "constant"] = "token_mean"
    """How token losses are averaged. token_mean: over all tokens of the update (DAPO); sequence_mean: mean of the
    completions' means (GRPO); sequence_sum: mean of the completions' sums; prompt_mean: mean of the prompts' means
    (ScaleRL); constant: sums divided by --max-completion-tokens (Dr. GRPO)."""

    positive_nll_coef: float = Field(0.0, ge=0)
    """Weight of an added loss: the mean negative log-likelihood of the tokens of right completions, by the task's own
    verdict (VAPO: 0.1)."""

    # --- advantages ------------------------------------------------------------------------------------------------
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per token, for reinforce_pp and PPO."""
    whiten_advantages: bool = False
    """Whiten the advantages of all tokens of a step to mean 0 and variance 1; reinforce_pp always does."""
    normalize_advantages: bool = False
    """Normalize the advantages of a step's completions to mean 0 and standard deviation 1 (TRL's RLOO)."""

    # --- KL to the reference ---------------------------------------------------------------------------------------
    kl_coef: float = Field(0.0, ge=0)
    """Weight of KL(policy || reference); with 0 no reference model is kept in memory."""
    kl_estimator: Literal["k1", "k2", "k3", "abs", "k1+", "k3+", "k3_corrected", "full"] = "k3"
    """Estimator of the KL per token. `+`: with k2's gradient; k3_corrected: weighted by the ratio (DeepSeek-V3.2);
    full: exact, over the whole vocabulary. The gradient of k1 is 0 on average, so it is for --kl-in reward only."""
    kl_cap: float | None = Field(None, gt=0)
    """Largest value per token of k3, k3+ and k3_corrected (verl: 10). Tokens beyond it have no KL gradient."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Add the KL to the loss, or subtract it from the reward."""
    kl_target: float | None = Field(None, gt=0)
    """Adapt --kl-coef so that the measured KL (nats per token) approaches this."""
    kl_horizon: float = Field(10000.0, gt=0)
    """Number of completions over which --kl-target may change the coefficient by 20 %."""
    reference_refresh_steps: int = Field(0, ge=0)
    """Replace the reference with the policy every this many steps (R1-Zero: 25); 0: never."""
    reference_decay: float = Field(1.0, gt=0, le=1)
    """After each step: reference = this * reference + (1 - this) * policy; 1: never."""

    # --- entropy ---------------------------------------------------------------------------------------------------
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the entropy bonus; with --entropy-target, its initial value."""
    entropy_target: float | None = Field(None, gt=0)
    """Target entropy in nats per token. Up to it, the bonus is on and its weight rises; above it, the bonus is off and
    its weight falls (Skywork-OR1)."""
    entropy_coef_step: float = Field(0.005, gt=0)
    """Change of the weight per step by --entropy-target; the weight stays between 0 and 1."""
    top_entropy_share: float = Field(1.0, gt=0, le=1)
    """Learn only from this share of the tokens, those with the highest entropy (arXiv:2506.01939: 0.2)."""

    off_policy_threshold: float | None = Field(None, gt=0)
    """Leave out completions of negative advantage that became less likely since they were sampled, by more than this
    many nats per token on average (DeepSeek-V3.2)."""

    # --- which completions take part ---------------------------------------------------------------------------------
    overlong_filter: bool = False
    """Leave completions that were cut off at --max-completion-tokens out of the loss (DAPO)."""
    dynamic_sampling: bool = False
    """Replace groups whose rewards are all equal by groups of further problems (DAPO)."""
    max_refills: int = Field(8, ge=1)
    """How many times a step may sample further problems; after that it learns from the groups it has."""
    curriculum: bool = False
    """Draw problems in proportion to p (1 - p), where p is the measured pass rate: prefers problems near p = 1/2."""

    @property
    def has_token_advantages(self) -> bool:
        """True if tokens of one completion may have different advantages."""
        return self.whiten_advantages

    @property
    def has_reference(self) -> bool:
        """True if the objective needs a reference model."""
        return self.kl_coef > 0 or self.loss == "a_star"

    @property
    def moves_reference(self) -> bool:
        """True if the reference is replaced by the policy, or follows it."""
        return self.reference_refresh_steps > 0 or self.reference_decay < 1

    @model_validator(mode="after")
    def _no_contradictions(self) -> ObjectiveConfig:
        if wrong := list(self._contradictions()):
            raise ValueError("\n".join(wrong))
        return self

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, loss: str) -> str:
        return named("loss", loss, LOSS_NAMES)

    def _contradictions(self) -> Iterator[str]:
        loss = f"--loss {self.loss}"
        if self.loss in _CLIPPED and self.clip_low > 1:
            yield f"--clip-low must be <= 1, got {self.clip_low:g}: a ratio is never below 0"
        if self.clip_dual is not None and self.loss != "clip":
            yield f"--clip-dual belongs to --loss clip, not to {loss}"
        if self.clip_delta is not None and self.loss != "clip":
            yield f"--clip-delta belongs to --loss clip, not to {loss}"
        if self.clip_delta is not None and self.clip_delta < 1 + self.clip_high:
            yield (
                f"--clip-delta {self.clip_delta} must be >= 1 + --clip-high = {1 + self.clip_high:g}: "
                "a lower cap would cut ratios that the clip allows"
            )
        if self.ratio_level != "token" and self.loss not in _CLIPPED and ":" not in self.loss:
            yield f"--ratio-level {self.ratio_level} is for --loss clip; {loss} defines its own ratio"
        if self.loss == "a_star" and self.kl_coef > 0:
            yield (
                f"{loss} holds the policy to the reference by --a-star-beta; --kl-coef {self.kl_coef:g} would do it "
                "twice"
            )
        if self.normalize_advantages and (self.whiten_advantages or self.has_token_advantages):
            yield (
                "--normalize-advantages needs one advantage per completion, but here each token has its own; use "
                "--whiten-advantages"
            )
        if self.loss in _OF_ROWS and self.aggregation != "sequence_mean":
            yield f"{loss} has one value per completion: it needs --aggregation sequence_mean, not {self.aggregation}"
        if self.loss in _OF_ROWS and self.has_token_advantages:
            yield f"{loss} needs one advantage per completion, not one per token"
        if self.loss in _OF_ROWS and self.top_entropy_share < 1:
            yield f"--top-entropy-share selects tokens, but {loss} has one value per completion"
        if self.kl_in == "reward" and self.kl_estimator in ("k1+", "k3+", "k3_corrected") and self.kl_coef > 0:
            yield f"--kl-estimator {self.kl_estimator} changes only the gradient of the KL, and --kl-in reward has none"
        if self.kl_in == "reward" and self.kl_estimator == "full" and self.kl_coef > 0:
            yield "--kl-estimator full is for --kl-in loss: a reward depends only on the sampled tokens"
        if self.kl_target is not None and self.kl_coef == 0:
            yield "--kl-target adapts --kl-coef, whose initial value must be above 0"
        if self.reference_refresh_steps > 0 and not self.has_reference:
            yield "--reference-refresh-steps replaces the reference, but with --kl-coef 0 there is none"
        if self.reference_decay < 1 and not self.has_reference:
            yield "--reference-decay moves the reference, but with --kl-coef 0 there is none"
        if self.reference_refresh_steps > 0 and self.reference_decay < 1:
            yield "--reference-refresh-steps and --reference-decay both change the reference: choose one"

    def _needs(self) -> dict[str, tuple[bool, str]]:
        """Settings that have an effect only with others: name -> (whether these hold, what they are)."""
        clips, k3 = f"--loss {', '.join(_BOUNDED)}", self.kl_estimator in ("k3", "k3+", "k3_corrected")
        return {
            "clip_low": (self.loss in _BOUNDED, clips),
            "clip_high": (self.loss in _BOUNDED, clips),
            "ratio_level": (":" not in self.loss, "a --loss of r1lite, as your own gets log-probabilities"),
            "cispo_cap": (self.loss == "cispo", "--loss cispo"),
            "sapo_tau_positive": (self.loss == "sapo", "--loss sapo"),
            "sapo_tau_negative": (self.loss == "sapo", "--loss sapo"),
            "dppo_divergence": (self.loss == "dppo", "--loss dppo"),
            **{name: (self.loss == "vespo", "--loss vespo") for name in _OF_VESPO},
            "cov_share": (self.loss in ("clip_cov", "kl_cov"), "--loss clip_cov or kl_cov"),
            "cov_low": (self.loss == "clip_cov", "--loss clip_cov"),
            "cov_high": (self.loss == "clip_cov", "--loss clip_cov"),
            "kl_cov_coef": (self.loss == "kl_cov", "--loss kl_cov"),
            "dro_beta": (self.loss == "dro", "--loss dro"),
            "a_star_beta": (self.loss == "a_star", "--loss a_star"),
            "value_samples": (self.loss == "a_star", "--loss a_star"),
            "kl_cap": (self.kl_coef > 0 and k3, "--kl-coef above 0 and a k3 --kl-estimator"),
            "kl_in": (self.kl_coef > 0, "--kl-coef above 0"),
            "kl_estimator": (self.kl_coef > 0, "--kl-coef above 0"),
            "kl_horizon": (self.kl_target is not None, "--kl-target"),
            "entropy_coef_step": (self.entropy_target is not None, "--entropy-target"),
            "max_refills": (self.dynamic_sampling, "--dynamic-sampling"),
        }
