"""`--on ray`: runs ranks and engines as processes that actors start on the nodes of a Ray cluster.

It uses plain actors in a placement group instead of Ray Train, whose workers don't run in the main thread, where a run
must handle signals, and which has no engines. The processes are the same as on one machine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from r1lite.errors import RunError, UserError
from r1lite.launch.commands import Job, environment_of, rank_environment
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.running import LOST, Running
from verifiers import VerifierError
from verifiers.on_ray.connecting import address_of, connect, imported
from verifiers.on_ray.versions import difference, reader

_ROOT = str(Path(__file__).resolve().parents[2])
_START_S = 120.0  # time for an actor to start, and for Ray to find room for all of them
_END_S = 30.0  # time for an actor to end a process
_MOST_CALLS = 1000  # concurrent calls of an actor: each process takes one as long as it runs


class RayLauncher:
    """Starts the processes of a job on a Ray cluster.

    The ranks of a node share a bundle of CPUs and GPUs, and each engine has its own. Ray never splits a bundle between
    nodes.

    Args:
        folder: folder of the logs, which all nodes must see.

    Raises (in the constructor):
        UserError: no cluster answers, or it is too small.
        RunError: the cluster's CPUs or GPUs are in use.
    """

    def __init__(self, job: Job, specs: Sequence[ProcessSpec], folder: Path) -> None:
        self._job, self._folder = job, folder
        self.engines = [spec for spec in specs if spec.kind == "engine"]
        self.token = secrets.token_urlsafe(32) if self.engines else ""
        ranks = [spec for spec in specs if spec.kind == "rank"]
        groups = [list(group) for _, group in itertools.groupby(ranks, key=lambda spec: spec.node)]
        self._groups: list[list[ProcessSpec]] = [*groups, *([engine] for engine in self.engines)]  # one per bundle
        self._rank_groups = len(groups)
        self._actors: dict[int, Any] = {}  # by bundle
        self._addresses: dict[ProcessSpec, tuple[str, int]] = {}  # addresses of engines
        self._here = reader()(("verifiers", "r1lite"))
        try:
            self._ray = imported()
            connect(self._ray, address_of(job.launch.on))
        except (ValueError, VerifierError) as error:
            raise UserError(f"--on {job.launch.on}: {error}") from error
        self._bundles = [self._bundle(group) for group in self._groups]
        self._refuse_too_little()
        from ray.util.placement_group import placement_group

        self._placement = placement_group(self._bundles, strategy="PACK")
        if not self._placement.wait(_START_S):
            self.close()
            raise RunError(f"{self._needed()}, and {self._free()} are free; other jobs may use the rest")

    def start_engine(self, spec: ProcessSpec) -> tuple[Running, str]:
        """See `Launcher.start_engine`."""
        index = self._rank_groups + self.engines.index(spec)
        host, port = self._host(index)
        former = self._addresses.get(spec, ("", 0))
        self._addresses[spec] = former if former[0] == host else (host, port)
        port = self._addresses[spec][1]
        words = self._job.engine_words(host, port)
        return self._start(spec, index, words, environment_of(self.token)), f"http://{host}:{port}"

    def start_ranks(self, urls: Sequence[str], *, again: bool) -> list[Running]:
        """See `Launcher.start_ranks`."""
        words = self._job.rank_words(urls, resume=again and self._job.has_begun())
        (master, port), *_ = [self._host(index) for index in range(self._rank_groups)]
        size = self._job.launch.ranks
        return [
            self._start(spec, index, words, rank_environment(spec, size, master, port, self.token))
            for index, group in enumerate(self._groups[: self._rank_groups])
            for spec in group
        ]

    def close(self) -> None:
        """Releases the placement group, and disconnects from the cluster."""
        from ray.util.placement_group import remove_placement_group

        with contextlib.suppress(Exception):  # the cluster may be gone
            remove_placement_group(self._placement)
        self._ray.shutdown()

    def _bundle(self, group: Sequence[ProcessSpec]) -> dict[str, float]:
        cpus = {"CPU": float(len(group) * self._job.threads)}
        return cpus | ({"GPU": float(len(group[0].gpus))} if group[0].gpus else {})

    def _refuse_too_little(self) -> None:
        """Raises UserError if the cluster is too small: Ray would wait forever without a message."""
        nodes = [dict(node["Resources"]) for node in self._ray.nodes() if node["Alive"]]
        for bundle in sorted(self._bundles, key=lambda one: (one.get("GPU", 0), one["CPU"]), reverse=True):
            node = next((one for one in nodes if all(one.get(kind, 0) >= n for kind, n in bundle.items())), None)
            if node is None:
                self._ray.shutdown()
                raise UserError(
                    f"--on {self._job.launch.on}: {self._needed()}, which don't fit its {len(nodes)} nodes: "
                    "use fewer --ranks, --engines or --cpus, or more nodes"
                )
            for kind, count in bundle.items():
                node[kind] -= count

    def _needed(self) -> str:
        return f"{self._job.launch.ranks} ranks and {len(self.engines)} engines need bundles of " + ", ".join(
            map(_resources, self._bundles)
        )

    def _free(self) -> str:
        return _resources(self._ray.available_resources())

    def _host(self, index: int) -> tuple[str, int]:
        """Starts an actor in this bundle. Returns its node's address and a free port there.

        Raises:
            UserError: the node has another Python or another r1lite.
            RunError: the actor can't be started.
        """
        if index in self._actors:
            self._ray.kill(self._actors[index])
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = self._bundles[index]
        actor = self._ray.remote(_actor_class()).options(
            num_cpus=bundle["CPU"],
            num_gpus=bundle.get("GPU", 0),
            max_concurrency=_MOST_CALLS,
            scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement, index),
        )
        until = time.monotonic() + _START_S
        while True:
            self._actors[index] = actor.remote(_ROOT)
            try:
                about = self._actors[index].about.remote(reader(), list(self._here)[1:])
                host, found = self._ray.get(about, timeout=max(1.0, until - time.monotonic()))
                if trouble := difference(host, found, self._here):
                    raise UserError(f"--on {self._job.launch.on}: {trouble}")
                address: tuple[str, int] = self._ray.get(self._actors[index].address.remote())
                return address
            except self._ray.exceptions.GetTimeoutError:
                names = ", ".join(spec.name for spec in self._groups[index])
                raise RunError(
                    f"{names}: no node had room for {_resources(bundle)} within {_START_S:g} s; free are {self._free()}"
                ) from None
            except self._ray.exceptions.RayTaskError as error:
                raise RunError(f"a Ray node can't start processes: {error.cause}") from error
            except self._ray.exceptions.RayActorError as error:  # its node is lost, and Ray has not noticed yet
                if time.monotonic() > until:
                    raise RunError(f"an actor can't be started: {error}") from error
                time.sleep(1.0)

    def _start(self, spec: ProcessSpec, index: int, words: Sequence[str], variables: dict[str, str]) -> Running:
        log, actor = self._folder / spec.log, self._actors[index]
        asked = (spec.name, list(words), variables, str(log), os.getcwd())
        return Running.begun(spec, log, lambda: RayProcess(self._ray, actor, spec.name, actor.run.remote(*asked)))


class RayProcess:
    """A process that an actor runs.

    Args:
        result: result of the call that runs the process: its exit code.
    """

    def __init__(self, ray: Any, actor: Any, name: str, result: Any) -> None:
        self._ray, self._actor, self._name, self._result = ray, actor, name, result
        self._code: int | None = None

    def poll(self) -> int | None:
        """See `Process.poll`. Raises RunError if its node could not start the process."""
        if self._code is None and self._ray.wait([self._result], timeout=0)[0]:
            try:
                self._code = int(self._ray.get(self._result))
            except self._ray.exceptions.RayActorError:
                self._code = LOST
            except self._ray.exceptions.RayTaskError as error:
                raise RunError(f"{self._name} can't be started on its node: {error.cause}") from error
        return self._code

    def signal(self, number: int) -> None:
        """See `Process.signal`."""
        if self.poll() is None:
            self._actor.signal.remote(self._name, number)

    def kill(self) -> None:
        """See `Process.kill`."""
        if self.poll() is not None:
            return
        try:
            self._ray.get(self._actor.kill.remote(self._name), timeout=_END_S)
            self._ray.wait([self._result], timeout=_END_S)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            self._ray.kill(self._actor)  # its processes die with it
        if self.poll() is None:
            self._code = LOST


def _resources(bundle: dict[str, float]) -> str:
    return " + ".join(f"{bundle[kind]:g} {kind}" for kind in ("CPU", "GPU") if bundle.get(kind))


def _actor_class() -> type:
    """The class of the actors. It is sent by value, so a node that sees this package's folder need not install it."""

    class Host:
        def __init__(self, root: str) -> None:
            import sys

            sys.path.append(root)
            self._processes: dict[str, Any] = {}

        def about(self, read: Callable[[Sequence[str]], dict[str, str]], packages: list[str]) -> tuple[str, Any]:
            import socket

            return socket.gethostname(), read(packages)

        def address(self) -> tuple[str, int]:
            from ray.util import get_node_ip_address

            from r1lite.launch.process import free_ports

            host = get_node_ip_address()
            return host, free_ports(1, host)[0]

        def run(self, name: str, words: list[str], variables: dict[str, str], log: str, folder: str) -> int:
            import time
            from pathlib import Path

            from r1lite.launch.process import LocalProcess

            process = self._processes[name] = LocalProcess(words, variables, Path(log), Path(folder))
            while (code := process.poll()) is None:
                time.sleep(0.1)
            return code

        def signal(self, name: str, number: int) -> None:
            self._processes[name].signal(number)

        def kill(self, name: str) -> None:
            if name in self._processes:
                self._processes[name].kill()

    return Host
