"""Accuracy on held-out problems: greedy, and pass@k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from r1lite.config import ProblemsConfig
from r1lite.rl.passk import pass_at_k, wilson_interval
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import RolloutEngine, Sampling
from r1lite.solve import Judge, Prompt
from verifiers import Completion, Score

_CHUNK = 64  # problems between two reports of progress
_SHOWN = 3  # completions kept for the reader


def evaluate(
    engine: RolloutEngine,
    prompts: Sequence[Prompt],
    judge: Judge,
    config: ProblemsConfig,
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:
    """Greedy accuracy and pass@k of the engine's present weights, with 95 % Wilson intervals.

    The random numbers are the evaluation's own, the same every time, so that two evaluations compare and training is
    not disturbed.

    Returns:
        `pass_at_1` (greedy), `pass_at_k` (at temperature 1) and the `k`, `sampled_accuracy` (mean over the samples),
        `format_rate` and `mean_tokens` (greedy), intervals `*_interval`, counts, and `examples`: a few completions of
        the first problem.
    """
    greedy = prompts[: config.eval_problems]
    sampled = prompts[: config.eval_sample_problems]
    total = len(greedy) + len(sampled) * config.eval_samples
    done = 0

    def run(chosen: Sequence[Prompt], samples: int, temperature: float) -> list[list[tuple[Completion, bool, bool]]]:
        nonlocal done
        sampling = Sampling(temperature, config.max_completion_tokens, config.stop_text)
        results = []
        for start in range(0, len(chosen), _CHUNK):
            chunk = chosen[start : start + _CHUNK]
            seeds = [
                [completion_seed(0, "evaluation", 0, prompt.problem.id, sample) for sample in range(samples)]
                for prompt in chunk
            ]
            groups = engine.generate([prompt.token_ids for prompt in chunk], seeds, sampling)
            results += [
                [
                    (
                        completion,
                        judge.is_correct(prompt.problem, completion, Score(None)) is True,
                        judge.is_well_formed(prompt.problem, completion, Score(None)) is True,
                    )
                    for completion in group
                ]
                for prompt, group in zip(chunk, groups, strict=True)
            ]
            done += len(chunk) * samples
            progress(done / total)
        return results

    answers = [group[0] for group in run(greedy, 1, 0.0)]
    groups = run(sampled, config.eval_samples, 1.0)
    right = sum(correct for _, correct, _ in answers)
    k = config.eval_samples
    passes = [pass_at_k(k, sum(correct for _, correct, _ in group), k) for group in groups]
    shown = greedy[0]
    examples = [answers[0], *groups[0]][:_SHOWN]
    return {
        "pass_at_1": right / len(answers),
        "pass_at_1_interval": wilson_interval(right, len(answers)),
        "pass_at_k": sum(passes) / len(passes),
        "pass_at_k_interval": wilson_interval(sum(passes), len(passes)),
        "k": k,
        "sampled_accuracy": sum(correct for group in groups for _, correct, _ in group) / (k * len(groups)),
        "format_rate": sum(formed for *_, formed in answers) / len(answers),
        "mean_tokens": sum(len(completion.token_ids) for completion, *_ in answers) / len(answers),
        "problems": len(answers),
        "sampled_problems": len(groups),
        "examples": {
            "question": shown.problem.prompt,
            "gold": shown.problem.answer,
            "completions": [
                {"text": completion.text, "correct": correct, "sampling": "greedy" if i == 0 else "temperature 1"}
                for i, (completion, correct, _) in enumerate(examples)
            ],
        },
    }
