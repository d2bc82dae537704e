"""The canary: compares the engine's policy with the trainer's after every change of weights, before any sampling.

It compares a few completions' log-probabilities by the engine with those of a forward pass of the trainer's model. If
they differ, it names the cause: it repairs each suspect in turn until the difference is gone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from r1lite.distributed.world import ALONE, World
from r1lite.model.batch import Row, micro_batches
from r1lite.model.lora import Adapter, merged_weights
from r1lite.model.policy import Policy
from r1lite.model.sharding import whole_weights
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import AdapterEngine, EngineError, RolloutEngine, Sampling
from verifiers import Completion

_SEQUENCES = 2
_ROW_TOKENS = 1 << 16  # of a pass: the few sequences always fit
# Above rounding errors. Measured between vLLM 0.32 and transformers with nano on a CPU, the largest difference of
# some 470 tokens' log-probabilities: 7e-6 in float32, 0.11 in bfloat16, 0.012 in float16. The effect of a deeper model
# or of CUDA was not measured: the margin is a guess, and wider in float32, where it costs nothing.
TOLERANCE = {torch.float32: 0.002, torch.bfloat16: 0.5, torch.float16: 0.1}
_LAYER = re.compile(r"(.*?\.\d+)\.")
_GAIN = 0.5  # a repaired part counts as a cause if it removes this share of the difference


@dataclass(frozen=True, slots=True)
class Reading:
    """The largest difference of one check, and its position."""

    difference: float  # nats; inf if the engine's value is not a number
    sequence: int = 0
    token: int = 0
    engine: float = 0.0
    trainer: float = 0.0


class Canary:
    """The check, and the search for the cause of a difference.

    Args:
        policy: the trainer's policy, at the sampling temperature.
        tokens: length of each completion.
        tolerance: nats; None = by dtype.
        world: the ranks that share the engine: they check together, and the main rank's reading decides.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        tokens: int,
        seed: int,
        stop_text: str | None,
        tolerance: float | None,
        world: World = ALONE,
    ) -> None:
        self.policy, self.tokens, self.seed, self.stop_text, self.world = policy, tokens, seed, stop_text, world
        self.tolerance = TOLERANCE[policy.dtype] if tolerance is None else tolerance

    def check(
        self,
        engine: RolloutEngine,
        prompts: Sequence[Sequence[int]],
        version: int,
        adapter: Adapter | None = None,
    ) -> float:
        """The largest difference, in nats; with several servers, that of the worst server.

        Args:
            prompts: if possible, prompts that the engine has seen under other weights, so that stale caches show.
            adapter: the adapter, if the engine was given an adapter instead of complete weights.

        Raises:
            EngineError: the difference is above the tolerance; the message names the cause.
        """
        worst = 0.0
        for url in getattr(engine, "urls", [""]):
            with engine.at(url) if url else contextlib.nullcontext():  # type: ignore[attr-defined]
                worst = max(worst, self._check(engine, prompts, version, url, adapter))
        return worst

    def _check(
        self,
        engine: RolloutEngine,
        prompts: Sequence[Sequence[int]],
        version: int,
        url: str,
        adapter: Adapter | None,
    ) -> float:
        chosen = [list(prompt) for prompt in prompts[:_SEQUENCES]]
        completions = self._sample(engine, chosen)
        stamped = {completion.policy_version for completion in completions}
        if stamped != {version}:
            raise EngineError(f"the engine stamps version {sorted(stamped)} on completions of version {version}")
        reading = self._read(chosen, completions)
        if reading.difference <= self.tolerance:
            return reading.difference
        raise EngineError(
            f"the engine{f' at {url}' if url else ''} does not sample from the trainer's weights of version "
            f"{version}: the log-probability of token {reading.token + 1} of canary {reading.sequence + 1} is "
            f"{reading.engine:.4f} there and {reading.trainer:.4f} here, {reading.difference:.3g} nats apart (at most "
            f"{self.tolerance:g} allowed in {str(self.policy.dtype).removeprefix('torch.')}). What differs: "
            f"{self._name_the_cause(engine, chosen, completions, reading, version, adapter)}"
        )

    def _sample(self, engine: RolloutEngine, prompts: list[list[int]]) -> list[Completion]:
        sampling = Sampling(self.policy.temperature, self.tokens, self.stop_text)
        seeds = [[completion_seed(self.seed, "canary", 0, "", i)] for i in range(len(prompts))]
        asked = (prompts, seeds) if self.world.is_main else ([], [])
        return self.world.broadcast_object([group[0] for group in engine.generate(*asked, sampling)])

    def _read(self, prompts: Sequence[Sequence[int]], completions: Sequence[Completion]) -> Reading:
        """The position where engine and trainer differ most."""
        worst = Reading(0.0)
        for i, (expected, completion) in enumerate(
            zip(trainer_logprobs(self.policy, prompts, completions), completions, strict=True)
        ):
            for t, (ours, theirs) in enumerate(zip(expected, completion.logprobs, strict=True)):
                difference = abs(ours - theirs)
                if not difference <= worst.difference:  # NaN is worse than any number
                    difference = difference if difference == difference else torch.inf
                    worst = Reading(difference, i, t, theirs, ours)
        return self.world.broadcast_object(worst)  # another rank's processor may round differently

    def _name_the_cause(
        self,
        engine: RolloutEngine,
        prompts: list[list[int]],
        completions: list[Completion],
        reading: Reading,
        version: int,
        adapter: Adapter | None,
    ) -> str:
        """Names the cause, by repairing one suspect after another. The run stops in any case."""
        if any_other := self._other_temperature(prompts, completions):
            return (
                f"the temperature: the engine's values are those of {any_other:g}, not of {self.policy.temperature:g}"
            )
        forget = getattr(engine, "forget", None)
        if forget is not None:
            forget()
            if self._difference(engine, prompts) <= self.tolerance:
                return "the prefix cache, which still held keys and values of other weights"
        if adapter is not None and isinstance(engine, AdapterEngine):
            for base_too, part in ((False, "the adapter"), (True, "the base weights")):
                engine.load_adapter(adapter, version=version, base_too=base_too)
                if (after := self._difference(engine, prompts)) <= self.tolerance:
                    return f"{part}: sent again, both agree"
            return f"the model itself: with adapter and weights sent again, {after:.3g} nats remain"
        weights = dict(merged_weights(self.policy.model))
        mended = []
        before = reading.difference
        takes_parts = getattr(engine, "takes_parts", True)
        groups = _groups(list(weights)) if takes_parts else {"of the whole model": list(weights)}
        for name, names in groups.items():
            engine.load_weights(whole_weights((weight, weights[weight]) for weight in names), version=version)
            after = self._difference(engine, prompts)
            if after <= self.tolerance or after < _GAIN * before:
                mended.append(name)
                before = after
            if after <= self.tolerance:
                break
        if before <= self.tolerance:
            return f"the weights {', '.join(mended)}: with these sent again, both agree"
        return f"all weights or the model itself: with all sent again one by one, {before:.3g} nats remain" + (
            f" after {', '.join(mended)}" if mended else ""
        )

    def _difference(self, engine: RolloutEngine, prompts: list[list[int]]) -> float:
        return self._read(prompts, self._sample(engine, prompts)).difference

    def _other_temperature(self, prompts: list[list[int]], completions: list[Completion]) -> float | None:
        """The temperature of the engine's log-probabilities, if it is not the requested one."""
        asked = self.policy.temperature
        try:
            for other in {1.0, asked * asked, 1.0 / asked} - {asked}:
                self.policy.temperature = other
                if self._read(prompts, completions).difference <= self.tolerance:
                    return other
        finally:
            self.policy.temperature = asked
        return None


def trainer_logprobs(
    policy: Policy, prompts: Sequence[Sequence[int]], completions: Sequence[Completion]
) -> list[list[float]]:
    """[N] prompts and completions -> [N][T] log-probabilities of their tokens by the trainer's model, in nats."""
    rows = [Row(tuple(p), c.token_ids) for p, c in zip(prompts, completions, strict=True)]
    by_row: list[list[float]] = [[] for _ in rows]
    model = policy.model
    training = model.training  # gradient checkpointing needs training mode, in which layers drop the cache
    model.eval()
    try:
        with torch.no_grad():
            for batch in micro_batches(rows, _ROW_TOKENS, policy.pad_id, model.device, policy.layout):
                logprobs = policy.logprobs(batch).float().cpu()
                for row, i in zip(logprobs, batch.rows, strict=True):
                    by_row[i] = row[: len(rows[i].token_ids)].tolist()
    finally:
        model.train(training)
    return by_row


def _groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Groups weights that are sent together: a layer, or a weight outside layers. The head, often lost, is first."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: "head" not in name):
        match = _LAYER.match(name)
        groups.setdefault(match[1] if match else name, []).append(name)
    return groups
