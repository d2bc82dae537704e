"""Scores many completions, in this process or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.reward import Reward, Score, score_one


def score_many(
    reward: Reward,
    pairs: Iterable[tuple[Problem, Completion]],
    *,
    workers: int = 0,
    timeout_s: float = 30.0,
    progress: Callable[[int], None] | None = None,
) -> list[Score]:
    """Scores in order; a check that fails leaves its own completion unscored (reward None), never at 0.

    Args:
        workers: processes to score in, each of which is killed and replaced when a verifier hangs or crashes
            (`verifiers.pool.Pool`); 0 = this process, without deadlines.
        timeout_s: hard deadline of one completion, in worker processes.
        progress: called with the number of completions scored so far.
    """
    if workers:
        with Pool(reward, workers=workers, timeout_s=timeout_s) as pool:
            return _listed(pool.map(pairs), progress)
    return _listed((score_one(reward, problem, completion) for problem, completion in pairs), progress)


def _listed(scores: Iterable[Score], progress: Callable[[int], None] | None) -> list[Score]:
    if progress is None:
        return list(scores)
    done: list[Score] = []
    for score in scores:
        done.append(score)
        progress(len(done))
    return done
