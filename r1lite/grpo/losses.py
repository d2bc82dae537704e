"""Policy losses by name (`--loss`): maps the configured objective to functions of `rl/`.

Shapes: B rows, T completion tokens. Your own loss is a function `LossInputs -> Tensor [B, T]` in an importable
module, named `module:function` on the command line or in your recipe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.config.objective import ObjectiveConfig
from r1lite.errors import UserError
from r1lite.grpo.named import imported
from r1lite.rl import covariance, regression, trust_region
from r1lite.rl import losses as formulas

_GATE = 2 * math.acosh(math.sqrt(1 / 0.9))  # value of |tau (s - 1)| at which 4 sigmoid (1 - sigmoid) is 0.9


@dataclass(frozen=True, slots=True)
class LossInputs:
    """Inputs of a policy loss; values at mask False are undefined."""

    logprobs: Tensor  # [B, T] of the policy, with gradient
    old_logprobs: Tensor  # [B, T] of the policy before the step's first update
    advantages: Tensor  # [B], or [B, T] if each token has its own
    mask: Tensor  # bool [B, T], True = completion token
    ref_logprobs: Tensor | None = None  # [B, T] of the reference, if there is one
    chosen: Tensor | None = None  # bool [B, T], tokens of high covariance: for clip_cov and kl_cov
    correction: Tensor | None = None  # [B, T] or [B, 1], trainer/engine weights: for losses that apply them inside


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """A loss per token, to be minimized, and the tokens that it holds back.

    A hard bound holds back the tokens beyond it; a soft gate those that lose more than a tenth of their gradient.
    """

    values: Tensor  # [B, T]
    held_low: Tensor  # bool [B, T], less likely than before, with a negative advantage
    held_high: Tensor  # bool [B, T], likelier than before, with a positive advantage


Loss = Callable[[ObjectiveConfig, LossInputs], TokenLoss]


def policy_loss(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    """The loss per token, by --loss.

    Raises:
        UserError: your own loss can't be loaded, or returns another shape than [B, T].
    """
    return loss_function(objective.loss)(objective, inputs)


def loss_function(name: str) -> Loss:
    """The loss with this name, or `module:function`. Raises UserError."""
    if name in LOSSES:
        return LOSSES[name]
    function: Callable[[LossInputs], Any] = imported("loss", name)

    def of_user(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
        values = function(inputs)
        if not isinstance(values, Tensor) or values.shape != inputs.mask.shape:
            shape = f"shape {list(values.shape)}" if isinstance(values, Tensor) else f"type {type(values).__name__}"
            raise UserError(f"--loss {name} must return a loss per token, {list(inputs.mask.shape)}, not {shape}")
        return _free(values, inputs)

    return of_user


def needs_choice(objective: ObjectiveConfig) -> bool:
    """True if the loss selects tokens of an update by their covariance (`LossInputs.chosen`)."""
    return objective.loss in ("clip_cov", "kl_cov")


def choose(
    objective: ObjectiveConfig, logprobs: Tensor, advantages: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Selects the tokens of high covariance among all N of an update, with the policy before the step.

    Args:
        logprobs, advantages: [N].

    Returns: bool [N].
    """
    if objective.loss == "kl_cov":
        return covariance.kl_cov_tokens(logprobs, advantages, share=objective.cov_share)
    return covariance.clip_cov_tokens(
        logprobs,
        advantages,
        share=objective.cov_share,
        low=objective.cov_low,
        high=objective.cov_high,
        generator=generator,
    )


def takes_correction(objective: ObjectiveConfig) -> bool:
    """True if the loss applies the trainer/engine weights inside, so that it must not be multiplied by them again."""
    return objective.loss == "vespo"


def ratio_of(objective: ObjectiveConfig, inputs: LossInputs) -> Tensor:
    """The ratio new/old policy at each token, [B, T], by --ratio-level."""
    match objective.ratio_level:
        case "sequence":
            return formulas.sequence_ratio(inputs.logprobs, inputs.old_logprobs, inputs.mask)
        case "completion":
            return formulas.completion_ratio(inputs.logprobs, inputs.old_logprobs, inputs.mask)
    return formulas.policy_ratio(inputs.logprobs, inputs.old_logprobs)


