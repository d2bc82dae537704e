"""One server that samples for a fleet: its address and state, and the calls that each software implements."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from r1lite.errors import UserError
from r1lite.rollout import AdapterRefusedError, EngineError, Sampling
from r1lite.rollout.client import Client, Refused, Unreachable
from r1lite.rollout.continued import ABORTED
from r1lite.rollout.weight_files import Weights

QUICK_S = 10.0  # for queries that need no computing
HELLO_S = 2.0
TOKEN = "R1LITE_ENGINE_TOKEN"  # an environment variable, because other users see arguments, and a run records them
_BUSY_S = 60.0  # for queries during a run: a busy engine answers only between two of its steps

Sampled = tuple[tuple[int, ...], tuple[float, ...], str]  # token ids, log-probabilities, "stop" or "length"


class Server(ABC):
    """One server: its identity, new weights, completions, and signs of life.

    Calls raise `Unreachable` (r1lite.rollout.client) if the server is gone, so that another one takes the group, and
    `EngineError` if it refuses.

    Args:
        run: a name of this run, so that a takeover of the server by another run is detected.
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text.

    Raises (when made): UserError for an invalid address, or an invalid token in the environment.
    """

    software: str  # its name, for messages
    launcher: str  # how to start one, for messages
    counters: str | tuple[str, ...]  # prefixes of the metrics that count computed tokens
    probe: str  # a call that only a working engine answers
    dtype: torch.dtype | None = None  # the required precision; None = any

    def __init__(self, url: str, *, run: str, timeout_s: float, eos: Sequence[int], special: dict[str, int]) -> None:
        try:
            token = os.environ.get(TOKEN)
            self.client = Client(url, token=token)
            self._doctor = Client(url, token=token)  # separate, so that hang_up() does not make a live server look dead
        except ValueError as error:
            raise UserError(f"--engine-url: {error}") from error
        self.url, self.run, self.timeout_s = self.client.url, run, timeout_s
        # Maintained by the fleet: whether it is set aside because it gave no sign of life, and completions requested
        # and not yet received.
        self.alive, self.stalled, self.load = True, False, 0
        self.lock = threading.Lock()  # of weight updates
        self.times_given = 0  # number of weight updates, including failed ones
        self.version = self.model = ""
        self._eos, self._special = list(eos), special
        self.context = 0  # largest number of tokens of prompt and completion together; 0 = unknown
        self._label: str | None = None  # of the weights it was given last

    @property
    def bytes_sent(self) -> int:
        """Bytes of weights sent over a connection."""
        return 0

    def wait(self, seconds: float) -> bool:
        """True as soon as the server is healthy; False after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            if self.healthy():
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.5)

    @abstractmethod
    def context_flag(self, tokens: int) -> str:
        """The argument that starts a server for this many tokens of prompt and completion together."""

    @abstractmethod
    def introduce(self, *, untested: bool) -> None:
        """Queries version, model and context. Raises UserError if this code can't work with the server."""

    def check_dtype(self, said: object) -> None:
        """Raises UserError if the server reports another precision; other answers, such as `auto`, are accepted."""
        theirs, ours = str(said).removeprefix("torch."), str(self.dtype).removeprefix("torch.")
        if self.dtype is not None and theirs in ("float32", "bfloat16", "float16") and theirs != ours:
            raise UserError(
                f"--engine-url {self.url}: this server computes in {theirs}, and this run in {ours}; start it with "
                f"--dtype {ours}, or give the run --dtype {theirs}"
            )

    @abstractmethod
    def healthy(self, timeout_s: float = HELLO_S) -> bool:
        """True if its front end answers."""

    @abstractmethod
    def lives(self) -> bool:
        """True if the engine behind its front end works too."""

    def tokens(self, timeout_s: float) -> int | None:
        """Number of tokens computed since its start, of prompts and completions.

        None: the server counts no tokens (or not in numbers), and only its engine's answer is known. Raises Unreachable
        or Refused if even the engine does not answer.
        """
        deadline = time.monotonic() + timeout_s
        counts = [line.split()[-1] for line in self.metrics(timeout_s).splitlines() if line.startswith(self.counters)]
        with contextlib.suppress(ValueError, OverflowError):  # "NaN" and "+Inf" are allowed there
            if counts:
                return sum(int(float(count)) for count in counts)
        self._doctor.get(self.probe, timeout_s=max(0.1, deadline - time.monotonic()))
        return None

    def metrics(self, timeout_s: float) -> str:
        """Its metrics, as text. Raises Unreachable or Refused."""
        return str(self._doctor.get("metrics", timeout_s=timeout_s))

    @abstractmethod
    def give(self, weights: Weights) -> None:
        """Loads weights and keeps their label; their adapter is not loaded by this.

        Raises:
            Unreachable: the server is gone, or was restarted meanwhile.
            EngineError: it can't load the weights.
        """

    def give_adapter(self, folder: Path) -> None:
        """Loads an adapter in peft's format over the server's weights, and unloads every other one of a run.

        Later completions come from this adapter, which is identified by the folder's name, or fail. Raises
        AdapterRefusedError if the server works but can't take the adapter.
        """
        raise AdapterRefusedError(f"{self.url}: {self.software} is given complete weights only")

    def has_adapter(self, name: str) -> bool:
        """True if the server itself reports an adapter with this name, and samples from it."""
        return False

    @abstractmethod
    def is_current(self, label: str) -> bool:
        """True if its weights have this label, as reported by the server if it can; False after a restart."""

    @abstractmethod
    def forget(self) -> None:
        """Empties its prefix cache. Raises Unreachable or Refused; EngineError if the cache was not emptied."""

    def digests(self) -> dict[str, str]:
        """SHA-256 of each tensor that it holds, by name; empty if it can't report them, or holds shards."""
        return {}

    @abstractmethod
    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """A completion for each seed, in order. Raises Unreachable if it is gone, EngineError if it refuses."""

    def hang_up(self) -> None:
        """Cancels every open request; further requests are allowed."""
        self.client.hang_up()

    def close(self) -> None:
        """Cancels open requests; later requests fail."""
        self.client.close()
        self._doctor.close()

    def _answers(self, path: str, timeout_s: float) -> bool:
        try:
            self._doctor.get(path, timeout_s=timeout_s)
            return True
        except (Unreachable, Refused):
            return False

    @property
    def _patience_s(self) -> float:
        return min(_BUSY_S, self.timeout_s)

    @contextlib.contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Inside the context, the server is asked `what` it holds: its errors become Unreachable and EngineError."""
        try:
            yield
        except Refused as error:
            raise Unreachable(str(error)) from error
        except (KeyError, TypeError) as error:
            raise EngineError(f"{self.url} does not say {what} it holds: {why(error)}") from error

    def _is_label(self, held: str, label: str) -> bool:
        """True if `held` is this label. Raises EngineError if it is a label of another run."""
        if held.startswith("r1lite-") and not held.startswith(f"r1lite-{self.run}-"):
            raise EngineError(f"{self.url} was given the weights of another run in the middle of this one ({held})")
        return held == label


def why(error: Exception) -> str:
    """The reason why an answer is invalid, for a message."""
    return f"its answer lacks {error}" if isinstance(error, KeyError) else str(error)


# Answers are checked against the request, since a wrong one would be trained on without a word.
_PER_TOKEN = 1000  # bytes: id, text, log-probability, and the names of these
_ABOUT_IT = 1 << 20  # bytes of an answer beside its tokens
_ABOVE_0 = 1e-3  # log-probabilities of certain tokens, by rounding


def token_id(value: object) -> int:
    """Returns an integer of a server's answer. Raises TypeError for anything else, booleans included."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is no token id")
    return operator.index(value)  # type: ignore[arg-type]


