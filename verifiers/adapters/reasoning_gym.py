"""reasoning-gym, both ways: its 100+ scorers as a verifier, and our verifiers as its `score_answer`.

A problem of it carries `meta["reasoning_gym"]` (the data set's name) and `meta["entry"]` (its item).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from verifiers.adapters.shared import parts, reward_of, scored
from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.extract import final_answer
from verifiers.reward import Reward
from verifiers.segments import answering


def _library() -> Any:
    try:
        return importlib.import_module("reasoning_gym")
    except ModuleNotFoundError as error:
        raise ValueError("this needs reasoning-gym: pip install reasoning-gym") from error


@functools.lru_cache(maxsize=128)
def _scorer(name: str) -> Any:
    """A data set of one item; only its scorer is used."""
    return create(name, seed=0, size=1)


def create(name: str, *, seed: int, size: int, **config: Any) -> Any:
    """reasoning-gym's data set. Raises ValueError with near names for one that it does not have."""
    library = _library()
    try:
        return library.create_dataset(name, seed=seed, size=size, **config)
    except ValueError as error:
        import difflib

        known = sorted(importlib.import_module("reasoning_gym.factory").DATASETS)
        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near and name not in known else str(error)
        raise ValueError(f"reasoning_gym has no task '{name}' with these settings; {hint}") from error


def problems(name: str, *, seed: int, size: int, **config: Any) -> list[Problem]:
    """Problems of one of its tasks, reproducible by seed. Raises ValueError."""
    return [
        Problem(
            prompt=str(entry["question"]),
            answer=None if entry["answer"] is None else str(entry["answer"]),
            id=f"{name}-{seed}-{i}",
            meta={"reasoning_gym": name, "entry": dict(entry)},
        )
        for i, entry in enumerate(create(name, seed=seed, size=size, **config))
    ]


class ReasoningGym:
    """1 where reasoning-gym's own `score_answer` gives full marks, else 0; with `partial`, the score that it gives.

    The answer is the answer block, a box, what stands after `####`, or all that follows the thinking. Reasons: `right`
    (1), `partial`, `wrong` (0; the detail has the scorer's figure), `no_answer`. It never abstains. Known limit: most
    of its scorers pay any answer that merely contains the right one (0.86 for 142820 in place of 14282, 0.6 for "not
    14282"; the audit shows it), which is why partial credit must be asked for.

    Args:
        partial: pay what the scorer pays, for tasks whose scorer measures how much is right.
        floor: with `partial`, scores up to this are 0.

    Raises (when called): GoldError without `meta["reasoning_gym"]` and `meta["entry"]`; VerifierError if the scorer
        raises.
    """

    version = "2"

    def __init__(self, *, partial: bool = False, floor: float = 0.1) -> None:
        if not 0 <= floor < 1:
            raise ValueError(f"floor must be in [0, 1), got {floor}")
        _library()
        self.partial, self.floor = partial, floor

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        name, entry = problem.meta.get("reasoning_gym"), problem.meta.get("entry")
        if not isinstance(name, str) or not isinstance(entry, Mapping):
            raise GoldError(f"problem {problem.id or problem.prompt[:60]!r} carries no reasoning_gym name and entry")
        span = final_answer(completion.text)
        answer = completion.text[slice(*span)].strip() if span else answering(completion.text)
        if not answer:
            return Verdict(0.0, "no_answer")
        try:
            score = float(_scorer(name).score_answer(answer, dict(entry)))
        except Exception as error:  # its hundred scorers raise whatever they raise
            raise VerifierError(f"reasoning_gym's {name} raised {type(error).__name__}: {error}") from error
        if not 0 <= score <= 1:
            raise VerifierError(f"reasoning_gym's {name} scored {score}")
        if score <= self.floor or (score < 1 and not self.partial):
            return Verdict(0.0, "wrong", f"{score:g} by its scorer", answer[:500])
        return Verdict(score, "right" if score == 1 else "partial", answer=answer[:500])


def score_answer(
    reward: Reward | str, *, options: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[str | None, dict[str, Any]], float]:
    """`score_answer(answer, entry)` in reasoning-gym's signature, for data sets of your own.

    The reward's value is cut to [0, 1]; None scores 0, as there.

    Raises: ValueError; VerifierError when called, for what can't be checked.
    """
    ready = reward_of(reward, options)

    def score(answer: str | None, entry: dict[str, Any]) -> float:
        if answer is None:
            return 0.0
        problem = Problem(str(entry.get("question", "")), str(entry["answer"]), meta=entry.get("metadata") or {})
        found = scored(ready, problem, answer)
        if found.reward is None:
            raise VerifierError(found.error or f"every verifier abstained: {parts(found)}")
        return min(1.0, max(0.0, found.reward))

    return score
