"""The code of every actor of a fleet, on its node."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from verifiers.on_ray import watch
from verifiers.on_ray.versions import Found
from verifiers.registry import REGISTERED

_BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """An actor's description of itself before it gets any work."""

    host: str
    pid: int
    told: Any  # the attribute `told` of its worker


class Worker(Protocol):
    """The object that works in an actor."""

    told: Any

    def __call__(self, job: Any, /) -> Any:
        """Returns the result of a job."""


class Host:
    """Runs in an actor, in its main thread, so that the processes it starts end with it."""

    def __init__(self, setup: bytes) -> None:
        self._trouble = ""
        try:
            folder, paths, cpus, made = pickle.loads(setup)
            if os.path.isdir(folder):  # so that relative paths have the same meaning as for the command
                os.chdir(folder)
            os.environ["VERIFIERS_CPUS"] = str(cpus)
            sys.path += [path for path in paths if path not in sys.path and os.path.exists(path or ".")]
            registered, make = pickle.loads(made)
            REGISTERED.update(registered)
            self._work = make()
        except Exception as error:  # importing a user's module or loading a model can raise anything
            self._trouble = f"on {socket.gethostname()}: {one_line(error)}"

    def ready(self) -> Ready | str:
        """Returns the actor's description, or the reason why it can't work."""
        return self._trouble or Ready(socket.gethostname(), os.getpid(), self._work.told)

    def call(self, job: Any) -> Any:
        """Returns the result of a job."""
        return self._work(job)


def be_watched(silent_s: float) -> None:
    """Starts a process that kills this one after `silent_s` without a sign of life: it would keep its calls forever."""
    command = [sys.executable, "-I", "-S", watch.__file__, str(os.getpid()), str(silent_s)]
    beats = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True).stdin
    assert beats is not None
    pipe = beats.fileno()

    def beat() -> None:
        try:
            while os.write(pipe, b"."):
                time.sleep(_BEAT_S)
        except OSError:  # the watching process has ended
            beats.close()

    threading.Thread(target=beat, daemon=True).start()


def actor_class() -> type:
    """Returns the class of the actors, sent by value: a node that sees this package's folder need not install it."""

    class Actor:
        def __init__(
            self, root: str, setup: bytes, read: Callable[[Sequence[str]], Found], here: Found, silent_s: float
        ) -> None:
            import socket
            import sys

            sys.path.append(root)
            self._host: Any = None
            self._said: Any = (socket.gethostname(), read([name for name in here if name != "Python"]))
            if self._said[1] == here:
                from verifiers.on_ray.host import Host, be_watched

                be_watched(silent_s)
                self._host = Host(setup)

        def ready(self) -> Any:
            return self._said if self._host is None else self._host.ready()

        def call(self, job: Any) -> Any:
            return self._host.call(job)

    return Actor


def one_line(error: BaseException | None) -> str:
    """Returns the error's type and text, cut to 300 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
