"""What r1lite adds to vLLM's workers: its receivers of weights, and on a CPU new weights for the experts of a mixture.

The CPU kernel packs experts when they are loaded first. At a change of weights vLLM leaves that step out, since CUDA
graphs keep the addresses of theirs, and unpacked weights land where packed ones are read: by an error where padding
changes their shape, without one elsewhere. CPUs have no such graphs, so here every load is as the first one.
"""

from __future__ import annotations

import functools
from typing import Any

from r1lite.rollout.vllm_plugin import register


class Worker:
    """vLLM imports this class in its worker, by `worker_extension_cls`, before it loads a model."""


def load_experts_as_at_first() -> None:
    """Changes vLLM's class for experts that are not quantized, on CPUs."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod

    set_up = UnquantizedFusedMoEMethod._setup_kernel

    @functools.wraps(set_up)
    def afresh(method: Any, *args: Any, **kwargs: Any) -> None:
        method.moe_kernel = None
        set_up(method, *args, **kwargs)

    UnquantizedFusedMoEMethod._setup_kernel = afresh


register()  # also where the entry point is not installed
load_experts_as_at_first()
