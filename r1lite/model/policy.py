"""The trained model: log-probabilities of completions, and weights by name."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from r1lite.errors import UserError
from r1lite.model.batch import MicroBatch, Row, RowLayout, micro_batches
from r1lite.model.gates import quicken_gates
from r1lite.model.head import Parts, split
from r1lite.model.lora import merged_weights, without_adapter
from r1lite.model.mapped import sharing_copy
from r1lite.model.norms import quicken_norms
from r1lite.model.packing import PackedBatch, packed_logits, packed_states
from r1lite.model.prefix import on_prompts, shares_batches, trains_in_place
from r1lite.model.rotary import quicken_rotary
from r1lite.model.sharding import computes_wide, whole_weights
from r1lite.model.varlen import LaidOut, check_apart
from r1lite.rl.logprobs import entropies, head_logprobs, token_logprobs
from r1lite.rl.tiled_kl import square_masses, tiled_kl
from r1lite.rl.tiles import Head


class Policy(nn.Module):
    """A causal language model whose forward pass returns log-probabilities of completions.

    Args:
        model: a transformers causal language model; runs without dropout, so that ratios are exactly 1 on policy.
        dtype: of the forward pass; below float32 it runs under autocast.
        temperature: log-probabilities are those of softmax(logits / temperature).
        fp32_head: compute logits in float32 from hidden states of `dtype`.
        padding_free: the rows of a micro-batch are concatenated without padding (`r1lite.model.varlen`).

    Raises:
        UserError: the model can't be trained with these settings.
    """

    def __init__(
        self,
        model: Any,
        *,
        pad_id: int,
        temperature: float = 1.0,
        dtype: torch.dtype = torch.float32,
        gradient_checkpointing: bool = False,
        fp32_head: bool = False,
        padding_free: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.pad_id, self.temperature, self.dtype = model, pad_id, temperature, dtype
        self.fp32_head, self.padding_free = fp32_head, padding_free
        self.is_sharded = False  # its weights are sharded over the ranks
        self._adapted = True  # compute with the adapter, if the model has one
        self._above: tuple[Policy, ...] = ()  # in a tuple, so that torch does not register it as a submodule
        quicken_norms(model)
        quicken_gates(model)
        quicken_rotary(model)
        model.eval()
        with computes_wide(model):
            self.parts = split(model)  # a string is the reason why it can't be split; then all logits are computed
            if padding_free:
                if isinstance(self.parts, str):
                    raise UserError(f"--padding-free: {self.parts}")
                check_apart(model, dtype)
        # Checkpointing recomputes a layer without its cache, so the shared prompt can't be used with it.
        self.shares_prompts = shares_batches(model) and not gradient_checkpointing and not padding_free
        self.reads_in_place = self.shares_prompts and dtype == torch.float32 and trains_in_place(model)
        if gradient_checkpointing:
            enable_checkpointing(model)

    def forward(self, batch: MicroBatch, *, entropy: bool = False) -> tuple[Tensor, Tensor | None]:
        """log pi(token) at each completion token, and, on request, the entropy of the distribution at that token.

        Returns: [B, T] float32 each; values outside the loss mask are undefined. None if no entropy was requested.
        """
        if isinstance(self.parts, str):
            logits = self._logits(batch)
            logprobs = token_logprobs(logits, batch.token_ids, temperature=self.temperature)
            return logprobs, entropies(logits, temperature=self.temperature) if entropy else None
        hidden, head, tokens = self._tokens(batch, self.parts)
        if not entropy:
            of_tokens = head_logprobs(
                hidden, head, tokens.ids, temperature=self.temperature, into_grad=not self.is_sharded
            )
            return tokens.unpacked(of_tokens), None
        of_tokens, their_entropies = head_logprobs(
            hidden, head, tokens.ids, temperature=self.temperature, entropy=True, into_grad=not self.is_sharded
        )
        return tokens.unpacked(of_tokens), tokens.unpacked(their_entropies)

    @property
    def layout(self) -> RowLayout:
        """How rows go through the model."""
        if self.padding_free:
            return "end to end"
        return "shared prompts" if self.shares_prompts else "whole rows"

    def micro_batches(self, rows: Sequence[Row], max_tokens: int) -> list[MicroBatch]:
        """Splits rows into micro-batches of at most `max_tokens` tokens, as they go through this policy's model."""
        return micro_batches(rows, max_tokens, self.pad_id, self.model.device, self.layout)

    @property
    def above(self) -> Policy | None:
        """The policy with the adapter, if this is a reference that is the same model without it; else None."""
        return self._above[0] if self._above else None

    def logprobs_of(self, other: Policy, batch: MicroBatch) -> Tensor:
        """`other.logprobs`, inside this policy's forward pass, where the shared sharded weights are gathered."""
        return Policy.forward(other, batch)[0]

    def logprobs(self, batch: MicroBatch) -> Tensor:
        """log pi(token) at each completion token, [B, T] float32; values outside the loss mask are undefined."""
        if self.above is not None and self.above.is_sharded:
            return self.above.logprobs_of(self, batch)
        logprobs: Tensor = self(batch)[0]
        return logprobs

    def with_kl(
        self, batch: MicroBatch, reference: Policy, *, entropy: bool = False
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """As `forward`, and also KL(this policy || reference) over the whole vocabulary at each token, [B, T].

        The reference's hidden states are computed here without a gradient, and its logits tile by tile.
        """
        if isinstance(self.parts, str) or isinstance(reference.parts, str):
            logits = self._logits(batch)
            with torch.no_grad():
                theirs = (reference._logits(batch).float() / self.temperature).log_softmax(dim=-1)
            ours = (logits.float() / self.temperature).log_softmax(dim=-1)
            logprobs = token_logprobs(logits, batch.token_ids, temperature=self.temperature)
            spread = entropies(logits, temperature=self.temperature) if entropy else None
            return logprobs, spread, (ours.exp() * (ours - theirs)).sum(dim=-1)
        with torch.no_grad():
            ref_hidden, ref_head = reference.hidden_of(batch)
        hidden, head, tokens = self._tokens(batch, self.parts)
        kl = tiled_kl(hidden, head, ref_hidden, ref_head, temperature=self.temperature, into_grad=not self.is_sharded)
        options: Any = {"temperature": self.temperature, "into_grad": not self.is_sharded}
        if entropy:
            of_tokens, their_entropies = head_logprobs(hidden, head, tokens.ids, entropy=True, **options)
            return tokens.unpacked(of_tokens), tokens.unpacked(their_entropies), tokens.unpacked(kl)
        return tokens.unpacked(head_logprobs(hidden, head, tokens.ids, **options)), None, tokens.unpacked(kl)

    @torch.no_grad()
    def with_square_mass(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """log pi(token), and the sum of all tokens' squared probabilities, at each completion token, [B, T] each."""
        if isinstance(self.parts, str):
            logprobs = (self._logits(batch).float() / self.temperature).log_softmax(dim=-1)
            chosen = logprobs.gather(-1, batch.token_ids[..., None]).squeeze(-1)
            return chosen, (2 * logprobs).exp().sum(dim=-1)
        hidden, head, tokens = self._tokens(batch, self.parts)
        chosen = head_logprobs(hidden, head, tokens.ids, temperature=self.temperature)
        masses = square_masses(hidden, head, temperature=self.temperature)
        return tokens.unpacked(chosen), tokens.unpacked(masses)

    def per_token(self, batch: MicroBatch, of_hidden: Callable[[Tensor], Tensor]) -> Tensor:
        """[B, T]: `of_hidden` ([N, H] -> [N]) of the hidden states from which the completion tokens are predicted."""
        if isinstance(self.parts, str):
            raise ValueError(self.parts)
        hidden, _, tokens = self._tokens(batch, self.parts)
        return tokens.unpacked(of_hidden(hidden))

    def hidden_of(self, batch: MicroBatch) -> tuple[Tensor, Head]:
        """Hidden states [N, H] from which the N completion tokens are predicted, and the head."""
        assert not isinstance(self.parts, str)
        hidden, head, _ = self._tokens(batch, self.parts)
        return hidden, head

    def _tokens(self, batch: MicroBatch, parts: Parts) -> tuple[Tensor, Head, _Tokens]:
        """Hidden states [N, H] from which the N completion tokens are predicted, without padding."""
        laid_out = LaidOut.of(batch) if self.padding_free else None
        with self._as_configured():
            if laid_out is not None:
                hidden = parts.backbone(**laid_out.inputs, use_cache=False).last_hidden_state  # [1, W, H]
            else:
                hidden = self._run(parts.backbone, batch).last_hidden_state  # [B, ..., H]
        tokens = _Tokens.of(batch, apart=self.is_sharded)
        if laid_out is not None:
            positions = laid_out.predicting[batch.loss_mask]
        elif not self.shares_prompts:
            where = _predicting(batch) + hidden.shape[1] * torch.arange(len(hidden), device=hidden.device)[:, None]
            positions = where[batch.loss_mask]
        else:
            positions = tokens.indices
        # Outside autocast, which would round the head's input. `index_select`, as indexing's backward is slow on CPUs.
        return self._for_head(hidden.flatten(0, 1).index_select(0, positions)), parts.head, tokens

    def states(self, batch: MicroBatch) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The states [N, ...] that predict the N completion tokens, and a function from n of them to logits [n, V].

        So a caller can compute whole distributions in pieces. Logits are not divided by the temperature.
        """
        if isinstance(self.parts, str):
            return self._logits(batch)[batch.loss_mask], lambda logits: logits
        hidden, head, _ = self._tokens(batch, self.parts)
        return hidden, head.logits

    def of_states(self, batch: MicroBatch, function: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]) -> Tensor:
        """Applies `function` to the results of `states` in one forward pass, where a sharded head is gathered."""
        return function(*Policy.states(self, batch))

    def packed_logprobs(self, batch: PackedBatch) -> Tensor:
        """log pi(token) at each completion token of packed rows, [N] float32."""
        with self._as_configured():
            if isinstance(self.parts, str):
                logits = packed_logits(self.model, batch)
            else:
                hidden = packed_states(self.parts.backbone, batch)
        if isinstance(self.parts, str):
            return token_logprobs(logits, batch.token_ids, temperature=self.temperature)
        head = self.parts.head
        return head_logprobs(
            self._for_head(hidden), head, batch.token_ids, temperature=self.temperature, into_grad=not self.is_sharded
        )

    def _for_head(self, hidden: Tensor) -> Tensor:
        """Casts hidden states for the head: under autocast they may be in float32."""
        if self.dtype == torch.float32:
            return hidden
        return hidden.float() if self.fp32_head else hidden.to(self.dtype)

    def _logits(self, batch: MicroBatch) -> Tensor:
        """[B, T, V], for models that can't be split."""
        with self._as_configured():
            if self.shares_prompts:
                return self._run(self.model, batch).logits  # type: ignore[no-any-return]
            where = _predicting(batch)
            first = int(where.min())
            width = int(where.max()) + 2
            kept = {"logits_to_keep": torch.arange(first, width, device=where.device)}
            logits = self._run(self.model, batch, **kept).logits
        return logits.gather(1, (where - first)[..., None].expand(-1, -1, logits.shape[-1]))  # type: ignore[no-any-return]

    def _run(self, module: Any, batch: MicroBatch, **more: Any) -> Any:
        """Output of the model or its backbone for the completions: [B, T, ...] if prompts are shared (computed once,
        with all completions after them), else of whole sequences, padded on the right."""
        if not self.shares_prompts:
            return module(**_whole(batch, self.pad_id), use_cache=False, **more)
        return on_prompts(module, self.model, batch, self.pad_id, in_place=self.reads_in_place, **more)

    @contextlib.contextmanager
    def _as_configured(self) -> Iterator[None]:
        """Inside the context, computes in this policy's precision, with or without the model's adapter."""
        low = self.dtype != torch.float32
        # Its cache would keep a copy of every weight until the pass ends, of a sharded model too. Only a pass with
        # shared prompts uses weights twice.
        options: Any = {"enabled": low, "cache_enabled": self.shares_prompts}
        with (
            torch.autocast(self.model.device.type, dtype=self.dtype if low else torch.bfloat16, **options),
            contextlib.nullcontext() if self._adapted else without_adapter(self.model),
        ):
            yield

    def frozen_copy(self, *, sharing: bool = False) -> Policy:
        """A reference policy: the same weights, never trained.

        Args:
            sharing: both models will be sharded, and share the memory of their weights until then.
        """
        model = (sharing_copy if sharing else copy.deepcopy)(self.model).requires_grad_(False)
        return Policy(
            model,
            pad_id=self.pad_id,
            temperature=self.temperature,
            dtype=self.dtype,
            fp32_head=self.fp32_head,
            padding_free=self.padding_free,
        )

    def take_apart(self) -> None:
        """Reshards the embedding and the head of a sharded reference, before its state is read or changed."""
        if self.is_sharded:
            cast(Any, self).reshard()

    def before_adapter(self) -> Policy:
        """A reference policy without memory cost: this model with its adapter switched off."""
        policy = copy.copy(self)
        policy._adapted, policy._above = False, (self,)
        return policy

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight by its full name, tied ones under each of their names (an engine that packs them needs all).

        An adapter is merged into the weights.
        """
        yield from whole_weights(merged_weights(self.model))


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The N tokens of a micro-batch that its loss mask selects."""

    ids: Tensor  # [N]
    indices: Tensor  # [N] index into the flattened [B, T]
    shape: torch.Size  # [B, T]
    apart: bool  # return no views: an in-place change of a view would drop FSDP's hooks

    @classmethod
    def of(cls, batch: MicroBatch, *, apart: bool) -> _Tokens:
        indices = batch.loss_mask.flatten().nonzero().squeeze(-1)
        return cls(batch.token_ids.flatten()[indices], indices, batch.loss_mask.shape, apart)

    def unpacked(self, values: Tensor) -> Tensor:
        """[N] -> [B, T], 0 elsewhere."""
        grid = values.new_zeros(self.shape.numel()).index_copy(0, self.indices, values).view(self.shape)
        return grid.clone() if self.apart else grid


def _predicting(batch: MicroBatch) -> Tensor:
    """[B, T] position in the whole sequence whose output predicts completion token t."""
    lengths = torch.tensor([len(prompt) for prompt in batch.prompts], device=batch.token_ids.device)
    steps = torch.arange(batch.token_ids.shape[1], device=lengths.device)
    return lengths[batch.prompt_of_row][:, None] - 1 + steps


def _whole(batch: MicroBatch, pad_id: int) -> dict[str, Tensor]:
    """Input ids and mask [B, L + T]: each completion directly after its prompt, padded on the right."""
    prompts = [batch.prompts[n] for n in batch.prompt_of_row.tolist()]
    width = batch.token_ids.shape[1]
    inputs = torch.full((len(prompts), max(map(len, prompts)) + width), pad_id, device=batch.token_ids.device)
    mask = torch.zeros_like(inputs)
    for row, prompt in enumerate(prompts):
        end = len(prompt) + width
        inputs[row, : len(prompt)] = torch.tensor(prompt)
        inputs[row, len(prompt) : end] = batch.token_ids[row]
        mask[row, : len(prompt)] = 1
        mask[row, len(prompt) : end] = batch.valid_mask[row]
    return {"input_ids": inputs, "attention_mask": mask}


def enable_checkpointing(model: Any) -> None:
    """Makes the layers of a model in evaluation mode checkpoint their activations, still without dropout.

    Raises:
        UserError: they can't.
    """
    if not getattr(model, "supports_gradient_checkpointing", False):
        raise UserError(f"--gradient-checkpointing: {type(model).__name__} does not support it")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    for layer in model.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            layer.training = True  # else they don't checkpoint; without their submodules, whose dropout stays off
            if hasattr(layer, "config"):
                layer.config = copy.copy(layer.config)  # the model's own is saved with it
                _switch_off_dropout(layer.config)
            _switch_off_dropout(layer)


def _switch_off_dropout(owner: Any) -> None:
    """Sets the dropout probabilities among the attributes to 0."""
    for name, value in list(vars(owner).items()):
        if "drop" in name and isinstance(value, float):
            setattr(owner, name, 0.0)
