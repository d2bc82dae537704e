"""Evaluates the current weights on held-out problems: greedy accuracy, pass@k, maj@k.

`measure` samples and scores, `summarize` computes rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from r1lite.config import ProblemsConfig
from r1lite.distributed.together import shared_out
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError
from r1lite.evaluation.intervals import mean_rate
from r1lite.rl.passk import pass_at_k
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import CompletionEngine, Sampling
from r1lite.scoring.scorer import Mark, Scorer
from r1lite.scoring.voting import Vote, majority
from r1lite.types import Prompt
from verifiers import Completion, Problem

_CHUNK = 64  # problems between two progress reports
_SHOWN = 3  # number of completions kept as examples
_MAX_UNSCORED = 0.1  # largest share of unscored completions; with more, a rate over the rest would mean little


@dataclass(frozen=True, slots=True)
class Answer:
    """A scored completion."""

    text: str
    tokens: int
    correct: bool | None  # None: unscored
    well_formed: bool | None
    answer: str | None  # the final answer that was judged, if there is one
    reason: str  # the verifier's reason
    detail: str = ""  # the verifier's detail
    span: tuple[int, int] | None = None  # position of the answer in the text


@dataclass(frozen=True, slots=True)
class Solved:
    """A problem with the model's completions."""

    problem: Problem
    greedy: Answer | None
    samples: tuple[Answer, ...]

    @property
    def scored(self) -> list[bool]:
        """Correctness of the samples that are not unscored."""
        return [sample.correct for sample in self.samples if sample.correct is not None]


def measure(
    engine: CompletionEngine,
    prompts: Sequence[Prompt],
    scorer: Scorer,
    config: ProblemsConfig,
    progress: Callable[[float], None] = lambda share: None,
    *,
    temperature: float = 1.0,
    seed: int = 0,
    world: World = ALONE,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    scored: Callable[[int, int], None] = lambda done, total: None,
) -> list[Solved]:
    """Samples and scores answers with the engine's current weights: greedy answers to the first `eval_problems`, and
    `eval_samples` samples each for the first `sampled_problems`.

    The evaluation has its own random numbers, the same every time and for every batch size, so that evaluations are
    comparable and training is not affected. It can be interrupted at any time (`StopSignal.interruptible`).

    Args:
        temperature: temperature of the samples.
        seed: seed of the samples.
        world: each rank samples its share of the problems with its engine; all ranks get all answers.
        around: context in which a rank samples its share.
        scored: called with the number of completions of this rank that are scored, and the number of all.

    Raises:
        RunError: more than a tenth of the completions are unscored.
    """
    tries = config.sampled_problems
    count = len(prompts[: config.tested_problems])
    total = done = marked = 0

    def one_more() -> None:
        nonlocal marked
        marked += 1
        scored(marked, total)

    def asked(chosen: Sequence[Prompt], most: int, samples: int, sampling: Sampling) -> list[list[Completion]]:
        """Samples for this rank's prompts. All ranks call the engine equally often: as often as for `most` prompts."""
        nonlocal done
        chunks = [chosen[start : start + _CHUNK] for start in range(0, most, _CHUNK)]
        calls = (
            (
                [prompt.token_ids for prompt in chunk],
                [
                    [completion_seed(seed, "evaluation", 0, prompt.problem.id, sample) for sample in range(samples)]
                    for prompt in chunk
                ],
            )
            for chunk in chunks
        )
        found: dict[int, list[list[Completion]]] = {}
        for number, groups in engine.each(calls, sampling):
            found[number] = groups
            done += len(groups) * samples
            progress(done / max(total, 1))
        return [group for number in range(len(chunks)) for group in found[number]]

    def judged(chosen: Sequence[Prompt], groups: Sequence[Sequence[Completion]]) -> list[tuple[Answer, ...]]:
        pairs = [prompt.judged(c) for prompt, group in zip(chosen, groups, strict=True) for c in group]
        marks = iter(scorer.marks(pairs, one_more))
        return [tuple(_answer(completion, next(marks)) for completion in group) for group in groups]

    def share(mine: range) -> list[tuple[Answer | None, tuple[Answer, ...]]]:
        nonlocal total
        greedy = [prompts[place] for place in mine if place < config.eval_problems]
        sampled = [prompts[place] for place in mine if place < tries]
        total = len(greedy) + len(sampled) * config.eval_samples
        limit, stop_text = config.max_completion_tokens, config.stop_text
        most = [math.ceil(min(count, asked_for) / world.size) for asked_for in (config.eval_problems, tries)]
        with around():
            # Sampling ends before scoring begins, so that a failure of one rank can't leave the others in sampling.
            said = asked(greedy, most[0], 1, Sampling(0.0, limit, stop_text))
            more = asked(sampled, most[1], config.eval_samples, Sampling(temperature, limit, stop_text))
            first, others = judged(greedy, said), judged(sampled, more)
        return [
            (first[i][0] if i < len(first) else None, others[i] if i < len(others) else ()) for i in range(len(mine))
        ]

    found = shared_out(world, count, share)
    solved = [Solved(prompts[place].problem, *answers) for place, answers in enumerate(found)]
    given = [answer for one in solved for answer in (one.greedy, *one.samples) if answer is not None]
    unscored = [answer for answer in given if answer.correct is None]
    if len(unscored) > _MAX_UNSCORED * len(given):
        raise RunError(
            f"{len(unscored)} of {len(given)} completions are unscored, so no accuracy is reported; "
            f"the first: {unscored[0].reason}"
        )
    return solved


