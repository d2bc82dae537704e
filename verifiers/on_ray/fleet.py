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

_AHEAD = 2  # calls handed out per actor, the one in work included
_FAILED_STARTS = 3  # for each actor, one after the other
_START_S = 300.0  # for all actors to start
_FREE_S = 30.0  # for Ray to notice that the CPUs of actors that ended are free
_PATIENCE_S = 60.0  # that a call may take beyond its own limit
_SILENT_S = 120.0  # an actor without a sign of life for so long is ended: its process is stopped, or stuck
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
    """How many actors there are to be, and what each takes of its node."""

    count: int | None = None  # None: as many as fit into what is free, but one CPU
    cpus: int = 1
    gpus: int = 0


class Work(Protocol):
    """What is to be done, cut into calls."""

    @property
    def is_done(self) -> bool:
        """Every call was made."""

    def next_call(self, *, beside: bool = False) -> Call | None:
        """None while nothing may be given out, or nothing `beside` a call that the actor has already."""

    def finished(self, call: Call, result: Any) -> None:
        """Takes in what an actor returned."""

    def again(self, calls: list[Call], why: str) -> None:
        """Takes back calls that were lost with their actor, the one in work first."""


class Fleet:
    """Actors that make calls. One that is lost is replaced, and its calls are made again.

    Args:
        make: called on the nodes, where it must be importable.
        address: see `address_of`.
        resources: of the actors.
        most: actors that there is work for.
        check: called with what each actor says when it is ready; refuses it by a ValueError.
        fewer: the options that set how many, for messages.
        packages: must be the same on all nodes.

    Raises (when made): ValueError if Ray is not installed; whatever is raised when `make` is pickled.
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
        # In two parts: what `make` needs can be imported once the paths are known.
        self._setup = pickle.dumps((os.getcwd(), sys.path, self._cpus, pickle.dumps((REGISTERED, make))))
        self._here = reader()(packages)
        self._lock = threading.Lock()  # one rounds() at a time
        self._actors: list[_Actor] = []
        self._connected = False
        self._failed_starts, self._idle_since = 0, 0.0  # the moment, while no actor is ready

    @property
    def ready(self) -> list[Ready]:
        """What the actors say of themselves, as far as they have started."""
        return [actor.ready for actor in self._actors if actor.ready is not None]

    def describe(self, more: Callable[[Any], list[str]] = lambda told: []) -> str:
        """Hosts with their numbers of actors, and what `more` says of what one of a host told."""
        hosts: dict[str, list[Ready]] = {}
        for ready in self.ready:
            hosts.setdefault(ready.host, []).append(ready)
        return "; ".join(
            ", ".join([f"{host}: {len(actors)} actor{'s' * (len(actors) > 1)}", *more(actors[0].told)])
            for host, actors in sorted(hosts.items())
        )

    def start(self) -> bool:
        """Connects and starts the actors. Returns: whether they had to be started.

        Raises:
            ValueError: there is no room for them, or they can't be set up.
            VerifierError: no cluster answers.
        """
        with self._lock:
            return self._start()

    def close(self) -> None:
        """Ends the actors, and the connection to the cluster, which ends with it if it was started here."""
        self._give_up()  # without the lock: rounds() that nobody goes on with hold it
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    def rounds(self, work: Work) -> Generator[None, None, None]:
        """Gives calls out and takes results in, round by round, until the work is done.

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
        """How many actors to start. Raises ValueError if there is no room for them."""
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
        """How many actors fit, if so many CPUs are left to others."""
        fitting = (int(resources.get("CPU", 0)) - spare) // self._cpus
        return min(fitting, int(resources.get("GPU", 0)) // self._gpus) if self._gpus else fitting

    def _new(self) -> _Actor:
        handle = self._class.remote(_ROOT, self._setup, reader(), self._here, _SILENT_S)
        return _Actor(handle, handle.ready.remote())

    def _take_in_ready(self, wait_s: float) -> None:
        """Waits so long for an actor that starts. Raises ValueError if one can't be set up."""
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
            except self._ray.exceptions.RayError as error:  # lost before it was ready: once more
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
        with contextlib.suppress(Exception):  # it is gone, or the cluster is
            self._ray.kill(actor.handle)

    def _replace(self, actor: _Actor) -> None:
        self._kill(actor)
        self._actors[self._actors.index(actor)] = self._new()

    def _lost(self, actor: _Actor, error: Exception) -> None:
        """Starts another one. Raises VerifierError if they are lost before they are ready, again and again."""
        self._failed_starts = 0 if actor.ready else self._failed_starts + 1
        if self._failed_starts > _FAILED_STARTS * len(self._actors):
            self._give_up()
            raise VerifierError(f"Ray's actors are lost before they do anything: {one_line(error)}")
        self._replace(actor)

    def _collect(self, work: Work) -> None:
        """Takes in what actors return, and replaces those that are lost or late."""
        owners = {reference: actor for actor in self._actors for reference in actor.calls}
        self._take_in_ready(0 if owners else _POLL_S)  # an actor that starts must not hold up those that work
        if not owners:
            self._refuse_no_actors()
            return
        self._idle_since = 0.0
        # Of very many a hundredth is waited for together, a moment at most: a look costs more than what is taken, and
        # each actor has another call meanwhile.
        many = len(owners) // 100
        ready, _ = self._ray.wait(list(owners), num_returns=max(1, many), timeout=_MOMENT_S if many > 1 else _POLL_S)
        if ready and len(owners) > 1:  # all that is there
            ready, _ = self._ray.wait(list(owners), num_returns=len(owners), timeout=0)
        for reference in ready:
            actor = owners[reference]
            if actor not in self._actors:  # lost a moment ago, with all its calls
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
        now = time.monotonic()
        for actor in list(self._actors):
            oldest = next(iter(actor.calls.values()), None)
            if oldest is not None and now - oldest.began > _PATIENCE_S + _AHEAD * oldest.limit_s:
                self._again(work, actor, f"has not answered for {now - oldest.began:.0f} s")
                self._replace(actor)

    def _again(self, work: Work, actor: _Actor, what: str) -> None:
        """Has all calls of an actor that was lost made again, and says so."""
        assert actor.ready is not None  # it had calls
        why = f"an actor on {actor.ready.host} (process {actor.ready.pid}) {what}"
        work.again(list(actor.calls.values()), why)
        _log.warning("%s; its work is done again by another one", why)

    def _refuse_no_actors(self) -> None:
        """Waits for one, as long as starting may take. Raises VerifierError."""
        if self.ready:
            return
        self._idle_since = self._idle_since or time.monotonic()
        if time.monotonic() - self._idle_since > _START_S:
            self._give_up()
            raise VerifierError(f"all of Ray's actors were lost, and none has started again within {_START_S:g} s")


@dataclass(eq=False, slots=True)
class _Actor:
    handle: Any
    starting: Any  # what tells that it is ready
    ready: Ready | None = None
    calls: dict[Any, Call] = field(default_factory=dict)  # in the order in which they are made

    @property
    def takes_more(self) -> bool:
        return (
            self.ready is not None and len(self.calls) < _AHEAD and not any(call.alone for call in self.calls.values())
        )
