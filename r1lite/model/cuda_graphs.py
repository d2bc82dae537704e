"""Decoding with CUDA graphs: a step is captured once and replayed for each further token.

Launching the kernels of one decode step takes the CPU longer than a small model's kernels take on the GPU. A CUDA graph
launches all of them with one call. It reads and writes fixed addresses, so keys, values, mask and positions live in
buffers that the captured kernels update themselves.

Capturing was run once, on an H200 with nano for six steps. Everything else is tested on CPUs, where the same step runs
without a graph.

Shapes: R rows, L slots for the tokens of a row, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from r1lite.model.decoding import Decoding
from r1lite.model.prefix import Prefix

_ROOM = 256  # slots for further tokens; attention reads all of them at each step, and more slots need a new capture
_WARM_UP = 3  # steps before the capture: libraries allocate their workspaces in the first ones


class GraphDecoding(Decoding):
    """Decodes with CUDA graphs. A new graph is captured, at the cost of about four steps, when rows leave or room ends.

    Args:
        model: a causal language model for which `shares_batches` is true.
        max_tokens: largest number of tokens of a row.
    """

    compact_at = 0.5

    def __init__(self, model: Any, prefix: Prefix, max_tokens: int) -> None:
        super().__init__(model, prefix)
        self._left = max_tokens
        self._steps: FixedSteps | None = None

    def next_logits(self, tokens: Tensor) -> Tensor:
        room, self._left = min(_ROOM, self._left), self._left - 1
        if not self.prefix.mask.shape[1]:  # prompts of one token: there are no keys and values yet
            return super().next_logits(tokens)
        if self._steps is not None and self._steps.full:
            self.select(torch.arange(len(tokens), device=tokens.device))
        if self._steps is None:
            self._steps = FixedSteps(self.model, self.prefix, room)
        return self._steps.next_logits(tokens)

    def select(self, rows: Tensor) -> None:
        if self._steps is None:
            super().select(rows)
        else:
            self.prefix, self._steps = self._steps.prefix(rows), None


class FixedLayer(DynamicLayer):
    """Keys and values [R, heads, L, d] of a fixed length; `slot` is the position of the next token's."""

    def __init__(self, keys: Tensor, values: Tensor, length: int, slot: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = _with_room(keys, length), _with_room(values, length)
        self.slot, self.is_initialized = slot, True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        assert self.keys is not None
        assert self.values is not None
        self.keys.index_copy_(2, self.slot, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, self.slot, value_states.to(self.values.dtype))
        return self.keys, self.values


class FixedSteps:
    """Decode steps of R rows, at most `room` of them, on buffers with fixed addresses.

    The graph holds the addresses of the weights, so the weights must not be replaced before the last step.

    Args:
        model: a causal language model for which `shares_batches` is true.
        prefix: the tokens so far; its cache is copied and emptied, layer by layer, so that it is not held twice.
        room: further tokens that a row may get.
    """

    def __init__(self, model: Any, prefix: Prefix, room: int) -> None:
        rows, width = prefix.mask.shape
        length, device = width + room, prefix.mask.device
        self._model, self._room = model, room
        self._tokens = torch.zeros_like(prefix.last_tokens)
        self._positions = prefix.lengths.clone()
        self._slot = torch.tensor([width], device=device)
        self._mask = torch.zeros(rows, 1, 1, length, dtype=torch.bool, device=device)
        self._mask[..., :width] = prefix.mask.bool()[:, None, None]
        self._cache = DynamicCache()
        self._cache.layers = [FixedLayer(keys, values, length, self._slot) for keys, values in _taken(prefix.cache)]
        self._logits: Tensor | None = None
        self._graph = self._captured() if device.type == "cuda" else None

    @property
    def full(self) -> bool:
        """True if no row has room for another token."""
        return self._room == 0

    def next_logits(self, tokens: Tensor) -> Tensor:
        """Logits [R, V] after one more token per row, [R]; the next call overwrites them."""
        self._room -= 1
        self._tokens.copy_(tokens)
        if self._graph is None:
            return self._step()
        self._graph.replay()
        assert self._logits is not None
        return self._logits

    def prefix(self, rows: Tensor) -> Prefix:
        """The tokens of these rows so far, as a prefix from which further steps can continue; ends these steps."""
        width = int(self._slot)
        cache = DynamicCache()
        for index, (keys, values) in enumerate(_taken(self._cache)):
            cache.update(keys[rows, :, :width], values[rows, :, :width], index)
        return Prefix(cache, self._mask[rows, 0, 0, :width].long(), self._tokens[rows], self._positions[rows])

    def _step(self) -> Tensor:
        self._mask.index_fill_(3, self._slot, True)
        output = self._model(
            input_ids=self._tokens[:, None],
            position_ids=self._positions[:, None],
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        self._positions += 1
        self._slot += 1
        logits: Tensor = output.logits[:, -1]
        return logits

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Captures a step, and restores the buffers."""
        before = [buffer.clone() for buffer in (self._positions, self._slot, self._mask)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self._step()
                self._restore(before)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._logits = self._step()
        self._restore(before)
        return graph

    def _restore(self, before: list[Tensor]) -> None:
        for buffer, old in zip((self._positions, self._slot, self._mask), before, strict=True):
            buffer.copy_(old)


def _taken(cache: DynamicCache) -> Iterator[tuple[Tensor, Tensor]]:
    """Keys and values of each layer, which leave the cache."""
    layers = cast(list[Any], cache.layers)
    while layers:
        layer = layers.pop(0)
        yield layer.keys, layer.values


def _with_room(states: Tensor, length: int) -> Tensor:
    # Zeros: masked slots are multiplied by a weight of 0, which would keep a NaN.
    longer = states.new_zeros(*states.shape[:2], length, states.shape[3])
    longer[:, :, : states.shape[2]] = states
    return longer
