"""Sampling on servers: each group goes to the least loaded one, and to another one if that dies."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import UserError
from r1lite.model.lora import Adapter
from r1lite.rollout import EngineError, RolloutEngine, Sampling, check_prompts, text_of
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.continued import ABORTED, joined, rest, seed_after
from r1lite.rollout.heartbeat import Heartbeat, Waits
from r1lite.rollout.layout import Layout, unchanged
from r1lite.rollout.server import Server
from r1lite.rollout.weight_files import WeightFiles, Weights
from r1lite.rollout.weight_memory import WeightMemory
from verifiers import Completion

_LOOK_EVERY_S = 2.0  # interval of checks whether a dead server has come back
_POLL_S = 0.2  # while all are dead
_GROUPS_A_SERVER = 64  # at once; vLLM queues what exceeds its capacity
_PARTS_A_SERVER = 512  # likewise, for completions that new weights interrupted: each is a separate request
_TRIES = 3  # at least, before a group is given up
_COUNT_S = 10.0  # limit for the token count before a run
_PAUSE_S = 1.0  # at most, before a group is sent again to an overloaded server


class ServerEngine(RolloutEngine):
    """Group sampling on servers, which get weights as files or over a connection.

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

    shares_weights, runs_aside = False, True

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
        self._vocabulary, self._ends, self._only = vocabulary, frozenset(eos), _Only()
        self._software = self.servers[0].software
        for server in self.servers:
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
        versions = {server.version: server.url for server in self.servers}
        if len(versions) > 1 and not untested:
            listed = ", ".join(f"{version} at {url}" for version, url in sorted(versions.items()))
            raise UserError(
                f"--engine-url: servers of different versions of {self._software} ({listed}): a completion would "
                "depend on the server that sampled it. Start all with one version, or allow the difference with "
                "--engine-untested"
            )
        self._files: WeightFiles | None = WeightFiles(
            Path(weights_dir) if weights_dir else None, dtype, parameters=0 if memory else parameters
        )
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

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        check_prompts(prompts, sampling.max_tokens, self.context)
        self._opened()
        self._newest()
        left, only = threading.Event(), self._only.url
        done: queue.SimpleQueue[concurrent.futures.Future[list[Completion]]] = queue.SimpleQueue()
        futures: dict[concurrent.futures.Future[list[Completion]], tuple[int, Sequence[int]]] = {}

        def wait_for(future: concurrent.futures.Future[list[Completion]], group: int, which: Sequence[int]) -> None:
            futures[future] = group, which
            future.add_done_callback(done.put)

        groups: list[list[Completion | None]] = [[None] * len(row) for row in seeds]
        for i, (prompt, row) in enumerate(zip(prompts, seeds, strict=True)):
            wait_for(self._submit(self._group, prompt, row, sampling, left, only), i, range(len(row)))
        try:
            while futures:
                future = done.get()
                if self._files is None:  # even if this group was finished in time
                    raise EngineError("the engine was closed while it sampled")
                i, which = futures.pop(future)
                group = groups[i]
                for number, part in zip(which, future.result(), strict=True):
                    before = group[number]
                    group[number] = one = part if before is None else self._joined(before, part, sampling)
                    if one.finish_reason == ABORTED:
                        so_far, seed = one.token_ids, seed_after(seeds[i][number], len(one.token_ids))
                        further = ([*prompts[i], *so_far], [seed], rest(sampling, len(so_far)), left, only)
                        wait_for(self._submit(self._group, *further, pool=self._parts), i, [number])
                whole = [one for one in group if one is not None and one.finish_reason != ABORTED]
                if len(whole) == len(group):
                    yield i, whole
        finally:
            if any(not future.done() for future in futures):  # the caller left early: cancel the rest
                left.set()
                for future in futures:
                    future.cancel()
                deadline = time.monotonic() + self.timeout_s
                # Repeatedly, because some are between two requests. Cancelled futures are not waited for: after the
                # pool is shut down, nothing would mark them as done.
                while (going := [f for f in futures if not f.done()]) and time.monotonic() < deadline:
                    for server in self.servers:
                        server.hang_up()
                    concurrent.futures.wait(going, timeout=0.1)

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
            except Unreachable:
                self._doubt(server)
        self._wait_for_any()
        files.keep_only(weights.folder, *([weights.adapter] if weights.adapter else []))
        self._opened()  # raises if it was closed meanwhile and holds nothing

    def forget(self) -> None:
        """Empties the prefix caches."""
        for server in self.servers:
            if server.alive:
                try:
                    with self._no_tokens(server):
                        server.forget()
                except (Refused, Unreachable) as error:
                    if server.lives():
                        raise EngineError(f"{server.url} did not empty its prefix cache: {error}") from error
                    self._bury(server)

    def weight_digests(self) -> list[tuple[str, dict[str, str]]]:
        """(server's address, digest of each tensor by name) of each live server that reports digests."""
        by_server = []
        for server in self.servers:
            if server.alive:
                try:
                    with self._no_tokens(server):
                        held = server.digests()
                    if held:
                        by_server.append((server.url, held))
                except (Refused, Unreachable) as error:
                    if server.lives():
                        raise EngineError(f"{server.url} did not report digests of its weights: {error}") from error
                    self._bury(server)
        return by_server

    @property
    def urls(self) -> list[str]:
        """The live servers; each must be checked separately."""
        return [server.url for server in self.servers if server.alive]

    @contextlib.contextmanager
    def at(self, url: str) -> Iterator[None]:
        """Inside the context, this server answers all requests of this thread, as long as it lives."""
        self._only.url = url
        try:
            yield
        finally:
            self._only.url = ""

    def sleep(self) -> None:
        """Does nothing: the servers have their own devices."""

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
            return (pool or self._pool).submit(work, *arguments)
        except RuntimeError as error:  # closed by another thread
            raise EngineError("the engine is closed") from error

    def _joined(self, before: Completion, part: Completion, sampling: Sampling) -> Completion:
        if not before.token_ids:
            return part
        whole = joined(before, part, sampling.stop_text, self.tokenizer)
        return dataclasses.replace(whole, text=text_of(self.tokenizer, whole.token_ids, self._ends))

    def _group(
        self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling, left: threading.Event, only: str
    ) -> list[Completion]:
        """All completions of one prompt, from one server, where they share the computation of the prompt.

        With `sampling.across_weights`, completions that newer weights interrupted are returned so far, as ABORTED.
        """
        failed: list[Server] = []
        deadline = None
        while not left.is_set():
            server = self._least_loaded(len(seeds), left, failed, only)
            try:
                weights, times = self._newest(), server.times_given
                while not _has(server, weights):
                    self._update(server)
                    weights, times = self._newest(), server.times_given
                sampled = server.complete(prompt, seeds, sampling)
                # Completions interrupted by the one update since then belong to the weights before it.
                interrupted = any(reason == ABORTED for *_, reason in sampled) and server.times_given == times + 1
                # Checked again: the server may have been restarted or taken over since the check above, and another
                # thread may have sent it the same weights once more in between.
                if not interrupted and (not _has(server, weights) or server.times_given != times):
                    raise Unreachable(f"{server.url} lost the weights, or was given newer ones, while it sampled")
                if strange := {i for ids, *_ in sampled for i in ids if not 0 <= i < self._vocabulary}:
                    raise EngineError(f"{server.url} answered with token {min(strange)}, which the model does not have")
                return [
                    Completion(
                        text=text_of(self.tokenizer, ids, self._ends),
                        token_ids=ids,
                        logprobs=logprobs,
                        finish_reason="length" if len(ids) == sampling.max_tokens and reason == ABORTED else reason,
                        policy_version=weights.version,
                    )
                    for ids, logprobs, reason in sampled
                ]
            except Unreachable as error:
                if left.is_set() or self._files is None:  # this process hung up
                    break
                self._doubt(server)
                failed.append(server)
                deadline = deadline or time.monotonic() + self.timeout_s
                untried = any(other not in failed for other in self._candidates(only))
                if len(failed) >= _TRIES and time.monotonic() >= deadline and not untried:
                    raise EngineError(
                        f"a prompt of {len(prompt)} tokens was given up after {len(failed)} tries: {error}. Continue "
                        "with --resume; the servers' logs may say more"
                    ) from error
                if server.alive and not untried:  # it is overloaded
                    left.wait(min(0.05 * 2 ** len(failed), _PAUSE_S))
            finally:
                with self._routing:
                    server.load -= len(seeds)
        raise EngineError("the engine was closed while it sampled")

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
                with contextlib.suppress(RuntimeError):  # closed by another thread, which is detected elsewhere
                    self._looking = self._looker.submit(self._take_back, dead)

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
            while (weights := self._weights) is not None and (anew or not _has(server, weights)):
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


class _Only(threading.local):
    """The server that answers all requests of a thread; per thread, so that sampling ahead still uses all servers."""

    url = ""


def _counts(server: Server) -> bool:
    """False for a server that reports that it counts no tokens."""
    try:
        return server.tokens(_COUNT_S) is not None
    except (Refused, Unreachable):
        return True  # checked again while it works


def _has(server: Server, weights: Weights) -> bool:
    """True if the server itself reports that it holds these weights."""
    return server.is_current(weights.label) and (weights.adapter is None or server.has_adapter(weights.adapter.name))
