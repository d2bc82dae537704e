"""Scores on the nodes of a Ray cluster: the results and the order of one machine."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from verifiers.core import Completion, Problem, Verdict
from verifiers.on_ray.fleet import Fleet, Resources
from verifiers.on_ray.host import Ready
from verifiers.on_ray.judge import Judge
from verifiers.on_ray.work import Scoring
from verifiers.reward import Reward, Score
from verifiers.worker import Result

Pairs = Iterable[tuple[Problem, Completion]]


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
        setups = [(reward.formula, reward.options, reward.ready) for reward in self.rewards]
        make = functools.partial(Judge, setups, timeout_s, memory_mib)
        try:
            pickle.dumps(setups)
        except Exception as error:  # whatever a user's object raises while it is pickled
            raise ValueError(
                f"the reward can't be sent to the nodes: {error}; name its verifiers as 'module:attr' instead of "
                "passing them"
            ) from error
        fewer = "--workers, --score-workers"
        resources = Resources(count)
        self.fleet = Fleet(make, address=address, resources=resources, check=self._refuse_other_versions, fewer=fewer)

    def scorer(self, number: int = 0) -> RayScorer:
        """For the reward of this number."""
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
        """Where it scores: hosts, actors, and the level of the sandbox on each host, if there is one."""
        return self.fleet.describe(lambda told: [f"{name} at level {level}" for name, level in told.levels.items()])

    def close(self) -> None:
        """Ends the actors, and the connection to the cluster, which ends with it if it was started here."""
        self.fleet.close()

    def map(self, number: int, pairs: Pairs) -> Generator[Score, None, None]:
        """Scores in order, as they come; `pairs` is read only as far ahead as the actors need.

        Raises: VerifierError: no actor is left, and none can be started.
        """
        self.start()
        reward, work = self.rewards[number], Scoring(iter(pairs), number, self.timeout_s, len(self.fleet.ready))
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


def _score(reward: Reward, result: Result) -> Score:
    value, verdicts, error = result
    found = {name: Verdict(*fields) for name, fields in zip(reward.verifiers, verdicts, strict=False)}
    return Score(value, found, error, reward.versions)
