"""CPU time of a policy's forward and backward pass with and without `--padding-free`.

    python benchmarks/padding_free.py                                     # 8 prompts of 24 tokens, 4 completions each
    python benchmarks/padding_free.py --prompts 2 --group 16 --prompt-tokens 256   # long prompts

Uses the 3.4 M-parameter model of `grpo_step.py` on one thread. Completions have 5 to 256 tokens, drawn from a
log-normal distribution around 48. Both take turns after a warm-up turn; ratios compare both in the same turn.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from grpo_step import VOCAB, make_model

from r1lite.model.attention import register
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.model.varlen import register as register_varlen


def rows_of(prompts: int, group: int, prompt_tokens: int) -> list[Row]:
    """The rows, the same in every call."""
    generator = torch.Generator().manual_seed(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(1, VOCAB, (count,), generator=generator).tolist())

    sizes = torch.empty(prompts, group).log_normal_(3.87, 0.9, generator=generator).clamp(5, 256).long()
    rows = []
    for of_prompt in sizes.tolist():
        prompt = tokens(prompt_tokens)
        rows += [Row(prompt, tokens(size)) for size in of_prompt]
    return rows


def cpu_seconds(policy: Policy, rows: list[Row], max_tokens: int) -> float:
    """CPU seconds of a forward and backward pass over all rows."""
    policy.zero_grad()
    begun = time.process_time()
    for batch in micro_batches(rows, max_tokens, 0, torch.device("cpu"), policy.layout):
        logprobs, _ = policy(batch)
        logprobs[batch.loss_mask].sum().backward()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--group", type=int, default=4, help="completions of each prompt")
    parser.add_argument("--prompt-tokens", type=int, default=24)
    parser.add_argument("--micro-batch-tokens", type=int, default=4096)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    policies = []
    for padding_free, name in ((False, register()), (True, register_varlen())):
        model = make_model()
        model.set_attn_implementation(name)
        policies.append(Policy(model, pad_id=0, padding_free=padding_free))
    rows = rows_of(arguments.prompts, arguments.group, arguments.prompt_tokens)
    ratios = []
    for turn in range(arguments.turns + 1):
        padded, free = (cpu_seconds(policy, rows, arguments.micro_batch_tokens) for policy in policies)
        if turn:
            ratios.append(free / padded)
            print(f"turn {turn}: padded {padded:.2f} s, padding-free {free:.2f} s, {ratios[-1]:.2f} x", flush=True)
    print(f"padding-free / padded: {statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
