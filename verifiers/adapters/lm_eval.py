"""lm-evaluation-harness: `process_results: !function utils.process_results`, created here and set in your utils.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from verifiers.adapters.shared import asked, parts, problem_of, required, reward_of, scored
from verifiers.golds import mapping_of
from verifiers.reward import Reward


def lm_eval_results(
    reward: Reward | str = "math",
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    prompt: str = "question",
    answer: str = "answer",
    unscored: float | None = None,
) -> Callable[[dict[str, Any], list[str]], dict[str, float]]:
    """Returns lm-eval's `process_results(doc, results)`: {"reward": ..., each verifier's score by its name}.

    Args:
        prompt, answer: the document's columns.
        unscored: value of a result that could not be checked; None raises.

    Raises: ValueError if the formula can't be used.
    """
    ready = reward_of(reward, options)

    def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
        if answer not in doc:
            raise ValueError(f"the document has no column '{answer}', only {', '.join(doc)}; set answer=")
        problem = problem_of(asked(doc.get(prompt)), doc, doc.get("id", ""))
        score = scored(
            ready,
            replace(problem, tests=mapping_of(doc.get("tests"))),
            doc[answer],
            results[0],
            prompt=doc.get(prompt),
        )
        found = parts(score)
        return {"reward": required(score, unscored), **{name: found.get(name, 0.0) for name in ready.verifiers}}

    return process_results
