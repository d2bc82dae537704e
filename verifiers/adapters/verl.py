"""verl: `reward.custom_reward_function.path=pkg://verifiers.adapters.verl`, with `name` left at compute_score.

The settings are keys that verl's configuration does not have, so each needs a plus. A formula with parentheses or
commas needs quotes that reach Hydra, inside those of the shell:

    '+reward.custom_reward_function.reward_kwargs.reward="math * (0.9 + 0.1*format)"'
    +reward.custom_reward_function.reward_kwargs.unscored=0
    +reward.custom_reward_function.reward_kwargs.options.math.strict=true

In versions before that key, `custom_reward_function.path` is at top level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers.adapters.shared import accuracy, asked, of_all, problem_of, required, reward_of, scored


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    reward: str = "math + 0.1*format",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    unscored: float | None = None,
    **_: Any,
) -> dict[str, float]:
    """verl's `compute_score`: {each verifier's score by its name, "score": the reward, "acc", "unscored": 0 or 1}.

    Args:
        data_source, solution_str, ground_truth, extra_info: as verl passes them. The ground truth is an answer or
            tests, as an object or JSON text; verl's own code data works unchanged. extra_info's "question" or "prompt"
            is the prompt (text or messages), and all of extra_info is in `Problem.meta`.
        reward, options: the formula and its verifiers' options.
        unscored: reward of a completion that could not be checked; None raises, because verl can't leave it out.

    Raises: ValueError if the formula can't be used; VerifierError.
    """
    info = dict(extra_info or {})
    ready = reward_of(reward, options)
    prompt = info["question"] if asked(info.get("question")) else info.get("prompt")
    problem = problem_of(asked(prompt), {"data_source": data_source, **info}, info.get("index", data_source))
    score = scored(ready, problem, ground_truth, solution_str, prompt=prompt)
    return {**of_all(ready, score), "score": required(score, unscored), "acc": accuracy(ready, score)}
