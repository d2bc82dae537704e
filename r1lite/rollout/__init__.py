"""Engines that sample completions, behind one protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from r1lite.errors import RunError, UserError
from r1lite.model.lora import Adapter
from verifiers import Completion
from verifiers.end_tokens import END_TOKENS


class EngineError(RunError):
    """An engine that can't go on: dead, out of memory, or with other weights than the trainer's. The failed call did
    not change the run, so the previous step is intact and the run can be resumed."""


class AdapterRefusedError(EngineError):
    """The engine works, but can't take this adapter alone: its model supports none, or not these layers or this rank.
    Merged weights may work."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of token sampling.

    The trainer's probabilities are those of the whole distribution, so top_p, top_k and min_p bias every ratio.
    """

    temperature: float  # 0 = greedy
    max_tokens: int
    stop_text: str | None = None  # a completion also ends when this text appears
    top_p: float = 1.0  # off
    top_k: int = 0  # off
    min_p: float = 0.0  # off
    across_weights: bool = False  # if weights change in the middle, a completion continues, if the engine supports it


Call = tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]  # prompts and seeds of one call of generate()


class CompletionEngine(Protocol):
    """Samples completions. A subclass must implement `stream`, which `generate` uses."""

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """[P] token-id prompts and [P][G] seeds -> [P][G] completions, in order, with token log-probabilities.

        A completion depends only on its prompt, its seed and the weights, not on the rest of the call.

        Raises:
            ValueError: an empty prompt, or one that leaves no room in the model's context.
            EngineError: the engine can't go on.
        """
        return collect(len(prompts), self.stream(prompts, seeds, sampling))

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        """As generate(), but yields (index of the prompt, group) as soon as each group is finished."""

    def each(self, calls: Iterable[Call], sampling: Sampling) -> Iterator[tuple[int, list[list[Completion]]]]:
        """Yields (number of the call, generate()'s result): one call after the other, unless an engine answers several
        at once and yields them as they finish; `calls` is read as they start."""
        for number, (prompts, seeds) in enumerate(calls):
            yield number, self.generate(prompts, seeds, sampling)


class RolloutEngine(CompletionEngine, Protocol):
    """Samples from the newest weights it was given, and stamps completions with their version."""

    shares_weights: bool  # True: it samples in this process with the trainer's own weights, which are always current
    runs_aside: bool  # True: it runs outside this process, so sampling and training can run at the same time
    spreads: bool = False  # True: it answers several calls at once, with weights that never change

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Loads weights; later completions come from them and are stamped with `version`."""

    def sleep(self) -> None:
        """Frees as much of the device's memory as possible; the next load_weights() wakes the engine."""

    def close(self) -> None:
        """Frees what the engine holds; a second call does nothing."""


@runtime_checkable
class AdapterEngine(Protocol):
    """An engine that can take an adapter alone, over base weights that it already holds."""

    no_adapters: str  # the reason why it takes no adapters; empty if it does
    base_loads: int  # number of times it was given the base weights

    def load_adapter(self, adapter: Adapter, *, version: int, base_too: bool = False) -> None:
        """Loads an adapter over its base weights; later completions come from it and are stamped with `version`.

        Args:
            base_too: also load the base weights again; the first call does so anyway.

        Raises:
            AdapterRefusedError: the engine can't take this adapter.
            EngineError: the engine can't go on.
        """


def collect(count: int, groups: Iterable[tuple[int, list[Completion]]]) -> list[list[Completion]]:
    """The groups of a stream in the order of the prompts."""
    ordered: list[list[Completion]] = [[] for _ in range(count)]
    for i, group in groups:
        ordered[i] = group
    return ordered


def check_prompts(prompts: Sequence[Sequence[int]], max_tokens: int, context: int | None) -> None:
    """Raises ValueError for an empty prompt, or one that leaves no room in the context."""
    for prompt in prompts:
        if not prompt:
            raise ValueError("an empty prompt: there is no token to start from")
        if context is not None and len(prompt) + max_tokens > context:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens and {max_tokens} new tokens don't fit the model's context of "
                f"{context}"
            )


def eos_ids(model_or_config: object, tokenizer: Any) -> list[int]:
    """All ids that end a text: those of the generation config, the tokenizer's own, and its END_TOKENS.

    END_TOKENS are needed because a fine-tuned model's generation config may lack the token that ends a turn of its
    chat template; the model would then continue into the user's turn.

    Raises UserError if the generation config holds anything but ids.
    """
    configured = getattr(getattr(model_or_config, "generation_config", None), "eos_token_id", None)
    eos = configured if isinstance(configured, list) else [configured]
    if not all(token is None or (isinstance(token, int) and token >= 0) for token in eos):
        raise UserError(f"the model's generation_config.json: eos_token_id must be a token id, got {configured!r}")
    added = tokenizer.get_added_vocab()
    named = [added[text] for text in END_TOKENS if text in added]
    return sorted({token for token in [*eos, tokenizer.eos_token_id, *named] if token is not None})


def text_of(tokenizer: Any, ids: Sequence[int], ends: Collection[int]) -> str:
    """The text of a completion's ids, without the id that ended it, which need not be a special token.

    Args:
        ends: ids that end a text, as `eos_ids` returns them.
    """
    kept = ids[:-1] if ids and ids[-1] in ends else ids
    text: str = tokenizer.decode(kept, skip_special_tokens=True)
    return text
