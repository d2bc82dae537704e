"""The canary: compares the engine's policy with the trainer's after every change of weights, before any sampling.

It compares a few completions' log-probabilities by the engine with those of a forward pass of the trainer's model:

- The tolerance follows from the differences of earlier checks, and is bounded by the precision.
- One prompt is repeated from the previous check, with the same seed. The engine's values have to move from their former
  values as the trainer's do; constant rounding errors cancel out.

The error names the cause: each suspect is repaired in turn until the difference is gone. A mere suspicion stops a run
only if a repair helps.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r1lite.distributed.world import ALONE, World
from r1lite.model import evaluating
from r1lite.model.batch import Row
from r1lite.model.lora import Adapter, merged_weights
from r1lite.model.policy import Policy
from r1lite.model.sharding import whole_weights
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import AdapterEngine, EngineError, RolloutEngine, Sampling
from verifiers import Completion

_SEQUENCES = 2
_ROW_TOKENS = 1 << 16  # of a pass: the few sequences always fit
# Upper bounds of the tolerance. Between vLLM 0.32 and transformers with nano on a CPU, the largest difference of some
# 470 tokens' log-probabilities was 7e-6 in float32, 0.11 in bfloat16, 0.012 in float16. With vLLM 0.26 on an H200 it
# was 9.3e-6 in float32 and 0.068 in bfloat16. The effect of a deeper model was not measured, so the margin is a guess.
TOLERANCE = {torch.float32: 0.002, torch.bfloat16: 0.5, torch.float16: 0.1}
_LAYER = re.compile(r"(.*?\.\d+)\.")
_GAIN = 0.5  # a repaired part counts as a cause if it removes this share of the difference
# Checks use different prompts, and rounding differs between them. This was not measured, so these values are guesses.
# In multiples of the largest difference so far.
_ODD = 4.0  # above it, a cause is looked for
_WRONG = 16.0  # above it, the run stops
_LEAST = {torch.float32: 1e-5, torch.bfloat16: 0.03, torch.float16: 0.006}  # nats that always count as usual
_UNMOVED = 0.1  # share of the trainer's movement that counts as none, if rounding may be as large as the movement
_STALE = "the prefix cache, which still held keys and values of other weights"
_TOKENS = 4  # fewest common tokens for a comparison of movements


@dataclass(frozen=True, slots=True)
class Reading:
    """The largest difference of one check, and its position."""

    difference: float  # nats; inf if the engine's value is not a number
    sequence: int = 0
    token: int = 0
    engine: float = 0.0
    trainer: float = 0.0


@dataclass(frozen=True, slots=True)
class _Look:
    """The completions of a check, with the trainer's log-probabilities of their tokens."""

    prompts: list[list[int]]
    completions: list[Completion]
    expected: list[list[float]]
    reading: Reading

    def of(self, index: int) -> tuple[tuple[int, ...], Tensor, Tensor]:
        """Token ids of a completion, and its log-probabilities by the engine and by the trainer, [T] float64."""
        one = self.completions[index]
        ours, theirs = (torch.tensor(v, dtype=torch.float64) for v in (one.logprobs, self.expected[index]))
        return one.token_ids, ours, theirs


@dataclass(frozen=True, slots=True)
class _Held:
    """The engine of a check, and what it was given."""

    engine: RolloutEngine
    version: int
    adapter: Adapter | None
    compare: Callable[[], int | None]

    def send_adapter(self, *, base_too: bool) -> bool:
        """Sends the adapter again; False if the engine was given complete weights."""
        if self.adapter is None or not isinstance(self.engine, AdapterEngine):
            return False
        self.engine.load_adapter(self.adapter, version=self.version, base_too=base_too)
        return True

    def forget(self) -> bool:
        """Empties the prefix cache; False if the engine has none."""
        forget = getattr(self.engine, "forget", None)
        if forget is not None:
            forget()
        return forget is not None


