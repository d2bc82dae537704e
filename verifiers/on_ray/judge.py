"""What runs on a node of a Ray cluster."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from verifiers.core import Completion, Problem
from verifiers.registry import REGISTERED
from verifiers.reward import Reward
from verifiers.scoring import BatchScorer
from verifiers.worker import Result, plain_result

Row = tuple[tuple[Any, ...], tuple[Any, ...]]  # the fields of a problem and of a completion


@dataclass(frozen=True, slots=True)
class Node:
    """Where an actor runs, as it says itself."""

    host: str
    levels: dict[str, str]  # of the sandbox, by the verifiers that have one
    versions: list[dict[str, str]]  # of the verifiers of each reward


class Judge:
    """What runs in an actor, in its main thread: the processes that it starts end with it."""

    def __init__(self, setup: bytes) -> None:
        os.environ["VERIFIERS_CPUS"] = "1"
        self._trouble = ""
        self._scorers: list[BatchScorer] = []
        try:
            paths, registered, setups, timeout_s, memory_mib = pickle.loads(setup)
            sys.path += [path for path in paths if path not in sys.path and os.path.exists(path or ".")]
            REGISTERED.update(registered)
            for formula, options, ready in setups:
                reward = Reward(formula, verifiers=ready, options=options)
                self._scorers.append(BatchScorer(reward, workers=1, timeout_s=timeout_s, memory_mib=memory_mib))
        except Exception as error:  # importing a user's verifier may fail in any way
            self._trouble = f"the reward can't be set up on {socket.gethostname()}: {type(error).__name__}: {error}"

    def node(self) -> Node | str:
        """Where this is, and with which sandbox; or why it can't score."""
        if self._trouble:
            return self._trouble
        levels: dict[str, str] = {}
        for scorer in self._scorers:
            try:
                scorer.start()
                levels |= {
                    name: str(verify.level)
                    for name, verify in scorer.reward.verifiers.items()
                    if hasattr(verify, "level")
                }
            except Exception as error:
                return f"'{scorer.reward.formula}' can't be set up on {socket.gethostname()}: {one_line(error)}"
        return Node(socket.gethostname(), levels, [dict(scorer.reward.versions) for scorer in self._scorers])

    def score(self, number: int, rows: list[Row]) -> tuple[list[Result], float]:
        """Results in order, and the seconds they took."""
        began = time.monotonic()
        pairs = ((Problem(*problem), Completion(*completion)) for problem, completion in rows)
        return [plain_result(score) for score in self._scorers[number].map(pairs)], time.monotonic() - began


def one_line(error: BaseException | None) -> str:
    """Its type and text, cut to 300 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
