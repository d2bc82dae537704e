"""Log-probabilities of given tokens under logits."""

from __future__ import annotations

import torch
from torch import Tensor


def token_logprobs(logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature) of each token, in float32 or better.

    The policy that sampled at a temperature is the tempered one: ratios are 1 only if both sides are divided by it.

    Args:
        logits: [..., V].
        token_ids: [...], int64.
        temperature: > 0.

    Returns: [...], nats.
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    if temperature != 1.0:
        logits = logits / temperature
    chosen = logits.gather(-1, token_ids[..., None]).squeeze(-1)
    return chosen - logits.logsumexp(dim=-1)
