"""Sampling on servers: each group goes to the least loaded one, and to another one if that dies."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Iterator, Sequence

from r1lite.rollout import EngineError, RolloutEngine, Sampling, check_prompts, text_of
from r1lite.rollout.client import Unreachable
from r1lite.rollout.continued import ABORTED, joined, rest, seed_after
from r1lite.rollout.server import Server, check_sampled
from r1lite.rollout.servers import Servers, has
from verifiers import Completion

_TRIES = 3  # at least, before a group is given up
_PAUSE_S = 1.0  # at most, before a group is sent again to an overloaded server
# `url`: the server that answers all requests of a thread; per thread, so that sampling ahead still uses all servers.
_ONLY = threading.local()


class ServerEngine(Servers, RolloutEngine):
    """Group sampling on servers; see `Servers` for the arguments."""

    shares_weights, runs_aside = False, True

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        check_prompts(prompts, sampling.max_tokens, self.context)
        self._opened()
        self._newest()
        left, only = threading.Event(), getattr(_ONLY, "url", "")
        done: queue.SimpleQueue[concurrent.futures.Future[list[Completion]]] = queue.SimpleQueue()
        futures: dict[concurrent.futures.Future[list[Completion]], tuple[int, Sequence[int]]] = {}

        def wait_for(future: concurrent.futures.Future[list[Completion]], group: int, which: Sequence[int]) -> None:
            futures[future] = group, which
            future.add_done_callback(done.put)

        groups: list[list[Completion | None]] = [[None] * len(row) for row in seeds]
        try:
            for i, (prompt, row) in enumerate(zip(prompts, seeds, strict=True)):
                wait_for(self._submit(self._group, prompt, row, sampling, left, only), i, range(len(row)))
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

    @contextlib.contextmanager
    def at(self, url: str) -> Iterator[None]:
        """Inside the context, this server answers all requests of this thread, as long as it lives."""
        _ONLY.url = url
        try:
            yield
        finally:
            del _ONLY.url

    def sleep(self) -> None:
        """Does nothing: the servers have their own devices."""

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
                while not has(server, weights):
                    self._update(server)
                    weights, times = self._newest(), server.times_given
                sampled = server.complete(prompt, seeds, sampling)
                # Completions interrupted by the one update since then belong to the weights before it.
                interrupted = any(reason == ABORTED for *_, reason in sampled) and server.times_given == times + 1
                # Checked again: the server may have been restarted or taken over since the check above, and another
                # thread may have sent it the same weights once more in between.
                if not interrupted and (not has(server, weights) or server.times_given != times):
                    raise Unreachable(f"{server.url} lost the weights, or was given newer ones, while it sampled")
                check_sampled(server.url, sampled, sampling, self._ends, self._vocabulary, self.tokenizer)
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
