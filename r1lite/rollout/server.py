"""The protocol of a server that samples for a fleet; vLLM's and SGLang's classes implement it, and others can."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from r1lite.rollout import Sampling
from r1lite.rollout.weight_files import Weights

Sampled = tuple[tuple[int, ...], tuple[float, ...], str]  # token ids, log-probabilities, "stop" or "length"


class Server(Protocol):
    """One server: its identity, new weights, completions, and signs of life.

    Calls raise `Unreachable` (r1lite.rollout.client) if the server is gone, so that another one takes the group, and
    `EngineError` if it refuses.
    """

    url: str
    software: str  # its name, for messages
    launcher: str  # how to start one, for messages
    version: str  # of its software
    context: int  # largest number of tokens of prompt and completion together; 0 = unknown
    alive: bool  # maintained by the fleet
    stalled: bool  # set aside because it gave no sign of life; maintained by the fleet
    load: int  # completions requested and not yet received; maintained by the fleet
    lock: threading.Lock  # of weight updates
    times_given: int  # number of weight updates, including failed ones

    @property
    def bytes_sent(self) -> int:
        """Bytes of weights sent over a connection."""

    def wait(self, seconds: float) -> bool:
        """True as soon as the server is healthy; False if it is not within this time."""

    def context_flag(self, tokens: int) -> str:
        """The argument that starts a server for this many tokens of prompt and completion together."""

    def introduce(self, *, untested: bool) -> None:
        """Queries version, model and context. Raises UserError if this code can't work with the server."""

    def healthy(self, timeout_s: float = 2.0) -> bool:
        """True if its front end answers."""

    def lives(self) -> bool:
        """True if the engine behind its front end works too."""

    def tokens(self, timeout_s: float) -> int | None:
        """Number of tokens computed since its start, of prompts and completions.

        None: the server counts no tokens, and only its engine's answer is known. Raises Unreachable or Refused if
        even the engine does not answer.
        """

    def give(self, weights: Weights) -> None:
        """Loads weights and keeps their label; their adapter is not loaded by this."""

    def give_adapter(self, folder: Path) -> None:
        """Loads an adapter in peft's format over the server's weights, and unloads every other one of a run.

        Later completions come from this adapter, which is identified by the folder's name, or fail. Raises
        AdapterRefusedError if the server works but can't take the adapter.
        """

    def has_adapter(self, name: str) -> bool:
        """True if the server itself reports an adapter with this name, and samples from it."""

    def is_current(self, label: str) -> bool:
        """True if its weights have this label, as reported by the server if it can."""

    def forget(self) -> None:
        """Empties its prefix cache."""

    def digests(self) -> dict[str, str]:
        """SHA-256 of each tensor that it holds, by name; empty if it can't report them, or holds shards."""

    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """A completion for each seed, in order."""

    def hang_up(self) -> None:
        """Cancels every open request; further requests are allowed."""

    def close(self) -> None:
        """Cancels open requests; later requests fail."""
