"""Registers r1lite's weight receivers with vLLM: a plugin of the group `vllm.general_plugins`."""

from __future__ import annotations

BACKENDS = {"gloo": "Gloo", "nccl": "Nccl", "ipc": "Ipc"}


def backend(transport: str) -> str:
    """The name in vLLM's registry, where plain "nccl" is vLLM's own."""
    return f"r1lite_{transport}"


def register() -> None:
    """Called in each of vLLM's processes, perhaps more than once. Has no effect on servers with other backends."""
    try:
        from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
    except ImportError:  # a version without weight transfer
        return
    for transport, name in BACKENDS.items():
        if backend(transport) not in WeightTransferEngineFactory._registry:
            WeightTransferEngineFactory.register_engine(backend(transport), "r1lite.rollout.vllm_receivers", name)
