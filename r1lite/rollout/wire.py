"""A process group of a trainer and one server's workers, and the transfer of bytes through it in buckets.

Trainer and workers create the group as vLLM's nccl backend does: the trainer is rank 0 and listens, and the workers
join it. Neither uses torch.distributed's default group. Nothing here needs vLLM.
"""

from __future__ import annotations

import concurrent.futures
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from r1lite.rollout.weight_delta import decode, digest

_POLL = timedelta(seconds=0.1)
_JOIN_POLL_S = 0.01


class WireError(Exception):
    """The other side is gone, or did not answer in time."""


class Group:
    """A gloo group.

    Args:
        address: rank 0's address.
        listening: rank 0's socket, bound and listening there; without it torch's store would listen on all addresses.
        timeout_s: limit for each collective.
        going: called while this waits; an exception in it ends the wait.

    Raises:
        WireError: the other processes did not join in time.
    """

    def __init__(
        self,
        address: str,
        port: int,
        rank: int,
        size: int,
        *,
        timeout_s: float,
        listening: socket.socket | None = None,
        going: Callable[[], None] = lambda: None,
    ) -> None:
        from torch.distributed import PrefixStore, ProcessGroupGloo, TCPStore

        self.timeout_s = timeout_s
        self._work: Any = None  # the newest collective
        wait = timedelta(seconds=timeout_s)
        own: dict[str, Any] = {} if listening is None else {"master_listen_fd": listening.detach()}
        options = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # torch's stubs lack it
        options._timeout = wait
        options._devices = [ProcessGroupGloo.create_device(hostname=local_address(address))]
        try:
            self._store: Any = TCPStore(
                address, port, size, is_master=rank == 0, timeout=wait, wait_for_workers=False, **own
            )
            # gloo's own wait can't be cancelled: it begins when all processes have joined, in a thread of its own.
            self._store.set(f"here/{rank}", "")
            deadline = time.monotonic() + timeout_s
            while rank == 0 and not self._store.check([f"here/{other}" for other in range(size)]):
                going()
                if time.monotonic() > deadline:
                    raise WireError(f"the server did not connect to {address}:{port} within {timeout_s:g} s")
                time.sleep(_JOIN_POLL_S)
            store = PrefixStore("r1lite", self._store)
            self._group: Any = _while(going, lambda: ProcessGroupGloo(store, rank, size, options))
        except RuntimeError as error:
            raise WireError(_first_line(error)) from error

    def broadcast(self, data: Tensor, *, going: Callable[[], None] = lambda: None) -> None:
        """Sends rank 0's bytes [b] to all. Raises WireError after the group's timeout, or an exception of `going`."""
        from torch.distributed import BroadcastOptions

        if self._group is None:
            raise WireError("the connection is closed")
        options = BroadcastOptions()
        options.rootRank = options.rootTensor = 0
        deadline = time.monotonic() + self.timeout_s
        try:
            work = self._work = self._group.broadcast([data], options)
            while not _finished(work):
                going()
                if time.monotonic() > deadline:
                    raise WireError(f"the other side did nothing for {self.timeout_s:g} s")
        except RuntimeError as error:
            raise WireError(_first_line(error)) from error

    def close(self) -> None:
        """Leaves the group at once. If a collective is still running, gloo's own threads end by themselves, and the
        process waits for them at most one timeout before it exits."""
        kept, self._group, self._store = [self._group, self._store], None, None
        work, self._work = self._work, None
        if kept[0] is not None and work is not None and not work.is_completed():
            threading.Thread(target=_end, args=(work, kept), name="gloo-end").start()


def _while(going: Callable[[], None], work: Callable[[], Any]) -> Any:
    """Returns the result of work in another thread, which an exception of `going` leaves to its own timeout."""
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="gloo-connect")
    made = pool.submit(work)
    pool.shutdown(wait=False)
    while not made.done():
        going()
        concurrent.futures.wait([made], timeout=_JOIN_POLL_S)
    return made.result()


