"""An engine that samples only after it was seen to hold the trainer's newest weights."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor

from r1lite.rollout import RolloutEngine, Sampling, collect
from r1lite.rollout.canary import Canary
from verifiers import Completion

Weights = Callable[[], Iterable[tuple[str, Tensor]]]  # called once for each push


class TrustedEngine:
    """Pushes new weights to an engine and verifies them before anything is sampled.

    A step begins with `push`: the step before it is over, and can be saved, when an engine turns out to be dead.
    Sampling pushes too, if nobody did, so weights that were offered are never skipped.

    Args:
        engine: any; one that shares the trainer's weights needs no check.
        canary: the check; None = none is made.
        weights: those to begin with.
    """

    def __init__(self, engine: RolloutEngine, canary: Canary | None, weights: Weights, *, pad_id: int) -> None:
        self.engine, self.canary, self.pad_id = engine, canary, pad_id
        self.shares_weights, self.runs_aside = engine.shares_weights, engine.runs_aside
        self._version = 0
        self._pending: Weights | None = weights
        self._recent: list[list[int]] = []  # prompts that it may keep something of
        self._metrics: dict[str, Any] = {}
        self._lock = threading.Lock()

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        return collect(len(prompts), self.stream(prompts, seeds, sampling))

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        self.push(prompts)
        yield from self.engine.stream(prompts, seeds, sampling)
        if prompts:
            self._recent = [list(prompt) for prompt in prompts[:2]]

    def push(self, prompts: Sequence[Sequence[int]] = ()) -> None:
        """Gives the engine the newest weights, and verifies them on recent prompts, or on these. Raises EngineError."""
        with self._lock:
            if self._pending is None:
                return
            started = time.perf_counter()
            self.engine.load_weights(self._pending(), version=self._version)
            loaded = time.perf_counter()
            asked = self._recent or [list(prompt) for prompt in prompts if prompt]
            if self.engine.shares_weights:
                self._pending = None
                return
            difference = None
            if self.canary is not None and asked:
                difference = self.canary.check(self.engine, asked, self._version)
            self._pending = None  # only now: weights that failed the check must not be sampled from
            self._metrics = {
                "sync_s": loaded - started,
                "canary_s": time.perf_counter() - loaded,
                "canary_logprob_max": difference,
            }

    def offer(self, weights: Weights, *, version: int) -> None:
        """Names the newest weights; the next `push` hands them over."""
        self._pending, self._version = weights, version

    def take_metrics(self) -> dict[str, Any]:
        """Of the pushes since it was asked last: seconds, and the canary's difference in nats."""
        metrics, self._metrics = self._metrics, {}
        return metrics

    def sleep(self) -> None:
        self.engine.sleep()

    def close(self) -> None:
        self.engine.close()
