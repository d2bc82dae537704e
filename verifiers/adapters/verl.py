"""verl: `reward.custom_reward_function.path=.../verifiers/adapters/verl.py` with `name=compute_score`.

Settings go through `reward.custom_reward_function.reward_kwargs`: `reward`, `options`, `unscored`. In trees before
that key, `custom_reward_function.path` stands at top level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers.adapters.shared import parts, required, reward_of, scored
from verifiers.core import Problem


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
    """verl's `compute_score`: {"score": the reward, each verifier's score by its name, "unscored": 0 or 1}.

    Args:
        data_source, solution_str, ground_truth, extra_info: as verl passes them; extra_info's "question" or "prompt"
            is the prompt, and all of it is in `Problem.meta`.
        reward, options: the formula and its verifiers' options.
        unscored: reward of a completion that could not be checked; None raises, for verl can't leave it out.

    Raises: ValueError if the formula can't be used; VerifierError.
    """
    info = dict(extra_info or {})
    ready = reward_of(reward, options)
    has_tests = isinstance(ground_truth, Mapping) and bool(ground_truth)
    problem = Problem(
        prompt=str(info.get("question", info.get("prompt", ""))),
        tests=ground_truth if has_tests else None,
        language=info.get("language"),
        id=str(info.get("index", data_source)),
        meta={"data_source": data_source, **info},
    )
    score = scored(ready, problem, None if has_tests else ground_truth, solution_str)
    found = parts(score)
    shown = {name: found.get(name, 0.0) for name in ready.verifiers}  # verl wants the same keys in every row
    return {"score": required(score, unscored), **shown, "unscored": float(score.reward is None)}
