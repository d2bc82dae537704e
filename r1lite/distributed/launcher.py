"""Reads this process's rank from the environment that a launcher sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from r1lite.errors import UserError

_PORT = "29500"


@dataclass(frozen=True, slots=True)
class RankInfo:
    """A process's place among those of a run."""

    rank: int
    size: int
    local_rank: int  # number on its machine
    local_size: int
    address: str  # address of rank 0's machine
    port: int


def rank_info(environment: Mapping[str, str] = os.environ) -> RankInfo | None:
    """This process's rank, or None if it was started without a launcher.

    torchrun, Kubernetes' PyTorchJob and Ray Train set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. `srun` sets its
    own variables, and the user must export MASTER_ADDR.

    Raises:
        UserError: some variables are missing or aren't numbers.
    """
    if "RANK" in environment or "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    elif "SLURM_STEP_NUM_TASKS" in environment and "SLURM_PROCID" in environment:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")
    else:
        return None
    rank, size = (_number(environment, name) for name in names[:2])
    if size == 1:
        return None
    if not 0 <= rank < size:
        raise UserError(f"{names[0]}={rank} with {names[1]}={size}: ranks are 0 to {names[1]} - 1")
    if "MASTER_ADDR" not in environment:
        raise UserError(
            f"{names[1]}={size}, but MASTER_ADDR is not set: start with torchrun, or export the name of rank 0's "
            "machine; on Slurm: export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
        )
    local_rank, local_size = (
        _number(environment, name) if name in environment else otherwise
        for name, otherwise in zip(names[2:], (0, 1), strict=True)
    )
    port = _number({"MASTER_PORT": _PORT, **environment}, "MASTER_PORT")
    return RankInfo(rank, size, local_rank, max(local_size, 1), environment["MASTER_ADDR"], port)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name)
    if text is None:
        raise UserError(f"{name} is not set, but related variables are: start with torchrun")
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{name} must be a whole number, got {text!r}") from None
