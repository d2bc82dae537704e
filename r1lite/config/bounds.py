"""Upper bounds of the numbers in a configuration: larger values are mistakes and could not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_MOST = {
    # Sizes in memory.
    "batch_pairs": 100_000,
    "batch_size": 100_000,
    "canary_tokens": 10_000,
    "context": 10_000_000,
    "eval_samples": 100_000,
    "advantage_k": 100_000,
    "group_size": 100_000,
    "heads": 10_000,
    "hidden_size": 1_000_000,
    "intermediate_size": 10_000_000,
    "kv_heads": 10_000,
    "layers": 10_000,
    "lora_rank": 100_000,
    "max_completion_tokens": 10_000_000,
    "max_prompt_tokens": 10_000_000,
    "max_staleness": 1000,
    "max_tokens": 10_000_000,
    "micro_batch_tokens": 100_000_000,
    "packed_tokens": 100_000_000,
    "per_problem": 1_000_000,
    "prompts_per_step": 1_000_000,
    "rollout_rows": 100_000,
    "rows_per_step": 1_000_000,
    "samples": 100_000,
    "tokenizer_problems": 10_000_000,
    "vocab_size": 10_000_000,
    # Numbers of repetitions.
    "chain_steps": 100_000_000,
    "contamination_ngram": 10_000,
    "epochs": 100_000,
    "habit_steps": 100_000_000,
    "max_refills": 10_000,
    "minibatches": 1_000_000,
    "pairs": 1_000_000,
    "steps": 100_000_000,
    "updates_per_rollout": 10_000,
    # Processes and threads.
    "jobs": 1024,
    "score_workers": 1024,
    "threads": 512,
    "workers": 1024,
    # Rates and temperatures.
    "critic_lr": 1000,
    "eval_temperature": 1000,
    "lr": 1000,
    "muon_lr": 1000,
    "temperature": 1000,
    # PyTorch's generators take 64 bits.
    "seed": (1 << 63) - 1,
}
_OTHERS = 1_000_000_000
_SMALLEST = 1e-30  # positive numbers below it underflow to 0, or overflow as divisors


def beyond(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Messages for the numbers among these fields that are out of bounds."""
    wrong = []
    for name, value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        flag, most = f"--{name.replace('_', '-')}", _MOST.get(name, _OTHERS)
        if value > most:
            wrong.append(f"{flag} must be <= {most:,}, got {shown(value)}")
        elif 0 < value < _SMALLEST:
            wrong.append(f"{flag} must be 0 or >= {_SMALLEST:g}, got {shown(value)}")
    return wrong


def shown(value: Any) -> str:
    """A value as text for a message, shortened to about 200 characters."""
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
