"""The first stage of A*-PO (arXiv:2505.20686): each problem's optimal value, from samples of the reference.

This stage ends before training begins. Its results are kept in the run directory (`optimal_values.json`), so that a
step needs only one completion of a problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from r1lite.config import GRPOConfig
from r1lite.distributed.together import from_main, shared_out
from r1lite.errors import RunError
from r1lite.grpo import choice
from r1lite.grpo.sampler import sampling_of
from r1lite.rl.regression import optimal_value
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import collect
from r1lite.rollout.interruption import Interruption
from r1lite.run.signals import StopSignal
from r1lite.training.setup import Setup
from r1lite.types import Prompt

_FILE = "optimal_values"
_CHUNK = 64  # problems between two saves


def optimal_values(
    config: GRPOConfig, setup: Setup, stop: StopSignal, interruption: Interruption | None
) -> dict[str, float]:
    """V* by problem, for the problems that the run's steps will use; missing ones are sampled and saved.

    The engine must hold the initial weights of the run. Every problem's samples have their own seeds, so that
    a run that was stopped, or is extended to more steps, gets the same values.

    Raises:
        RunError: too many completions could not be scored, or all of one problem, or a reward is not finite.
        Interrupted: a signal asked to stop; earlier chunks are saved.
    """
    kept = from_main(setup.world, lambda: setup.run_dir.read_result(_FILE, ("rewards",), setup.display.say))
    rewards: dict[str, list[float | None]] = {} if kept is None else kept["rewards"]
    missing = [prompt for prompt in _needed(config, setup.train) if prompt.problem.id not in rewards]
    if missing:
        setup.display.line("values", f"{config.value_samples} samples of the reference of {len(missing):,} problems")
        setup.display.start("estimating optimal values", 1)
        try:
            for done, chunk in _sampled(config, setup, stop, interruption, missing):
                rewards |= chunk
                setup.run_dir.write_result(_FILE, {"samples": config.value_samples, "rewards": rewards})
                setup.display.progress(done / len(missing))
        finally:
            setup.display.finish()
    _check(config, rewards)
    names = list(rewards)
    table = torch.tensor([[math.nan if r is None else r for r in rewards[name]] for name in names], dtype=torch.float64)
    return dict(zip(names, optimal_value(table, beta=config.value_beta).tolist(), strict=True))


def _needed(config: GRPOConfig, prompts: Sequence[Prompt]) -> list[Prompt]:
    """Each problem once, in the order of the steps; all problems if the selection depends on measurements."""
    if config.dynamic_sampling or config.curriculum or config.retire_solved is not None:
        return list({prompt.problem.id: prompt for prompt in prompts}.values())
    steps = (choice.by_epochs(prompts, step, config.prompts_per_step, config.seed) for step in range(config.steps))
    return list({prompt.problem.id: prompt for chosen in steps for prompt in chosen}.values())


def _sampled(
    config: GRPOConfig, setup: Setup, stop: StopSignal, interruption: Interruption | None, missing: Sequence[Prompt]
) -> Iterator[tuple[int, dict[str, list[float | None]]]]:
    """Yields (number of problems done, rewards by problem) of one chunk after another."""
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]

        def share(mine: range, chunk: Sequence[Prompt] = chunk) -> list[list[float | None]]:
            asked = [chunk[i] for i in mine]
            seeds = [
                [completion_seed(config.seed, "optimal value", 0, p.problem.id, n) for n in range(config.value_samples)]
                for p in asked
            ]
            with stop.interruptible(together=setup.engine.together):
                token_ids = [p.token_ids for p in asked]
                stream = setup.engine.stream(token_ids, seeds, sampling_of(config), interruption)
                groups = collect(len(asked), stream)
                pairs = [
                    (p.problem, completion) for p, group in zip(asked, groups, strict=True) for completion in group
                ]
                scores = iter(setup.scorer.score(pairs))
            return [[next(scores).reward for _ in group] for group in groups]

        with setup.watchdog.during("rollout", "optimal values"):
            rewards = shared_out(setup.world, len(chunk), share)
        by_problem = {prompt.problem.id: row for prompt, row in zip(chunk, rewards, strict=True)}
        for name, row in by_problem.items():
            if strange := [reward for reward in row if reward is not None and not math.isfinite(reward)]:
                raise RunError(f"problem '{name}': the reward of a sample of the reference is {strange[0]}")
        yield start + len(chunk), by_problem


def _check(config: GRPOConfig, rewards: dict[str, Any]) -> None:
    every = [reward for row in rewards.values() for reward in row]
    if every.count(None) > config.max_unscored_rate * len(every):
        raise RunError(
            f"{every.count(None)} of {len(every)} samples of the reference could not be scored, more than "
            f"--max-unscored-rate {config.max_unscored_rate}"
        )
    for name, row in rewards.items():
        if all(reward is None for reward in row):
            raise RunError(
                f"problem '{name}': none of its {len(row)} samples of the reference could be scored, so its optimal "
                "value is unknown; leave the problem out, or raise --value-samples"
            )
