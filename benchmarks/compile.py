"""CPU time of torch.compile on the two halves of a GRPO step: learning's passes and decoding.

    python benchmarks/compile.py                        # the decoder layers in learning
    python benchmarks/compile.py --half decode          # the decoder layers in decoding

The model of `grpo_step.py`, one thread, prompts and completions of varying length; nothing is read from the compiler's
cache. The plain and the compiled model take turns. CPU seconds include the compiler's child processes.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from typing import Any

import torch
from grpo_step import GROUP, NEW_TOKENS, PROMPTS, VOCAB, make_model, make_tokenizer
from torch._dynamo import config as dynamo
from torch._dynamo.utils import counters
from torch._inductor import config as inductor

from r1lite.model.attention import register
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["learn", "decode"], default="learn")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    dynamo.recompile_limit = 1000
    inductor.compile_threads = 1  # in child processes that end, so that their CPU time is known
    plain, compiled = _Half(), _Half()
    for layer in compiled.policy.model.model.layers:
        _compile(layer, learns=arguments.half == "learn")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        taken = [_turns(plain, compiled, arguments.half, step) for step in range(arguments.steps)]
    first, rest = taken[0], taken[1:]
    before, after = (statistics.median(step[n] for step in rest) for n in range(2))
    ratios = sorted(step[1] / step[0] for step in rest)
    largest = max(step[1] for step in rest)
    print(f"{arguments.half}: plain {before:.2f}, compiled {after:.2f} CPU s per step: {after / before:.2f} x ", end="")
    print(f"({ratios[0]:.2f} to {ratios[-1]:.2f}); the first step took {first[1]:.0f} instead of {first[0]:.1f} CPU s")
    print(f"graphs: {first[2]} in the first step, {rest[-1][2]} at the end; the largest later step: {largest:.1f} s")
    print(f"largest difference between results: {max(step[3] for step in taken):.1g}")


def _compile(module: Any, *, learns: bool) -> None:
    plain, compiled = module.forward, torch.compile(module.forward, dynamic=True)
    module.forward = lambda *given, **named: (compiled if torch.is_grad_enabled() == learns else plain)(*given, **named)


def _turns(plain: _Half, compiled: _Half, half: str, step: int) -> tuple[float, float, int, float]:
    """CPU seconds of both, graphs so far, and the largest difference between their results."""
    seconds, results = {}, {}
    for one in (plain, compiled) if step % 2 else (compiled, plain):
        began = _cpu_seconds()
        results[one] = getattr(one, half)(step)
        seconds[one] = _cpu_seconds() - began
    difference = float((results[plain] - results[compiled]).abs().max())
    return seconds[plain], seconds[compiled], counters["stats"]["unique_graphs"], difference


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class _Half:
    """The same model each time, with what either half needs."""

    def __init__(self) -> None:
        model = make_model()
        model.set_attn_implementation(register())
        self.policy = Policy(model, pad_id=0)
        self.engine = HFEngine(model, make_tokenizer(), max_rows=PROMPTS * GROUP)

    def learn(self, step: int) -> torch.Tensor:
        """The gradient of the mean log-probability of 16 x 8 completions."""
        rng = random.Random(step)
        rows = []
        for prompt in _prompts(rng):
            rows += [Row(prompt, _tokens(rng, NEW_TOKENS // 4)) for _ in range(GROUP)]
        for batch in micro_batches(rows, 32 * (NEW_TOKENS + NEW_TOKENS // GROUP), 0, "cpu"):
            (self.policy.logprobs(batch)[batch.loss_mask].sum() / len(rows)).backward()
        gradient = torch.cat([p.grad.flatten() for p in self.policy.parameters() if p.grad is not None])
        self.policy.zero_grad()
        return gradient

    def decode(self, step: int) -> torch.Tensor:
        """The log-probabilities of 16 x 8 completions."""
        seeds = [[GROUP * p + g for g in range(GROUP)] for p in range(PROMPTS)]
        groups = self.engine.generate(_prompts(random.Random(step)), seeds, Sampling(1.0, NEW_TOKENS))
        return torch.tensor([value for group in groups for completion in group for value in completion.logprobs])


def _prompts(rng: random.Random) -> list[tuple[int, ...]]:
    return [_tokens(rng, NEW_TOKENS // 2) for _ in range(PROMPTS)]


def _tokens(rng: random.Random, least: int) -> tuple[int, ...]:
    return tuple(rng.randrange(1, VOCAB) for _ in range(rng.randint(least, NEW_TOKENS)))


if __name__ == "__main__":
    main()
