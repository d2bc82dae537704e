"""Scores on the nodes of a Ray cluster: the results and the order of one machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from verifiers.core import Completion, Problem, Verdict, VerifierError
from verifiers.on_ray.judge import Node, Row, one_line
from verifiers.on_ray.work import Call, Items, Work
from verifiers.pool import OF_COMPLETION, OF_PROBLEM
from verifiers.registry import REGISTERED
from verifiers.reward import Reward, Score
from verifiers.worker import Result

_AHEAD = 2  # calls handed out per actor, the one in work included
_FAILED_STARTS = 3  # for each actor, one after the other
_START_S = 300.0  # for all actors to start
_FREE_S = 30.0  # for Ray to notice that the CPUs of actors that ended are free
_PATIENCE_S = 60.0  # that a call may take beyond the deadlines of its items
_POLL_S = 0.5
_ANSWER_S = 10.0  # for a cluster's port to be reached
_ROOT = str(Path(__file__).resolve().parents[2])

Pairs = Iterable[tuple[Problem, Completion]]


def address_of(where: str) -> str | None:
    """The address in `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`; None: the cluster of RAY_ADDRESS or of this machine,
    or one that is started here. Raises ValueError."""
    if where == "ray":
        return None
    if where.startswith("ray://") and len(where) > len("ray://"):
        return where
    if where.startswith("ray:") and where.rpartition(":")[2].isdecimal():
        return where.removeprefix("ray:")
    raise ValueError(f"{where}: expected ray, ray:HOST:PORT or ray://HOST:PORT")


class Actors:
    """Actors that score for some rewards; `scorer` gives what works like a `BatchScorer`.

    Args:
        rewards: sent by name and options; ready verifiers in them must be importable on the nodes.
        address: see `address_of`.
        count: how many actors, of one CPU each; None = one per CPU that is free, but one.
        timeout_s: hard deadline of one completion, of verifiers that have none themselves.
        memory_mib: private memory of a worker; None = no limit.
        say: told once where it scores, see `describe`.

    Raises (when made): ValueError if a reward can't be sent, or Ray is not installed.
    """

    def __init__(
        self,
        rewards: Sequence[Reward],
        *,
        address: str | None = None,
        count: int | None = None,
        timeout_s: float = 30.0,
        memory_mib: int | None = 4096,
        say: Callable[[str], object] = lambda line: None,
    ) -> None:
        self.rewards, self.timeout_s, self._say = list(rewards), timeout_s, say
        self._address, self._count = address, count
        self._ray = _imported()
        setups = [(reward.formula, reward.options, reward.ready) for reward in self.rewards]
        try:
            self._setup = pickle.dumps((sys.path, REGISTERED, setups, timeout_s, memory_mib))
        except Exception as error:  # whatever a user's object raises while it is pickled
            raise ValueError(
                f"the reward can't be sent to the nodes: {error}; name its verifiers as 'module:attr' instead of "
                "passing them"
            ) from error
        self._lock = threading.Lock()  # one map() at a time
        self._actors: list[_Actor] = []
        self._connected = False
        self._failed_starts, self._idle_since = 0, 0.0  # the moment, while no actor is ready
        self.nodes: list[Node] = []

    def scorer(self, number: int = 0) -> RayScorer:
        """For the reward of this number."""
        return RayScorer(self, number)

    def start(self) -> None:
        """Connects and starts the actors.

        Raises:
            ValueError: there is no room for them, they can't be set up, or other versions of verifiers are there.
            VerifierError: no cluster answers.
        """
        with self._lock:
            self._start()

    def describe(self) -> str:
        """Where it scores: hosts, actors, and the level of the sandbox on each host, if there is one."""
        hosts: dict[str, list[Node]] = {}
        for node in self.nodes:
            hosts.setdefault(node.host, []).append(node)
        return "; ".join(
            f"{host}: {len(nodes)} actor{'s' * (len(nodes) > 1)}"
            + "".join(f", {name} at level {level}" for name, level in nodes[0].levels.items())
            for host, nodes in sorted(hosts.items())
        )

    def close(self) -> None:
        """Ends the actors, and the connection to the cluster, which ends with it if it was started here."""
        self._give_up()  # without the lock: a map() that nobody reads on holds it
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    def map(self, number: int, pairs: Pairs) -> Generator[Score, None, None]:
        """Scores in order, as they come; `pairs` is read only as far ahead as the actors need.

        Raises: VerifierError: no actor is left, and none can be started.
        """
        with self._lock:
            self._start()
            reward, work = self.rewards[number], Work(iter(pairs))
            try:
                while True:
                    for actor in self._actors:
                        while actor.ready and len(actor.calls) < _AHEAD and (call := work.next_call()) is not None:
                            call.began = time.monotonic()
                            actor.calls[actor.handle.score.remote(number, _rows(call.items))] = call
                    for results in work.in_turn():
                        for result in results:
                            yield _score(reward, result)
                    if work.is_done:
                        return
                    self._collect(work)
            finally:
                for actor in self._actors:
                    if actor.calls:  # the caller stopped early: what is in work is not wanted any more
                        self._replace(actor)

    # --- actors ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._actors:
            return
        if not self._connected:
            self._connected = _connect(self._ray, self._address)
        count = self._room()
        self._class = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_actor_class())
        self._actors = [self._new() for _ in range(count)]
        until = time.monotonic() + _START_S
        while not all(actor.ready for actor in self._actors):
            if time.monotonic() > until:
                ready = sum(actor.ready for actor in self._actors)
                self._give_up()
                raise ValueError(f"{ready} of {count} actors have started within {_START_S:g} s: are CPUs free?")
            self._take_in_ready(_POLL_S)
        self.nodes = [actor.node for actor in self._actors if actor.node is not None]
        self._say(self.describe())

    def _room(self) -> int:
        """How many actors to start. Raises ValueError if there is no room for them."""
        wanted, until = self._count or 2, time.monotonic() + _FREE_S
        held = int(self._ray.cluster_resources().get("CPU", 0))
        while (free := self._free()) < wanted <= held and time.monotonic() < until:
            time.sleep(_POLL_S)
        count = max(1, free - 1) if self._count is None else self._count
        if free < count:
            nodes = sum(node["Alive"] for node in self._ray.nodes())
            raise ValueError(
                f"{count} actors need {count} CPUs, and Ray has {held} on {nodes} nodes, {free} of them free; use "
                "fewer (--workers, --score-workers), or add nodes"
            )
        return count

    def _free(self) -> int:
        return int(self._ray.available_resources().get("CPU", 0))

    def _new(self) -> _Actor:
        handle = self._class.remote(_ROOT, self._setup)
        return _Actor(handle, handle.node.remote())

    def _take_in_ready(self, wait_s: float) -> None:
        """Waits so long for an actor that starts. Raises ValueError if one can't be set up."""
        starting = {actor.starting: actor for actor in self._actors if actor.starting is not None}
        if not starting:
            return
        ready, _ = self._ray.wait(list(starting), num_returns=1, timeout=wait_s)
        for reference in ready:
            actor = starting[reference]
            try:
                told = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                self._give_up()
                raise ValueError(f"an actor can't be set up: {error.cause}") from error
            except self._ray.exceptions.RayError as error:  # lost before it was ready: once more
                self._lost(actor, error)
                continue
            if isinstance(told, str):
                self._give_up()
                raise ValueError(told)
            self._refuse_other_versions(told)
            actor.starting, actor.node = None, told

    def _refuse_other_versions(self, node: Node) -> None:
        for reward, versions in zip(self.rewards, node.versions, strict=True):
            for name, version in reward.versions.items():
                if versions.get(name) != version:
                    self._give_up()
                    raise ValueError(
                        f"{node.host} has version {versions.get(name)} of verifier '{name}', and this machine "
                        f"{version}: they may decide otherwise; install the same r1lite on all nodes"
                    )

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
            raise VerifierError(f"Ray's actors are lost before they score anything: {one_line(error)}")
        self._replace(actor)

    def _collect(self, work: Work) -> None:
        """Takes in what actors report, and replaces those that are lost or late."""
        owners = {reference: actor for actor in self._actors for reference in actor.calls}
        self._take_in_ready(0 if owners else _POLL_S)  # an actor that starts must not hold up those that score
        if not owners:
            self._refuse_no_actors()
            return
        self._idle_since = 0.0
        ready, _ = self._ray.wait(list(owners), num_returns=1, timeout=_POLL_S)
        for reference in ready:
            actor = owners[reference]
            if actor not in self._actors:  # lost a moment ago, with all its calls
                continue
            try:
                results = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                raise VerifierError(f"an actor failed: {one_line(error.cause)}") from error
            except self._ray.exceptions.RayError as error:
                work.again(actor.calls.values(), f"its node or process was lost: {one_line(error)}")
                self._lost(actor, error)
            else:
                work.finished(actor.calls.pop(reference), results)
        now = time.monotonic()
        for actor in list(self._actors):
            oldest = next(iter(actor.calls.values()), None)
            if oldest is not None and now - oldest.began > _PATIENCE_S + _AHEAD * len(oldest.items) * self.timeout_s:
                work.again(actor.calls.values(), "its process does not answer")
                self._replace(actor)

    def _refuse_no_actors(self) -> None:
        """Waits for one, as long as starting may take. Raises VerifierError."""
        if any(actor.ready for actor in self._actors):
            return
        self._idle_since = self._idle_since or time.monotonic()
        if time.monotonic() - self._idle_since > _START_S:
            self._give_up()
            raise VerifierError(f"all of Ray's actors were lost, and none has started again within {_START_S:g} s")


