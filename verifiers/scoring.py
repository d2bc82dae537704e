"""Scores many completions: in batches, and in worker processes where a verifier may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator

from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.registry import LEARNED, VERIFIERS
from verifiers.reward import Reward, Score, score_one

# Of a batch. A longer one keeps the cores busier, for its last item is waited for; a shorter one needs less memory.
_BATCH = 1024
_BATCH_CHARS = 1 << 24

Pairs = Iterable[tuple[Problem, Completion]]


class BatchScorer:
    """Scores for one reward, as fast as its verifiers allow.

    Where each verifier runs:

    - `isolated` ones (`code`, `sandboxed:`, `reasoning_gym`) always run from this process, whatever `workers` is. They
      judge in processes of their own under limits of their own, many at one time through `verify_many`; a worker around
      them would only make them wait for each other. `timeout_s` is not theirs: see their `time_s` and `wall_s`.
    - The others run in `workers` processes, one item at a time under the deadline `timeout_s`, killed and replaced when
      they hang or crash (`verifiers.pool.Pool`).
    - With `workers=0` the others run in this process, without deadlines, through `verify_many` where they have it.

    A batch is at most 1,024 completions or 16 million characters; `map` holds no more. Without a batch to make,
    completions are scored as they come.

    Args:
        reward: what to score for.
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
        self._batches = any(hasattr(verify, "verify_many") for verify in verifiers.values())
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def start(self) -> Pool | None:
        """The worker processes, started at the latest now; None if there is nothing for them to do.

        Raises: ValueError: the reward can't be sent to them.
        """
        with self._lock:
            if self._pool is None and self._pooled is not None:
                self._pool = Pool(
                    self._pooled, workers=self.workers, timeout_s=self.timeout_s, memory_mib=self.memory_mib
                )
            return self._pool

    def close(self) -> None:
        """Ends the worker processes; they are started again when they are needed again."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def __enter__(self) -> BatchScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, pairs: Pairs) -> Generator[Score, None, None]:
        """Scores in order. A check that fails leaves its own completion unscored (reward None), never at 0.

        Of an item on which several verifiers fail one error is told: the first in the formula's order, but those of
        the worker processes, which are asked first, before those of isolated verifiers.
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
    """1 if a verifier in it is not ours, and so may hang; otherwise 0: ours bound their own work."""
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
    """Scores in order; a check that fails leaves its own completion unscored (reward None), never at 0.

    Verifiers with `verify_many` are asked in batches. `code` and what else is isolated keeps every core busy by itself,
    with or without `workers`; `BatchScorer` says which verifier runs where.

    Args:
        workers: processes for the other verifiers, each killed and replaced when one hangs or crashes; 0 = this
            process, without deadlines; None = one per available core.
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
