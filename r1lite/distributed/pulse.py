"""Heartbeats between the ranks: a rank that dies, stops or fails ends the whole run, and the message names it.

Each rank writes its state and its current work to the launcher's store. The main rank watches all others; the others
watch the main rank and the key for failures. A launcher that ends the other ranks after a death may leave them no time
to say why: their main threads can be in a library's call, where Python handles no signal. Messages are kept in the
store, since the process that they are about may be gone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

_BEAT_S = 1.0
_LOST_S = 5.0  # after a failed collective: time to find the rank that caused it
_GRACE_S = 2.0  # after this rank's failure: time to wait for the same failure of other ranks
_AFTER_S = 4.0  # after another rank's failure: time for that rank to report it before the others end
_EXIT_CODE = 1
_STDERR = 2


class Store(Protocol):
    """A torch.distributed store."""

    def set(self, key: str, value: str) -> None: ...
    def get(self, key: str) -> bytes: ...
    def check(self, keys: list[str]) -> bool: ...
    def compare_set(self, key: str, expected: str, desired: str) -> bytes: ...


class Pulse:
    """Watches the other ranks in its own threads.

    Args:
        connect: opens a connection to the store; this object needs its own, since a connection serves one call at a
            time and some calls wait.
        limit_s: a rank without a heartbeat for this many seconds ends the run; 0: never.
    """

    def __init__(self, connect: Callable[[timedelta], Store], rank: int, size: int, *, limit_s: float) -> None:
        self.rank, self.size, self.limit_s = rank, size, limit_s
        self.doing: Callable[[], str] = lambda: "starting"
        self.folder: Path | None = None  # the run directory, once there is one
        self.resume = ""  # the command that resumes the run, once there is one
        self._every_s = min(_BEAT_S, limit_s / 10) if limit_s else _BEAT_S
        self._store = connect(timedelta(seconds=limit_s or 3600))
        self._here = [socket.gethostname(), os.getpid(), _process_space()]
        self._seen: dict[int, tuple[str, float]] = {}  # by rank: its last heartbeat, seconds since it changed
        self._answered = time.monotonic()  # time of the store's last answer
        self._left = threading.Event()
        self._lost = threading.Event()
        self._once = threading.Lock()
        self._store.set(f"beat/{rank}", self._life(0))  # identifies this rank before the main thread loads anything
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("pulse", self._beat), ("pulse-store", self._watch_store))
        ]
        for thread in self._threads:
            thread.start()

    def leave(self) -> None:
        """Stops the heartbeat: the run is over, or this rank ends by itself. Its end is no surprise to the others."""
        self._left.set()
        with contextlib.suppress(RuntimeError):  # the store is gone with the rank that held it
            self._store.set(f"left/{self.rank}", "")

    def lost(self, why: str) -> None:
        """Handles a failed collective: ends this process as soon as the rank that caused it is known."""
        if self._left.is_set():
            return
        self._lost.set()
        time.sleep(_LOST_S + _AFTER_S + 2 * self._every_s)
        self._end(f"the connection to another rank broke ({why})", culprit=None)

    def failed(self, message: str) -> bool:
        """Tells the others that this rank ends with an error. Returns True if all ranks end with the same error."""
        self.leave()
        try:
            self._store.set(f"failed/{self.rank}", message)
            self._store.compare_set("failed", "", json.dumps([self.rank, message]))
            until = time.monotonic() + _GRACE_S
            keys = [f"failed/{rank}" for rank in range(self.size)]
            while time.monotonic() < until:
                if self._store.check(keys):
                    return all(self._store.get(key).decode() == message for key in keys)
                time.sleep(0.02)
        except RuntimeError:  # the store is gone with the rank that held it
            pass
        return False

    def spoken(self) -> None:
        """Marks that the main rank has reported the error. The others wait for this, as a launcher may kill all ranks
        once one is gone."""
        try:
            if self.rank == 0:
                self._store.set("spoken", "")
            until = time.monotonic() + _AFTER_S
            while not self._store.check(["spoken"]) and time.monotonic() < until:
                time.sleep(0.02)
        except RuntimeError:  # the store is gone, and the launcher with it
            pass

    def report_gone(self) -> None:
        """Reports another rank on this machine that has ended by surprise, if this rank is the one to report it."""
        with contextlib.suppress(RuntimeError):  # the store is gone, so nothing is known
            for rank in range(self.size):
                if rank != self.rank and self._is_gone(rank, sign := self._sign(rank)):
                    if self._speaks_of(rank):
                        self._report(_silence(rank, sign, 0.0, gone=True))
                    return

    def tell(self, message: str) -> bool:
        """Tells the others why this process is about to end. Returns False if another rank was first."""
        try:
            first = self._store.compare_set("failed", "", json.dumps([self.rank, message]))
        except RuntimeError:  # the store is gone, so no other rank can report
            return True
        return bool(json.loads(first)[0] == self.rank)

    # --- the threads -------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        count, before = 0, time.monotonic()
        others = range(1, self.size) if self.rank == 0 else range(1)
        while not self._left.wait(self._every_s):
            count += 1
            try:
                self._store.set(f"beat/{self.rank}", self._life(count))
                if self._store.check(["failed"]):
                    self._other_failed(*json.loads(self._store.get("failed")))
                watched = range(self.size) if self._lost.is_set() else others
                signs = {rank: self._sign(rank) for rank in watched if rank != self.rank}
                now = time.monotonic()
                # A process that was itself stopped or got no core could not see heartbeats in that time, so the time
                # must not count as the others' silence.
                passed, before = min(now - before, 2 * self._every_s), now
                self._answered = now
                for rank, sign in signs.items():
                    last, silent = self._seen.get(rank, ("", 0.0))
                    self._seen[rank] = (sign, 0.0 if sign != last else silent + passed)
                    self._judge(rank)
            except RuntimeError as error:
                if not self._left.is_set():
                    self._end(f"rank 0 or the launcher, which holds the store of this run, is gone ({error})", 0)
                return

    def _life(self, count: int) -> str:
        return json.dumps([count, self._here, self.doing()])

    def _sign(self, rank: int) -> str:
        key = f"beat/{rank}"
        return self._store.get(key).decode() if self._store.check([key]) else ""

    def _is_gone(self, rank: int, sign: str) -> bool:
        """True if the process of a rank on this machine has ended without leaving the run."""
        return _is_dead(sign) and not self._store.check([f"left/{rank}"])

    def _judge(self, rank: int) -> None:
        sign, silent = self._seen[rank]
        gone = self._is_gone(rank, sign)
        patience = min(_LOST_S, self.limit_s or _LOST_S) if self._lost.is_set() else self.limit_s
        if gone or (patience and silent > patience):
            self._other_failed(rank, _silence(rank, sign, silent, gone=gone), told=False)

    def _other_failed(self, rank: int, message: str, *, told: bool = True) -> None:
        """Ends this process because another rank has failed or counts as dead.

        Args:
            told: that rank reports its failure itself, and needs a moment for it.
        """
        if not told:
            first = json.loads(self._store.compare_set("failed", "", json.dumps([rank, message])))
            if first != [rank, message]:  # another reason was reported before, by that rank or about another one
                return self._other_failed(*first)
        silent = message.startswith(_silence_of(rank))
        if not silent and self._left.wait(_AFTER_S):
            return None  # this rank ends by itself, for the same reason
        self._end(message, rank, speaks=silent)
        return None

    def _watch_store(self) -> None:
        while self.limit_s and not self._left.wait(self._every_s):
            if time.monotonic() - self._answered > self.limit_s + 10 * self._every_s:
                time.sleep(2 * self._every_s)  # if this process itself was stopped, the store answers now
                if time.monotonic() - self._answered > self.limit_s + 10 * self._every_s:
                    self._end(f"rank 0 or the launcher has not answered for {self.limit_s:g} s", 0)

    def _speaks_of(self, culprit: int | None) -> bool:
        """True for the lowest rank beside the one at fault; ranks that are known to be gone don't count."""
        lower = [rank for rank in range(self.rank) if rank != culprit]
        try:
            return all(self._is_gone(rank, self._sign(rank)) for rank in lower)
        except RuntimeError:  # the store is gone, so nothing is known
            return not lower

    def _end(self, message: str, culprit: int | None, *, speaks: bool = True) -> None:
        """Ends the process; the lowest remaining rank reports the reason."""
        with self._once:
            if self._left.is_set():
                return
            if speaks and self._speaks_of(culprit):
                self._report(message)
            if self.folder is not None:
                # The folder may not exist on other machines.
                with (
                    contextlib.suppress(OSError),
                    open(self.folder / f"stacks-rank-{self.rank}.txt", "wb", buffering=0) as file,
                ):
                    _write(file.fileno(), f"rank {self.rank}, in {self.doing()}: ended because {message}")
                    faulthandler.dump_traceback(file.fileno(), all_threads=True)
            os._exit(_EXIT_CODE)  # a regular exit could hang, since the main thread waits for a lost rank

    def _report(self, message: str) -> None:
        resume = f". Continue from the last checkpoint: {self.resume}" if self.resume else ""
        _write(_STDERR, f"error: {message}; rank {self.rank} was in {self.doing()}{resume}")


def _silence_of(rank: int) -> str:
    return f"rank {rank} is lost"


def _silence(rank: int, sign: str, silent: float, *, gone: bool) -> str:
    _, here, doing = json.loads(sign) if sign else (0, None, "starting")
    where = f" (process {here[1]} on {here[0]})" if here else ""
    how = "its process has ended, as if killed" if gone else f"it sent no heartbeat for {silent:.0f} s"
    return f"{_silence_of(rank)}{where}: {how}, last in {doing}"


@functools.cache
def _process_space() -> str:
    """Identifies what process numbers refer to: processes with another one can't be seen. Containers may share a
    machine's name, and machines may have the same name."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    return socket.gethostname()  # without Linux


def _is_dead(sign: str) -> bool:
    """True if the rank's process would be visible here, and is gone."""
    if not sign:
        return False
    _, pid, space = json.loads(sign)[1]
    if space != _process_space():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return sys.platform == "linux" and _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def _write(descriptor: int, message: str) -> None:
    with contextlib.suppress(OSError):  # the stream may be closed
        os.write(descriptor, message.encode("utf-8", "backslashreplace") + b"\n")
