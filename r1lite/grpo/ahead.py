"""Sampling ahead: groups are requested for later steps while the trainer learns, and used in the order they finish.

The order in which groups finish is the only effect of timing on what a step learns from. That order is written to disk
(`r1lite.run.arrivals`), so a run that was stopped resumes with the same groups.
"""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any

from r1lite.config import RLConfig
from r1lite.errors import RunError
from r1lite.grpo import choice
from r1lite.grpo.sampler import Sampler, Scoring, check_finite, sampling_of
from r1lite.rl.sampling import completion_seed
from r1lite.run.arrivals import Arrival, Arrivals
from r1lite.run.watchdog import Watchdog
from r1lite.types import Group, Prompt, Rollout


@dataclass(slots=True)
class _Asked:
    """The groups requested so far, and the groups taken."""

    tickets: int = 0
    dropped: int = 0  # groups that were too old; each was requested once more
    taken: int = 0  # groups learnt from, and dropped groups
    open: dict[int, str] = field(default_factory=dict)  # ticket -> problem id: requested, and not taken


@dataclass(frozen=True, slots=True)
class _Finished:
    arrival: Arrival
    rollouts: Scoring


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException
    tickets: set[int]  # still to be sampled


def seeds_of(config: RLConfig, ticket: int, problem: str) -> list[int]:
    """[G] seeds of a group that is sampled ahead."""
    return [completion_seed(config.seed, "ahead", ticket, problem, g) for g in range(config.group_size)]


