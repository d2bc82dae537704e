"""Engines that sample completions, behind one protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from r1lite.errors import RunError
from r1lite.model.lora import Adapter
from verifiers import Completion
from verifiers.end_tokens import END_TOKENS


class EngineError(RunError):
    """An engine that can't go on: dead, out of memory, or with other weights than the trainer's. Nothing it was
    asked for has changed the run, so the step before stands and the run can be resumed."""


class AdapterRefusedError(EngineError):
    """The engine works, and does not take this adapter by itself: its model has none, or not for such layers or ranks.
    Merged weights may do."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen.

    The trainer's probabilities are those of the whole distribution, so top_p, top_k and min_p bias every ratio.
    """

    temperature: float  # 0 = greedy
    max_tokens: int
    stop_text: str | None = None  # a completion also ends where this text appears
    top_p: float = 1.0  # off
    top_k: int = 0  # off
    min_p: float = 0.0  # off
    across_weights: bool = False  # new weights that come in the middle go on from there, where the engine can


class CompletionEngine(Protocol):
    """Samples completions. One that is derived from this has to say how it streams, and generates so."""

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """[P] token-id prompts and [P][G] seeds -> [P][G] completions, in order, with token log-probabilities.

        A completion depends on its prompt, its seed and the weights, and on nothing else in the call.

        Raises:
            ValueError: an empty prompt, or one that leaves no room in the model's context.
            EngineError: it can't go on.
        """
        return collect(len(prompts), self.stream(prompts, seeds, sampling))

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        """As generate(), but each group comes with the place of its prompt as soon as it is finished."""


class RolloutEngine(CompletionEngine, Protocol):
    """Samples from the newest weights it was given, and says which those were."""

    shares_weights: bool  # True: it samples in this process with the trainer's own weights, which are always current
    runs_aside: bool  # True: it runs outside this process, so sampling and training can go on at once

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """The next completions come from these weights and are stamped with `version`."""

    def sleep(self) -> None:
        """Frees what it can of the device's memory; the next load_weights() wakes it."""

    def close(self) -> None:
        """Frees what the engine holds; a second call does nothing."""


@runtime_checkable
class AdapterEngine(Protocol):
    """An engine that can take an adapter alone, over weights that it holds already."""

    no_adapters: str  # why it takes none; empty if it does
    base_loads: int  # how often it was given the weights below

    def load_adapter(self, adapter: Adapter, *, version: int, base_too: bool = False) -> None:
        """The next completions come from this adapter, over the weights below it, and are stamped with `version`.

        Args:
            base_too: gives the weights below again; the first call does so anyway.

        Raises:
            AdapterRefusedError: not this one.
            EngineError: it can't go on.
        """


Call = tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]  # prompts and seeds of one call of generate()


@runtime_checkable
class SpreadEngine(Protocol):
    """An engine that answers several calls at once."""

    def each(self, calls: Iterable[Call], sampling: Sampling) -> Iterator[tuple[int, list[list[Completion]]]]:
        """(number of the call, what generate() returns) as they are finished; `calls` is read as they are begun."""


def each(
    engine: CompletionEngine, calls: Iterable[Call], sampling: Sampling
) -> Iterator[tuple[int, list[list[Completion]]]]:
    """`SpreadEngine.each` of any engine: of one that answers a call at a time, one after the other."""
    if isinstance(engine, SpreadEngine):
        yield from engine.each(calls, sampling)
        return
    for number, (prompts, seeds) in enumerate(calls):
        yield number, engine.generate(prompts, seeds, sampling)


def collect(count: int, groups: Iterable[tuple[int, list[Completion]]]) -> list[list[Completion]]:
    """What a stream gives, in the order of the prompts."""
    found: list[list[Completion]] = [[] for _ in range(count)]
    for place, group in groups:
        found[place] = group
    return found


def check_prompts(prompts: Sequence[Sequence[int]], max_tokens: int, context: int | None) -> None:
    """Raises ValueError for an empty prompt, and for one that leaves no room in the context."""
    for prompt in prompts:
        if not prompt:
            raise ValueError("an empty prompt: there is no token to start from")
        if context is not None and len(prompt) + max_tokens > context:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens and {max_tokens} new ones don't fit the model's context of {context}"
            )


def eos_ids(model_or_config: object, tokenizer: Any) -> list[int]:
    """Every id that ends a text: those of the generation config, the tokenizer's own, and what it has of END_TOKENS.

    The last because a fine-tuned model's generation config may have lost what ends a turn of its chat template: the
    model would write on, into a turn of the user's.
    """
    configured = getattr(getattr(model_or_config, "generation_config", None), "eos_token_id", None)
    found = configured if isinstance(configured, list) else [configured]
    added = tokenizer.get_added_vocab()
    named = [added[text] for text in END_TOKENS if text in added]
    return sorted({token for token in [*found, tokenizer.eos_token_id, *named] if token is not None})


def text_of(tokenizer: Any, ids: Sequence[int], ends: Collection[int]) -> str:
    """What a completion's ids say, without the one that ended it, which need not be a special token.

    Args:
        ends: ids that end a text, as `eos_ids` gives them.
    """
    said = ids[:-1] if ids and ids[-1] in ends else ids
    text: str = tokenizer.decode(said, skip_special_tokens=True)
    return text
