"""What is sampled of fleets of simulated servers, and what they must give."""

import torch
from fleet_for_tests import sampled

from r1lite.rollout import Sampling

PROMPTS = [[5, 6 + p] for p in range(12)]
SEEDS = [[10 * p, 10 * p + 1, 10 * p + 7] for p in range(12)]  # two requests a group
SAMPLING = Sampling(1.0, 6)
GIVING = ("pause", "update_weight_version", "collective_rpc", "reset_prefix_cache", "resume", "weight_info")


def weights(version):
    return [("a", torch.full((3,), float(version)))]


def check(engine, sums, version, prompts=PROMPTS, seeds=SEEDS):
    """Samples, and compares with what an undisturbed server gives."""
    found = engine.generate(prompts, seeds, SAMPLING)
    for p, (prompt, row, group) in enumerate(zip(prompts, seeds, found, strict=True)):
        expected = [sampled(sums[version], prompt, seed, tokens=6, ends=[1]) for seed in row]
        assert [(list(c.token_ids), list(c.logprobs), c.finish_reason) for c in group] == expected, f"group {p}"
        assert {c.policy_version for c in group} == {version}


def once(*faults, path="v1/completions", skip=0):
    """A plan: these faults for that path, one after the other, after so many requests without."""
    waiting = [None] * skip + list(faults)
    return lambda asked: waiting.pop(0) if asked == path and waiting else None
