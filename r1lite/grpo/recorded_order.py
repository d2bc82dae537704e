"""Repeats a run in its recorded order: each step learns from the groups of the recorded run's step.

Such a run does not depend on timing: each token is sampled by the same version of the weights as in the recorded run,
with the same seed, before these weights change.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1lite.config import RLConfig
from r1lite.errors import RunError, UserError
from r1lite.grpo.ahead import seeds_of
from r1lite.grpo.sampler import Sampler, sampling_of
from r1lite.rollout.continued import seed_after, stretches
from r1lite.run.watchdog import Watchdog
from r1lite.types import Group, Prompt
from verifiers import Completion, rows


@dataclass(frozen=True, slots=True)
class _Part:
    """The tokens of a completion that one version of the weights sampled."""

    ticket: int
    sample: int
    problem: str
    version: int
    before: tuple[int, ...]  # ids of the completion's earlier tokens
    token_ids: tuple[int, ...]
    ended: bool  # False: newer weights continued the completion


_Group = tuple[int, str, list[Completion]]  # ticket, problem id, completions without log-probabilities


class RecordedOrder:
    """Replaces `Ahead`.

    Args:
        run: directory of the recorded run, with the completions of all its steps.

    Raises (when made): UserError if the run can't be repeated.
    """

    def __init__(
        self, config: RLConfig, prompts: Sequence[Prompt], sampler: Sampler, run: Path, watchdog: Watchdog
    ) -> None:
        self.config, self._sampler, self._run, self._watchdog = config, sampler, run, watchdog
        self._by_id = {prompt.problem.id: prompt for prompt in prompts}
        self._files = dict(rows.step_files(run))
        if lacking := [step for step in range(1, config.steps + 1) if step not in self._files]:
            raise UserError(f"--replay-order {run}: the completions of step {lacking[0]} are missing")
        self._steps: dict[int, list[_Group]] = {}
        self._logprobs: dict[tuple[int, int], list[float]] = {}  # by ticket and sample, of the tokens sampled so far
        self._recorded(0)

    def take(self, step: int, around: Callable[[], AbstractContextManager[None]]) -> tuple[list[Group], dict[str, Any]]:
        """The groups of a step, as `Ahead.take`. Raises RunError if the engine samples other tokens than recorded."""
        started, work = time.perf_counter(), f"step {step + 1}, in the order of {self._run}"
        with self._watchdog.during("rollout", work), around():
            steps = range(step, min(step + self.config.max_staleness + 1, self.config.steps))
            parts = (part for later in steps for group in self._recorded(later) for part in _parts(*group))
            self._sample([part for part in parts if part.version == step])
        with self._watchdog.during("score", work), around():
            given = []
            for ticket, problem, completions in self._recorded(step):
                whole = [
                    dataclasses.replace(completion, logprobs=tuple(self._logprobs[ticket, sample]))
                    for sample, completion in enumerate(completions)
                ]
                given.append((problem, ticket, self._sampler.scoring.give(self._by_id[problem], whole)))
            scored = self._sampler.scored([scoring for *_, scoring in given], self._watchdog.beat)
            groups = [
                self._sampler.group(self._by_id[problem], rollouts, ticket)
                for (problem, ticket, _), rollouts in zip(given, scored, strict=True)
            ]
        self._sampler.check_scored(groups)
        return groups, {"ahead_wait_s": time.perf_counter() - started}

    def learnt(self) -> None:
        """Confirms that the groups of the last `take` were learnt from."""
        for ticket, _, completions in self._steps.pop(min(self._steps)):
            for sample in range(len(completions)):
                del self._logprobs[ticket, sample]

    def state_dict(self) -> dict[str, Any]:
        """The log-probabilities sampled for later steps."""
        return {"logprobs": [[*key, values] for key, values in self._logprobs.items()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self._steps.clear()
        self._logprobs = {(ticket, sample): values for ticket, sample, values in state["logprobs"]}

    def _recorded(self, step: int) -> list[_Group]:
        """The groups of a step of the recorded run, in its order. Raises UserError."""
        if step in self._steps:
            return self._steps[step]
        groups: dict[int, _Group] = {}
        for _, row in rows.rows(self._files[step + 1]):
            ticket, problem = row.get("ticket"), row["problem_id"]
            completion = Completion(
                row["completion"],
                tuple(row["token_ids"]),
                finish_reason=row["finish_reason"],
                policy_version=row["policy_version"],
                inserted=tuple(row["inserted"] or (0, 0)),
                stretches=tuple((start, version) for start, version in row.get("stretches", ())),
            )
            if ticket is None or problem not in self._by_id:
                raise UserError(
                    f"--replay-order {self._run}: its completions were not sampled ahead, or belong to other problems; "
                    "the flag needs a run with --max-staleness and the same settings"
                )
            if completion.stretches and self._sampler.interruption is not None:
                raise UserError(
                    f"--replay-order {self._run}: in this run thinking was interrupted and weights changed in the "
                    "middle of completions; a run with both can't be repeated"
                )
            groups.setdefault(ticket, (ticket, problem, []))[2].append(completion)
        self._steps[step] = list(groups.values())
        return self._steps[step]

    def _sample(self, parts: Sequence[_Part]) -> None:
        """Samples with the engine's current weights."""
        requests: dict[int, dict[tuple[int, tuple[int, ...]], list[_Part]]] = {}  # by room; by ticket and tokens before
        for part in parts:
            if len(self._logprobs.get((part.ticket, part.sample), ())) == len(part.before):
                room = self.config.max_completion_tokens - len(part.before) if part.ended else len(part.token_ids)
                requests.setdefault(room, {}).setdefault((part.ticket, part.before), []).append(part)
        for room, by_prompt in requests.items():
            prompts = [[*self._by_id[of[0].problem].token_ids, *before] for (_, before), of in by_prompt.items()]
            seeds = [[self._seed(part) for part in of] for of in by_prompt.values()]
            sampling = dataclasses.replace(sampling_of(self.config), max_tokens=room)
            asked = list(by_prompt.values())
            stream = self._sampler.engine.stream_ahead(prompts, seeds, sampling, self._sampler.interruption)
            for i, group in stream:
                for part, completion in zip(asked[i], group, strict=True):
                    self._keep(part, completion)
                self._watchdog.beat()

    def _seed(self, part: _Part) -> int:
        return seed_after(seeds_of(self.config, part.ticket, part.problem)[part.sample], len(part.before))

    def _keep(self, part: _Part, sampled: Completion) -> None:
        """Keeps the log-probabilities. Raises RunError if the completion differs from the recorded one."""
        count = len(part.token_ids)
        if sampled.token_ids[:count] != part.token_ids or sampled.policy_version != part.version:
            raise RunError(
                f"the engine sampled another completion of problem {part.problem} than in {self._run}, from the same "
                "seed: settings, software or machine differ, or the engine is not deterministic"
            )
        self._logprobs.setdefault((part.ticket, part.sample), []).extend(sampled.logprobs[:count])


def _parts(ticket: int, problem: str, completions: Sequence[Completion]) -> Iterator[_Part]:
    for sample, completion in enumerate(completions):
        ids, parts = completion.token_ids, stretches(completion)
        ends = [*(start for start, _ in parts[1:]), len(ids)]
        for number, ((start, version), end) in enumerate(zip(parts, ends, strict=True)):
            last = number == len(parts) - 1
            yield _Part(ticket, sample, problem, version, ids[:start], ids[start:end], last)
