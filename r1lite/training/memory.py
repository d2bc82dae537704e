"""Estimates the memory of a run before it starts, and compares the estimate with the memory used.

The estimate assumes the longest texts that the settings allow, so runs with shorter texts stay below it. It does not
include attention kernels whose memory grows with the square of the length.
"""

from __future__ import annotations

import contextlib
import math
import re
import resource
import sys
from collections.abc import Iterable
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
from r1lite.model.sharding import is_part, layers_of, local
from r1lite.model.transposed import transposable
from r1lite.rl.logprobs import is_tiled
from r1lite.types import Prompt

_PROBE_TOKENS = 16, 48  # lengths of two probe completions: activations grow linearly with the length
_PLAIN_COPIES = 3  # logits, their exponentials, their gradient
_TILE_MIB = 32
# Measured on an H100 and an H200 with 0.5 and 1.5 B parameters, and rounded up (benchmarks/gpu/README.md).
_GPU_TILE_MIB = 1024  # a tile of a GPU has 256 MiB of float32 logits
_GPU_BACKWARD = 1 / 6  # gradients and workspaces of the backward pass, as a share of the activations
_LOADED_LATER = 100 << 20  # libraries loaded by the first optimizer step and the first checkpoint
# oneDNN's bfloat16 kernels on a CPU, and heap fragments of their buffers: 240 MiB after 10 steps of nano, 320 after
# 40, with AVX512_BF16 and a cache of 64 kernels (`r1lite.cli`); over 500 with oneDNN's default of 1,024 kernels.
_BFLOAT16_KERNELS = 350 << 20
_CUBLAS = 2 * (32 << 20)  # its workspaces on an H200, for the threads of the forward and the backward pass
_BUCKET_MIB = 32  # size of the buckets in which gradients are summed
_SAMPLER_COPIES = 28  # bytes per logit while a token is drawn: two float32, two float64 and a little


