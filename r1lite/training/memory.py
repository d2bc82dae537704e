"""How much memory a run is going to need, told before it starts and compared with what it used.

Everything is counted for the longest texts that the settings allow, so a run of shorter ones stays below. Attention
kernels that keep a square of the length are not counted.
"""

from __future__ import annotations

import contextlib
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from r1lite.config import RLConfig, TrainConfig
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.model.quantized import scale_bytes
from r1lite.model.sharding import is_part, local
from r1lite.rl.logprobs import is_tiled
from r1lite.types import Prompt

_PROBE_TOKENS = 16, 48  # of a completion: activations grow in proportion
_PLAIN_COPIES = 3  # logits, their exponentials, their gradient
_TILE_MIB = 32
_LOADED_LATER = 100 << 20  # by the first optimizer step and the first checkpoint
_SAMPLER_COPIES = 28  # bytes a logit while a token is drawn: float32 twice, float64 twice and a little


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes, by what holds them."""

    base: int  # the process with its libraries; 0 on a GPU
    weights: int  # of policy, reference and critic
    gradients: int
    embedding: int  # its gradient once more: autograd makes it whole before it is added, when activations are gone
    optimizer: int
    activations: int  # of one micro-batch
    logits: int  # of one micro-batch
    sampler: int  # keys and values of the rows sampled at once, and the logits of one step; 0 if others sample

    @property
    def peak(self) -> int:
        """What is held at once: sampling and learning take turns."""
        always = self.base + self.weights + self.optimizer
        return always + max(self.gradients + self.held_to_learn, self.sampler)

    @property
    def held_to_learn(self) -> int:
        """What a micro-batch adds to weights, moments and gradients."""
        return max(self.activations + self.logits, self.embedding)

    def __str__(self) -> str:
        parts = {
            "weights": self.weights,
            "optimizer": self.optimizer,
            "gradients": self.gradients,
            "activations": self.activations,
            "logits": self.logits,
            "sampling": self.sampler,
            "libraries": self.base,
        }
        return f"at most {_mib(self.peak)}: " + ", ".join(
            f"{name} {_mib(size)}" for name, size in parts.items() if size
        )


def estimate(
    config: TrainConfig, policy: Policy, prompts: list[Prompt], others: list[Any], *, samples_here: bool
) -> Estimate:
    """What a run will hold.

    Args:
        others: learner's other models, the same object counted once: of a reference (frozen) or a critic (learns).
        samples_here: the engine decodes with this model in this process.
    """
    device = policy.model.device
    parameters = {id(p): p for model in (policy.model, *others) for p in model.parameters()}
    learning = [p for p in parameters.values() if p.requires_grad]
    weights, gradients = _size(list(parameters.values())), _size(learning)
    embedding = policy.model.get_input_embeddings().weight
    longest = max((len(prompt.token_ids) for prompt in prompts), default=config.max_prompt_tokens)
    tokens = config.micro_batch_tokens
    rows = config.rollout_rows
    if isinstance(config, RLConfig):
        completions = config.prompts_per_step * config.group_size
        tokens = min(tokens, config.prompts_per_step * longest + completions * config.max_completion_tokens)
        rows = min(rows, max(completions, config.eval_problems, config.eval_sample_problems * config.eval_samples))
    vocabulary, width = policy.model.get_output_embeddings().weight.shape
    if isinstance(policy.parts, str) or not is_tiled(tokens, vocabulary, width):
        logits = _PLAIN_COPIES * 4 * tokens * vocabulary
    else:
        logits = _TILE_MIB << 20
    used = 0 if device.type == "cuda" else psutil.Process().memory_info().rss
    return Estimate(
        base=max(0, used - weights) + _LOADED_LATER if used else 0,
        weights=weights,
        gradients=gradients,
        embedding=_size([embedding]) if embedding.requires_grad else 0,
        optimizer=2 * _size(learning),
        activations=_activations(policy, tokens),
        logits=logits,
        sampler=_sampler(config, policy, rows, longest, vocabulary) if samples_here else 0,
    )


def available(device: torch.device) -> int:
    """Bytes that this process holds or can still have."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_allocated(device)
    here = psutil.Process().memory_info().rss
    limits = [here + psutil.virtual_memory().available]
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits)


def forget_peak() -> None:
    """Has peaks count from here, without earlier runs of this process. Those of RAM are forgotten on Linux only."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak(device: torch.device) -> int:
    """The most bytes that this process has held on the device since `forget_peak`."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_rss()


def peak_rss() -> int:
    """The most bytes of RAM that this process has held since `forget_peak`."""
    with contextlib.suppress(OSError):  # getrusage has a parent's peak too, of before this program
        if found := re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()):
            return 1024 * int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def compared(expected: Estimate, used: int) -> str:
    """What was used, beside what was expected."""
    return f"peak {_mib(used)}; estimated at most {_mib(expected.peak)}"


def warning(expected: Estimate, room: int) -> str | None:
    """What to say if it may not fit."""
    if expected.peak <= room:
        return None
    helps = ["--micro-batch-tokens", "--gradient-checkpointing", "--lora-rank"]
    if expected.sampler > expected.gradients + expected.held_to_learn:
        helps = ["--rollout-rows", "--max-completion-tokens"]
    return (
        f"up to {_mib(expected.peak)} of memory may be needed, and {_mib(room)} is available; "
        f"{' and '.join(helps)} change what is needed"
    )


def _activations(policy: Policy, tokens: int) -> int:
    """Bytes that the backward pass needs of so many tokens: what a few tokens keep, extrapolated."""
    kept = [_kept(policy, length) for length in _PROBE_TOKENS]
    slope = (kept[1] - kept[0]) / (_PROBE_TOKENS[1] - _PROBE_TOKENS[0])
    return round(slope * tokens)


def _kept(policy: Policy, length: int) -> int:
    """Bytes of all tensors that one completion's forward pass saves, the weights left out."""
    ids = tuple(n % len(policy.model.get_input_embeddings().weight) for n in range(length + 1))
    (batch,) = micro_batches([Row(ids[:1], ids[1:])], 1, policy.pad_id, policy.model.device)
    weights = {local(p).untyped_storage().data_ptr() for p in policy.model.parameters()}
    # Of a sharded model each layer's weights are put together in storages of their size.
    together = {p.numel() * p.element_size() for p in policy.model.parameters() if is_part(p)}
    storages: dict[int, int] = {}

    def pack(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights and storage.nbytes() not in together:
            storages[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        result = policy.states(batch)  # what it saved lives as long as this
        total = sum(storages.values())
    del result
    return total


def _sampler(config: TrainConfig, policy: Policy, rows: int, longest: int, vocabulary: int) -> int:
    model = policy.model.config.get_text_config()
    heads = getattr(model, "num_key_value_heads", None) or model.num_attention_heads
    head = getattr(model, "head_dim", None) or model.hidden_size // model.num_attention_heads
    width = 4 if policy.dtype == torch.float32 else 2
    length = longest + config.max_completion_tokens
    copied = sum(p.numel() * p.element_size() for p in policy.model.parameters()) if policy.is_sharded else 0
    # A layer's room is copied when it grows.
    cache = 2 * rows * length * heads * head * width * (model.num_hidden_layers + 1)
    return int(copied + cache + _SAMPLER_COPIES * rows * vocabulary)


def _size(tensors: list[Any]) -> int:
    return sum(local(tensor).numel() * tensor.element_size() + scale_bytes(tensor) for tensor in tensors)


def _mib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 10 << 30 else f"{size / (1 << 20):,.0f} MiB"
