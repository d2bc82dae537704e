"""reasoning-gym, in both directions: its 100+ scorers as a verifier, and our verifiers as its `score_answer`.

A problem from it carries `meta["reasoning_gym"]` (the data set's name) and `meta["entry"]` (its item).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from verifiers.adapters.shared import parts, reward_of, scored
from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.cores import cores
from verifiers.countdown import Countdown, given
from verifiers.extract import final_answer
from verifiers.reward import Reward
from verifiers.sandbox import probe
from verifiers.sandbox.scorer import Scorer, limits
from verifiers.sandbox.threads import verdicts
from verifiers.segments import answering_span

_MISSING = "this needs reasoning-gym: pip install reasoning-gym"
# Data sets that take more than 10 ms of CPU to create (measured; the median over all is 0.02 ms). Each gets its own
# servers, which keep it loaded, up to _OWN_SERVERS of them. All others share servers that keep none loaded.
_COSTLY = ("arc_agi", "codeio", "figlet_font", "group_anagrams", "rearc", "rush_hour", "spell_backward", "word_ladder")
_OWN_SERVERS = 4
_EXACT = ("countdown", "puzzle24")  # judged by our own `countdown`
_TRUTH = ("game_of_life_halting",)  # its scorer takes any text as True
_PUZZLE_24 = 24
_MEMORY_MIB = 1024
_SHOWN = 500  # characters of an answer in a verdict


def _library() -> Any:
    try:
        return importlib.import_module("reasoning_gym")
    except ModuleNotFoundError as error:
        raise ValueError(_MISSING) from error


def create(name: str, *, seed: int, size: int, **config: Any) -> Any:
    """Returns reasoning-gym's data set. For an unknown name, raises ValueError with similar names."""
    library = _library()
    try:
        return library.create_dataset(name, seed=seed, size=size, **config)
    except ValueError as error:
        import difflib

        known = sorted(importlib.import_module("reasoning_gym.factory").DATASETS)
        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near and name not in known else str(error)
        raise ValueError(f"reasoning_gym has no task '{name}' with these settings; {hint}") from error


def problems(name: str, *, seed: int, size: int, **config: Any) -> list[Problem]:
    """Returns problems of one of its tasks, reproducible by seed. Raises ValueError."""
    return [
        Problem(
            prompt=str(entry["question"]),
            answer=None if entry["answer"] is None else str(entry["answer"]),
            id=f"{name}-{seed}-{i}",
            meta={"reasoning_gym": name, "entry": dict(entry)},
        )
        for i, entry in enumerate(create(name, seed=seed, size=size, **config))
    ]


