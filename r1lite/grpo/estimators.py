"""Advantage estimators by name (`--advantage`): from rewards to advantages of completions.

Shapes: P prompts, G group, K parts of the reward. Your own estimator is a function `EstimatorInputs -> Tensor
[P, G]` in an importable module, named `module:function` on the command line or in your recipe. Estimators that
give each token its own advantage are in `credit.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from r1lite.errors import UserError
from r1lite.grpo.named import imported
from r1lite.rl import advantages as formulas
from r1lite.rl.regression import optimal_value


@dataclass(frozen=True, slots=True)
class EstimatorInputs:
    """Inputs of an advantage estimator."""

    rewards: Tensor  # [P, G], NaN = unscored
    lengths: Tensor  # [P, G], tokens of each completion
    parts: Tensor  # [K, P, G], terms of the reward formula without weights; NaN = all their verifiers abstained
    weights: Sequence[float]  # K, of the parts
    optimal_values: Tensor | None = None  # [P], if they were estimated before training


class Options(Protocol):
    """The configuration fields that estimators read."""

    advantage: str
    advantage_ddof: int
    advantage_eps: float
    advantage_k: int
    value_beta: float


Estimator = Callable[[Options, EstimatorInputs], Tensor]


def estimator(name: str) -> Estimator:
    """The estimator with this name, or `module:function`. Raises UserError."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    function: Callable[[EstimatorInputs], Any] = imported("advantage", name)

    def of_user(options: Options, inputs: EstimatorInputs) -> Tensor:
        values = function(inputs)
        if not isinstance(values, Tensor) or values.shape != inputs.rewards.shape:
            shape = f"shape {list(values.shape)}" if isinstance(values, Tensor) else f"type {type(values).__name__}"
            wanted = list(inputs.rewards.shape)
            raise UserError(f"--advantage {name} must return an advantage per completion, {wanted}, not {shape}")
        return values.where(~inputs.rewards.isnan(), 0.0)  # unscored completions have advantage 0

    return of_user


def _centred(options: Options, inputs: EstimatorInputs) -> Tensor:
    return formulas.group_relative(inputs.rewards, scale="none")


def _a_star(options: Options, inputs: EstimatorInputs) -> Tensor:
    value = inputs.optimal_values
    if value is None:
        value = optimal_value(inputs.rewards, beta=options.value_beta)
    return (inputs.rewards - value[:, None]).nan_to_num(nan=0.0)


ESTIMATORS: dict[str, Estimator] = {
    "grpo": lambda o, i: formulas.group_relative(i.rewards, ddof=o.advantage_ddof, eps=o.advantage_eps),
    "dr_grpo": _centred,
    "reinforce_pp_baseline": _centred,
    "batch_scaled": lambda o, i: formulas.batch_scaled(i.rewards, ddof=o.advantage_ddof, eps=o.advantage_eps),
    "rloo": lambda o, i: formulas.leave_one_out(i.rewards),
    "reinforce": lambda o, i: formulas.reinforce(i.rewards),
    "opo": lambda o, i: formulas.optimal_baseline(i.rewards, i.lengths),
    "maxrl": lambda o, i: formulas.maxrl(i.rewards, eps=o.advantage_eps),
    "gdpo": lambda o, i: formulas.decoupled(i.parts, i.weights, i.rewards, ddof=o.advantage_ddof, eps=o.advantage_eps),
    "pass_at_k": lambda o, i: formulas.pass_at_k(i.rewards, k=o.advantage_k),
    "best_of_group": lambda o, i: formulas.best_of_group(i.rewards, ddof=o.advantage_ddof, eps=o.advantage_eps),
    "a_star": _a_star,
}
