"""Joins the ranks of a launcher to a world, and leaves it again."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1lite.distributed.launcher import RankInfo, rank_info
from r1lite.distributed.world import ALONE, World
from r1lite.errors import Interrupted, RunError, UserError

if TYPE_CHECKING:
    from r1lite.distributed.pulse import Pulse

_DAY_S = 86400.0
_JOINS = itertools.count()  # number of joins in this process, so that runs have different keys in the store


@dataclass(slots=True)
class Joined:
    """A world, and the pulse that watches it if it has several ranks."""

    world: World
    pulse: Pulse | None = None

    @property
    def who(self) -> str:
        """Prefix of this rank's messages."""
        return "" if self.pulse is None else f"rank {self.world.rank}: "

    def describe(self, doing: Callable[[], str]) -> None:
        """Sets the function that describes this rank's current work in messages."""
        if self.pulse is not None:
            self.pulse.doing = doing

    def keep(self, folder: Path, resume: str) -> None:
        """Sets what is used if another rank's failure ends the run.

        Args:
            folder: the run directory, where stacks are saved.
            resume: the command that resumes the run, for the message.
        """
        if self.pulse is not None:
            self.pulse.folder, self.pulse.resume = folder, resume

    def tell(self, message: str) -> bool:
        """Tells the other ranks why this rank ends. Returns False if another rank is already ending the run."""
        return self.pulse is None or self.pulse.tell(message)


@contextlib.contextmanager
def joined(*, device: str, start_s: float, limit_s: float, wait_s: float) -> Iterator[Joined]:
    """Joins the ranks that the launcher started; without a launcher the process is a world of one.

    Args:
        device: as in --device; with "auto" or "cuda" each rank uses the GPU with its local rank.
        start_s: seconds to wait for the other ranks at the start; 0: a day.
        limit_s: a rank without a heartbeat for this many seconds ends the run; 0: never.
        wait_s: seconds that the others may wait for a living rank; 0: a week.

    Raises:
        UserError: the environment is incomplete, or --device names one GPU for several ranks.
        SystemExit: instead of an exception of the body, after this rank or another one has reported it.
    """
    here = rank_info()
    if here is None:
        yield Joined(ALONE)
        return
    cuda = _own_gpu(device, here)
    import torch.distributed as dist
    from torch.distributed import PrefixStore, TCPStore
    from torch.distributed.rendezvous import rendezvous

    from r1lite.distributed.pulse import Pulse
    from r1lite.distributed.ranks import Ranks

    os.environ.update(RANK=str(here.rank), WORLD_SIZE=str(here.size), MASTER_PORT=str(here.port))
    outer = dist.is_initialized()  # True under Ray Train
    first: Any = None
    if not outer:
        waits = timedelta(seconds=start_s or _DAY_S)
        try:
            first, _, _ = next(iter(rendezvous("env://", timeout=waits)))
        except (RuntimeError, ValueError) as error:
            raise RunError(
                f"rank {here.rank}: the {here.size} ranks could not connect at {here.address}:{here.port}: {error}"
            ) from error
    name = f"r1lite-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-{next(_JOINS)}"

    def connect(timeout: timedelta) -> Any:
        own = TCPStore(here.address, here.port, is_master=False, wait_for_workers=False, timeout=timeout)
        return PrefixStore(name, own)

    pulse = Pulse(connect, here.rank, here.size, limit_s=limit_s)
    try:
        if not outer:
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if cuda else "gloo",
                store=PrefixStore(name, first),
                rank=here.rank,
                world_size=here.size,
                timeout=timedelta(seconds=wait_s or 7 * _DAY_S),
            )
        if cuda:
            _refuse_shared_gpus(Ranks(pulse.lost))
        yield Joined(Ranks(pulse.lost), pulse)
        Ranks(pulse.lost).barrier()  # each rank sends heartbeats until then
    except BaseException as error:
        if (why := _broken_connection(error)) is not None:
            pulse.lost(why)  # doesn't return: ends this process
        raise SystemExit(_told(error, pulse, here)) from None
    finally:
        pulse.leave()
    if not outer:
        dist.destroy_process_group()


def _broken_connection(error: BaseException | None) -> str | None:
    """The message of a library's collective about a lost rank; None if the error has another cause."""
    import torch.distributed as dist

    while error is not None:
        if isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo/transport" in str(error)):
            return str(error)
        error = error.__cause__
    return None


def _own_gpu(device: str, here: RankInfo) -> bool:
    """True if the ranks compute on GPUs; sets the current device to this rank's GPU."""
    if device.startswith("cuda:"):
        raise UserError(f"--device {device} is one GPU, but there are {here.size} ranks: use --device cuda")
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return False
    count = torch.cuda.device_count()
    if here.local_rank >= count > 1:
        raise UserError(
            f"rank {here.rank} is number {here.local_rank} on its machine, which has {count} GPUs: "
            "start as many ranks as there are GPUs, or use --device cpu"
        )
    torch.cuda.set_device(0 if count == 1 else here.local_rank)  # Slurm may show each rank its own GPU alone
    return True


def _refuse_shared_gpus(world: World) -> None:
    """Raises UserError if two ranks have the same GPU; NCCL would only say so in the middle of the first step."""
    import torch

    own = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    held = world.all_gather_object(own)
    if shared := [rank for rank, other in enumerate(held) if held.count(other) > 1]:
        same = [rank for rank in shared if held[rank] == held[shared[0]]]
        raise UserError(
            f"ranks {', '.join(map(str, same))} have the same GPU: start as many ranks as there are GPUs, or use "
            "--device cpu"
        )


def _told(error: BaseException, pulse: Pulse, here: RankInfo) -> int:
    """Reports the error that ends this rank, unless the main rank reports the same. Returns the exit code."""
    if isinstance(error, SystemExit):
        text, code = f"exit {error.code}", error.code if isinstance(error.code, int) else 1
    elif isinstance(error, Interrupted):
        text, code = str(error), 128 + error.signum
    elif isinstance(error, UserError):
        text, code = str(error), 2
    elif isinstance(error, RunError):
        text, code = str(error), 1
    elif isinstance(error, OSError):
        text, code = f"{error.filename or ''}: {error.strerror or error}", 1
    else:
        traceback.print_exception(error)
        text, code = f"{type(error).__name__}: {error}", 1
    where = f"rank {here.rank}, in {pulse.doing()}: "
    alike = pulse.failed(text)
    if isinstance(error, Interrupted):
        # A launcher sends SIGTERM to the other ranks when one was killed.
        if not alike:
            pulse.report_gone()
    elif here.rank == 0 or not alike:
        for line in (text if alike else where + text).splitlines():
            print(f"error: {line}", file=sys.stderr, flush=True)
    if alike:
        pulse.spoken()
    return code
