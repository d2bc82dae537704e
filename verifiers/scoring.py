"""Scores many completions: in batches, and in worker processes for verifiers that may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator

from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.registry import LEARNED, VERIFIERS
from verifiers.reward import Reward, Score, score_one

# Batch size. The cores wait for the last item of a batch, so longer batches keep them busier; shorter ones save memory.
_BATCH = 1024
_BATCH_CHARS = 1 << 24

Pairs = Iterable[tuple[Problem, Completion]]


class BatchScorer:
    """Scores completions with one reward, as fast as its verifiers allow.

    Where each verifier runs:

    - `isolated` ones (`code`, `sandboxed:`, `reasoning_gym`) are always called from this process, whatever `workers`
      is. They judge in their own processes under their own limits, many items at a time through `verify_many`; worker
      processes around them would only make them wait for each other. `timeout_s` does not apply to them: see their
      `time_s` and `wall_s`.
    - The others run in `workers` processes, one item at a time under the deadline `timeout_s`. A process that hangs or
      crashes is killed and replaced (`verifiers.pool.Pool`).
    - With `workers=0` the others run in this process, without deadlines, through `verify_many` if they have it.

    A batch is at most 1,024 completions or 16 million characters; `map` holds no more in memory. If no verifier takes
    batches, completions are scored as they arrive.

    Args:
        reward: the reward to compute.
        workers: processes for verifiers that are not isolated; 0 = none; None = one per available core.
        timeout_s: hard deadline of one completion in a worker, in seconds of wall time.
        memory_mib: private memory of a worker; None = no limit.
    """

    def __init__(
        self, reward: Reward, *, workers: int | None = 0, timeout_s: float = 30.0, memory_mib: int | None = 4096
    ) -> None:
        self.reward, self.workers, self.timeout_s, self.memory_mib = reward, workers, timeout_s, memory_mib
        verifiers = reward.verifiers
        pooled = [name for name, verify in verifiers.items() if not getattr(verify, "isolated", False)]
        self._pooled: Reward | None = None
        if workers != 0 and pooled:
            self._pooled = reward if len(pooled) == len(verifiers) else reward.only(pooled)
        self._here = workers == 0 and bool(pooled)
        self._batches = any(hasattr(verify, "verify_many") for verify in verifiers.values())
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    @property
    def overlaps(self) -> bool:
        """True if calls of `map` from several threads run at the same time: no verifier is called in this process."""
        return not self._here

    def start(self) -> Pool | None:
        """Returns the worker processes, starting them if necessary; None if there is no work for them.

        Raises: ValueError: the reward can't be sent to the workers.
        """
        with self._lock:
            if self._pool is None and self._pooled is not None:
                self._pool = Pool(
                    self._pooled, workers=self.workers, timeout_s=self.timeout_s, memory_mib=self.memory_mib
                )
            return self._pool

    def close(self) -> None:
        """Ends the worker processes; they start again when they are needed."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def __enter__(self) -> BatchScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, pairs: Pairs) -> Generator[Score, None, None]:
        """Yields scores in order. A check that fails leaves its own completion unscored (reward None), never at 0.

        If several verifiers fail on an item, one error is reported: the first in the order of the formula, except that
        verifiers in worker processes, which are called first, come before isolated ones.
        """
        pool = self.start()
        if pool is not None and self._pooled is self.reward:
            yield from pool.map(pairs)
        elif pool is None and not self._batches:
            for problem, completion in pairs:
                yield score_one(self.reward, problem, completion)
        else:
            for batch in _batches(pairs):
                yield from self.reward.batch(batch, None if pool is None else list(pool.map(batch)))


def workers_for(reward: Reward) -> int:
    """Returns 1 if the reward has a verifier that is not ours and so may hang, else 0: ours bound their own work."""
    targets = (str(reward.options.get(name, {}).get("use", name)) for name in reward.verifiers)
    return int(any(target not in VERIFIERS and not target.startswith(LEARNED) for target in targets))


def score_many(
    reward: Reward,
    pairs: Pairs,
    *,
    workers: int | None = 0,
    timeout_s: float = 30.0,
    progress: Callable[[int], None] | None = None,
) -> list[Score]:
    """Returns scores in order; a check that fails leaves its own completion unscored (reward None), never at 0.

    Verifiers with `verify_many` are called with batches. `code` and other isolated verifiers keep every core busy by
    themselves, with or without `workers`; `BatchScorer` says which verifier runs where.

    Args:
        workers: processes for the other verifiers; one that hangs or crashes is killed and replaced. 0 = this process,
            without deadlines; None = one per available core.
        timeout_s: hard deadline of one completion, in worker processes.
        progress: called with the number of completions scored so far.
    """
    with BatchScorer(reward, workers=workers, timeout_s=timeout_s) as scorer:
        return _listed(scorer.map(pairs), progress)


def _batches(pairs: Pairs) -> Iterator[list[tuple[Problem, Completion]]]:
    batch: list[tuple[Problem, Completion]] = []
    size = 0
    for pair in pairs:
        batch.append(pair)
        size += len(pair[1].text)
        if len(batch) == _BATCH or size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _listed(scores: Iterable[Score], progress: Callable[[int], None] | None) -> list[Score]:
    if progress is None:
        return list(scores)
    done: list[Score] = []
    for score in scores:
        done.append(score)
        progress(len(done))
    return done
