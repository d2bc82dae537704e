"""The code that scores on a node of a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.core import Completion, Problem
from verifiers.on_ray.work import Row
from verifiers.reward import Reward
from verifiers.scoring import BatchScorer
from verifiers.worker import Result, plain_result

Setup = tuple[str, Mapping[str, Mapping[str, Any]], Mapping[str, Any]]  # a reward's formula, options, ready verifiers


@dataclass(frozen=True, slots=True)
class Node:
    """Versions and sandbox levels of an actor."""

    levels: dict[str, str]  # level of the sandbox, by verifier, for verifiers that have one
    versions: list[dict[str, str]]  # versions of the verifiers, for each reward


class Judge:
    """Scores with some rewards."""

    def __init__(self, setups: Sequence[Setup], timeout_s: float, memory_mib: int | None) -> None:
        self._scorers = [
            BatchScorer(
                Reward(formula, verifiers=ready, options=options), workers=1, timeout_s=timeout_s, memory_mib=memory_mib
            )
            for formula, options, ready in setups
        ]
        levels: dict[str, str] = {}
        for scorer in self._scorers:
            scorer.start()
            levels |= {
                name: str(verify.level) for name, verify in scorer.reward.verifiers.items() if hasattr(verify, "level")
            }
        self.told = Node(levels, [dict(scorer.reward.versions) for scorer in self._scorers])

    def __call__(self, job: tuple[int, list[Row]]) -> tuple[list[Result], float]:
        """Scores rows with the reward of this number. Returns the results, in order, and the seconds that they took."""
        began = time.monotonic()
        number, rows = job
        pairs = ((Problem(*problem), Completion(*completion)) for problem, completion in rows)
        return [plain_result(score) for score in self._scorers[number].map(pairs)], time.monotonic() - began
