"""Senders of weights to one vLLM server through its own calls: by gloo, and by vLLM's nccl and CUDA IPC.

vLLM defines the order: /init_weight_transfer_engine once, then for each update /start_weight_update, /update_weights
during the transfer, and /finish_weight_update with the name of the weights. The server needs the receivers of
`vllm_receivers.py` (`r1lite serve-engine --weight-transport`): /update_weights with `check_only` checks an update
before any byte is sent, the update is staged, and /finish_weight_update applies it. The server is never paused, so none
stays paused if its trainer dies. While it receives it samples no tokens, and waits for a bucket COLLECTIVE_S at most.

`ExternalSender` (nccl, ipc) is written from the sources of vLLM 0.32 and was never run, for lack of a GPU.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from r1lite.rollout import EngineError
from r1lite.rollout.client import Client, Refused, Unreachable
from r1lite.rollout.process_limits import opening_socket, starting_thread
from r1lite.rollout.weight_memory import Snapshot
from r1lite.rollout.wire import Group, WireError, buckets, local_address

COLLECTIVE_S = 60.0  # limit for one bucket: 1 MiB/s is enough


class Calls:
    """vLLM's calls for weights; the methods are those that vLLM's trainer engines expect of a client.

    Raises Unreachable and Refused.
    """

    def __init__(self, client: Client, *, timeout_s: float) -> None:
        self.client, self.timeout_s = client, timeout_s
        self.label = ""  # of the weights being sent

    def _post(self, path: str, body: Any = None) -> None:
        self.client.post(path, body, timeout_s=self.timeout_s)

    def workers(self) -> int:
        """Number of processes that hold the model or parts of it."""
        return int(self.client.get("get_world_size", timeout_s=self.timeout_s)["world_size"])

    def weights_held(self) -> str:
        """The name of the weights that the server reports."""
        return str(self.client.get("weight_info", timeout_s=self.timeout_s)["weight_version"])

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._post("init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        """Begins an update; first ends one that a dead trainer has left open."""
        try:
            self._post("start_weight_update")
        except Refused as error:
            if error.later:
                raise
            with contextlib.suppress(Refused):  # always raised: the refusal is what ends an update
                self.update_weights({"abandon": True})
            self._post("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._post("update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        # Otherwise open requests would continue with new weights on the old weights' keys and values.
        self._post("abort_requests", {})
        self._post("finish_weight_update", {"weight_version": weight_version or self.label})


class Sender(Protocol):
    """Sends weights to one server."""

    bytes_sent: int

    def send(self, snapshot: Snapshot) -> None:
        """Sends weights; the server samples from them afterwards. The caller must empty its prefix cache.

        Raises:
            Unreachable: the server is gone, or the connection broke.
            Refused: the server refused the weights, and still has the former ones.
        """

    def close(self) -> None:
        """Cancels a transfer in progress; the next send() connects again."""


class GlooSender:
    """Sends through a gloo group of this process and the server's workers."""

    def __init__(self, client: Client, *, timeout_s: float) -> None:
        self._calls, self._url = Calls(client, timeout_s=timeout_s), client.url
        self._timeout_s = min(COLLECTIVE_S, timeout_s)
        self._group: Group | None = None
        self._base: str | None = None  # label of the weights that the server has staged
        self.bytes_sent = 0

    def send(self, snapshot: Snapshot) -> None:
        # Otherwise the server was restarted, or got weights of another run.
        if self._base is not None and self._calls.weights_held() == self._base:
            try:
                return self._send(snapshot)
            except Refused as error:
                if error.later:
                    raise
                # It lost the base of the changes, so send all weights.
        self.close()
        self._group = self._connect()
        return self._send(snapshot)

    def _send(self, snapshot: Snapshot) -> None:
        calls, base = self._calls, self._base
        about, payloads = snapshot.update(base)
        try:
            calls.start_weight_update()
            calls.update_weights({**about, "check_only": True})
            try:
                self._together(
                    lambda: calls.update_weights(about), lambda going: self._payloads(about, payloads, going)
                )
            except Refused as error:  # the model accepts these weights, as checked above, so the transfer failed
                raise Unreachable(f"{self._url}: the weights did not arrive as a whole: {error}") from error
            calls.finish_weight_update(snapshot.label)
        except BaseException:
            self.close()
            raise
        self._base = snapshot.label

    def close(self) -> None:
        group, self._group, self._base = self._group, None, None
        if group is not None:
            group.close()

    def _connect(self) -> Group:
        calls = self._calls
        size = 1 + calls.workers()
        host = urlsplit(self._url).hostname or ""
        with contextlib.ExitStack() as stack, opening_socket(self._url):
            address = local_address(host)
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listening = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listening.bind((address, 0))
            listening.listen()
            port = listening.getsockname()[1]
            about = {"master_address": address, "master_port": port, "world_size": size, "timeout_s": self._timeout_s}
            made: list[Group] = []

            def join(going: Callable[[], None]) -> None:
                made.append(Group(address, port, 0, size, timeout_s=self._timeout_s, listening=listening, going=going))

            self._together(lambda: calls.init_weight_transfer_engine(about), join)
            return made[0]

    def _payloads(self, about: dict[str, Any], payloads: list[Any], going: Callable[[], None]) -> None:
        import torch

        assert self._group is not None
        for indices in buckets(about["sizes"], about["bucket_bytes"]):
            bucket = torch.cat([payloads[i] for i in indices])
            self._group.broadcast(bucket, going=going)
            self.bytes_sent += bucket.numel()

    def _together(self, ask: Callable[[], None], work: Callable[[Callable[[], None]], None]) -> None:
        """Calls the server in a separate thread, and does this process's part meanwhile.

        Raises:
            Unreachable, Refused: the server's answer, which names the cause better than a broken connection.
        """
        pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="r1lite-weights")
        with starting_thread():
            answer = pool.submit(ask)
        pool.shutdown(wait=False)

        def going() -> None:
            if answer.done():
                answer.result()

        try:
            work(going)
            answer.result()
        except WireError as error:
            with contextlib.suppress(concurrent.futures.TimeoutError):
                answer.result(timeout=2.0)
            raise Unreachable(f"{self._url}: the connection for weights broke: {error}") from error


