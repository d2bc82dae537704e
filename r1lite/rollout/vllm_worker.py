"""r1lite's additions to vLLM's workers: its weight receivers, and on a CPU the packing of new expert weights.

The CPU kernel packs experts at the first load. vLLM skips that step when weights change, because CUDA graphs hold the
addresses of the first tensors. Unpacked weights then land where packed ones are read, with an error if padding changes
their shape, and silently otherwise. CPUs have no such graphs, so here every load packs as the first one does.
"""

from __future__ import annotations

import functools
from typing import Any

from r1lite.rollout.vllm_plugin import register


class Worker:
    """vLLM imports this class in its worker, by `worker_extension_cls`, before it loads a model."""


def load_experts_as_at_first() -> None:
    """Patches vLLM's class for unquantized experts, on CPUs."""
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


register()  # needed if the entry point is not installed
load_experts_as_at_first()
