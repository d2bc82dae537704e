"""Keeps the servers of a run: detects dead ones, takes them back, and gives each the newest weights."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from r1lite.errors import UserError
from r1lite.model.lora import Adapter
from r1lite.rollout import EngineError
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.heartbeat import Heartbeat, Waits
from r1lite.rollout.layout import Layout, unchanged
from r1lite.rollout.process_limits import allow_files, starting_thread
from r1lite.rollout.server import Server
from r1lite.rollout.weight_files import WeightFiles, Weights
from r1lite.rollout.weight_memory import WeightMemory

T = TypeVar("T")

_LOOK_EVERY_S = 2.0  # interval of checks whether a dead server has come back
_POLL_S = 0.2  # while all are dead
_GROUPS_A_SERVER = 64  # at once; vLLM queues what exceeds its capacity
_PARTS_A_SERVER = 512  # likewise, for completions that new weights interrupted: each is a separate request
_OTHER_FILES = 1024  # open files of this process besides the servers' connections
_COUNT_S = 10.0  # limit for the token count before a run


class Servers:
    """The servers of a run: which of them live, and the weights that they hold, as files or over a connection.

    Args:
        connect: (url, run's name) -> a server; the name distinguishes this run's weights from another's.
        context: tokens of the longest prompt and completion together.
        weights_dir: a folder shared with the servers; None = this machine's shared memory.
        vocabulary: number of token ids; an id outside this range is an error.
        start_wait_s: time limit for servers to start.
        parameters: number of parameters, to check the free space for weights.
        layout: converts weights to the layout of the model's files.
        no_adapters: the reason why the servers take no adapters; empty if they may.
        memory: keeps weights for servers that get them over a connection; None = weights are files.
        eos: ids that end a text.
        timeout_s: limit for one group, for one weight update, and for any server to come back.
        stall_s: a server without a new token for this long is set aside (see `heartbeat`); 0 = never.
        say: tells the user about servers that are set aside or taken back.

    Raises (when made): UserError for a server that can't be used.
    """

    def __init__(
        self,
        urls: Sequence[str],
        tokenizer: Any,
        connect: Callable[[str, str], Server],
        *,
        dtype: torch.dtype,
        context: int,
        vocabulary: int,
        timeout_s: float,
        eos: Sequence[int] = (),
        weights_dir: str | None = None,
        untested: bool = False,
        start_wait_s: float,
        parameters: int = 0,
        layout: Layout = unchanged,
        stall_s: float = 30.0,
        say: Callable[[str], None] = lambda text: None,
        no_adapters: str = "it was started without adapters",
        memory: WeightMemory | None = None,
    ) -> None:
        if len(set(urls)) != len(urls):
            raise UserError("--engine-url: the same server is given twice")
        self._memory = memory
        self.takes_parts = memory is None  # whether a server can load some weights and keep the others
        self._run = f"{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self._weights: Weights | None = None
        self._below: Path | None = None  # the base weights under an adapter, for servers that come back
        self._given = self.base_loads = 0
        self.no_adapters = no_adapters
        self.servers = [connect(url, self._run) for url in urls]
        self.tokenizer, self.context, self.timeout_s = tokenizer, context, timeout_s
        self._stall_s, self._say, self._layout = stall_s, say, layout
        self._vocabulary, self._ends = vocabulary, frozenset(eos)
        self._software = self.servers[0].software
        _introduce(self.servers, start_wait_s, context, untested=untested)
        self._files: WeightFiles | None = WeightFiles(
            Path(weights_dir) if weights_dir else None, dtype, parameters=0 if memory else parameters
        )
        allow_files(_OTHER_FILES + (_GROUPS_A_SERVER + _PARTS_A_SERVER) * len(urls))
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _GROUPS_A_SERVER * len(urls), thread_name_prefix="r1lite-rollout"
        )
        self._parts = concurrent.futures.ThreadPoolExecutor(
            _PARTS_A_SERVER * len(urls), thread_name_prefix="r1lite-parts"
        )
        self._looker = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="r1lite-return")
        self._looking: concurrent.futures.Future[None] | None = None
        self._look = threading.Lock()
        self._routing = threading.Lock()
        self._looked = 0.0
        self.deaths = 0  # number of times a server was found dead or stalled
        if stall_s and (uncounted := [server.url for server in self.servers if not _counts(server)]):
            say(
                f"{', '.join(uncounted)}: the metrics count no tokens, so before --engine-timeout-s only an engine "
                "that does not answer at all is detected"
            )
        waits = Waits()
        self._beats = {s.url: Heartbeat(s, waits, stall_s, self._set_aside) for s in self.servers if stall_s}

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Sends weights to every live server; one that comes back later, or fails now, gets them before it serves."""
        files = self._opened()
        self._given += 1
        name = f"{self._given}-version-{version}"
        label = f"r1lite-{self._run}-{name}"
        self._below = None
        if self._memory is None:
            self._hand_out(Weights(files.write(self._layout(weights), name), label, version))
        else:
            snapshot = self._memory.keep(self._layout(weights), label)
            self._hand_out(Weights(files.folder / name, label, version, snapshot=snapshot))

    def load_adapter(self, adapter: Adapter, *, version: int, base_too: bool = False) -> None:
        """As `AdapterEngine.load_adapter`, to every server; one that lost the base weights gets those first."""
        files = self._opened()
        self._given += 1
        if base_too or self._below is None or self._weights is None:
            self._below = files.write(self._layout(adapter.base()), f"{self._given}-below")
            self.base_loads += 1
        folder = files.write_adapter(adapter, f"r1lite-{self._run}-{self._given}-version-{version}")
        self._hand_out(Weights(self._below, f"r1lite-{self._run}-{self._below.name}", version, folder))

    @property
    def bytes_given(self) -> int:
        """Bytes of weight files, counted once for all servers, and bytes sent to each server over a connection."""
        sent = sum(server.bytes_sent for server in self.servers)
        return sent if self._files is None else sent + self._files.written

    def _hand_out(self, weights: Weights) -> None:
        files = self._opened()
        with self._routing:
            self._weights = weights
        self._wait_for_any()
        living = [server for server in self.servers if server.alive]
        for server, future in [(server, self._submit(self._update, server)) for server in living]:
            try:
                future.result()
            except Unreachable as error:
                self._doubt(server)
                if server.alive:
                    self._say(f"{server.url} gets the weights of version {weights.version} later, before use: {error}")
        self._wait_for_any()
        files.keep_only(weights.folder, *([weights.adapter] if weights.adapter else []))
        self._opened()  # raises if it was closed meanwhile and holds nothing

    def forget(self) -> None:
        """Empties the prefix caches."""
        for _ in self._of_living(lambda server: server.forget(), "did not empty its prefix cache"):
            pass

    def weight_digests(self) -> list[tuple[str, dict[str, str]]]:
        """(server's address, digest of each tensor by name) of each live server that reports digests."""
        answers = self._of_living(lambda server: server.digests(), "did not report digests of its weights")
        return [(url, held) for url, held in answers if held]

    def _of_living(self, ask: Callable[[Server], T], undone: str) -> Iterator[tuple[str, T]]:
        """(address, answer) of each live server; one that missed the last update gets it first.

        Raises EngineError for a server that works but refuses, or does not answer within the time limit.
        """
        for server in self.servers:
            deadline = time.monotonic() + self.timeout_s
            while server.alive:
                try:
                    self._update(server)
                    with self._no_tokens(server):
                        answer = ask(server)
                except (Refused, Unreachable) as error:
                    final = isinstance(error, Refused) and not error.later
                    if not server.lives():
                        self._bury(server)
                    elif final or self._files is None or time.monotonic() >= deadline:
                        raise EngineError(f"{server.url} {undone}: {error}") from error
                    else:
                        time.sleep(_POLL_S)
                else:
                    yield server.url, answer
                    break

    @property
    def urls(self) -> list[str]:
        """The live servers; each must be checked separately."""
        return [server.url for server in self.servers if server.alive]

    def close(self) -> None:
        if self._files is None:
            return
        files, self._files = self._files, None
        for server in self.servers:
            server.close()
        for beat in self._beats.values():
            beat.close()
        self._looker.shutdown(wait=True)
        self._pool.shutdown(wait=True)  # queued work ends at once; cancelling it here would make callers wait forever
        self._parts.shutdown(wait=True)
        files.close()
        if self._memory is not None:
            self._memory.close()

    def _opened(self) -> WeightFiles:
        if self._files is None:
            raise EngineError("the engine is closed")
        return self._files

    def _newest(self) -> Weights:
        if self._weights is None:
            raise EngineError("the engine was given no weights yet")
        return self._weights

    def _submit(
        self, work: Callable[..., Any], *arguments: Any, pool: concurrent.futures.Executor | None = None
    ) -> concurrent.futures.Future[Any]:
        try:
            with starting_thread():
                return (pool or self._pool).submit(work, *arguments)
        except EngineError:
            self._opened()  # raises if another thread has closed the pool
            raise

    def _least_loaded(self, count: int, left: threading.Event, failed: Sequence[Server], only: str) -> Server:
        """A live server, with `count` added to its load; one of the `failed` only if there is no other.

        Raises EngineError if none comes back.
        """
        began = time.monotonic()
        while True:
            self._look_for_returned()
            with self._routing:
                if living := self._candidates(only):
                    living = [server for server in living if server not in failed] or living
                    server = min(living, key=lambda server: server.load)
                    server.load += count
                    return server
            if left.is_set() or self._files is None:
                raise EngineError("the engine was closed while it sampled")
            self._check_return(began)
            time.sleep(_POLL_S)

    def _candidates(self, only: str) -> list[Server]:
        living = [server for server in self.servers if server.alive]
        return [server for server in living if server.url == only] or living

    def _wait_for_any(self) -> None:
        began = time.monotonic()
        while not any(server.alive for server in self.servers):
            self._opened()
            self._look_for_returned()
            self._check_return(began)
            time.sleep(_POLL_S)

    def _check_return(self, began: float) -> None:
        """Raises EngineError if servers have been waited for, since `began`, longer than allowed."""
        stalled = all(server.stalled for server in self.servers)
        waited = time.monotonic() - began
        if waited < (self._stall_s if stalled else self.timeout_s):
            return
        urls = ", ".join(server.url for server in self.servers)
        if stalled:
            raise EngineError(
                f"every {self._software} server has stalled, and none has continued for {self._stall_s:g} s ({urls}). "
                "Is one stopped, or too slow for --engine-stall-s? Continue with --resume; --engine-url may name others"
            )
        raise EngineError(
            f"no {self._software} server has answered for {self.timeout_s:g} s ({urls}). Start one again with "
            f"{self.servers[0].launcher} and continue with --resume; --engine-url may name others"
        )

    def _look_for_returned(self) -> None:
        """Takes back servers that are up again, with the current weights. Raises EngineError if one is different."""
        with self._look:
            if self._looking is not None:
                if not self._looking.done():
                    return
                done, self._looking = self._looking, None
                done.result()
            dead = [server for server in self.servers if not server.alive]
            if dead and time.monotonic() - self._looked >= _LOOK_EVERY_S:
                self._looked = time.monotonic()
                self._looking = self._submit(self._take_back, dead, pool=self._looker)

    def _take_back(self, dead: Sequence[Server]) -> None:
        """Runs beside the groups, because a stopped server takes seconds to time out."""
        for server in dead:
            if server.healthy() and self._is_as_before(server):
                with contextlib.suppress(Unreachable):
                    self._revive(server)

    def _revive(self, server: Server) -> None:
        stalled, server.stalled = server.stalled, False
        anew = stalled  # sending weights again also aborts what it may still be doing
        while not server.alive:
            weights = self._newest()
            self._update(server, anew=anew)
            anew = False
            with self._routing:  # only now, because groups sent to it need the weights
                server.alive = weights is self._weights
        if stalled:
            self._beats[server.url].went_on()
            self._say(f"{server.url} answers again, has the weights of version {weights.version} and is in use again")

    def _is_as_before(self, server: Server) -> bool:
        """False while the server can't be identified. Raises EngineError if it differs from the one that died."""
        before = server.version
        try:
            server.introduce(untested=True)
        except UserError:
            return False
        if server.version != before or 0 < server.context < self.context:
            raise EngineError(
                f"{server.url} came back as another server: {server.software} {server.version} (before: {before}) for "
                f"{server.context} tokens (needed: {self.context}). Start the former one and continue with --resume"
            )
        return True

    def _update(self, server: Server, *, anew: bool = False) -> None:
        """Sends a server the current weights, unless it has them. Raises Unreachable, EngineError."""
        with server.lock:
            while (weights := self._weights) is not None and (anew or not has(server, weights)):
                try:
                    with self._no_tokens(server):
                        if anew or not server.is_current(weights.label):
                            anew = False
                            server.give(weights)
                        if weights.adapter is not None:
                            server.give_adapter(weights.adapter)
                except EngineError:
                    if weights is self._weights:
                        raise
                    # Otherwise newer weights arrived meanwhile, and the files of these were removed.

    def _no_tokens(self, server: Server) -> contextlib.AbstractContextManager[None]:
        """Inside the context, a server that samples no tokens is not stalled as long as it answers."""
        beat = self._beats.get(server.url)
        return beat.other_work() if beat else contextlib.nullcontext()

    def _set_aside(self, server: Server, silent_s: float) -> None:
        """Called by the heartbeat after a time without a sign of life."""
        if self._files is None:
            return
        was_alive, server.stalled = server.alive, True
        self._bury(server)
        server.hang_up()  # even if it was just taken back and weights were in flight
        if was_alive:
            others = sum(other.alive for other in self.servers)
            fate = f"its groups go to {others} other{'s' * (others > 1)}" if others else "there is no other"
            self._say(f"{server.url} has sampled no token for {silent_s:.0f} s and is set aside; {fate}")

    def _doubt(self, server: Server) -> None:
        """After a failed request: buries the server, unless it is alive and only that request failed."""
        if server.alive and self._files is not None and not server.lives():
            self._bury(server)

    def _bury(self, server: Server) -> None:
        """Marks a server dead and cancels its other requests, which may never be answered."""
        with self._routing:
            was_alive, server.alive = server.alive, False
            self.deaths += was_alive
        if was_alive:
            server.hang_up()


def _introduce(servers: Sequence[Server], start_wait_s: float, context: int, *, untested: bool) -> None:
    """Waits until all servers answer. Raises UserError if one doesn't, is too small or is of another version."""
    for server in servers:
        if not server.wait(start_wait_s):
            raise UserError(
                f"--engine-url {server.url}: no server answers there (waited {start_wait_s:g} s); start one with "
                f"{server.launcher}"
            )
        server.introduce(untested=untested)
        if 0 < server.context < context:
            raise UserError(
                f"--engine-url {server.url}: it accepts {server.context} tokens of prompt and completion, this run "
                f"needs {context}; start it with {server.context_flag(context)}"
            )
    versions = {server.version: server.url for server in servers}
    if len(versions) > 1 and not untested:
        listed = ", ".join(f"{version} at {url}" for version, url in sorted(versions.items()))
        raise UserError(
            f"--engine-url: servers of different versions of {servers[0].software} ({listed}): a completion would "
            "depend on the server that sampled it. Start all with one version, or allow the difference with "
            "--engine-untested"
        )


def _counts(server: Server) -> bool:
    """False for a server that reports that it counts no tokens."""
    try:
        return server.tokens(_COUNT_S) is not None
    except (Refused, Unreachable):
        return True  # checked again while it works


def has(server: Server, weights: Weights) -> bool:
    """True if the server itself reports that it holds these weights."""
    return server.is_current(weights.label) and (weights.adapter is None or server.has_adapter(weights.adapter.name))
