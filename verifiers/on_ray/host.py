"""The code of every actor of a fleet, on its node."""

from __future__ import annotations

import os
import pickle
import socket
import sys
from dataclasses import dataclass
from typing import Any, Protocol

from verifiers.registry import REGISTERED


@dataclass(frozen=True, slots=True)
class Ready:
    """An actor's description of itself before it gets any work."""

    host: str
    told: Any  # the attribute `told` of what works in it


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
            if os.path.isdir(folder):  # so that a relative path means here what it means to the command
                os.chdir(folder)
            os.environ["VERIFIERS_CPUS"] = str(cpus)
            sys.path += [path for path in paths if path not in sys.path and os.path.exists(path or ".")]
            registered, make = pickle.loads(made)
            REGISTERED.update(registered)
            self._work = make()
        except Exception as error:  # importing a user's module, loading a model, ... may fail in any way
            self._trouble = f"on {socket.gethostname()}: {one_line(error)}"

    def ready(self) -> Ready | str:
        """Where this is; or why it can't work."""
        return self._trouble or Ready(socket.gethostname(), self._work.told)

    def call(self, job: Any) -> Any:
        """Returns the result of a job."""
        return self._work(job)


def actor_class() -> type:
    """The class of the actors, sent by value: a node that sees this package's folder need not have it installed."""

    class Actor:
        def __init__(self, root: str, setup: bytes) -> None:
            import sys

            sys.path.append(root)
            try:
                from verifiers.on_ray.host import Host
            except ImportError as error:
                self._host: Any = None
                self._trouble = f": a node has no r1lite: {error}"
            else:
                self._host = Host(setup)

        def ready(self) -> Any:
            return self._trouble if self._host is None else self._host.ready()

        def call(self, job: Any) -> Any:
            return self._host.call(job)

    return Actor


def one_line(error: BaseException | None) -> str:
    """Its type and text, cut to 300 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
