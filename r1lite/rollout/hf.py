"""The transformers engine: samples with the trainer's own model, so its weights can't be stale."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from r1lite.model import evaluating
from r1lite.model.cuda_graphs import GraphDecoding
from r1lite.model.decoding import Decoding
from r1lite.model.mapped import empty_copy, wide
from r1lite.model.prefix import Prefix, prefill, reads_shared_prompts, shares_batches
from r1lite.model.transposed import transposed_weights
from r1lite.rl.sampling import sample_tokens, uniform_draws
from r1lite.rollout import RolloutEngine, Sampling, check_prompts, eos_ids, text_of
from verifiers import Completion


class HFEngine(RolloutEngine):
    """Group sampling with a transformers model.

    Each prompt is prefilled once for its whole group, finished rows are removed from the batch, and each completion
    has its own stream of random numbers.

    Args:
        model, tokenizer: as transformers loads them; the model is shared with the trainer, not copied.
        max_rows: completions decoded at once.
        dtype: of the forward pass; below float32 it runs under autocast, as the trainer does.
        cuda_graphs: decode by CUDA graphs; the model is on a CUDA device, and `shares_batches(model)` is true.
    """

    shares_weights, runs_aside = True, False
    # Below float32: trained weights are cast once for all tokens of a batch. The copies, which autocast keeps outside
    # inference mode only, take the place of the gradients, which do not exist meanwhile.
    casts_once: ClassVar[bool] = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_rows: int = 128,
        dtype: torch.dtype = torch.float32,
        cuda_graphs: bool = False,
    ) -> None:
        self.model, self.tokenizer, self.max_rows, self.dtype = model, tokenizer, max_rows, dtype
        self.cuda_graphs = cuda_graphs
        self.policy_version = 0
        self.pad_id, self._ends = pad_id(tokenizer), eos_ids(model, tokenizer)
        self._context = getattr(model.config, "max_position_embeddings", None)
        self._shares_batches = shares_batches(model)
        self._reads_shared_prompts: bool | None = None  # not tested yet

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        check_prompts(prompts, sampling.max_tokens, self._context)
        groups: list[list[Completion | None]] = [[None] * len(group) for group in seeds]
        rows = [_Row(p, g, seed) for p, group in enumerate(seeds) for g, seed in enumerate(group)]
        # Prompts of similar length together, for less padding. A group is spread over as few batches as possible.
        rows.sort(key=lambda row: (len(prompts[row.prompt]), row.prompt, row.sample))
        for batch in self._batches(rows):
            self._decode_apart(batch, prompts, sampling)
            for row in batch:
                groups[row.prompt][row.sample] = self._completion(row)
            for p in sorted({row.prompt for row in batch}):
                group = [completion for completion in groups[p] if completion is not None]
                if len(group) == len(seeds[p]):
                    yield p, group

    def _decode_apart(self, batch: list[_Row], prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        """Decodes in evaluation mode and without gradients, and restores the model's own mode."""
        low = self.dtype != torch.float32
        autocast = torch.autocast(self.model.device.type, dtype=self.dtype, enabled=low)
        transposed = contextlib.nullcontext() if low else transposed_weights(self.model)
        without_grad = torch.no_grad() if low and self.casts_once else torch.inference_mode()
        with evaluating(self.model), transposed, without_grad, autocast:
            self._decode(batch, prompts, sampling)

    def _completion(self, row: _Row) -> Completion:
        return Completion(
            text=text_of(self.tokenizer, row.token_ids, self._ends),
            token_ids=tuple(row.token_ids),
            logprobs=tuple(row.logprobs),
            finish_reason="stop" if row.stopped else "length",
            policy_version=self.policy_version,
        )

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Only records the version: the model is the trainer's own."""
        self.policy_version = version

    def sleep(self) -> None:
        """Nothing to free: the model is the trainer's."""

    def close(self) -> None:
        """Nothing to free: the model is the trainer's."""

    def _batches(self, rows: list[_Row]) -> Iterable[list[_Row]]:
        batch: list[_Row] = []
        for row in rows:
            other_prompt = not self._shares_batches and batch and batch[-1].prompt != row.prompt
            if len(batch) == self.max_rows or other_prompt:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _decode(self, batch: list[_Row], prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        device = self.model.device
        distinct = sorted({row.prompt for row in batch})
        prefix = prefill(self.model, [prompts[p] for p in distinct], self.pad_id, growing=not self.cuda_graphs)
        self._spread(prefix, torch.tensor([distinct.index(row.prompt) for row in batch], device=device))
        decoding = (
            GraphDecoding(self.model, prefix, sampling.max_tokens) if self.cuda_graphs else Decoding(self.model, prefix)
        )
        draws = uniform_draws([row.seed for row in batch], sampling.max_tokens).to(device)  # [B, T]
        token_ids = torch.full((len(batch), sampling.max_tokens), self.pad_id, device=device)
        logprobs = torch.zeros(len(batch), sampling.max_tokens, device=device)
        lengths = torch.full((len(batch),), sampling.max_tokens, device=device)
        stopped = torch.zeros(len(batch), dtype=torch.bool, device=device)

        running = torch.arange(len(batch), device=device)  # rows of the batch that the cache still holds
        done = torch.zeros_like(stopped)  # of the running rows
        tokens = prefix.last_tokens
        stop_text, ends_at = sampling.stop_text, torch.tensor(self._ends, dtype=torch.long, device=device)
        if stop_text in self.tokenizer.all_special_tokens:  # decoding drops special tokens, so compare ids
            ends_at = torch.cat([ends_at, ends_at.new_tensor([self.tokenizer.convert_tokens_to_ids(stop_text)])])
            stop_text = None
        for step in range(sampling.max_tokens):
            tokens, step_logprobs = sample_tokens(
                decoding.next_logits(tokens),
                draws[running, step],
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                min_p=sampling.min_p,
            )
            token_ids[running, step], logprobs[running, step] = tokens, step_logprobs
            ends = torch.isin(tokens, ends_at)
            if stop_text:
                ends |= self._at_stop_text(token_ids[running, : step + 1], stop_text)
            first_end = running[ends & ~done]
            lengths[first_end], stopped[first_end] = step + 1, True
            done |= ends
            num_left = int((~done).sum())
            if num_left == 0:
                break
            if num_left < decoding.compact_at * len(running):
                keep = (~done).nonzero().squeeze(-1)
                decoding.select(keep)
                running, tokens, done = running[keep], tokens[keep], done[keep]

        for row, ids, row_logprobs, length, ended in zip(
            batch, token_ids.tolist(), logprobs.tolist(), lengths.tolist(), stopped.tolist(), strict=True
        ):
            row.token_ids, row.logprobs, row.stopped = ids[:length], row_logprobs[:length], ended

    def _spread(self, prefix: Prefix, rows: Tensor) -> None:
        """Gives each row its prompt: shared by all rows if the model can read shared prompts, else as a copy."""
        if self._reads_shared_prompts is None:  # only now, because an engine with a copy gets its weights late
            self._reads_shared_prompts = reads_shared_prompts(self.model)
        if self._reads_shared_prompts and prefix.mask.shape[1] and not self.cuda_graphs:
            prefix.share(rows)
        else:
            prefix.select(rows)

    def _at_stop_text(self, token_ids: Tensor, stop_text: str) -> Tensor:
        """[B, t] ids so far -> [B] bool: True if the text now contains the stop text."""
        window = len(stop_text.encode()) + 4  # a token has at least a byte, and the last may begin before the text
        tails = self.tokenizer.batch_decode(token_ids[:, -window:], skip_special_tokens=True)
        return torch.tensor([stop_text in tail for tail in tails], device=token_ids.device)


class HFCopyEngine(HFEngine):
    """Samples with a copy of a sharded model; the copy is empty at first and while it sleeps.

    It gets the weights, and every change of them, before it samples, so they can't be stale here either.
    """

    casts_once = False  # its rank's gradients are smaller than copies of all weights

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        device: str,
        max_rows: int = 128,
        dtype: torch.dtype = torch.float32,
        cuda_graphs: bool = False,
    ) -> None:
        copy = empty_copy(model, device)
        super().__init__(copy, tokenizer, max_rows=max_rows, dtype=dtype, cuda_graphs=cuda_graphs)
        # Tied weights are listed under each of their names.
        self._places = dict(self.model.named_parameters(remove_duplicate=False))

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Every rank calls this, because each weight is gathered for all ranks."""
        for name, value in weights:
            if name in self._places:
                self._places[name].data = wide(value.detach()).to(self.model.device, copy=True)
        super().load_weights((), version=version)

    def sleep(self) -> None:
        for parameter in self._places.values():
            parameter.data = parameter.data.new_empty(0)


@dataclass(slots=True)
class _Row:
    """One completion in progress."""

    prompt: int
    sample: int
    seed: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stopped: bool = False


def pad_id(tokenizer: Any) -> int:
    """An id for padding; masks exclude padding everywhere, so any id works."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0
