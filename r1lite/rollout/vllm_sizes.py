"""Memory of a vLLM engine: enough for its weights and for the completions sampled at once, and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from r1lite.config import DPOConfig, TrainConfig
from r1lite.errors import UserError

_GIB = 1 << 30
SLACK = 2 * _GIB  # activations, CUDA graphs, the runtime itself


@dataclass(frozen=True, slots=True)
class Need:
    """Memory needs of an engine, in bytes."""

    weights: int
    cache: int  # keys and values of all completions sampled at once, at full length
    parameters: int

    @property
    def cache_gib(self) -> int:
        """Whole GiB, at least 1."""
        return max(1, math.ceil(self.cache / _GIB))


def need(model_config: Any, parameters: int, *, bytes_per_value: int, rows: int, tokens: int) -> Need:
    """The memory a model needs to sample `rows` sequences of `tokens` tokens at once."""
    text = model_config.get_text_config() if hasattr(model_config, "get_text_config") else model_config
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    per_token = 2 * text.num_hidden_layers * heads * width * bytes_per_value
    return Need(parameters * bytes_per_value, per_token * rows * tokens, parameters)


def of_trainer(config: Any, weights: int, parameters: int) -> int:
    """Bytes of a run's own models with their gradients and moments. Adapters are small, and a teacher is unknown here.

    Args:
        config: of any stage; one that does not train holds weights alone.
        weights: bytes of the policy's weights.
    """
    if not isinstance(config, TrainConfig):
        return weights
    learning = (4 if config.offload_optimizer else 12) * parameters  # float32 gradient, two moments
    adapter = config.lora_rank > 0
    has_reference = isinstance(config, DPOConfig) or getattr(config, "has_reference", False)
    its_own = has_reference and (not adapter or getattr(config, "moves_reference", False))
    reference = weights if its_own and not config.offload_reference else 0
    critic = 4 * parameters + learning if getattr(config, "critic", "") == "own" else 0
    return weights + (0 if adapter else learning) + reference + critic


@dataclass(frozen=True, slots=True)
class Share:
    """How engine and trainer share one GPU."""

    memory: float  # the engine's share of all memory while it is awake
    sleeps: bool  # it frees its memory while the trainer works


def share(wanted: Need, total: int, *, trainer: int, asked: float | None, sleep: bool = False) -> Share:
    """The engine's share of a GPU that it shares with the trainer.

    Both stay in memory if they fit together. Otherwise the engine sleeps while the trainer works, and discards its
    weights (level 2 of vLLM's sleep): it gets new ones before it samples again, so a copy would only cost time.

    Args:
        trainer: its bytes, as from `of_trainer`.
        asked: `--engine-memory`.
        sleep: the engine sleeps even if both fit.

    Raises:
        UserError: not even the weights of both fit.
    """
    engine = wanted.weights + wanted.cache + SLACK
    working = trainer + max(SLACK, total // 5)  # with activations
    sleeps = sleep or working + engine > 0.95 * total
    free = total - (trainer if sleeps else working)
    least = int(1.05 * wanted.weights) + SLACK
    if asked is None and least > 0.95 * free:
        raise UserError(
            f"--engine vllm: the trainer's {trainer / _GIB:.1f} GiB (weights, gradients, moments) and vLLM's "
            f"{least / _GIB:.1f} GiB don't fit this GPU's {total / _GIB:.1f} GiB; give vLLM a GPU of its own with "
            "r1lite serve-engine and --engine vllm-server, or use a smaller model"
        )
    memory = asked if asked is not None else min(engine, 0.95 * free) / total
    return Share(round(min(0.95, memory), 3), sleeps)
