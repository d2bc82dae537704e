"""A scripted vLLM server that takes weights over gloo, by vLLM's calls and with the real group and staging."""

import zlib

import torch
from fleet_for_tests import FakeVLLM

from r1lite.rollout.wire import Group, Staging, WireError


def checksum_of(tensors):
    """Of all bytes, by name."""
    total = 0
    for _, tensor in sorted(tensors.items()):
        total = zlib.crc32(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes(), total)
    return total


class FakeGloo(FakeVLLM):
    """One server.

    Args:
        shapes: of the model's weights by name.
        during: called with (server, number of the bucket) before each bucket of an update is read.
    """

    def __init__(self, *, shapes, dtype="float32", during=lambda server, bucket: None, configured=True, **settings):
        self.shapes, self.dtype, self.during, self.configured = shapes, dtype, during, configured
        self.group, self.updates = None, []
        super().__init__(**settings)

    def start(self):
        if self.group is not None:
            self.group.close()
        self.group, self.active, self.staging = None, False, Staging(lambda: self.shapes, self.dtype)
        super().start()

    def stop(self):
        super().stop()
        if self.group is not None:
            self.group.close()

    def route(self, path, body):
        try:
            known = self.transfer(path, body)
        except (ValueError, RuntimeError, WireError) as error:
            self.active = False
            return 500, str(error)
        return known or super().route(path, body)

    def transfer(self, path, body):
        if path == "get_world_size":
            return 200, {"world_size": 1}
        if path == "abort_requests":
            with self.lock:
                self.rounds += 1
                self.lock.notify_all()
            return 200, {}
        if path == "init_weight_transfer_engine":
            if not self.configured:
                raise RuntimeError("Weight transfer not configured.")
            about = body["init_info"]
            if self.group is not None:
                self.group.close()
            self.group = Group(
                about["master_address"], about["master_port"], 1, about["world_size"], timeout_s=about["timeout_s"]
            )
            return 200, {}
        if path == "start_weight_update":
            if self.active:
                raise RuntimeError("start_weight_update called while a weight update is already active.")
            self.active = True
            return 200, {}
        if path == "update_weights":
            return self.update(dict(body["update_info"]))
        if path == "finish_weight_update":
            if not self.staging.ready:
                raise RuntimeError("no complete update was received")
            self.active = self.staging.ready = False
            with self.lock:
                self.weights, self.label = checksum_of(self.staging.tensors), body["weight_version"]
            return 200, {}
        return None

    def update(self, about):
        if about.get("abandon") or not self.active:
            raise ValueError("abandoned")
        if about.pop("check_only", False):
            self.staging.check(about)
            return 200, {}
        group, count = self.group, iter(range(1 << 30))
        if group is None:
            raise RuntimeError("no trainer is connected")

        def read(bucket):
            self.during(self, next(count))
            if self.dead:
                group.close()
            group.broadcast(bucket)

        self.updates.append(about)
        try:
            self.staging.receive(about, read)
        except BaseException:
            group.close()
            self.group = None
            raise
        return 200, {}