def summarize(solved: Sequence[Solved], scorer: Scorer, *, k: int, votes: int | None = None) -> dict[str, Any]:
    """Rates over problems, each as `NAME` with its 95 % interval `NAME_interval` (`intervals.mean_rate`).

    Args:
        k: k of pass@k.
        votes: number of votes of maj@k, the first of the samples; by default k.

    Returns:
        `pass_at_1` (greedy); `pass_at_k` (unbiased, at the samples' temperature) and `k`; `maj_at_k` and `votes`, None
        if k is 1 or the task's answers can't vote; `sampled_accuracy` (mean over the samples); `pass_curve` (pass@1, 2,
        4, ... k); `format_rate` and `mean_tokens` (greedy), `sampled_format_rate`; the numbers of `problems`,
        `sampled_problems` and `unscored` completions, which enter no rate; and `examples`: a few completions of the
        first problem.
    """
    greedy = [one.greedy for one in solved if one.greedy is not None]
    sampled = [one for one in solved if len(one.scored) >= k]
    votes = k if votes is None else votes
    judged = [answer for answer in greedy if answer.correct is not None]
    if not judged or not sampled:
        raise RunError("too many completions are unscored for a rate")
    curve = sorted({k, *(2**i for i in range(k.bit_length()))})
    passes = {j: [pass_at_k(len(one.scored), sum(one.scored), j) for one in sampled] for j in curve}
    given = [answer for one in solved for answer in (one.greedy, *one.samples) if answer is not None]
    return {
        **_rate("pass_at_1", [float(bool(answer.correct)) for answer in judged]),
        **_rate("pass_at_k", passes[k]),
        **_rate(
            "maj_at_k", [maj_at_k(one, scorer, votes) for one in sampled] if votes > 1 and scorer.vote != "none" else []
        ),
        **_rate("sampled_accuracy", [sum(one.scored) / len(one.scored) for one in sampled]),
        "k": k,
        "votes": votes,
        "pass_curve": {str(j): _mean(values) for j, values in passes.items()},
        "format_rate": _format_rate(greedy),
        "sampled_format_rate": _format_rate([answer for one in sampled for answer in one.samples]),
        "mean_tokens": _mean([answer.tokens for answer in judged]),
        "problems": len(judged),
        "sampled_problems": len(sampled),
        "unscored": sum(answer.correct is None for answer in given),
        "examples": _examples(solved[0]),
    }


def maj_at_k(one: Solved, scorer: Scorer, votes: int) -> float:
    """Probability that the majority of the first `votes` samples is right; see `voting.majority`."""
    ballots = [Vote(answer.answer, answer.correct is True) for answer in one.samples[:votes]]
    same = scorer.same_answer(one.problem)
    assert same is not None
    return majority(ballots, same)


def breakdown(solved: Sequence[Solved], key: str) -> dict[str, dict[str, Any]]:
    """Greedy and sampled accuracy for each value of `Problem.meta[key]`; empty if no problem has the key."""
    parts: dict[str, list[Solved]] = {}
    for one in solved:
        if one.problem.meta.get(key) is not None:
            parts.setdefault(str(one.problem.meta[key]), []).append(one)
    found = {}
    for value in sorted(parts, key=lambda text: (len(text), text) if text.isdecimal() else (99, text)):
        part = parts[value]
        greedy = [float(one.greedy.correct) for one in part if one.greedy and one.greedy.correct is not None]
        sampled = [sum(one.scored) / len(one.scored) for one in part if one.scored]
        found[value] = {**_rate("pass_at_1", greedy), **_rate("sampled_accuracy", sampled), "problems": len(part)}
    return found


def _answer(completion: Completion, mark: Mark) -> Answer:
    return Answer(
        completion.text,
        len(completion.token_ids),
        mark.correct,
        mark.well_formed,
        mark.answer,
        mark.reason,
        mark.detail,
        mark.span,
    )


def _rate(name: str, values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {name: None, f"{name}_interval": None}
    rate = mean_rate(values)
    return {name: rate.mean, f"{name}_interval": [rate.low, rate.high]}


def _format_rate(answers: Sequence[Answer]) -> float | None:
    return _mean([answer.well_formed for answer in answers if answer.well_formed is not None])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _examples(first: Solved) -> dict[str, Any]:
    shown = [("greedy", first.greedy)] if first.greedy else []
    shown += [("sampled", sample) for sample in first.samples]
    return {
        "question": first.problem.prompt,
        "gold": first.problem.answer,
        "completions": [
            {"text": answer.text, "correct": answer.correct is True, "sampling": name}
            for name, answer in shown[:_SHOWN]
        ],
    }
