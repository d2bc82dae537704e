"""Assigns ranks and engines to nodes and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from r1lite.config.launch import LaunchConfig
from r1lite.errors import UserError


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A rank or an engine, with its node and GPUs."""

    kind: Literal["rank", "engine"]
    number: int
    node: int
    gpus: tuple[int, ...] = ()  # visible GPUs of its node: for a rank those of all ranks there, for an engine its own
    local_rank: int = 0  # number of a rank among those of its node
    local_ranks: int = 1

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.kind} {self.number}"

    @property
    def log(self) -> str:
        """Name of its log file."""
        return f"{self.kind}-{self.number}.log"


def lay_out(config: LaunchConfig, gpus: int) -> list[ProcessSpec]:
    """The ranks, in order, followed by the engines.

    Ranks fill whole nodes before engines get GPUs, because ranks exchange gradients in each update. Without GPUs both
    are spread evenly.

    Args:
        gpus: number of GPUs per node; 0: everything runs on CPUs.

    Raises: UserError if they don't fit.
    """
    nodes, ranks, engines, width = config.nodes, config.ranks, config.engines, config.tensor_parallel
    if not gpus:
        return _on_cpus(config)
    if width > gpus:
        raise UserError(f"--tensor-parallel {width}: an engine's GPUs must be on one node, and a node has {gpus}")
    if ranks > gpus and ranks % gpus:
        raise UserError(f"--ranks {ranks} on nodes of {gpus} GPUs: use a multiple of {gpus}, so that nodes are filled")
    per_node = min(ranks, gpus)
    free = [gpus - per_node if node < -(-ranks // gpus) else gpus for node in range(nodes)]
    if ranks > nodes * gpus or sum(one // width for one in free) < engines:
        each = f" of {width} GPUs each" if width > 1 else ""
        raise UserError(
            f"--ranks {ranks} and --engines {engines}{each} don't fit {nodes} node{'s' * (nodes > 1)} of {gpus} GPUs: "
            "use more --nodes, or fewer ranks or engines"
        )
    specs = [
        ProcessSpec("rank", number, number // gpus, tuple(range(per_node)), number % gpus, per_node)
        for number in range(ranks)
    ]
    for node in range(nodes):
        first = gpus - free[node]
        while len(specs) < ranks + engines and first + width <= gpus:
            specs.append(ProcessSpec("engine", len(specs) - ranks, node, tuple(range(first, first + width))))
            first += width
    if idle := nodes - 1 - max(spec.node for spec in specs):
        raise UserError(f"--nodes {nodes}: {idle} would have nothing to do; use --nodes {nodes - idle}")
    return specs


def _on_cpus(config: LaunchConfig) -> list[ProcessSpec]:
    nodes, ranks, engines = config.nodes, config.ranks, config.engines
    if config.tensor_parallel > 1:
        raise UserError(f"--tensor-parallel {config.tensor_parallel} is for GPUs, and --gpus-per-node is 0")
    if ranks > nodes and ranks % nodes:
        raise UserError(f"--ranks {ranks} on {nodes} nodes: use a multiple of {nodes}, the same number on each node")
    if nodes > max(ranks, engines):
        raise UserError(f"--nodes {nodes}: some would have nothing to do; use --nodes {max(ranks, engines)}")
    each = max(1, ranks // nodes)
    specs = [ProcessSpec("rank", number, number // each, (), number % each, each) for number in range(ranks)]
    # From the last node backwards, so that with fewer ranks than nodes the engines get the other nodes.
    return specs + [ProcessSpec("engine", number, nodes - 1 - number % nodes) for number in range(engines)]
