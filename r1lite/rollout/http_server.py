"""What servers have in common that are asked over HTTP, whatever their calls are."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from r1lite.errors import UserError
from r1lite.rollout import EngineError
from r1lite.rollout.client import Client

QUICK_S = 10.0  # for questions that need no computing
HELLO_S = 2.0
TOKEN = "R1LITE_ENGINE_TOKEN"  # variable of the environment: arguments are seen by other users, and kept with a run
_BUSY_S = 60.0  # for questions in the middle of a run: a busy engine answers between two of its steps


class HTTPServer(ABC):
    """A server's address, and what the fleet knows of it: the part of `Server` that no software changes.

    Args:
        run: a name of this run, so that a server which another run took over is noticed.
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text.

    Raises (when made): UserError for an address, or a token of the environment, that can't be used.
    """

    dtype: torch.dtype | None = None  # that it should compute in; None = any

    def __init__(self, url: str, *, run: str, timeout_s: float, eos: Sequence[int], special: dict[str, int]) -> None:
        try:
            token = os.environ.get(TOKEN)
            self.client = Client(url, token=token)
            self._doctor = Client(url, token=token)  # hang_up() of the other must not make a living server look dead
        except ValueError as error:
            raise UserError(f"--engine-url: {error}") from error
        self.url, self.run, self.timeout_s = self.client.url, run, timeout_s
        self.alive, self.stalled = True, False
        self.load = 0  # completions asked for and not yet given
        self.lock = threading.Lock()  # of weight updates
        self.times_given = 0  # weights, whole or not
        self.version = self.model = ""
        self._eos, self._special = list(eos), special
        self.context = 0
        self._label: str | None = None  # of the weights it was given last

    @property
    def bytes_sent(self) -> int:
        """Of weights, over a connection."""
        return 0

    @property
    def _patience_s(self) -> float:
        return min(_BUSY_S, self.timeout_s)

    def check_dtype(self, said: object) -> None:
        """Raises UserError if it says that it computes in another precision; `auto` and the like say nothing."""
        theirs, ours = str(said).removeprefix("torch."), str(self.dtype).removeprefix("torch.")
        if self.dtype is not None and theirs in ("float32", "bfloat16", "float16") and theirs != ours:
            raise UserError(
                f"--engine-url {self.url}: this server computes in {theirs}, and this run in {ours}; start it with "
                f"--dtype {ours}, or give the run --dtype {theirs}"
            )

    @abstractmethod
    def healthy(self, timeout_s: float = HELLO_S) -> bool:
        """True if its front answers."""

    def wait(self, seconds: float) -> bool:
        """True as soon as it is healthy."""
        deadline = time.monotonic() + seconds
        while True:
            if self.healthy():
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.5)

    def hang_up(self) -> None:
        """Breaks off every request under way."""
        self.client.hang_up()

    def close(self) -> None:
        """Breaks off what is under way; nothing can be asked any more."""
        self.client.close()
        self._doctor.close()

    def _is_label(self, held: str, label: str) -> bool:
        """True if the name of its weights is this one. Raises EngineError if it is a name of another run's."""
        if held.startswith("r1lite-") and not held.startswith(f"r1lite-{self.run}-"):
            raise EngineError(f"{self.url} was given the weights of another run in the middle of this one ({held})")
        return held == label


def why(error: Exception) -> str:
    """What an answer lacked, for a message."""
    return f"its answer lacks {error}" if isinstance(error, KeyError) else str(error)