@dataclass(frozen=True, slots=True)
class RayScorer:
    """Scores for one reward of some actors, with the calls of `BatchScorer`."""

    actors: Actors
    number: int

    @property
    def reward(self) -> Reward:
        """What it scores for."""
        return self.actors.rewards[self.number]

    def start(self) -> None:
        """See `Actors.start`."""
        self.actors.start()

    def close(self) -> None:
        """Ends all actors, those of the other rewards too."""
        self.actors.close()

    def map(self, pairs: Pairs) -> Generator[Score, None, None]:
        """Scores in order. A check that fails leaves its own completion unscored (reward None), never at 0."""
        return self.actors.map(self.number, pairs)

    def __enter__(self) -> RayScorer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(eq=False, slots=True)
class _Actor:
    handle: Any
    starting: Any  # what tells that it is ready; None when it is
    node: Node | None = None
    calls: dict[Any, Call] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return self.starting is None


def _actor_class() -> type:
    """Sent by value: a node that sees this package's folder need not have it installed."""

    class Judging:
        def __init__(self, root: str, setup: bytes) -> None:
            import sys

            sys.path.append(root)
            try:
                from verifiers.on_ray.judge import Judge
            except ImportError as error:
                self._judge: Any = None
                self._trouble = f"a node has no r1lite: {error}"
            else:
                self._judge = Judge(setup)

        def node(self) -> Any:
            return self._trouble if self._judge is None else self._judge.node()

        def score(self, number: int, rows: Any) -> Any:
            return self._judge.score(number, rows)

    return Judging


def _rows(items: Items) -> list[Row]:
    return [(OF_PROBLEM(problem), OF_COMPLETION(completion)) for problem, completion in items]


def _score(reward: Reward, result: Result) -> Score:
    value, verdicts, error = result
    found = {name: Verdict(*fields) for name, fields in zip(reward.verifiers, verdicts, strict=False)}
    return Score(value, found, error, reward.versions)


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError("scoring on Ray needs it: pip install 'r1lite[ray]'") from error


def _connect(ray: Any, address: str | None) -> bool:
    """True if this process was not connected before. Raises VerifierError."""
    if ray.is_initialized():
        return False
    at = f" at {address}" if address else ""
    if address:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except (OSError, ValueError, OverflowError) as error:
            raise VerifierError(f"no Ray cluster answers{at}: {one_line(error)}") from error
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="warning", include_dashboard=None)
    except Exception as error:
        raise VerifierError(f"no Ray cluster answers{at}: {one_line(error)}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray sets its own
                signal.signal(number, handler)
    return True
