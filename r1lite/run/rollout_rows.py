"""The rows of rollouts/: problem, completion, verdicts and what the learner used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from r1lite.types import Group, Rollout, TokenRecord


def rollout_rows(step: int, groups: Iterable[Group]) -> Iterator[dict[str, Any]]:
    """Yields a row for every completion of a step, group by group."""
    for group in groups:
        for sample, rollout in enumerate(group.rollouts):
            yield _row(step, group, sample, rollout)


def _row(step: int, group: Group, sample: int, rollout: Rollout) -> dict[str, Any]:
    completion, score = rollout.completion, rollout.score
    return {
        "step": step,
        "problem_id": group.problem.id,
        "sample": sample,
        "question": group.problem.prompt,
        "gold": group.problem.answer,
        "language": group.problem.language,
        "tests": None if group.problem.tests is None else dict(group.problem.tests),
        "meta": dict(group.problem.meta),
        "prompt": group.prompt,
        **({"prefill": completion.prefill} if completion.prefill else {}),
        "completion": completion.text,
        "reward": score.reward,
        "advantage": rollout.advantage,
        "correct": rollout.correct,
        "well_formed": rollout.well_formed,
        "verdicts": [
            {
                "verifier": name,
                "score": verdict.score,
                "reason": verdict.reason,
                "detail": verdict.detail,
                "answer": verdict.answer,
                "span": None if verdict.span is None else list(verdict.span),
                "flags": list(verdict.flags),
                "version": score.versions.get(name, ""),
            }
            for name, verdict in score.verdicts.items()
        ],
        "error": score.error,
        "finish_reason": completion.finish_reason,
        "policy_version": completion.policy_version,
        **({"stretches": completion.stretches} if completion.stretches else {}),
        **({"ticket": group.ticket} if group.ticket is not None else {}),
        "prompt_ids": group.prompt_ids,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        "inserted": list(completion.inserted) if completion.inserted != (0, 0) else None,
        **_of_tokens(rollout.tokens),
    }


def _of_tokens(record: TokenRecord | None) -> dict[str, list[float]]:
    """Rounds to four digits: the values are only displayed."""
    if record is None:
        return {}
    columns = {
        "trainer_logprobs": record.logprobs,
        "token_entropy": record.entropy,
        "token_advantages": record.advantages,
    }
    return {name: [float(f"{value:.4g}") for value in values] for name, values in columns.items()}
