"""Engines that sample completions, behind one protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from verifiers import Completion


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. No top-p or top-k: the trainer could not mirror them, and every ratio would be biased."""

    temperature: float  # 0 = greedy
    max_tokens: int
    stop_text: str | None = None  # a completion also ends where this text appears


class RolloutEngine(Protocol):
    """Samples from the newest weights it was given, and says which those were."""

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """[P] token-id prompts and [P][G] seeds -> [P][G] completions, in order, with token log-probabilities.

        A completion depends on its prompt, its seed and the weights, and on nothing else in the call.

        Raises:
            ValueError: an empty prompt, or one that leaves no room in the model's context.
        """

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """The next generate() samples from these weights and stamps `version` on its completions."""

    def close(self) -> None:
        """Frees what the engine holds; a second call does nothing."""
