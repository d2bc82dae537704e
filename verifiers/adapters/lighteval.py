"""lighteval: `metrics=[lighteval_metric("math")]` in a `LightevalTaskConfig` of your custom task."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetricGrouping
from lighteval.tasks.requests import SamplingMethod

from verifiers.adapters.shared import best_of, reward_of, say_once, why
from verifiers.core import Problem
from verifiers.reward import Reward


def lighteval_metric(
    reward: Reward | str, *, options: Mapping[str, Mapping[str, Any]] | None = None, name: str = "reward"
) -> Any:
    """Returns a sample-level metric: `name`, and `name_unscored`, the share of samples that could not be checked.

    The reward of a sample is the mean over its generations; if there are several golds, the best score counts. A sample
    that could not be checked is NaN and left out of the mean (lighteval would silently make it 0, or the whole mean
    NaN); if all are left out, the mean is NaN.

    Raises: ValueError if the formula can't be used.
    """
    return SampleLevelMetricGrouping(
        metric_name=[name, f"{name}_unscored"],
        higher_is_better={name: True, f"{name}_unscored": False},
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=Verified(reward_of(reward, options), name),
        corpus_level_fn={name: mean_of_scored, f"{name}_unscored": mean_of_scored},
    )


def mean_of_scored(values: Sequence[float]) -> float:
    """Returns the mean of the values that are not NaN; NaN if there are none."""
    known = [float(value) for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


class Verified(SampleLevelComputation):  # type: ignore[misc]  # typed only where lighteval is installed
    """lighteval's `compute(doc, model_response)`."""

    def __init__(self, reward: Reward, name: str) -> None:
        self._reward, self._name = reward, name

    def __str__(self) -> str:
        return f"Verified({self._reward.formula})"

    def compute(self, doc: Any, model_response: Any, **_: Any) -> dict[str, float]:
        """Returns the reward (NaN if the sample could not be checked), and whether it could not be checked (0 or 1)."""
        problem = Problem(prompt=doc.query, id=str(doc.id), meta=doc.specific or {})
        golds = doc.get_golds()
        scores = [best_of(self._reward, problem, golds, text) for text in model_response.final_text]
        failed = next((score for score in scores if score.reward is None), None)
        if failed is not None:
            say_once("a sample could not be scored and is left out of the mean, like all later ones: %s", why(failed))
        found = [math.nan if score.reward is None else score.reward for score in scores]
        value = statistics.fmean(found) if found else math.nan
        return {self._name: value, f"{self._name}_unscored": float(math.isnan(value))}
