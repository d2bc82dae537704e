"""NeMo-RL: `env: {verified: {reward: "math + 0.1*format"}}` and `data: {train: {env_name: verified}}` in its
configuration.

Register the environment in its launcher: `from verifiers.adapters.nemo_rl import register; register()` before its
`main()`.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from nemo_rl.distributed.ray_actor_environment_registry import ACTOR_ENVIRONMENT_REGISTRY
from nemo_rl.distributed.virtual_cluster import PY_EXECUTABLES
from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn
from nemo_rl.environments.utils import register_env

from verifiers.adapters.shared import problem_of, required, reward_of, said, scored_many
from verifiers.core import Problem
from verifiers.reward import Score


class VerifiedEnvironment(EnvironmentInterface):  # type: ignore[misc]  # typed only where NeMo-RL is installed
    """Scores the assistant's text against `ground_truth` (an answer or tests) in the metadata; one turn.

    Args:
        cfg: `reward` and `options`: the formula and its verifiers' options; `unscored`: reward of a completion that
            could not be checked. Without it such a completion raises, because NeMo-RL can't leave it out.

    Raises: ValueError if the formula can't be used.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self._reward = reward_of(cfg.get("reward", "math + 0.1*format"), cfg.get("options"))
        self._unscored = cfg.get("unscored")

    def step(
        self,
        message_log_batch: Sequence[Sequence[Mapping[str, Any]]],
        metadata: Sequence[Mapping[str, Any]],
        return_extracted_answer: bool = False,
    ) -> Any:
        """NeMo-RL's step: rewards [B], all episodes terminated. Raises VerifierError."""
        rows = [_row(log, meta or {}) for log, meta in zip(message_log_batch, metadata, strict=True)]
        scores = scored_many(self._reward, rows)
        values = [required(score, self._unscored) for score in scores]
        torch = importlib.import_module("torch")  # from NeMo-RL's environment: this package does not depend on it
        rewards = torch.tensor(values, dtype=torch.float32)
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": f"Environment: reward {value:g}"} for value in values],
            metadata=list(metadata),
            next_stop_strings=[None] * len(values),
            rewards=rewards,
            terminateds=torch.ones_like(rewards),
            answers=[_answer(score) for score in scores] if return_extracted_answer else None,
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        """NeMo-RL's last call: returns the batch unchanged, and the mean reward."""
        rewards = batch["rewards"].tolist()
        return batch, {"verified/mean_reward": statistics.fmean(rewards) if rewards else 0.0}


VerifiedActor = ray.remote(max_concurrency=32)(VerifiedEnvironment)


def register(name: str = "verified") -> None:
    """Registers the environment with NeMo-RL under this name. Raises ValueError if it is taken."""
    where = f"{__name__}.VerifiedActor"
    register_env(name, where)
    ACTOR_ENVIRONMENT_REGISTRY[where] = PY_EXECUTABLES.SYSTEM


def _row(log: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> tuple[Problem, Any, str, str]:
    plain = [{"role": part["role"], "content": part["content"]} for part in log]
    prompt = said(plain, "user")  # as rendered, with the beginning of the reply
    return problem_of(prompt, meta, meta.get("id", "")), meta.get("ground_truth"), said(plain), prompt


def _answer(score: Score) -> str | None:
    return next((verdict.answer for verdict in score.verdicts.values() if verdict.answer is not None), None)