def log_probability(value: object) -> float:
    """Returns a number of a server's answer. Raises TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no log-probability")
    return float(value)


def largest_answer(completions: int, prompt: Sequence[int], max_tokens: int) -> int:
    """Returns the number of bytes that a server's answer to a request can have."""
    return _ABOUT_IT + completions * (len(prompt) + max_tokens) * _PER_TOKEN


def check_sampled(
    url: str, sampled: Sequence[Sampled], sampling: Sampling, ends: Collection[int], vocabulary: int, tokenizer: Any
) -> None:
    """Raises EngineError for a completion that the request can't have.

    Args:
        url: address of the server.
        ends: ids that end a text.
        vocabulary: number of ids that the model has.
    """
    for ids, logprobs, reason in sampled:
        if strange := [i for i in ids if not 0 <= i < vocabulary]:
            raise EngineError(f"{url} answered with token {min(strange)}, which the model does not have")
        if wrong := [p for p in logprobs if not (math.isfinite(p) and p <= _ABOVE_0)]:
            raise EngineError(f"{url} answered with {wrong[0]} as a token's log-probability")
        if len(ids) > sampling.max_tokens:
            raise EngineError(f"{url} answered with {len(ids)} tokens instead of at most {sampling.max_tokens}")
        if reason == "length" and len(ids) < sampling.max_tokens:
            raise EngineError(
                f"{url} cut a completion off after {len(ids)} of {sampling.max_tokens} tokens: is its context short?"
            )
        if reason not in ("length", ABORTED) and not _ends(ids, sampling.stop_text, ends, tokenizer):
            raise EngineError(f"{url} says that a completion ended, but nothing in its {len(ids)} tokens ends it")


def _ends(ids: Sequence[int], stop_text: str | None, ends: Collection[int], tokenizer: Any) -> bool:
    if ids and ids[-1] in ends:
        return True
    return bool(stop_text) and stop_text in tokenizer.decode(ids, skip_special_tokens=False)
