"""Supervises a run's processes: restarts failed ones up to a given number of times, and then stops all of them."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from r1lite.errors import Interrupted, RunError
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.running import LOST, Running
from r1lite.rollout.client import Client, Refused, Unreachable
from r1lite.run.signals import StopSignal

_LOOK_S = 0.2
_HELLO_S = 2.0
_RANKS_END_S = 20.0  # after one rank has failed, the others report it, save their stacks and end within this time
_ENGINE_ENDS_S = 10.0  # time for an engine to end after a signal
_CHECKPOINT_S = 60.0  # time for the ranks to write a checkpoint after an engine has ended
_SAME_LOSS_S = 60.0  # losses within this time count as one lost node
_WAIT_SAID_S = 20.0


class Launcher(Protocol):
    """Starts processes on this machine or a cluster."""

    def start_engine(self, spec: ProcessSpec) -> tuple[Running, str]:
        """Starts an engine. Returns it with the address that it will listen on, which stays the same after restarts if
        possible."""

    def start_ranks(self, urls: Sequence[str], *, again: bool) -> list[Running]:
        """Starts all ranks together; `again`: from the newest checkpoint, if there is one."""


class Supervisor:
    """Runs engines and ranks from start to end.

    Args:
        engines: engines to start.
        token: the token that the engines require.
        start_s: seconds that engines may take until they answer.
        restarts: total number of restarts.
        say: prints a line.
        verbose: also print the engines' output.
    """

    def __init__(
        self,
        launcher: Launcher,
        engines: Sequence[ProcessSpec],
        *,
        token: str,
        start_s: float,
        restarts: int,
        say: Callable[[str], None],
        verbose: bool,
    ) -> None:
        self._launcher, self._specs, self._token = launcher, engines, token
        self._start_s, self._restarts, self._say, self._verbose = start_s, restarts, say, verbose
        self._engines: dict[ProcessSpec, Running] = {}
        self._urls: dict[ProcessSpec, str] = {}
        self._ranks: list[Running] = []
        self._lost_at = -math.inf  # time of the last loss of a node

    def run(self, stop: StopSignal) -> None:
        """Returns when all ranks have ended without an error. In every case no process is left.

        Raises:
            RunError: a process failed and no restarts are left.
            Interrupted: a signal came, and the ranks have ended.
        """
        try:
            for spec in self._specs:
                self._engines[spec], self._urls[spec] = self._launcher.start_engine(spec)
            self._wait_for_engines(stop)
            self._ranks = self._launcher.start_ranks([*self._urls.values()], again=False)
            while not all(rank.ended() and rank.code == 0 for rank in self._ranks):
                self._look(stop)
                self._mend()
            self._show()
        except Interrupted as stopped:
            self._interrupt_ranks(stopped.signum)
            raise
        except RunError:
            self._interrupt_ranks(signal.SIGTERM, limit_s=_CHECKPOINT_S)
            raise
        finally:
            for rank in self._ranks:
                rank.process.kill()
            self._show()
            self._end_engines()

    def _wait_for_engines(self, stop: StopSignal) -> None:
        if not self._engines:
            return
        self._say(f"waiting for {len(self._engines)} engine{'s' * (len(self._engines) > 1)} to answer ...")
        waiting = {spec: time.monotonic() + self._start_s for spec in self._engines}
        while waiting:
            self._look(stop)
            for spec in [spec for spec, engine in self._engines.items() if engine.ended()]:
                self._spend(self._engines[spec], self._engines[spec].last_lines())
                self._start_again(spec)
                waiting[spec] = time.monotonic() + self._start_s
            for spec in [spec for spec in waiting if self._answers(self._urls[spec])]:
                del waiting[spec]
            for spec, until in waiting.items():
                if time.monotonic() > until:
                    raise RunError(
                        f"{spec.name} did not answer at {self._urls[spec]} within {self._start_s:g} s "
                        f"(--engine-timeout-s)" + _ending(self._engines[spec], self._engines[spec].last_lines())
                    )

    def _answers(self, url: str) -> bool:
        try:
            Client(url, token=self._token).get("health", timeout_s=_HELLO_S)
            return True
        except (Unreachable, Refused):
            return False

    def _look(self, stop: StopSignal) -> None:
        """Prints new output, and waits a moment, in which a signal raises Interrupted."""
        self._show()
        with stop.interruptible():
            time.sleep(_LOOK_S)

    def _show(self) -> None:
        for running in (*self._ranks, *(self._engines.values() if self._verbose else ())):
            for line in running.new_lines():
                self._say(f"{running.spec.name} | {line}")

    def _mend(self) -> None:
        """Restarts failed processes. Raises RunError if no restarts are left."""
        failed = next((rank for rank in self._ranks if rank.ended() and rank.code != 0), None)
        if failed is not None:
            self._explain(failed)
        elif all([rank.ended() for rank in self._ranks]):
            return
        ended = [spec for spec, engine in self._engines.items() if engine.ended()]
        if failed is None and ended:
            self._spend(self._engines[ended[0]], self._engines[ended[0]].last_lines())
        moved = [self._start_again(spec) for spec in ended]
        if failed is not None or any(moved):
            self._end_ranks()
            self._ranks = self._launcher.start_ranks([*self._urls.values()], again=True)

    def _start_again(self, spec: ProcessSpec) -> bool:
        """Restarts an engine. Returns True if its address has changed."""
        before = self._urls[spec]
        self._engines[spec], self._urls[spec] = self._launcher.start_engine(spec)
        return self._urls[spec] != before

    def _explain(self, first: Running) -> None:
        """Uses a restart for a failed rank. Before that, the other ranks end by themselves and report which rank caused
        the failure."""
        until = time.monotonic() + _RANKS_END_S
        while not all([rank.ended() for rank in self._ranks]) and time.monotonic() < until:
            self._show()
            time.sleep(_LOOK_S)
        self._end_ranks()
        self._show()
        first = next((rank for rank in self._ranks if rank.code == LOST), first)
        ended = [first, *(rank for rank in self._ranks if rank is not first)]
        speaker = next((rank for rank in ended if rank.last_lines(errors=True)), None)
        lines = speaker.last_lines(errors=True) if speaker else first.last_lines()
        self._spend(first if first.died or speaker is None else speaker, lines)

    def _spend(self, ended: Running, lines: list[str]) -> None:
        """Uses one restart, which covers all processes of a lost node. Raises RunError if none is left."""
        what = "it is" if ended.spec.kind == "engine" else "all ranks are"
        if ended.code == LOST and time.monotonic() - self._lost_at < _SAME_LOSS_S:
            self._say(f"{ended.spec.name} {ended.end()}, too: {what} restarted")
            return
        if not self._restarts:
            raise RunError(f"{ended.spec.name} {ended.end()}, so all processes were stopped{_ending(ended, lines)}")
        self._restarts -= 1
        if ended.code == LOST:
            self._lost_at = time.monotonic()
        self._say(f"{ended.spec.name} {ended.end()}: {what} restarted; {self._restarts} restarts are left")
        for line in lines:
            self._say(f"  {line}")

    def _interrupt_ranks(self, signum: int, limit_s: float = math.inf) -> None:
        """Signals the ranks to write a checkpoint and end, and waits for their end."""
        for rank in self._ranks:
            if not rank.ended():
                rank.process.signal(signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM)
        began, said = time.monotonic(), False
        while not all([rank.ended() for rank in self._ranks]) and time.monotonic() - began < limit_s:
            self._show()
            time.sleep(_LOOK_S)
            if not said and time.monotonic() - began > _WAIT_SAID_S:
                self._say("waiting for the ranks to write a checkpoint; a second signal stops all processes at once")
                said = True

    def _end_ranks(self) -> None:
        for rank in self._ranks:
            rank.process.kill()
            rank.ended()

    def _end_engines(self) -> None:
        for engine in self._engines.values():
            engine.process.signal(signal.SIGTERM)
        until = time.monotonic() + _ENGINE_ENDS_S
        while not all([engine.ended() for engine in self._engines.values()]) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        for engine in self._engines.values():
            engine.process.kill()


def _ending(running: Running, lines: Sequence[str]) -> str:
    shown = "".join(f"\n  {line}" for line in lines)
    return f". {running.log} ends:{shown}" if shown else f". {running.log} is empty"
