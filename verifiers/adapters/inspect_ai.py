"""inspect_ai: `Task(..., scorer=verified("math"))`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
from inspect_ai.scorer import Score, mean, scorer, stderr

from verifiers.adapters.shared import best_of, of_all, problem_of, reward_of, why


@scorer(metrics=[mean(), stderr()], name="verified")  # type: ignore[untyped-decorator]
def verified(reward: str = "math", options: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """Returns inspect_ai's scorer: the reward, the judged answer, the reasons, and each verifier's score as metadata.

    If there are several targets, the best score counts. A sample that could not be checked is `Score.unscored`, which
    inspect_ai shows and leaves out of its metrics.

    Raises: ValueError if the formula can't be used.
    """
    ready = reward_of(reward, options)

    async def score(state: Any, target: Any) -> Any:
        problem = problem_of(state.input_text, state.metadata or {}, state.sample_id)
        found = functools.partial(best_of, prompt="")  # the input is a question, which opens nothing
        best = await anyio.to_thread.run_sync(found, ready, problem, list(target), state.output.completion)
        if best.reward is None:
            return Score.unscored(explanation=why(best), metadata=of_all(ready, best))
        verdicts = best.verdicts.values()
        return Score(
            value=best.reward,
            answer=next((verdict.answer for verdict in verdicts if verdict.answer is not None), None),
            explanation=", ".join(f"{name} {verdict.reason}" for name, verdict in best.verdicts.items()),
            metadata=of_all(ready, best),
        )

    return score