class Canary:
    """The check, and the search for the cause of a difference.

    Args:
        policy: the trainer's policy, at the sampling temperature.
        tokens: length of each completion.
        tolerance: nats; None = from earlier checks, at most `TOLERANCE`.
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
        self._fixed = tolerance
        self._usual: float | None = None  # the largest difference so far
        self._before: dict[str, _Look] = {}  # the previous check, by server address

    @property
    def tolerance(self) -> float:
        """The largest allowed difference between engine and trainer, in nats."""
        if self._fixed is not None:
            return self._fixed
        most = TOLERANCE[self.policy.dtype]
        return most if self._usual is None else min(most, _WRONG * max(self._usual, _LEAST[self.policy.dtype]))

    def check(
        self,
        engine: RolloutEngine,
        prompts: Sequence[Sequence[int]],
        version: int,
        adapter: Adapter | None = None,
        compare: Callable[[], int | None] = lambda: None,
    ) -> float:
        """The largest difference, in nats; with several servers, that of the worst server.

        Args:
            prompts: if possible, prompts that the engine has seen under other weights, so that stale caches show.
            adapter: the adapter, if the engine was given an adapter instead of complete weights.
            compare: returns the number of tensors with the trainer's bytes, or None if none can be compared; raises
                EngineError with the names of tensors that differ.

        Raises:
            EngineError: the difference is above the tolerance, or a suspicion was confirmed; the message names the
                cause.
        """
        worst, held = 0.0, _Held(engine, version, adapter, compare)
        for url in getattr(engine, "urls", [""]):
            with engine.at(url) if url else contextlib.nullcontext():  # type: ignore[attr-defined]
                worst = max(worst, self._check(held, prompts, url))
        self._usual = max(self._usual or 0.0, worst)  # over all servers
        return worst

    def _check(self, held: _Held, prompts: Sequence[Sequence[int]], url: str) -> float:
        version, before = held.version, self._before.get(url)
        asked = [*(before.prompts[-1:] if before else []), *prompts]
        chosen = [list(prompt) for prompt in dict.fromkeys(tuple(prompt) for prompt in asked)][:_SEQUENCES]
        look = self._look(held.engine, chosen)
        stamped = {completion.policy_version for completion in look.completions}
        if stamped != {version}:
            raise EngineError(f"the engine stamps version {sorted(stamped)} on completions of version {version}")
        location = f" at {url}" if url else ""
        reading = look.reading
        if reading.difference > self.tolerance:
            raise EngineError(
                f"the engine{location} does not sample from the trainer's weights of version "
                f"{version}: the log-probability of token {reading.token + 1} of canary {reading.sequence + 1} is "
                f"{reading.engine:.4f} there and {reading.trainer:.4f} here, {reading.difference:.3g} nats apart (at "
                f"most {self.tolerance:.2g} allowed in {str(self.policy.dtype).removeprefix('torch.')}). What differs: "
                f"{self._name_the_cause(held, look)}"
            )
        stays = before is not None and self._stays(before, look)
        usual = max(self._usual or 0.0, _LEAST[self.policy.dtype] / 10)
        odd = self._usual is not None and reading.difference > _ODD * usual
        if stays or odd:
            cause = self._confirmed(held, before if stays else None, look)
            if cause is not None:
                seen = (
                    "is closer to the previous weights than to the trainer's"
                    if stays
                    else f"is {reading.difference:.2g} nats from the trainer (usual: {usual:.2g}) with weights"
                )
                raise EngineError(f"the engine{location} {seen} of version {version}. What differs: {cause}")
        self._before[url] = look
        return reading.difference

    def _stays(self, before: _Look, look: _Look) -> bool:
        """True if the engine stayed closer to its former values than the trainer did, by more than rounding."""
        if before.prompts[-1] != look.prompts[0]:
            return False
        one, two = before.of(-1), look.of(0)
        common = 0
        while common < min(len(one[0]), len(two[0])) and one[0][common] == two[0][common]:
            common += 1
        if common < _TOKENS:
            return False
        engine, trainer = two[1][:common] - one[1][:common], two[2][:common] - one[2][:common]
        stayed, followed, moved = (float(v.square().mean().sqrt()) for v in (engine, engine - trainer, trainer))
        rounding = float((one[1] - one[2])[:common].abs().max())
        share = 1.0 if moved > _ODD * rounding else _UNMOVED
        return stayed < share * followed

    def _confirmed(self, held: _Held, before: _Look | None, look: _Look) -> str | None:
        """The cause, if a repair helps; None if the difference is rounding, or if the weights hardly moved.

        Args:
            before: the check whose values the engine seems to have kept; None: its difference is larger than usual.
        """

        def helped() -> bool:
            # Twice: the first time, prompts are computed again and round differently than cached ones.
            again = [self._look(held.engine, look.prompts) for _ in range(2)]
            if before is not None:
                return not any(self._stays(before, one) for one in again)
            return all(one.reading.difference < _GAIN * look.reading.difference for one in again)

        if held.forget() and helped():
            return _STALE
        try:
            held.compare()
        except EngineError as error:
            return str(error)
        if not held.send_adapter(base_too=True):
            held.engine.load_weights(whole_weights(merged_weights(self.policy.model)), version=held.version)
        return "weights: with all of them sent again, both agree" if helped() else None

    def _look(self, engine: RolloutEngine, prompts: list[list[int]]) -> _Look:
        completions = self._sample(engine, prompts)
        # Another rank's processor may round differently.
        expected = self.world.broadcast_object(trainer_logprobs(self.policy, prompts, completions))
        return _Look(prompts, completions, expected, _furthest(expected, completions))

    def _sample(self, engine: RolloutEngine, prompts: list[list[int]]) -> list[Completion]:
        sampling = Sampling(self.policy.temperature, self.tokens, self.stop_text)
        seeds = [[completion_seed(self.seed, "canary", 0, "", 0)] for _ in prompts]
        asked = (prompts, seeds) if self.world.is_main else ([], [])
        return self.world.broadcast_object([group[0] for group in engine.generate(*asked, sampling)])

    def _name_the_cause(self, held: _Held, look: _Look) -> str:
        """Names the cause, by repairing one suspect after another. The run stops in any case."""
        engine, prompts, before = held.engine, look.prompts, look.reading.difference
        if any_other := self._other_temperature(look):
            return (
                f"the temperature: the engine's values are those of {any_other:g}, not of {self.policy.temperature:g}"
            )
        if held.forget() and self._difference(engine, prompts) <= self.tolerance:
            return _STALE
        try:
            proven = held.compare()
        except EngineError as error:
            return str(error)
        remain = f", with {proven} tensors that have the trainer's bytes" if proven else ""
        if held.send_adapter(base_too=False):
            if self._difference(engine, prompts) <= self.tolerance:
                return "the adapter: sent again, both agree"
            held.send_adapter(base_too=True)
            if (after := self._difference(engine, prompts)) <= self.tolerance:
                return "the base weights: sent again, both agree"
            return f"the model itself: with adapter and weights sent again, {after:.3g} nats remain{remain}"
        weights, mended = dict(merged_weights(self.policy.model)), []
        takes_parts = getattr(engine, "takes_parts", True)
        groups = _groups(list(weights)) if takes_parts else {"of the whole model": list(weights)}
        for name, names in groups.items():
            engine.load_weights(whole_weights((weight, weights[weight]) for weight in names), version=held.version)
            after = self._difference(engine, prompts)
            if after <= self.tolerance or after < _GAIN * before:
                mended.append(name)
                before = after
            if after <= self.tolerance:
                break
        if before <= self.tolerance:
            return f"the weights {', '.join(mended)}: with these sent again, both agree"
        return (
            f"all weights or the model itself: with all sent again one by one, {before:.3g} nats remain"
            + (f" after {', '.join(mended)}" if mended else "")
            + remain
        )

    def _difference(self, engine: RolloutEngine, prompts: list[list[int]]) -> float:
        return self._look(engine, prompts).reading.difference

    def _other_temperature(self, look: _Look) -> float | None:
        """The temperature of the engine's log-probabilities, if it is not the requested one."""
        asked, tolerance = self.policy.temperature, self.tolerance
        try:
            for other in {1.0, asked * asked, 1.0 / asked} - {asked}:
                self.policy.temperature = other
                expected = trainer_logprobs(self.policy, look.prompts, look.completions)
                if _furthest(self.world.broadcast_object(expected), look.completions).difference <= tolerance:
                    return other
        finally:
            self.policy.temperature = asked
        return None


