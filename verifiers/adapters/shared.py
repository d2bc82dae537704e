"""What the adapters share."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from verifiers.core import Completion, GoldError, Problem, VerifierError
from verifiers.golds import gold_text
from verifiers.reward import Reward, Score, score_one


@functools.lru_cache(maxsize=64)
def _cached(formula: str, options: str) -> Reward:
    return Reward(formula, options=json.loads(options))


def reward_of(reward: Reward | str, options: Mapping[str, Mapping[str, Any]] | None) -> Reward:
    """A ready reward; one made of a formula is made once. Raises ValueError."""
    if isinstance(reward, Reward):
        return reward
    plain = {name: dict(given) for name, given in (options or {}).items()}  # also of OmegaConf and the like
    return _cached(reward, json.dumps(plain, sort_keys=True, default=_plain))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def said(message: Any, role: str = "assistant") -> str:
    """The text of a prompt or completion: itself, or what `role` says last (all of it, for the assistant).

    Raises: TypeError for anything that is neither text nor a list of messages.
    """
    if isinstance(message, str):
        return message
    if isinstance(message, Sequence) and all(isinstance(part, Mapping) for part in message):
        texts = [_content(part.get("content")) for part in message if part.get("role") == role]
        return "\n".join(texts) if role == "assistant" else (texts or [""])[-1]
    raise TypeError(f"neither text nor a list of messages: {message!r:.200}")


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))


def scored(reward: Reward, problem: Problem, gold: Any, text: str, *, token_ids: Sequence[int] = ()) -> Score:
    """The score of one completion; what could not be checked is told in `error`.

    Args:
        problem: without its answer.
        gold: as the data set has it. A missing value (NaN, "", {}) is an error that names the problem's id, unless no
            verifier of the reward compares answers.
    """
    try:
        answer = gold_text(gold) if reward.reads_gold else None
    except GoldError as error:
        return Score(None, {}, f"GoldError: problem {problem.id!r}: {error}", reward.versions)
    return score_one(reward, replace(problem, answer=answer), Completion(text, tuple(token_ids)))


def required(score: Score, unscored: float | None) -> float:
    """The reward, for trainers that can't leave a completion out. Raises VerifierError unless a stand-in is given."""
    if score.reward is not None:
        return score.reward
    if unscored is None:
        raise VerifierError(
            f"{score.error or 'every verifier abstained'}; this trainer can't leave a completion out of its group: "
            "set `unscored` to the reward that such completions shall get"
        )
    return unscored


def parts(score: Score) -> dict[str, float]:
    """The scores of the verifiers that did not abstain, by name."""
    return {name: verdict.score for name, verdict in score.verdicts.items() if verdict.score is not None}
