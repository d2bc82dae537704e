"""SkyRL: an environment of one turn for rows with `env_class: verified` and `reward_spec: {ground_truth: ...}`.

In the entry point, inside the Ray task and before training, as SkyRL's own examples do:

    skyrl_gym.register("verified", "verifiers.adapters.skyrl:VerifiedEnv", {"reward": "math + 0.1*format"})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from verifiers.adapters.shared import of_all, problem_of, required, reward_of, said, scored


class VerifiedEnv(BaseTextEnv):  # type: ignore[misc]  # typed only where SkyRL is installed
    """Scores the model's one turn; each verifier's score is among the environment's metrics.

    Args:
        env_config: unused.
        extras: the row: `reward_spec["ground_truth"]` is an answer or tests; the rest is in `Problem.meta`.
        reward, options: the formula and its verifiers' options.
        unscored: reward of a completion that could not be checked; None raises, because SkyRL can't leave it out.

    Raises: ValueError if the formula can't be used, or the row has no ground truth.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        reward: str = "math + 0.1*format",
        options: Mapping[str, Mapping[str, Any]] | None = None,
        unscored: float | None = None,
    ) -> None:
        super().__init__()
        row = dict(extras or {})
        spec = row.get("reward_spec")
        if not isinstance(spec, Mapping) or "ground_truth" not in spec:
            raise ValueError(f"a row needs reward_spec['ground_truth']; it has {', '.join(row) or 'nothing'}")
        self._gold, self._row, self._unscored = spec["ground_truth"], row, unscored
        self._reward = reward_of(reward, options)
        self._asked: Any = ""
        self._metrics = dict[str, float]()

    def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
        """SkyRL's first call: returns the conversation unchanged."""
        self._asked = prompt
        return prompt, {}

    def step(self, action: str) -> Any:
        """SkyRL's step: one turn. Raises VerifierError for a completion that can't be scored, without `unscored`."""
        problem = problem_of(said(self._asked, "user"), self._row, self._row.get("id", ""))
        score = scored(self._reward, problem, self._gold, action, prompt=self._asked)
        self._metrics = of_all(self._reward, score)
        value = required(score, self._unscored)
        return BaseTextEnvStepOutput(observations=[], reward=value, done=True, metadata=dict(self._metrics))

    def get_metrics(self) -> dict[str, Any]:
        """Returns each verifier's score, and "unscored"; SkyRL averages them over episodes."""
        return dict(self._metrics)