class ReasoningGym:
    """1 if reasoning-gym's own `score_answer` gives full marks, else 0; with `partial`, the score that it gives.

    Some of its scorers evaluate the answer as Python. So they are called in the sandbox (see `sandboxed:`), and an
    answer whose code would run there scores 0. Countdown and puzzle24 are judged by our own `countdown`, True and False
    of game_of_life_halting by their names.

    The answer is the answer block, a box, the text after `####`, or all text after the thinking. Reasons: `right`
    (1), `partial`, `wrong` (0; the detail has the scorer's figure), `no_answer`, and `raised`, `code`, `timeout`,
    `memory`, `crashed` if the scorer works on the problem's own answer but not on this one. It never
    abstains. Known limit: most of its scorers pay any answer that merely contains the right one (0.86 for 142820 in
    place of 14282, 0.6 for "not 14282"; the audit shows it). For this reason partial credit is off by default.

    Args:
        partial: pay the scorer's value, for tasks whose scorer measures how much of an answer is right.
        floor: with `partial`, scores up to this are 0.
        isolation: as for the code verifier.
        time_s: CPU seconds of one score.
        servers: number of scores at a time; None: one per core.

    Raises: ValueError: reasoning-gym is not installed. When called: GoldError without `meta["reasoning_gym"]` and
        `meta["entry"]`; VerifierError if the scorer can't start, or fails on the problem's own answer.
    """

    version = "6"
    isolated = True

    def __init__(
        self,
        *,
        partial: bool = False,
        floor: float = 0.1,
        isolation: str = "auto",
        time_s: float = 5.0,
        servers: int | None = None,
    ) -> None:
        if not 0 <= floor < 1:
            raise ValueError(f"floor must be in [0, 1), got {floor}")
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ValueError(_MISSING)
        self.partial, self.floor = partial, floor
        self._isolation, self._servers = isolation, servers or cores()
        self._scorers: dict[str, Scorer] = {}  # by data set that is slow to create; "" serves all others
        self._lock = threading.Lock()
        self._countdown = Countdown()
        self._scorer = functools.partial(
            Scorer,
            "verifiers.adapters.gym_scorer:GymScorer",
            more=("reasoning_gym",),
            isolation=isolation,
            servers=self._servers,
            limits=limits(time_s, _MEMORY_MIB),
        )

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        """Judges one completion; safe from any thread."""
        name, entry = problem.meta.get("reasoning_gym"), problem.meta.get("entry")
        if not isinstance(name, str) or not isinstance(entry, Mapping):
            raise GoldError(f"problem {problem.name!r} has no reasoning_gym name and entry")
        span = final_answer(completion.text) or answering_span(completion.text)
        answer = completion.text[slice(*span)].strip() if span else ""
        if not answer:
            return Verdict(0.0, "no_answer")
        return dataclasses.replace(self._judged(name, entry, answer), span=span)

    def _judged(self, name: str, entry: Mapping[str, Any], answer: str) -> Verdict:
        if name in _EXACT:
            return self._exact(name, entry, answer)
        if name in _TRUTH:
            if entry.get("answer") is None:
                raise GoldError(f"reasoning_gym's {name}: the entry has no answer")
            right = answer.casefold().rstrip(".") == str(entry["answer"]).casefold()
            return Verdict(float(right), "right" if right else "wrong", answer=answer[:_SHOWN])
        own = entry.get("answer")
        found = self._ready(name).verdict(_row(name, entry, answer), _row(name, entry, "" if own is None else str(own)))
        score = found.score
        if score is None:
            raise VerifierError(f"reasoning_gym's {name} gave no score")
        if found.reason not in ("ok", "zero"):
            return Verdict(0.0, found.reason, found.detail, answer[:_SHOWN])
        if score <= self.floor or (score < 1 and not self.partial):
            return Verdict(0.0, "wrong", f"its scorer gives {score:g}", answer[:_SHOWN])
        return Verdict(score, "right" if score == 1 else "partial", answer=answer[:_SHOWN])

    def verify_many(self, pairs: Iterable[tuple[Problem, Completion]]) -> list[Verdict | Exception]:
        """Judges many pairs at once, in order. If an item raises, the exception takes the place of its verdict."""
        return verdicts(self, pairs, self._servers)

    def prepare(self) -> None:
        """Imports reasoning-gym in the sandbox now, instead of during the first verdict."""
        self._ready("").prepare()

    @property
    def level(self) -> str:
        """The isolation level in force. Raises VerifierError if there is none."""
        return probe.choose(self._isolation)

    def close(self) -> None:
        """Ends the servers; this also happens when the interpreter ends."""
        for scorer in self._scorers.values():
            scorer.close()

    def _ready(self, name: str) -> Scorer:
        with self._lock:
            own = name in self._scorers or len(self._scorers.keys() - {""}) < _OWN_SERVERS
            key = name if name in _COSTLY and own else ""
            if key not in self._scorers:
                self._scorers[key] = self._scorer({"name": key})
            return self._scorers[key]

    def _exact(self, name: str, entry: Mapping[str, Any], answer: str) -> Verdict:
        metadata = entry.get("metadata")
        if not isinstance(metadata, Mapping):
            raise GoldError(f"a problem of reasoning_gym's {name} has no metadata")
        target = metadata.get("target", _PUZZLE_24 if name == "puzzle24" else None)
        found = self._countdown.judged(answer, *given(f"reasoning_gym {name}", metadata.get("numbers"), target))
        return Verdict(found.score, "right" if found.score else "wrong", found.detail or found.reason, answer[:_SHOWN])


def _row(name: str, entry: Mapping[str, Any], answer: str) -> dict[str, Any]:
    return {"answer": answer, "entry": {"name": name, "entry": dict(entry)}}


def score_answer(
    reward: Reward | str, *, options: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[str | None, dict[str, Any]], float]:
    """Returns `score_answer(answer, entry)` in reasoning-gym's signature, for data sets of your own.

    The reward is clipped to [0, 1]; None scores 0, as in reasoning-gym.

    Raises: ValueError; when called, VerifierError for an answer that can't be checked.
    """
    ready = reward_of(reward, options)

    def score(answer: str | None, entry: dict[str, Any]) -> float:
        if answer is None:
            return 0.0
        problem = Problem(str(entry.get("question", "")), meta=entry.get("metadata") or {})
        found = scored(ready, problem, entry["answer"], answer, prompt="")  # a question opens nothing
        if found.reward is None:
            raise VerifierError(found.error or f"every verifier abstained: {parts(found)}")
        return min(1.0, max(0.0, found.reward))

    return score