class Ahead:
    """Requests groups up to `max_staleness` steps ahead.

    While step k learns, the groups of steps k + 1 to k + N have been requested, finished or not (N = `max_staleness`).
    A step takes the first `prompts_per_step` groups that finish. Groups whose oldest token is from weights more than N
    steps old are dropped, and their problems requested again.

    Args:
        arrivals: the file that records the order.
    """

    def __init__(
        self, config: RLConfig, prompts: Sequence[Prompt], sampler: Sampler, arrivals: Arrivals, watchdog: Watchdog
    ) -> None:
        self.config, self._sampler, self._file, self._watchdog = config, sampler, arrivals, watchdog
        self._prompts, self._by_id = prompts, {prompt.problem.id: prompt for prompt in prompts}
        self._kept = self._now = _Asked()  # after the last step that was learnt from; in this step
        self._saved: list[int] = []  # `taken` of the checkpoints
        self._lock = threading.Lock()  # for the file and the number of the next arrival
        self._number = -1  # the file is not open yet
        self._finished: queue.SimpleQueue[_Finished | _Failed] = queue.SimpleQueue()
        self._arrived: list[_Finished] = []  # starts with the first group that the last step did not take
        self._sent: set[int] = set()  # tickets in sampling or sampled
        self._failure: BaseException | None = None

    def take(self, step: int, around: Callable[[], AbstractContextManager[None]]) -> tuple[list[Group], dict[str, Any]]:
        """The groups of a step. `learnt` then confirms that they were used.

        The engine must hold the weights of this step. Groups of later steps are requested first, and are sampled in
        the background.

        Args:
            around: entered while waiting.

        Returns: the groups in the order in which they finished, and metrics.

        Raises:
            RunError: too many completions could not be scored, or log-probabilities are not finite.
            EngineError: the engine can't go on, and there are not enough finished groups for this step.
        """
        config, started = self.config, time.perf_counter()
        if self._number < 0:
            self._begin()
        self._failure, self._now = None, copy.deepcopy(self._kept)
        self._ask(step)
        taken: list[_Finished] = []
        dropped_before, work = self._now.dropped, f"step {step + 1}, groups sampled ahead"
        with self._watchdog.during("rollout", work), around():
            while len(taken) < config.prompts_per_step:
                one = self._arrival(self._now.taken - self._kept.taken)
                self._watchdog.beat()
                problem = self._now.open.pop(one.arrival.ticket)
                self._now.taken += 1
                if step - one.arrival.version <= config.max_staleness:
                    taken.append(one)
                else:
                    self._now.dropped += 1
                    self._open(problem)
                    self._send()
        with self._watchdog.during("score", work), around():
            scored = self._sampler.scored([one.rollouts for one in taken], self._watchdog.beat)
            groups = [self._group(one.arrival, rollouts) for one, rollouts in zip(taken, scored, strict=True)]
        self._sampler.check_scored(groups)
        completions = [rollout.completion for group in groups for rollout in group.rollouts]
        return groups, {
            "ahead_wait_s": time.perf_counter() - started,
            "dropped_groups": self._now.dropped - dropped_before,
            "ahead_groups": len(self._now.open),
            "across_weights": sum(bool(one.stretches) for one in completions) / len(completions),
        }

    def learnt(self) -> None:
        """Confirms that the groups of the last `take` were learnt from."""
        del self._arrived[: self._now.taken - self._kept.taken]
        self._kept = self._now

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint. The file holds the groups themselves, as long as a checkpoint needs them."""
        if self._number >= 0 and self._kept.taken not in self._saved[-1:]:
            self._saved = [*self._saved, self._kept.taken][-1 - self.config.keep_checkpoints :]
            if len(self._saved) > self.config.keep_checkpoints:
                with self._lock:
                    self._file.forget(self._saved[0])
        return asdict(self._kept)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self._kept = _Asked(**state)

    def _begin(self) -> None:
        """Loads the groups that were finished when the run was stopped: they come first, in the same order."""
        recorded = self._file.begin(self._kept.taken)
        self._number = self._kept.taken + len(recorded)
        for arrival in recorded:
            if arrival.problem not in self._by_id:
                raise RunError(f"arrivals.jsonl: problem {arrival.problem} is not part of this run; remove the file")
            self._sent.add(arrival.ticket)
            self._arrived.append(self._scored(arrival))

    def _ask(self, step: int) -> None:
        """Requests as many groups as may be open in this step."""
        config, now = self.config, self._now
        limit = min(step + 1 + config.max_staleness, config.steps) * config.prompts_per_step
        while (fresh := now.tickets - now.dropped) < limit:
            (prompt,) = choice.by_epochs(self._prompts, fresh, 1, config.seed)
            self._open(prompt.problem.id)
        self._send()

    def _open(self, problem: str) -> None:
        self._now.open[self._now.tickets] = problem
        self._now.tickets += 1

    def _send(self) -> None:
        """Starts a thread that samples the open groups that no thread samples yet."""
        tickets = {ticket: problem for ticket, problem in self._now.open.items() if ticket not in self._sent}
        self._sent |= set(tickets)
        if tickets:
            threading.Thread(target=self._sample, args=(tickets,), name="rollout-ahead", daemon=True).start()

    def _sample(self, tickets: dict[int, str]) -> None:
        waiting = set(tickets)
        try:
            with self._watchdog.during("rollout", f"{len(tickets)} groups ahead"):
                asked = list(tickets.items())
                stream = self._sampler.engine.stream_ahead(
                    [self._by_id[problem].token_ids for _, problem in asked],
                    [seeds_of(self.config, ticket, problem) for ticket, problem in asked],
                    sampling_of(self.config),
                    self._sampler.interruption,
                )
                for i, completions in stream:
                    ticket, problem = asked[i]
                    check_finite(completions, f"problem {problem}, sampled ahead")
                    with self._lock:  # the order of the file is that of the queue
                        arrival = Arrival(self._number, ticket, problem, tuple(completions))
                        self._file.append(arrival)
                        self._number += 1
                        self._finished.put(self._scored(arrival))
                    waiting.discard(ticket)
                    self._watchdog.beat()
        except BaseException as error:  # raised again in the thread that waits for the groups
            self._finished.put(_Failed(error, waiting))

    def _scored(self, arrival: Arrival) -> _Finished:
        prompt = self._by_id[arrival.problem]
        return _Finished(arrival, self._sampler.scoring.give(prompt, list(arrival.completions)))

    def _arrival(self, number: int) -> _Finished:
        """The finished group with this number, counted from the first one not taken; waits for it."""
        while number >= len(self._arrived):
            try:
                result = self._finished.get(block=self._failure is None)
            except queue.Empty:
                assert self._failure is not None
                raise self._failure from None
            if isinstance(result, _Failed):
                self._failure = result.error
                self._sent -= result.tickets
            else:
                self._arrived.append(result)
        return self._arrived[number]

    def _group(self, arrival: Arrival, rollouts: Sequence[Rollout]) -> Group:
        return self._sampler.group(self._by_id[arrival.problem], rollouts, arrival.ticket)