def _furthest(expected: Sequence[Sequence[float]], completions: Sequence[Completion]) -> Reading:
    """The position where engine and trainer differ most."""
    worst = Reading(0.0)
    for i, (row, completion) in enumerate(zip(expected, completions, strict=True)):
        for t, (ours, theirs) in enumerate(zip(row, completion.logprobs, strict=True)):
            difference = abs(ours - theirs)
            if not difference <= worst.difference:  # NaN is worse than any number
                difference = difference if difference == difference else torch.inf
                worst = Reading(difference, i, t, theirs, ours)
    return worst


def trainer_logprobs(
    policy: Policy, prompts: Sequence[Sequence[int]], completions: Sequence[Completion]
) -> list[list[float]]:
    """[N] prompts and completions -> [N][T] log-probabilities of their tokens by the trainer's model, in nats."""
    rows = [Row(tuple(p), c.token_ids) for p, c in zip(prompts, completions, strict=True)]
    by_row: list[list[float]] = [[] for _ in rows]
    with evaluating(policy.model), torch.no_grad():
        for batch in policy.micro_batches(rows, _ROW_TOKENS):
            logprobs = policy.logprobs(batch).float().cpu()
            for row, i in zip(logprobs, batch.rows, strict=True):
                by_row[i] = row[: len(rows[i].token_ids)].tolist()
    return by_row


def _groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Groups weights that are sent together: a layer, or a weight outside layers. The head, often lost, is first."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: "head" not in name):
        match = _LAYER.match(name)
        groups.setdefault(match[1] if match else name, []).append(name)
    return groups