def _finished(work: Any) -> bool:
    """True as soon as the work is done; False after a while. Raises RuntimeError if it failed."""
    try:
        work.wait(_POLL)
    except RuntimeError:
        if work.is_completed():
            raise
        return False
    return True


def _end(work: Any, kept: list[Any]) -> None:
    """Frees a group once its collective is over; freeing it earlier would block every thread of this process."""
    while not work.is_completed():
        time.sleep(_JOIN_POLL_S)
    kept.clear()


def local_address(towards: str) -> str:
    """This machine's address on the route to a host. Raises OSError for a host without an address."""
    kind, _, _, _, target = socket.getaddrinfo(towards, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # sends nothing
        return str(probe.getsockname()[0])


def buckets(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Index ranges of payloads that are sent together: up to `limit` bytes, or one larger payload. Skips empty ones."""
    begin, held = 0, 0
    for end, size in enumerate(sizes):
        if held and held + size > limit:
            yield range(begin, end)
            begin, held = end, 0
        held += size
    if held:
        yield range(begin, len(sizes))


class Staging:
    """The receiver's copy of the weights, by their names in the model's files. An update is assembled here, and applied
    to the model only when it is complete and has the sender's digests.

    Args:
        expected: (name, shape) of the model's weights, read once.
        dtype_name: the model's precision.
    """

    def __init__(self, expected: Callable[[], dict[str, tuple[int, ...]]], dtype_name: str) -> None:
        self._read, self._dtype = expected, dtype_name
        self._expected: dict[str, tuple[int, ...]] | None = None
        self._label: str | None = None
        self.ready = False  # True while a complete update waits to be applied
        self.tensors: dict[str, Tensor] = {}

    def check(self, about: dict[str, Any]) -> None:
        """Raises ValueError if the model can't take the update as a whole."""
        if self._expected is None:
            self._expected = self._read()
        names, dtypes = about["names"], about["dtype_names"]
        shapes = [tuple(shape) for shape in about["shapes"]]
        if len({len(column) for column in (names, dtypes, shapes)}) > 1 or len(set(names)) != len(names):
            raise ValueError("weights refused: names, dtypes and shapes don't belong together")
        wrong = [
            f"{name} {shape} of {dtype}, where the model has {self._expected.get(name, 'none')} of {self._dtype}"
            for name, shape, dtype in zip(names, shapes, dtypes, strict=True)
            if self._expected.get(name) != shape or dtype != self._dtype
        ]
        wrong += [f"{name} is missing" for name in sorted(self._expected.keys() - set(names))]
        if wrong:
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            raise ValueError(f"weights refused: {'; '.join(wrong[:3])}{more}")
        if about.get("base") is not None and about["base"] != self._label:
            raise ValueError(f"weights refused: they are changes to {about['base']}, but {self._label} is here")

    def receive(self, about: dict[str, Any], read: Callable[[Tensor], None]) -> None:
        """Receives an update; `read` fills buffers of bytes in the order of the sender's buckets.

        Raises:
            ValueError: refused, or bytes differ from the sender's. Staged weights are lost; the model is not changed.
        """
        self.check(about)
        label, self._label, self.ready = about["label"], None, False
        names, sizes, forms = about["names"], about["sizes"], about["forms"]
        if about["base"] is None:
            self.tensors = {}
        try:
            for indices in buckets(sizes, about["bucket_bytes"]):
                bucket = torch.empty(sum(sizes[i] for i in indices), dtype=torch.uint8)
                read(bucket)
                parts = bucket.split([sizes[i] for i in indices])
                for i, part in zip(indices, parts, strict=True):
                    if names[i] not in self.tensors:
                        self.tensors[names[i]] = torch.zeros(about["shapes"][i], dtype=getattr(torch, self._dtype))
                    decode(forms[i], part, self.tensors[names[i]])
            for name, form, expected in zip(names, forms, about["digests"], strict=True):
                if name not in self.tensors or (form != "same" and digest(self.tensors[name]) != expected):
                    raise ValueError(f"weights refused: {name} arrived with different bytes than the trainer's")
        except BaseException:
            self.tensors = {}
            raise
        self._label, self.ready = label, True


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
