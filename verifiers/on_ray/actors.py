"""Scores on the nodes of a Ray cluster, with the results and the order of one machine."""

from __future__ import annotations

import contextlib
import functools
import math
import pickle
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from verifiers.core import Completion, Problem, Verdict
from verifiers.on_ray.fleet import Fleet, Resources
from verifiers.on_ray.host import Ready
from verifiers.on_ray.judge import Judge
from verifiers.on_ray.work import Scoring
from verifiers.reward import Reward, Score
from verifiers.worker import Result

Pairs = Iterable[tuple[Problem, Completion]]


class Actors:
    """Actors that score with some rewards; `scorer` returns an object that works like a `BatchScorer`.

    Args:
        rewards: sent by name and options; verifier objects in them must be importable on the nodes.
        address: see `address_of`.
        count: number of actors, of one CPU each; None = number of free CPUs minus one.
        timeout_s: hard deadline of one completion, for verifiers that have none of their own.
        memory_mib: private memory of a worker; None = no limit.
        say: called once with the text of `describe`.

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
        setups = [(reward.formula, reward.options, reward.ready) for reward in self.rewards]
        make = functools.partial(Judge, setups, timeout_s, memory_mib)
        try:
            pickle.dumps(setups)
        except Exception as error:  # pickling a user's object may raise anything
            raise ValueError(
                f"the reward can't be sent to the nodes: {error}; name its verifiers as 'module:attr' instead of "
                "passing them"
            ) from error
        fewer = "--workers, --score-workers"
        resources = Resources(count)
        self.fleet = Fleet(make, address=address, resources=resources, check=self._refuse_other_versions, fewer=fewer)

    def scorer(self, number: int = 0) -> RayScorer:
        """Returns the scorer of the reward with this number."""
        return RayScorer(self, number)

    def start(self) -> None:
        """Connects and starts the actors.

        Raises:
            ValueError: there is no room for them, they can't be set up, or other versions of verifiers are there.
            VerifierError: no cluster answers.
        """
        if self.fleet.start():
            self._say(self.describe())

    def describe(self) -> str:
        """Returns hosts, actors, and the level of the sandbox on each host, if there is one."""
        return self.fleet.describe(lambda told: [f"{name} at level {level}" for name, level in told.levels.items()])

    def close(self) -> None:
        """Ends the actors and the connection to the cluster; a cluster that was started here ends too."""
        self.fleet.close()

    def map(self, number: int, pairs: Pairs) -> Generator[Score, None, None]:
        """Yields scores in order as they arrive; `pairs` is read only as far ahead as the actors need.

        Raises: VerifierError: no actor is left, and none can be started.
        """
        self.start()
        reward = self.rewards[number]
        has_own = any(getattr(verify, "isolated", False) for verify in reward.verifiers.values())  # limits, any long
        limit_s = math.inf if has_own else self.timeout_s
        work = Scoring(iter(pairs), number, limit_s, len(self.fleet.ready))
        with contextlib.closing(self.fleet.rounds(work)) as rounds:
            for _ in rounds:
                for results in work.in_turn():
                    for result in results:
                        yield _score(reward, result)

    def _refuse_other_versions(self, ready: Ready) -> None:
        for reward, versions in zip(self.rewards, ready.told.versions, strict=True):
            for name, version in reward.versions.items():
                if versions.get(name) != version:
                    raise ValueError(
                        f"{ready.host} has version {versions.get(name)} of verifier '{name}', and this machine "
                        f"{version}: they may decide otherwise; install the same r1lite on all nodes"
                    )


@dataclass(frozen=True, slots=True)
class RayScorer:
    """Scores with one reward of some actors; it has the methods of `BatchScorer`."""

    actors: Actors
    number: int
    overlaps: ClassVar[bool] = False  # calls of `map` wait for each other

    @property
    def reward(self) -> Reward:
        """The reward it scores with."""
        return self.actors.rewards[self.number]

    def start(self) -> None:
        """See `Actors.start`."""
        self.actors.start()

    def close(self) -> None:
        """Ends all actors, including those of the other rewards."""
        self.actors.close()

    def map(self, pairs: Pairs) -> Generator[Score, None, None]:
        """Scores in order. A check that fails leaves its own completion unscored (reward None), never at 0."""
        return self.actors.map(self.number, pairs)

    def __enter__(self) -> RayScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _score(reward: Reward, result: Result) -> Score:
    value, verdicts, error = result
    verdicts_by_name = {name: Verdict(*fields) for name, fields in zip(reward.verifiers, verdicts, strict=False)}
    return Score(value, verdicts_by_name, error, reward.versions)
