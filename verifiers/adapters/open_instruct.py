"""open-instruct: a launcher that replaces its `grpo_fast.py`; rows whose `dataset` column is "ours" are judged here.

    from verifiers.adapters.open_instruct import open_instruct_verifier
    Ours = open_instruct_verifier("math + 0.1*format", name="ours")  # open-instruct finds it among the subclasses

followed by the code that `grpo_fast.py` has under `if __name__ == "__main__"`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from verifiers.adapters.shared import required, reward_of, scored, why
from verifiers.core import Problem


def open_instruct_verifier(
    reward: str,
    *,
    name: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weight: float = 1.0,
    unscored: float | None = None,
) -> Any:
    """Returns a subclass of open-instruct's `VerifierFunction`, which its `build_all_verifiers` instantiates.

    Args:
        reward, options: the formula and its verifiers' options; each process creates the verifiers for itself.
        name: value of the `dataset` column; a verifier of open-instruct with this name is replaced.
        weight: open-instruct multiplies the reward by it and by `--verification_reward`.
        unscored: reward of a completion that could not be checked; None raises, because open-instruct can't leave it
            out.

    Raises: ValueError if the formula can't be used; ModuleNotFoundError without open-instruct.
    """
    reward_of(reward, options)
    theirs = importlib.import_module("open_instruct.ground_truth_utils")

    class Verified(theirs.VerifierFunction):  # type: ignore[name-defined,misc]
        """Scores one completion against its label: an answer, or tests as JSON text."""

        def __init__(self, verifier_config: Any = None) -> None:
            super().__init__(name, weight=weight, verifier_config=verifier_config)

        def __call__(
            self,
            tokenized_prediction: list[int],
            prediction: str,
            label: Any,
            query: str | None = None,
            rollout_state: dict[str, Any] | None = None,
        ) -> Any:
            ready = reward_of(reward, options)
            problem = Problem(prompt=query or "")
            score = scored(ready, problem, label, prediction, token_ids=tokenized_prediction)
            reasons = ", ".join(f"{part} {verdict.reason}" for part, verdict in score.verdicts.items())
            return theirs.VerificationResult(score=required(score, unscored), reasoning=reasons or why(score))

    return Verified