class ExternalSender:
    """Sends with vLLM's own trainer engines, for nccl and ipc. Never run.

    Args:
        backend: "nccl" or "ipc".
        device: the trainer's device, to which the weights are copied first.

    Raises (when made): EngineError if vLLM can't be imported.
    """

    def __init__(self, client: Client, *, timeout_s: float, backend: str, device: str) -> None:
        try:
            from vllm.distributed.weight_transfer import base, factory, ipc_engine, nccl_engine
        except ImportError as error:
            raise EngineError(f"--weight-transport {backend} needs vLLM beside the trainer too: {error}") from error
        import torch

        gpu = torch.device(device)
        # Each thread has a current GPU of its own, the first one by default, and vLLM's engines take the current one.
        self._gpu = -1 if gpu.type != "cuda" else torch.cuda.current_device() if gpu.index is None else gpu.index
        self._base, self._factory, self._nccl, self._ipc = base, factory, nccl_engine, ipc_engine
        self._calls, self._backend, self._device = _CheckedCalls(client, timeout_s=timeout_s), backend, device
        self._host, self._timeout_s = urlsplit(client.url).hostname or "", timeout_s
        self._engine: Any = None
        self.bytes_sent = 0

    def send(self, snapshot: Snapshot) -> None:
        self._calls.snapshot, self._calls.label = snapshot, snapshot.label
        sent: concurrent.futures.Future[None] = concurrent.futures.Future()
        calls = self._calls

        def work() -> None:
            try:
                self._send(calls)
            except BaseException as error:
                sent.set_exception(error)
            else:
                sent.set_result(None)

        # nccl has no timeout, and a thread that waits for it can't be stopped, so the thread is abandoned. The process
        # could never exit with a thread of a pool, for which Python waits.
        with starting_thread():
            threading.Thread(target=work, name="weights-by-vllm", daemon=True).start()
        try:
            sent.result(timeout=self._timeout_s)
        except concurrent.futures.TimeoutError as error:
            self._abandon()
            raise Unreachable(f"{calls.client.url}: update not finished after {self._timeout_s:g} s") from error
        except BaseException:
            self._abandon()
            raise
        self.bytes_sent += sum(tensor.nbytes for tensor in snapshot.tensors.values())

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()

    def _abandon(self) -> None:
        """Ends a failed transfer. Unless NCCL's part is aborted, it blocks vLLM's streams, which all transfers share;
        its thread then goes on, and must not tell the server that the update is complete."""
        self._calls.abandoned = True
        self._calls = _CheckedCalls(self._calls.client, timeout_s=self._timeout_s)
        with contextlib.suppress(Exception):
            self.close()

    def _send(self, calls: _CheckedCalls) -> None:
        import torch

        with torch.cuda.device(self._gpu):  # -1: none
            engine = self._engine or self._connect(calls)
            if not calls.abandoned:
                self._engine = engine
            engine.send_weights()

    def _connect(self, calls: _CheckedCalls) -> Any:
        source = _source(self._base, lambda: calls.snapshot, self._device)
        if self._backend == "ipc":
            import torch

            if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
                raise EngineError("--weight-transport ipc is for one rank: vLLM's sender needs all ranks of a trainer")
            about = self._ipc.IPCTrainerInitInfo(rank=0)  # one update with all names, so that the check sees all
        else:
            address = local_address(self._host)
            with socket.socket() as probe:
                probe.bind((address, 0))
                port = probe.getsockname()[1]
            size = 1 + calls.workers()
            about = self._nccl.NCCLTrainerInitInfo(rank=0, master_address=address, master_port=port, world_size=size)
        return self._factory.WeightTransferTrainerFactory.trainer_init(about, client=calls, source=source)


class _CheckedCalls(Calls):
    """Checks an update before anything of it is sent."""

    snapshot: Snapshot | None = None  # the weights being sent
    abandoned = False  # by a transfer that failed

    def _post(self, path: str, body: Any = None) -> None:
        if self.abandoned:
            raise Unreachable(f"{self.client.url}: the update was abandoned")
        super()._post(path, body)

    def start_weight_update(self) -> None:
        # Not when vLLM's engine asks for the transfer: by then it waits in NCCL, which can't be stopped.
        super().start_weight_update()
        assert self.snapshot is not None
        self.update_weights({**self.snapshot.described(), "check_only": True})

    def update_weights(self, update_info: dict[str, Any]) -> None:
        from vllm.distributed.weight_transfer.clients import _json_safe_update_info

        super().update_weights(_json_safe_update_info(update_info))


def _source(base: Any, newest: Callable[[], Snapshot | None], device: str) -> Any:
    """vLLM's `WeightSource` for the newest snapshot."""

    class Source(base.WeightSource):  # type: ignore[misc]  # vLLM's classes are untyped here
        def metadata(self) -> list[Any]:
            snapshot = newest()
            assert snapshot is not None
            return [base.ParamMeta(name, t.dtype, tuple(t.shape)) for name, t in snapshot.tensors.items()]

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            snapshot = newest()
            assert snapshot is not None
            for name, tensor in snapshot.tensors.items():
                yield name, tensor.to(device)

    return Source()
