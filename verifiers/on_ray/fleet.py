"""Actors on the nodes of a Ray cluster that make calls, and are replaced when they are lost."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from verifiers.core import VerifierError
from verifiers.on_ray.connecting import connect, imported
from verifiers.on_ray.host import Ready, Worker, actor_class, one_line
from verifiers.on_ray.versions import difference, reader
from verifiers.on_ray.work import Call
from verifiers.registry import REGISTERED

_AHEAD = 2  # calls submitted per actor, including the one in progress
_FAILED_STARTS = 3  # consecutive ones, per actor
_START_S = 300.0  # time for all actors to start
_FREE_S = 30.0  # time for Ray to notice that the CPUs of ended actors are free
_PATIENCE_S = 60.0  # time that a call may take beyond its own limit
_SILENT_S = 120.0  # an actor that is silent for so long is killed, as its process is stopped or stuck
_POLL_S = 0.5
_MOMENT_S = 0.1
_ROOT = str(Path(__file__).resolve().parents[2])
_log = logging.getLogger("verifiers")


class CallError(VerifierError):
    """A call raised, on its node."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"an actor failed: {one_line(cause)}")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Resources:
    """The number of actors, and the resources that each takes on its node."""

    count: int | None = None  # None: as many as fit into the free resources, except for one CPU
    cpus: int = 1
    gpus: int = 0


class Work(Protocol):
    """Work that is split into calls."""

    @property
    def is_done(self) -> bool:
        """True when every call is finished."""

    def next_call(self, *, beside: bool = False) -> Call | None:
        """Returns the next call; None if there is none now, or none that may run `beside` another call of an actor."""

    def finished(self, call: Call, result: Any) -> None:
        """Receives the result of a call."""

    def again(self, calls: list[Call], why: str) -> None:
        """Takes back calls that were lost with their actor, the one in progress first."""


