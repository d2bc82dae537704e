"""The common part of servers with an HTTP interface, independent of their calls."""

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

QUICK_S = 10.0  # for queries that need no computing
HELLO_S = 2.0
TOKEN = "R1LITE_ENGINE_TOKEN"  # an environment variable, because other users see arguments, and a run records them
_BUSY_S = 60.0  # for queries during a run: a busy engine answers only between two of its steps


class HTTPServer(ABC):
    """A server's address and state in the fleet: the part of `Server` that is the same for all software.

    Args:
        run: a name of this run, so that a takeover of the server by another run is detected.
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text.

    Raises (when made): UserError for an invalid address, or an invalid token in the environment.
    """

    dtype: torch.dtype | None = None  # the required precision; None = any

    def __init__(self, url: str, *, run: str, timeout_s: float, eos: Sequence[int], special: dict[str, int]) -> None:
        try:
            token = os.environ.get(TOKEN)
            self.client = Client(url, token=token)
            self._doctor = Client(url, token=token)  # separate, so that hang_up() does not make a live server look dead
        except ValueError as error:
            raise UserError(f"--engine-url: {error}") from error
        self.url, self.run, self.timeout_s = self.client.url, run, timeout_s
        self.alive, self.stalled = True, False
        self.load = 0  # completions requested and not yet received
        self.lock = threading.Lock()  # of weight updates
        self.times_given = 0  # number of weight updates, including failed ones
        self.version = self.model = ""
        self._eos, self._special = list(eos), special
        self.context = 0
        self._label: str | None = None  # of the weights it was given last

    @property
    def bytes_sent(self) -> int:
        """Bytes of weights sent over a connection."""
        return 0

    @property
    def _patience_s(self) -> float:
        return min(_BUSY_S, self.timeout_s)

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

    def wait(self, seconds: float) -> bool:
        """True as soon as the server is healthy; False after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            if self.healthy():
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.5)

    def hang_up(self) -> None:
        """Cancels every open request."""
        self.client.hang_up()

    def close(self) -> None:
        """Cancels open requests; later requests fail."""
        self.client.close()
        self._doctor.close()

    def _is_label(self, held: str, label: str) -> bool:
        """True if `held` is this label. Raises EngineError if it is a label of another run."""
        if held.startswith("r1lite-") and not held.startswith(f"r1lite-{self.run}-"):
            raise EngineError(f"{self.url} was given the weights of another run in the middle of this one ({held})")
        return held == label


def why(error: Exception) -> str:
    """The reason why an answer is invalid, for a message."""
    return f"its answer lacks {error}" if isinstance(error, KeyError) else str(error)
