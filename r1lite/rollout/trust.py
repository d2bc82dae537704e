"""An engine that samples only after it was verified to hold the trainer's newest weights."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from r1lite.distributed.world import ALONE, World
from r1lite.model.lora import Adapter
from r1lite.model.policy import Policy
from r1lite.rollout import (
    AdapterEngine,
    AdapterRefusedError,
    Call,
    CompletionEngine,
    EngineError,
    RolloutEngine,
    Sampling,
    interruption,
)
from r1lite.rollout.canary import Canary
from r1lite.rollout.proof import WeightProof, check_adapter
from r1lite.rollout.relay import RelayedEngine, of_weights
from verifiers import Completion

Weights = Callable[[], Iterable[tuple[str, Tensor]]]  # called for each push and each comparison


class TrustedEngine(CompletionEngine):
    """Pushes new weights to an engine and verifies them before any sampling.

    A step begins with `push`: if the engine is dead, the previous step is complete and can be saved.
    Sampling pushes too if nothing else did, so offered weights are never skipped.

    With a relayed engine the ranks do all of this together, and check the same on each rank.

    Args:
        engine: any engine; one that shares the trainer's weights needs no check.
        canary: the check; None = no check.
        weights: the initial weights.
        proof: compares the bytes of weights, with engines that report digests; None = no comparison.
        prove_every: number of weight changes between two comparisons; the first change is always compared.
        adapter: called at each push: the model's adapter, if any, is sent alone to an engine that takes it.
        say: tells the user why merged weights are sent instead of an adapter.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        canary: Canary | None,
        weights: Weights,
        *,
        pad_id: int,
        proof: WeightProof | None = None,
        prove_every: int = 1,
        adapter: Callable[[], Adapter | None] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.engine, self.canary, self.pad_id = engine, canary, pad_id
        self.proof, self.prove_every, self._pushes = proof, prove_every, 0
        self.shares_weights, self.runs_aside = engine.shares_weights, engine.runs_aside
        self._adapter, self._say = adapter, say
        self._world: World = engine.world if isinstance(engine, RelayedEngine) else ALONE
        self._merges: bool | None = None  # whether an adapter is merged into the weights; None = undecided
        self._proven_base = self._proven_loads = 0  # tensors, and the engine's load count when they were compared
        self._version = 0
        self._pending: Weights | None = weights
        self._recent: list[list[int]] = []  # prompts that the engine may have cached
        self._metrics: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def together(self) -> bool:
        """True if the ranks sample together: each must call the engine as often as the others."""
        return self._world.size > 1

    def interruptible(self, around: Callable[[], AbstractContextManager[None]]) -> None:
        """Sets a context that the main rank enters while it waits for the servers on behalf of all ranks."""
        if isinstance(self.engine, RelayedEngine):
            self.engine.around = around

    def measured_by(self, policy: Policy) -> None:
        """Sets the policy of the check, once the model is sharded and only this policy's forward pass works."""
        if self.canary is not None:
            self.canary.policy = policy

    def stream(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        interrupted: interruption.Interruption | None = None,
    ) -> Iterator[tuple[int, list[Completion]]]:
        """As the engine's; `interrupted` ends thinking after a number of tokens (`rollout.interruption`)."""
        self.push(prompts)
        yield from _sampled(self.engine, prompts, seeds, sampling, interrupted)
        if prompts:
            self._recent = [list(prompt) for prompt in prompts[:2]]

    def each(self, calls: Iterable[Call], sampling: Sampling) -> Iterator[tuple[int, list[list[Completion]]]]:
        """As the engine's, whose weights never change if it answers several calls at once."""
        if getattr(self.engine, "spreads", False):
            return self.engine.each(calls, sampling)
        return super().each(calls, sampling)

    def stream_ahead(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        interrupted: interruption.Interruption | None = None,
    ) -> Iterator[tuple[int, list[Completion]]]:
        """As stream(), beside other calls; does not push, and weights may change in the middle of completions.

        With several ranks only the main rank may call this.
        """
        engine = self.engine.servers if isinstance(self.engine, RelayedEngine) else self.engine
        sampling = dataclasses.replace(sampling, across_weights=True)
        return _sampled(engine, prompts, seeds, sampling, interrupted)

    def push(self, prompts: Sequence[Sequence[int]] = ()) -> None:
        """Sends the newest weights, and verifies them on recent prompts, or on `prompts`. Raises EngineError."""
        with self._lock:
            if self._pending is None:
                return
            started = time.perf_counter()
            before = getattr(self.engine, "bytes_given", 0)
            adapter = self._hand_over(self._pending)
            loaded = time.perf_counter()
            asked = self._asked(self._recent or [list(prompt) for prompt in prompts if prompt])
            if self.engine.shares_weights:
                self._pending = None
                return
            weights = self._pending
            proven = self._prove(weights, adapter)
            proved = time.perf_counter()
            difference = None
            if self.canary is not None and asked:
                difference = self.canary.check(
                    self.engine, asked, self._version, adapter, lambda: self._compared(weights, adapter)
                )
            self._pending = None  # only now, so that weights that failed the check are never sampled from
            self._metrics = {
                "sync_s": loaded - started,
                "sync_mb": (getattr(self.engine, "bytes_given", 0) - before) / 1e6,
                "proof_s": proved - loaded,
                "proven_weights": proven,
                "canary_s": time.perf_counter() - proved,
                "canary_logprob_max": difference,
            }

    def _asked(self, own: list[list[int]]) -> list[list[int]]:
        """The check's prompts. The ranks share prompts in turns, so this is the order of a single-process run."""
        if not self.together:
            return own
        turns = itertools.zip_longest(*self._world.all_gather_object(own))
        return [list(prompt) for prompt in dict.fromkeys(tuple(p) for turn in turns for p in turn if p is not None)]

    def _hand_over(self, weights: Weights) -> Adapter | None:
        """Sends the newest weights. Returns the adapter if it was sent alone; None for complete weights."""
        adapter = None if self.engine.shares_weights else self._adapter()
        if adapter is not None and self._merges is not True:
            engine = self.engine if isinstance(self.engine, AdapterEngine) else None
            why = adapter.refusal() or (engine.no_adapters if engine else "this engine takes complete weights only")
            if engine is not None and not why:
                try:
                    engine.load_adapter(adapter, version=self._version)
                    self._merges = False
                    return adapter
                except AdapterRefusedError as error:
                    if self._merges is False:  # it took the previous adapter
                        raise
                    why = str(error)
            if adapter.over_quantized:
                raise EngineError(
                    "an adapter can't be merged into 4-bit weights, so the engine must take it alone, and "
                    f"does not: {why}. Leave --base-quantization off, or use --engine transformers"
                )
            self._merges = True
            self._say(f"the engine gets all weights, with the adapter merged into them: {why}")
        self.engine.load_weights(weights(), version=self._version)
        return None

    def _prove(self, weights: Weights, adapter: Adapter | None) -> int | None:
        """Number of tensors equal to the trainer's, the least of all servers; None if none were compared."""
        ask = getattr(self.engine, "weight_digests", None)
        self._pushes += 1
        due = (self._pushes - 1) % self.prove_every == 0
        if self.proof is None or ask is None:
            return None
        if adapter is None:
            return self._compare(self.proof, ask, weights) if due else None
        # Base weights don't change, so they are compared only when the engine was given them.
        loads: int = self.engine.base_loads  # type: ignore[attr-defined]  # an AdapterEngine: it took the adapter
        if loads != self._proven_loads:
            self._proven_base, self._proven_loads = self._compare(self.proof, ask, adapter.base) or 0, loads
        elif not due:
            return None
        held: dict[str, Tensor] = getattr(self.engine, "held_adapter", dict)()
        return self._proven_base + check_adapter(held, adapter, self.proof.dtype, version=self._version)

    def _compared(self, weights: Weights, adapter: Adapter | None) -> int | None:
        """As `_prove`, but always: compares complete weights, or the base weights under an adapter."""
        ask = getattr(self.engine, "weight_digests", None)
        if self.proof is None or ask is None:
            return None
        return self._compare(self.proof, ask, weights if adapter is None else adapter.base)

    def _compare(self, proof: WeightProof, ask: Callable[[], Any], weights: Weights) -> int | None:
        where = ((f" at {url}" if url else "", held) for url, held in ask())
        counts = [
            of_weights(
                self._world,
                weights(),
                lambda own, held=held, location=location: proof.check(held, own, where=location, version=self._version),  # type: ignore[misc]
            )
            for location, held in where
        ]
        return min(counts, default=None)

    def offer(self, weights: Weights, *, version: int) -> None:
        """Sets the newest weights; the next `push` sends them."""
        self._pending, self._version = weights, version

    def take_metrics(self) -> dict[str, Any]:
        """Metrics of the last push, once: seconds, proven weights, and the canary's difference in nats."""
        metrics, self._metrics = self._metrics, {}
        return metrics

    def sleep(self) -> None:
        self.engine.sleep()

    def close(self) -> None:
        self.engine.close()


def _sampled(
    engine: CompletionEngine,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    interrupted: interruption.Interruption | None,
) -> Iterator[tuple[int, list[Completion]]]:
    if interrupted is None:
        return engine.stream(prompts, seeds, sampling)
    return interruption.stream(engine, prompts, seeds, sampling, interrupted)