def _clip(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    ratio = ratio_of(objective, inputs)
    values = formulas.clipped_surrogate(
        ratio,
        inputs.advantages,
        clip_low=objective.clip_low,
        clip_high=objective.clip_high,
        clip_dual=objective.clip_dual,
        clip_delta=objective.clip_delta,
    )
    return _bounded(values, ratio, inputs, 1 - objective.clip_low, 1 + objective.clip_high)


def _clip_cov(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    assert inputs.chosen is not None
    clipped = _clip(objective, inputs)
    a = formulas.by_token(inputs.advantages)
    return TokenLoss(
        covariance.clip_cov(clipped.values, inputs.chosen),
        clipped.held_low | (inputs.chosen & (a < 0)),
        clipped.held_high | (inputs.chosen & (a > 0)),
    )


def _kl_cov(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    assert inputs.chosen is not None
    ratio = formulas.policy_ratio(inputs.logprobs, inputs.old_logprobs)
    values = covariance.kl_cov(
        ratio,
        inputs.logprobs,
        inputs.old_logprobs,
        inputs.advantages,
        inputs.chosen,
        coef=objective.kl_cov_coef,
    )
    a = formulas.by_token(inputs.advantages)
    return TokenLoss(values, inputs.chosen & (a < 0), inputs.chosen & (a > 0))


def _cispo(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    ratio = formulas.policy_ratio(inputs.logprobs, inputs.old_logprobs)
    values = formulas.cispo(ratio, inputs.logprobs, inputs.advantages, cap=objective.cispo_cap)
    return _bounded(values, ratio, inputs, -math.inf, objective.cispo_cap)


def _sapo(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    ratio = formulas.policy_ratio(inputs.logprobs, inputs.old_logprobs)
    positive, negative = objective.sapo_tau_positive, objective.sapo_tau_negative
    values = formulas.sapo(ratio, inputs.advantages, tau_positive=positive, tau_negative=negative)
    return _bounded(values, ratio, inputs, 1 - _GATE / negative, 1 + _GATE / positive)


def _gmpo(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    low, high = objective.clip_low, objective.clip_high
    values = formulas.gmpo(
        inputs.logprobs, inputs.old_logprobs, inputs.advantages, inputs.mask, clip_low=low, clip_high=high
    )
    return _bounded(values, inputs.logprobs - inputs.old_logprobs, inputs, -low, high)


def _dppo(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    options: Any = {
        "kind": objective.dppo_divergence,
        "low": objective.clip_low,
        "high": objective.clip_high,
    }
    tensors = (inputs.logprobs, inputs.old_logprobs, inputs.advantages)
    return TokenLoss(trust_region.dppo(*tensors, **options), *trust_region.dppo_held(*tensors, **options))


def _vespo(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    weight = trust_region.vespo_weight(
        inputs.logprobs,
        inputs.old_logprobs,
        inputs.advantages,
        inputs.mask,
        k_positive=objective.vespo_k_positive,
        lambda_positive=objective.vespo_lambda_positive,
        k_negative=objective.vespo_k_negative,
        lambda_negative=objective.vespo_lambda_negative,
        correction=inputs.correction,
    )
    faint, a = (weight < 0.9).expand_as(inputs.mask), formulas.by_token(inputs.advantages)
    return TokenLoss(trust_region.vespo(weight, inputs.logprobs, inputs.advantages), faint & (a < 0), faint & (a > 0))


def _a_star(objective: ObjectiveConfig, inputs: LossInputs) -> TokenLoss:
    assert inputs.ref_logprobs is not None
    values = regression.a_star_po(
        inputs.logprobs, inputs.ref_logprobs, inputs.advantages, inputs.mask, beta=objective.a_star_beta
    )
    return _free(values, inputs)


LOSSES: dict[str, Loss] = {
    "clip": _clip,
    "cispo": _cispo,
    "sapo": _sapo,
    "gmpo": _gmpo,
    "reinforce": lambda _, i: _free(formulas.reinforce(i.logprobs, i.advantages), i),
    "dppo": _dppo,
    "vespo": _vespo,
    "clip_cov": _clip_cov,
    "kl_cov": _kl_cov,
    "dro": lambda o, i: _free(regression.dro(i.logprobs, i.old_logprobs, i.advantages, beta=o.dro_beta), i),
    "a_star": _a_star,
}


def _bounded(values: Tensor, ratio: Tensor, inputs: LossInputs, lowest: float, highest: float) -> TokenLoss:
    """A loss that holds back ratios (or their logarithms) below `lowest` with A < 0, or above `highest` with A > 0."""
    a = formulas.by_token(inputs.advantages)
    return TokenLoss(values, (ratio < lowest) & (a < 0), (ratio > highest) & (a > 0))


def _free(values: Tensor, inputs: LossInputs) -> TokenLoss:
    """A loss that holds nothing back."""
    none = torch.zeros_like(inputs.mask)
    return TokenLoss(values, none, none)
