"""What a fleet needs of a server that samples: the protocol that vLLM's implements, and others can."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from r1lite.rollout import Sampling
from r1lite.rollout.weight_files import Weights

Sampled = tuple[tuple[int, ...], tuple[float, ...], str]  # token ids, log-probabilities, "stop" or "length"


class Server(Protocol):
    """One server: what it is, new weights, completions, and signs of life.

    Calls raise `Unreachable` (r1lite.rollout.client) where it is gone, so that another one takes the group, and
    `EngineError` where it refuses.
    """

    url: str
    software: str  # its name, for messages
    launcher: str  # what starts one, for messages
    version: str  # of its software, as in its lines
    context: int  # tokens of prompt and completion together that it takes; 0 = unknown
    alive: bool  # kept by the fleet
    stalled: bool  # it was left out since it gave no sign of life; kept by the fleet
    load: int  # completions that were asked for and not given yet; kept by the fleet
    lock: threading.Lock  # of weight updates
    times_given: int  # weights that were given to it, whole or not

    @property
    def bytes_sent(self) -> int:
        """Of weights, over a connection."""

    def wait(self, seconds: float) -> bool:
        """True as soon as it is healthy; False if it is not within that time."""

    def context_flag(self, tokens: int) -> str:
        """The argument that starts one which takes so many tokens of prompt and completion together."""

    def introduce(self, *, untested: bool) -> None:
        """Asks for its version, model and context. Raises UserError if this code can't work with it."""

    def healthy(self, timeout_s: float = 2.0) -> bool:
        """True if its front answers."""

    def lives(self) -> bool:
        """True if what samples behind its front works too."""

    def tokens(self, timeout_s: float) -> int | None:
        """How many it has computed since it was started, of prompts and completions.

        None: it does not count them, and all that is known is that what samples behind its front answers. Raises
        Unreachable, or Refused, where not even that.
        """

    def give(self, weights: Weights) -> None:
        """Loads weights, which are known by their label from then on; their adapter is not given by this."""

    def give_adapter(self, folder: Path) -> None:
        """Loads an adapter in peft's format over the weights it has, and unloads every other one of a run.

        What it samples from then on comes from this adapter, which is known by the folder's name, or fails. Raises
        AdapterRefusedError where the server works and does not take it.
        """

    def has_adapter(self, name: str) -> bool:
        """True if it has an adapter of that name, as the server itself says, and samples from it."""

    def is_current(self, label: str) -> bool:
        """True if the weights it holds have this label, as the server itself says where it can."""

    def forget(self) -> None:
        """Empties its cache of prompts."""

    def digests(self) -> dict[str, str]:
        """SHA-256 of each tensor that it holds, by name; empty where it can't tell, or holds shards."""

    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """A completion for each seed, in order."""

    def hang_up(self) -> None:
        """Breaks off every request under way; further ones may follow."""

    def close(self) -> None:
        """Breaks off what is under way; nothing can be asked any more."""