@dataclass(frozen=True, slots=True)
class Layout:
    """How the ranks of a run hold a model."""

    ranks: int = 1
    shard: str = "none"
    copies: int = 1  # number of copies of a sharded model (HSDP)

    @property
    def in_parts(self) -> bool:
        """Returns True if the model is sharded."""
        return self.ranks > 1 and self.shard != "none"

    def held(self, parameter: Any) -> int:
        """Bytes of a parameter on each rank; FSDP2 splits the first dimension and pads the last shard."""
        whole: int = parameter.numel() * parameter.element_size() + scale_bytes(parameter)
        if not self.in_parts or not parameter.ndim:
            return whole
        rows: int = parameter.shape[0]
        return math.ceil(rows / (self.ranks // self.copies)) * (whole // rows)

    def of_other_ranks(self, model: Any) -> int:
        """Bytes of gathered weights and unreduced gradients that a rank holds at once while a model learns.

        For embedding and head: weights and gradient. For the layers: the weights of one layer and of the next, a
        gradient and its send buffer. With --shard grad, the weights of all layers.
        """
        learning = [p for p in model.parameters() if p.requires_grad]
        if not self.in_parts:
            if self.ranks == 1:
                return 0
            return min(_whole(learning), max([_BUCKET_MIB << 20, *(_whole([p]) for p in learning)]))
        sizes = [
            (_whole(layer.parameters()), _whole(p for p in layer.parameters() if p.requires_grad))
            for layer in layers_of(model)
        ]
        weights, gradients = (sum(column) for column in zip(*sizes, strict=True))
        rest = _whole(model.parameters()) - weights + _whole(learning) - gradients
        largest, its_gradient = max(sizes)
        layers = weights if self.shard == "grad" else min(2, len(sizes)) * largest
        return int(rest + layers + 2 * its_gradient)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of one rank by purpose."""

    base: int  # the process with its libraries; on a GPU the workspaces of its matrix products
    weights: int  # of the policy
    reference: int  # its weights; 0 if it is the policy without its adapter
    critic: int  # its weights
    gradients: int
    embedding: int  # a second copy of its gradient, which autograd creates when the activations are already freed
    optimizer: int
    of_other_ranks: int  # gathered shards of other ranks, see `Layout.of_other_ranks`
    activations: int  # of one micro-batch
    logits: int  # of one micro-batch
    sampler: int  # keys and values of all rows sampled at once, and logits of a step; 0 if an engine elsewhere samples

    @property
    def always(self) -> int:
        """Bytes that are held permanently."""
        return self.weights + self.reference + self.critic + self.optimizer

    @property
    def peak(self) -> int:
        """Maximum bytes held at once; sampling and learning alternate."""
        return self.base + self.always + max(self.gradients + self.held_to_learn, self.sampler)

    @property
    def held_to_learn(self) -> int:
        """Bytes that a micro-batch adds to weights, moments and gradients."""
        return self.of_other_ranks + max(self.activations + self.logits, self.embedding)

    def __str__(self) -> str:
        parts = {
            "weights": self.weights,
            "reference": self.reference,
            "critic": self.critic,
            "optimizer": self.optimizer,
            "gradients": self.gradients,
            "of other ranks": self.of_other_ranks,
            "activations": self.activations,
            "logits": self.logits,
            "sampling": self.sampler,
            "libraries": self.base,
        }
        return f"at most {_mib(self.peak)}: " + ", ".join(
            f"{name} {_mib(size)}" for name, size in parts.items() if size
        )


def estimate(
    config: TrainConfig,
    policy: Policy,
    prompts: list[Prompt],
    others: list[Any],
    *,
    samples_here: bool,
    layout: Layout = Layout(),
) -> Estimate:
    """Estimates the memory of each rank of a run.

    Args:
        others: other models of the learner, a reference (frozen) or a critic (trained); the same object counts once.
        samples_here: the engine samples with this model in this process.
    """
    device, model = policy.model.device, policy.model
    longest = max((len(prompt.token_ids) for prompt in prompts), default=config.max_prompt_tokens)
    shared = policy.layout == "shared prompts"
    tokens = minibatch_tokens(config, longest, config.micro_batch_tokens, shares_prompts=shared)
    cuda = device.type == "cuda"
    if cuda:
        base = _CUBLAS
    else:
        held = sum(_size(list(one.parameters())) for one in {id(one): one for one in (model, *others)}.values())
        base = max(0, psutil.Process().memory_info().rss - held)
        base += _LOADED_LATER + (_BFLOAT16_KERNELS if policy.dtype == torch.bfloat16 else 0)
    return of_models(
        config,
        layout,
        model,
        others,
        base=base,
        activations=with_backward(_activations(policy, tokens), cuda=cuda),
        logits=logits_of(model, tokens, whole=isinstance(policy.parts, str), cuda=cuda),
        sampler=sampler_of(config, layout, model, longest, policy.dtype) if samples_here else 0,
    )


def of_models(
    config: TrainConfig,
    layout: Layout,
    model: Any,
    others: list[Any],
    *,
    base: int,
    activations: int,
    logits: int,
    sampler: int,
) -> Estimate:
    """Like `estimate`, for models that are loaded, sharded, or only known by their shapes."""
    own = {id(p): p for p in model.parameters()}
    further: dict[int, tuple[Any, bool]] = {}
    for one in others:
        learns = any(p.requires_grad for p in one.parameters())
        further |= {id(p): (p, learns) for p in one.parameters() if id(p) not in own}
    learning = [p for p in (*own.values(), *(p for p, _ in further.values())) if p.requires_grad]
    gradients = sum(map(layout.held, learning))
    embedding = model.get_input_embeddings().weight
    frozen = (one for one in others if not any(p.requires_grad for p in one.parameters()))
    aside = {
        id(p) for one in frozen if config.offload_reference for layer in layers_of(one) for p in layer.parameters()
    }
    return Estimate(
        base=base,
        weights=sum(map(layout.held, own.values())),
        reference=sum(layout.held(p) for number, (p, learns) in further.items() if not learns and number not in aside),
        critic=sum(layout.held(p) for p, learns in further.values() if learns),
        gradients=gradients,
        embedding=_whole([embedding]) if embedding.requires_grad else 0,
        optimizer=0 if config.offload_optimizer else 2 * gradients,
        of_other_ranks=layout.of_other_ranks(model),
        activations=activations,
        logits=logits,
        sampler=sampler,
    )


def minibatch_tokens(config: TrainConfig, longest: int, budget: int, *, shares_prompts: bool) -> int:
    """Returns the tokens of the largest micro-batch.

    Args:
        shares_prompts: a prompt goes through the model once for all of its completions.
    """
    if not isinstance(config, RLConfig):
        return budget
    completions = config.prompts_per_step * config.group_size
    prompts = config.prompts_per_step if shares_prompts else completions
    return min(budget, prompts * longest + completions * config.max_completion_tokens)


def with_backward(activations: int, *, cuda: bool) -> int:
    """Bytes that a micro-batch needs while gradients flow back through its activations."""
    return round(activations * (1 + _GPU_BACKWARD)) if cuda else activations


def logits_of(model: Any, tokens: int, *, whole: bool, cuda: bool) -> int:
    """Bytes of the logits while `tokens` tokens are learnt from.

    Args:
        whole: the model's head can't be called separately, so all logits exist at once.
        cuda: the model is on a GPU, where tiles are larger.
    """
    vocabulary, width = model.get_output_embeddings().weight.shape
    if whole or not is_tiled(tokens, vocabulary, width):
        return int(_PLAIN_COPIES * 4 * tokens * vocabulary)
    return (_GPU_TILE_MIB if cuda else _TILE_MIB) << 20


def available(device: torch.device) -> int:
    """Bytes that this process holds or can still allocate."""
    if device.type == "cuda":
        # Reserved, not allocated: what the evaluation before has freed is kept by torch, and used again.
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    here = psutil.Process().memory_info().rss
    limits = [here + psutil.virtual_memory().available]
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits)


def forget_peak() -> None:
    """Resets the peak counters, so that earlier runs of this process don't count. For RAM this only works on Linux."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak(device: torch.device) -> int:
    """Maximum bytes that this process has held on the device since `forget_peak`."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_rss()


def peak_rss() -> int:
    """Maximum bytes of RAM that this process has held since `forget_peak`."""
    with contextlib.suppress(OSError):  # unlike getrusage, it excludes the parent's peak before this program started
        if found := re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()):
            return 1024 * int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def compared(expected: Estimate, used: int) -> str:
    """Returns a line with the used and the estimated memory."""
    return f"peak {_mib(used)}; estimated at most {_mib(expected.peak)}"


def warning(expected: Estimate, room: int) -> str | None:
    """Returns a warning if the run may not fit, otherwise None."""
    if expected.peak <= room:
        return None
    helps = ["--micro-batch-tokens", "--gradient-checkpointing", "--lora-rank"]
    if expected.sampler > expected.gradients + expected.held_to_learn:
        helps = ["--rollout-rows", "--max-completion-tokens"]
    return (
        f"up to {_mib(expected.peak)} of memory may be needed, but only {_mib(room)} is available; "
        f"{' and '.join(helps)} reduce it"
    )


def _activations(policy: Policy, tokens: int) -> int:
    """Bytes of activations for the backward pass of `tokens` tokens, extrapolated from probes with few tokens.

    They include a constant part: bfloat16 products keep a copy of each weight.
    """
    short, long = (_kept(policy, length) for length in _PROBE_TOKENS)
    slope = (long - short) / (_PROBE_TOKENS[1] - _PROBE_TOKENS[0])
    return round(long + slope * (tokens - _PROBE_TOKENS[1]))


def _kept(policy: Policy, length: int) -> int:
    """Bytes of all tensors, except weights, that the forward pass of one completion saves."""
    ids = tuple(n % len(policy.model.get_input_embeddings().weight) for n in range(length + 1))
    (batch,) = micro_batches([Row(ids[:1], ids[1:])], 1, policy.pad_id, policy.model.device)
    weights = {local(p).untyped_storage().data_ptr() for p in policy.model.parameters()}
    # The weights of a sharded layer are gathered into storages of their size.
    together = {p.numel() * p.element_size() for p in policy.model.parameters() if is_part(p)}
    storages: dict[int, int] = {}

    def pack(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights and storage.nbytes() not in together:
            storages[storage.data_ptr()] = storage.nbytes()
        return value.detach()  # detached, since the value itself would keep its graph alive

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        result = policy.states(batch)  # the saved tensors live as long as this result
        total = sum(storages.values())
    del result
    return total


def sampler_of(config: TrainConfig, layout: Layout, model: Any, longest: int, dtype: torch.dtype) -> int:
    """Bytes that sampling with the trainer's model needs in addition to the weights."""
    rows = config.rollout_rows
    if isinstance(config, RLConfig):
        completions = config.prompts_per_step * config.group_size
        rows = min(rows, max(completions, config.eval_problems, config.sampled_problems * config.eval_samples))
    text = model.config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    width = 4 if dtype == torch.float32 else 2
    length = longest + config.max_completion_tokens
    copied = _whole(model.parameters()) if layout.in_parts else 0
    if dtype == torch.float32:
        copied += _size(transposable(model))
    elif not layout.in_parts:  # the weights' copies in this precision
        cast = {id(module.weight): module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)}
        copied += width * sum(weight.numel() for weight in cast.values() if weight.requires_grad)
    # The cache of a layer is copied when it grows.
    cache = 2 * rows * length * heads * head * width * (text.num_hidden_layers + 1)
    return int(copied + cache + _SAMPLER_COPIES * rows * model.get_output_embeddings().weight.shape[0])


def _whole(parameters: Iterable[Any]) -> int:
    """Bytes of the parameters without sharding."""
    return sum(p.numel() * p.element_size() + scale_bytes(p) for p in parameters)


def _size(tensors: list[Any]) -> int:
    return sum(local(tensor).numel() * tensor.element_size() + scale_bytes(tensor) for tensor in tensors)


def _mib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 10 << 30 else f"{size / (1 << 20):,.0f} MiB"