class Fleet:
    """Actors that execute calls. A lost actor is replaced, and its calls are repeated.

    Args:
        make: called on the nodes to create the worker; must be importable there.
        address: see `address_of`.
        resources: number of actors, and resources of each.
        most: largest number of actors that there is work for.
        check: called with the description of each actor that is ready; raises ValueError to refuse it.
        fewer: the options that set the number of actors, for messages.
        packages: must be the same on all nodes.

    Raises (when created): ValueError if Ray is not installed; any exception of pickling `make`.
    """

    def __init__(
        self,
        make: Callable[[], Worker],
        *,
        address: str | None = None,
        resources: Resources = Resources(),
        most: int = sys.maxsize,
        check: Callable[[Ready], None] = lambda ready: None,
        fewer: str = "--workers",
        packages: Sequence[str] = ("verifiers",),
    ) -> None:
        count, self._cpus, self._gpus = resources.count, resources.cpus, resources.gpus
        self._count = None if count is None else min(count, most)
        self._address, self._most, self._check, self._fewer = address, most, check, fewer
        self._ray = imported()
        # In two parts, because `make` can be unpickled only after the paths are set.
        self._setup = pickle.dumps((os.getcwd(), sys.path, self._cpus, pickle.dumps((REGISTERED, make))))
        self._here = reader()(packages)
        self._lock = threading.Lock()  # one rounds() at a time
        self._actors: list[_Actor] = []
        self._connected = False
        self._failed_starts, self._idle_since = 0, 0.0  # time since which no actor is ready

    @property
    def ready(self) -> list[Ready]:
        """The descriptions of the actors that have started."""
        return [actor.ready for actor in self._actors if actor.ready is not None]

    def describe(self, more: Callable[[Any], list[str]] = lambda told: []) -> str:
        """Returns the hosts with their numbers of actors, and the texts of `more` for one actor per host."""
        hosts: dict[str, list[Ready]] = {}
        for ready in self.ready:
            hosts.setdefault(ready.host, []).append(ready)
        return "; ".join(
            ", ".join([f"{host}: {len(actors)} actor{'s' * (len(actors) > 1)}", *more(actors[0].told)])
            for host, actors in sorted(hosts.items())
        )

    def start(self) -> bool:
        """Connects and starts the actors. Returns False if they were started before.

        Raises:
            ValueError: there is no room for the actors, or they can't be set up.
            VerifierError: no cluster answers.
        """
        with self._lock:
            return self._start()

    def close(self) -> None:
        """Ends the actors and the connection to the cluster; a cluster that was started here ends too."""
        self._give_up()  # without the lock, which an abandoned rounds() holds
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    def rounds(self, work: Work) -> Generator[None, None, None]:
        """Submits calls and collects results, round by round, until the work is done.

        Raises:
            CallError: a call raised.
            VerifierError: no actor is left, and none can be started.
        """
        with self._lock:
            self._start()
            try:
                while True:
                    for actor in self._actors:
                        while actor.takes_more and (call := work.next_call(beside=bool(actor.calls))) is not None:
                            call.began = time.monotonic()
                            actor.calls[actor.handle.call.remote(call.job)] = call
                    yield
                    if work.is_done:
                        return
                    self._collect(work)
            finally:
                for actor in list(self._actors):
                    if actor.calls:  # the caller stopped early: what is in work is not wanted any more
                        self._replace(actor)

    # --- actors ------------------------------------------------------------------------------------------------------

    def _start(self) -> bool:
        if self._actors:
            return False
        if not self._connected:
            self._connected = connect(self._ray, self._address)
        count = self._room()
        remote = self._ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_restarts=0, max_task_retries=0)
        self._class = remote(actor_class())
        self._actors = [self._new() for _ in range(count)]
        until = time.monotonic() + _START_S
        while (ready := len(self.ready)) < count:
            if time.monotonic() > until:
                self._give_up()
                raise ValueError(f"{ready} of {count} actors have started within {_START_S:g} s: are CPUs free?")
            self._take_in_ready(_POLL_S)
        return True

    def _room(self) -> int:
        """Returns the number of actors to start. Raises ValueError if there is no room for them."""
        ray, wanted, spare = self._ray, self._count or 1, int(self._count is None)
        total, until = ray.cluster_resources(), time.monotonic() + _FREE_S
        while self._fitting(free := ray.available_resources(), spare) < wanted <= self._fitting(total, spare):
            if time.monotonic() > until:
                break
            time.sleep(_POLL_S)
        count = self._count or min(max(1, self._fitting(free, spare)), self._most)
        if self._fitting(free) < count:
            nodes = sum(node["Alive"] for node in ray.nodes())
            needed = f"{count * self._cpus} CPUs" + (f" and {count * self._gpus} GPUs" if self._gpus else "")
            held = f"{int(total.get('CPU', 0))} on {nodes} nodes, {int(free.get('CPU', 0))} of them free"
            if self._gpus:
                held += f", and {int(total.get('GPU', 0))} GPUs, {int(free.get('GPU', 0))} of them free"
            raise ValueError(
                f"{count} actors need {needed}, and Ray has {held}; use fewer ({self._fewer}), or add nodes"
            )
        return count

    def _fitting(self, resources: Mapping[str, float], spare: int = 0) -> int:
        """Returns how many actors fit if `spare` CPUs are left free."""
        fitting = (int(resources.get("CPU", 0)) - spare) // self._cpus
        return min(fitting, int(resources.get("GPU", 0)) // self._gpus) if self._gpus else fitting

    def _new(self) -> _Actor:
        handle = self._class.remote(_ROOT, self._setup, reader(), self._here, _SILENT_S)
        return _Actor(handle, handle.ready.remote())

    def _take_in_ready(self, wait_s: float) -> None:
        """Waits at most `wait_s` for an actor to start. Raises ValueError if one can't be set up."""
        starting = {actor.starting: actor for actor in self._actors if actor.ready is None}
        if not starting:
            return
        for reference in self._ray.wait(list(starting), num_returns=1, timeout=wait_s)[0]:
            actor = starting[reference]
            try:
                said = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                self._give_up()
                raise ValueError(f"an actor can't be set up: {error.cause}") from error
            except self._ray.exceptions.RayError as error:  # lost before it was ready: it is started again
                self._lost(actor, error)
                continue
            try:
                if isinstance(said, tuple):
                    raise ValueError(difference(said[0], said[1], self._here))
                if isinstance(said, str):
                    raise ValueError(f"an actor can't be set up {said}")
                self._check(said)
            except ValueError:
                self._give_up()
                raise
            actor.ready = said

    def _give_up(self) -> None:
        for actor in self._actors:
            self._kill(actor)
        self._actors = []

    def _kill(self, actor: _Actor) -> None:
        with contextlib.suppress(Exception):  # the actor or the cluster is gone
            self._ray.kill(actor.handle)

    def _replace(self, actor: _Actor) -> None:
        self._kill(actor)
        self._actors[self._actors.index(actor)] = self._new()

    def _lost(self, actor: _Actor, error: Exception) -> None:
        """Replaces a lost actor. Raises VerifierError if too many actors in a row are lost before they are ready."""
        self._failed_starts = 0 if actor.ready else self._failed_starts + 1
        if self._failed_starts > _FAILED_STARTS * len(self._actors):
            self._give_up()
            raise VerifierError(f"Ray's actors are lost before they do anything: {one_line(error)}")
        self._replace(actor)

    def _collect(self, work: Work) -> None:
        """Collects results, and replaces actors that are lost or late."""
        owners = {reference: actor for actor in self._actors for reference in actor.calls}
        self._take_in_ready(0 if owners else _POLL_S)  # a starting actor must not delay the others
        if not owners:
            self._refuse_no_actors()
            return
        self._idle_since = 0.0
        # With very many calls, waits a moment for a hundredth of them: a look costs more than it collects, and each
        # actor has another call meanwhile.
        many = len(owners) // 100
        ready, _ = self._ray.wait(list(owners), num_returns=max(1, many), timeout=_MOMENT_S if many > 1 else _POLL_S)
        if ready and len(owners) > 1:  # everything that is finished
            ready, _ = self._ray.wait(list(owners), num_returns=len(owners), timeout=0)
        for reference in ready:
            actor = owners[reference]
            if actor not in self._actors:  # lost before, with all its calls
                continue
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                raise CallError(error.cause) from error
            except self._ray.exceptions.RayError as error:
                self._again(work, actor, f"was lost, or silent for {_SILENT_S:g} s: {one_line(error)}")
                self._lost(actor, error)
            else:
                work.finished(actor.calls.pop(reference), result)
                for call in actor.calls.values():  # they have only waited: the next one begins about now
                    call.began = time.monotonic()
        now = time.monotonic()
        for actor in list(self._actors):
            oldest = next(iter(actor.calls.values()), None)
            if oldest is not None and now - oldest.began > _PATIENCE_S + _AHEAD * oldest.limit_s:
                self._again(work, actor, f"has not answered for {now - oldest.began:.0f} s")
                self._replace(actor)

    def _again(self, work: Work, actor: _Actor, what: str) -> None:
        """Repeats all calls of a lost actor, and logs this."""
        assert actor.ready is not None  # it had calls
        why = f"an actor on {actor.ready.host} (process {actor.ready.pid}) {what}"
        work.again(list(actor.calls.values()), why)
        _log.warning("%s; another actor repeats its work", why)

    def _refuse_no_actors(self) -> None:
        """Raises VerifierError if no actor has been ready for as long as starting may take."""
        if self.ready:
            return
        self._idle_since = self._idle_since or time.monotonic()
        if time.monotonic() - self._idle_since > _START_S:
            self._give_up()
            raise VerifierError(f"all of Ray's actors were lost, and none has started again within {_START_S:g} s")


@dataclass(eq=False, slots=True)
class _Actor:
    handle: Any
    starting: Any  # the call that returns when the actor is ready
    ready: Ready | None = None
    calls: dict[Any, Call] = field(default_factory=dict)  # in the order of their execution

    @property
    def takes_more(self) -> bool:
        return (
            self.ready is not None and len(self.calls) < _AHEAD and not any(call.alone for call in self.calls.values())
        )
