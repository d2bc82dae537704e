"""CPU time of sampling groups: the transformers engine compared with Hugging Face's `generate` with a static cache.

    python benchmarks/generation.py                     # 16 prompts x 8 completions, each of 64 tokens
    python benchmarks/generation.py --key-heads 2       # grouped queries
    python benchmarks/generation.py --dtype bfloat16    # autocast, both

Samples from the 3.4 M-parameter model of `grpo_step.py` at temperature 1, with one thread; no completion ends early.
Both take turns in alternating order, after a warm-up turn. Ratios compare both in the same turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from grpo_step import DTYPES, GROUP, NEW_TOKENS, PROMPTS, VOCAB, make_model, make_tokenizer

from r1lite.model.attention import register
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--key-heads", type=int, default=4, help="heads of keys and values; 4 of queries")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the forward pass")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    dtype, model, theirs = getattr(torch, arguments.dtype), *(make_model(arguments.key_heads) for _ in range(2))
    model.set_attn_implementation(register())
    engine = HFEngine(model, make_tokenizer(), max_rows=PROMPTS * GROUP, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(1, VOCAB, (PROMPTS, arguments.prompt_tokens), generator=generator)
    seeds = [[GROUP * p + g for g in range(GROUP)] for p in range(PROMPTS)]

    def ours() -> int:
        groups = engine.generate(prompts.tolist(), seeds, Sampling(1.0, NEW_TOKENS))
        return sum(len(completion.token_ids) for group in groups for completion in group)

    def static_cache() -> int:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != torch.float32):
            made = theirs.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                num_return_sequences=GROUP,
                max_new_tokens=NEW_TOKENS,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                cache_implementation="static",
            )
        return int(made[:, prompts.shape[1] :].numel())

    taken: list[tuple[float, float]] = []
    for turn in range(arguments.turns + 1):
        ways: tuple[Any, Any] = (ours, static_cache)
        order = ways if turn % 2 else ways[::-1]
        seconds = {way: _seconds(way) for way in order}
        taken.append((seconds[ours], seconds[static_cache]))
    mine, peer = zip(*taken[1:], strict=True)
    ratios = sorted(b / a for a, b in taken[1:])
    print(f"r1lite {statistics.median(mine):.2f} CPU s, static cache {statistics.median(peer):.2f} CPU s: ", end="")
    print(f"{statistics.median(ratios):.2f} x the tokens per CPU second ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def _seconds(way: Any) -> float:
    began = time.process_time()
    count = way()
    taken = time.process_time() - began
    assert count == PROMPTS * GROUP * NEW_TOKENS, count
    return taken


if __name__ == "__main__":
    main()
