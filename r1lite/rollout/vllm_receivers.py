"""The server's side of weights over a connection: engines for vLLM's weight transfer, loaded into its workers.

vLLM's own engines overwrite the model while weights arrive: if the trainer dies in the middle, the model mixes both
versions, and a tensor of another shape raises no error. These engines check an update as a whole, stage it in CPU
memory (one copy of the model), and load it into the model when it is complete, on each worker.

`Gloo` was run with vLLM 0.32 on CPUs. `Nccl` and `Ipc` are vLLM's own engines with the same staging; they were never
run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferEngine
from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine

from r1lite.hub.loading import empty_model
from r1lite.rollout.layout import file_layout
from r1lite.rollout.wire import Group, Staging


class Staged:
    """Checks, stages and applies updates; a base class that comes before an engine of vLLM."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        dtype = str(self.model_config.dtype).removeprefix("torch.")  # type: ignore[attr-defined]
        self.staging = Staging(self._expected, dtype)

    def _expected(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes in the layout of the model's files, from its configuration alone."""
        model = empty_model(self.model_config.hf_config)  # type: ignore[attr-defined]
        return {name: tuple(weight.shape) for name, weight in file_layout(model)(model.state_dict().items())}

    def start_weight_update(self) -> None:
        """Does not touch the model, which stays complete until the end."""
        self.staging.ready = False

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Receives an update, or only checks it. Raises ValueError if it is refused or abandoned."""
        if update_info.get("abandon"):
            raise ValueError("weights refused: the update was abandoned")
        about = dict(update_info)
        if about.pop("check_only", False):
            self.staging.check(about)
        else:
            self.receive_weights(self.parse_update_info(about))  # type: ignore[attr-defined]

    def finish_weight_update(self) -> None:
        """Loads the staged weights into the model."""
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

        if not self.staging.ready:
            raise RuntimeError("weights refused: no complete update was received")
        self.staging.ready = False
        model, device = self.model, self.device  # type: ignore[attr-defined]
        initialize_layerwise_reload(model)
        model.load_weights((name, weight.to(device)) for name, weight in self.staging.tensors.items())
        finalize_layerwise_reload(model, self.model_config)  # type: ignore[attr-defined]


@dataclass(kw_only=True)
class GlooInit(WeightTransferInitInfo):  # type: ignore[misc]
    """The trainer's address; the same fields as vLLM's nccl."""

    master_address: str
    master_port: int
    world_size: int
    rank_offset: int = 1
    timeout_s: float = 60.0


@dataclass(kw_only=True)
class GlooUpdate(WeightTransferUpdateInfo):  # type: ignore[misc]
    """vLLM's fields, and those that `weight_memory.Snapshot.update` adds."""

    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]
    forms: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    label: str = ""
    base: str | None = None
    bucket_bytes: int = 1


class Gloo(Staged, WeightTransferEngine):  # type: ignore[misc]
    """Receives by gloo, which every CPU supports."""

    init_info_cls = GlooInit
    update_info_cls = GlooUpdate
    group: Group | None = None

    def init_transfer_engine(self, init_info: GlooInit) -> None:
        """Joins the trainer's group; a second call replaces the first group."""
        self.shutdown()
        parallel = self.parallel_config
        rank = parallel.data_parallel_index * parallel.world_size + parallel.rank + init_info.rank_offset
        self.group = Group(
            init_info.master_address,
            init_info.master_port,
            rank,
            init_info.world_size,
            timeout_s=init_info.timeout_s,
        )

    def receive_weights(self, update_info: GlooUpdate) -> None:
        """Stages an update. A group whose collective failed is closed, because it can't be used again."""
        if self.group is None:
            raise RuntimeError("weights refused: no trainer is connected")
        try:
            self.staging.receive(asdict(update_info), self.group.broadcast)
        except BaseException:
            self.shutdown()
            raise

    def shutdown(self) -> None:
        """Leaves the group."""
        group, self.group = self.group, None
        if group is not None:
            group.close()


class _Collector:
    """Replaces the model while vLLM's engines load weights, and keeps copies of them."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        for name, weight in weights:
            self.tensors[name] = weight.to("cpu", copy=True)


class _Collected(Staged):
    def receive_weights(self, update_info: Any) -> None:
        """Lets vLLM's engine receive an update, and stages the result."""
        self.staging.check(asdict(update_info))
        model, collector = self.model, _Collector()  # type: ignore[has-type]
        self.model = collector
        try:
            super().receive_weights(update_info)  # type: ignore[misc]
        finally:
            self.model = model
        self.staging.tensors, self.staging.ready = collector.tensors, True


class Nccl(_Collected, NCCLWeightTransferEngine):  # type: ignore[misc]
    """Receives by NCCL. Never run."""


class Ipc(_Collected, IPCWeightTransferEngine):  # type: ignore[misc]
    """Receives by CUDA IPC, on one GPU. Never run."""

    def finish_weight_update(self) -> None:
        super().finish_weight_update()
        self._packed_importer.close()  # as vLLM's own engine does
