"""The model that is trained: log-probabilities, optimizer step, weights by name."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from r1lite.batch import MicroBatch
from r1lite.errors import UserError
from r1lite.prefix import prefill, shares_batches
from r1lite.rl.logprobs import token_logprobs


class Policy:
    """A causal language model with float32 weights and an AdamW optimizer.

    Args:
        model: a transformers causal language model; dropout is switched off, so that ratios are exactly 1 on policy.
        dtype: of the forward pass; below float32 it runs under autocast.
        temperature: log-probabilities are those of softmax(logits / temperature).
    """

    def __init__(
        self,
        model: Any,
        *,
        pad_id: int,
        temperature: float = 1.0,
        dtype: torch.dtype = torch.float32,
        gradient_checkpointing: bool = False,
    ) -> None:
        self.model, self.pad_id, self.temperature, self.dtype = model, pad_id, temperature, dtype
        _switch_off_dropout(model)
        model.eval()
        # Checkpointing recomputes a layer without its cache, so the shared prompt can't be used with it.
        self._shares_prompts = shares_batches(model) and not gradient_checkpointing
        if gradient_checkpointing:
            if not getattr(model, "supports_gradient_checkpointing", False):
                raise UserError(f"--gradient-checkpointing: {type(model).__name__} does not support it")
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.train()  # transformers checkpoints in training mode only; without dropout the modes are the same

    def logprobs(self, batch: MicroBatch) -> Tensor:
        """log pi(token) at each completion token, [B, T] float32; what stands at padding means nothing."""
        with self._autocast():
            logits = self._shared_prompt_logits(batch) if self._shares_prompts else self._plain_logits(batch)
        return token_logprobs(logits, batch.token_ids, temperature=self.temperature)

    def _shared_prompt_logits(self, batch: MicroBatch) -> Tensor:
        """Prompts once, then all completions on top of them: the head runs on completion positions only."""
        prefix = prefill(self.model, batch.prompts, self.pad_id)
        prefix.select(batch.prompt_of_row)
        width = batch.token_ids.shape[1]
        inputs = torch.cat([prefix.last_tokens[:, None], batch.token_ids[:, :-1]], dim=1)
        # Position t is fed token t-1, which is real wherever token t is; the first is the prompt's last.
        mask = torch.cat([prefix.mask, torch.ones_like(batch.mask[:, :1]), batch.mask[:, 1:]], dim=1).long()
        positions = prefix.lengths[:, None] + torch.arange(width, device=inputs.device)
        return self.model(  # type: ignore[no-any-return]
            input_ids=inputs,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=prefix.cache,
            use_cache=True,
        ).logits

    def _plain_logits(self, batch: MicroBatch) -> Tensor:
        """Whole sequences, padded on the right; the head runs from the last prompt token on."""
        prompts = [batch.prompts[n] for n in batch.prompt_of_row.tolist()]
        width = batch.token_ids.shape[1]
        longest = max(map(len, prompts))
        inputs = torch.full((len(prompts), longest + width), self.pad_id, device=batch.token_ids.device)
        mask = torch.zeros_like(inputs)
        where = torch.empty_like(batch.token_ids)  # [B, T] position whose logits predict completion token t
        for row, prompt in enumerate(prompts):
            end = len(prompt) + width
            inputs[row, : len(prompt)] = torch.tensor(prompt)
            inputs[row, len(prompt) : end] = batch.token_ids[row]
            mask[row, : len(prompt)] = 1
            mask[row, len(prompt) : end] = batch.mask[row]
            where[row] = torch.arange(len(prompt) - 1, end - 1)
        first = min(map(len, prompts)) - 1
        logits = self.model(
            input_ids=inputs,
            attention_mask=mask,
            use_cache=False,
            logits_to_keep=torch.arange(first, inputs.shape[1], device=inputs.device),
        ).logits
        return logits.gather(1, (where - first)[..., None].expand(-1, -1, logits.shape[-1]))  # type: ignore[no-any-return]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.model.device.type, dtype=self.dtype)

    def frozen_copy(self) -> Policy:
        """A reference policy: the same weights, never trained."""
        model = copy.deepcopy(self.model).requires_grad_(False)
        return Policy(model, pad_id=self.pad_id, temperature=self.temperature, dtype=self.dtype)

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight by its full name, tied ones under each of their names (an engine that packs them needs all)."""
        yield from self.model.state_dict().items()


class Trainer:
    """AdamW on a policy, with a clipped gradient and a guard against non-finite ones."""

    def __init__(
        self, policy: Policy, *, betas: tuple[float, float], weight_decay: float, max_grad_norm: float
    ) -> None:
        self.policy, self.max_grad_norm = policy, max_grad_norm
        self.parameters = [p for p in policy.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=0.0, betas=betas, weight_decay=weight_decay, fused=True)

    def step(self, lr: float) -> float | None:
        """Applies the accumulated gradient and clears it.

        Returns:
            The gradient's global norm before clipping, or None if it is not finite: then nothing was changed.
        """
        norm = nn.utils.clip_grad_norm_(self.parameters, self.max_grad_norm)
        finite = bool(torch.isfinite(norm))
        if finite:
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(norm) if finite else None


def _switch_off_dropout(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0
