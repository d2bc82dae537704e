"""TRL (1.x): `GRPOTrainer(reward_funcs=trl_reward("math + 0.1*format"))`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifiers.adapters.shared import parts, reward_of, said, say_once, scored, why
from verifiers.core import Problem
from verifiers.golds import mapping_of
from verifiers.reward import Reward
from verifiers.rows import NAMES

RewardFunc = Callable[..., list[float | None]]
_OF_TRL = {"trainer_state", "log_extra", "log_metric", "environments"}


def trl_reward(
    reward: Reward | str, *, options: Mapping[str, Mapping[str, Any]] | None = None, answer: str = "", name: str = ""
) -> RewardFunc:
    """Returns a function for TRL's `reward_funcs`; a completion that can't be scored gets None, and TRL leaves it out.

    Args:
        reward: a formula or a Reward; `options` are those of its verifiers.
        answer: the data set's column with the gold; "" = the first that exists of answer, solution, ground_truth, ...
            All columns are in `Problem.meta`; `language`, `tests` and `id` fill the fields of these names.
        name: of the metric in TRL's logs; "" = the formula.

    Raises: ValueError if the formula can't be used.
    """
    ready = reward_of(reward, options)
    golds = (answer,) if answer else NAMES["answer"]

    def reward_func(
        prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any] | None = None, **kwargs: Any
    ) -> list[float | None]:
        columns = {key: value for key, value in kwargs.items() if key not in _OF_TRL and _is_column(value, prompts)}
        scores = []
        for i, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            row = {key: value[i] for key, value in columns.items()}
            gold = next((row[key] for key in golds if row.get(key) is not None), None)
            ids = completion_ids[i] if completion_ids is not None else ()
            scores.append(scored(ready, _problem(prompt, row, i), gold, said(completion), token_ids=ids, prompt=prompt))
        failed = next((score for score in scores if score.reward is None), None)
        if failed is not None:
            say_once("a completion could not be scored and is left out, like all later ones: %s", why(failed))
        log_metric = kwargs.get("log_metric")
        if log_metric is not None and scores:
            for part in ready.verifiers:
                values = [found[part] for score in scores if part in (found := parts(score))]
                if values:
                    log_metric(f"verifiers/{part}", statistics.fmean(values))
            log_metric("verifiers/unscored", statistics.fmean(float(score.reward is None) for score in scores))
        return [score.reward for score in scores]

    reward_func.__name__ = name or ready.formula
    return reward_func


def _is_column(value: Any, prompts: Sequence[Any]) -> bool:
    return isinstance(value, list | tuple) and len(value) == len(prompts)


def _problem(prompt: Any, row: Mapping[str, Any], index: int) -> Problem:
    language = row.get("language")
    return Problem(
        prompt=said(prompt, "user"),
        tests=mapping_of(row.get("tests")),
        language=language if isinstance(language, str) else None,
        id=str(row.get("id") or index),
        meta=row,
    )
