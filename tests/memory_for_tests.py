"""One rank of several: runs commands, and writes what its tensors really held. For `Forks.start_ranks`.

Jobs: {"argv": [...], "held": a file's path}. The file of rank R is PATH.R: bytes alive after the last step, of
gradients before the last update, and for each shape of a micro-batch what its forward pass kept.
"""

import gc
import json
import os
import sys
import weakref
from pathlib import Path

import torch
import world_for_tests
from torch import Tensor
from torch.distributed.tensor import DTensor

from r1lite.grpo.loop import Loop
from r1lite.model import policy
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.model.sharding import local

HELD = {}


def storages(tensors):
    found = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
    found.pop(0, None)
    return found


def alive():
    gc.collect()
    tensors = [one for one in gc.get_objects() if isinstance(one, Tensor)]
    return storages(one for one in tensors if not isinstance(one, DTensor))


def step_and_measure(self, number):
    result = STEP(self, number)
    HELD["alive"] = sum(alive().values())
    return result


def update_and_measure(self, lr):
    grads = [local(p.grad) for p in self.parameters if p.grad is not None]
    HELD.setdefault("gradients", {})[id(self)] = sum(storages(grads).values())
    return UPDATE(self, lr)


def kept_by(self, batch):
    """(fields of a BatchShape, bytes that a policy's forward pass keeps of this micro-batch)."""
    packed = []

    def pack(value):
        kept = value.detach()  # itself, it would hold the graph that holds it
        # Those of a sharded model come and go, and may lie where another one lay.
        weights = storages(local(p) for p in self.model.parameters())
        if value.untyped_storage().data_ptr() not in weights:
            packed.append(weakref.ref(kept))
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        states = Policy.states(self, batch)  # not through FSDP once more: this is within its forward pass
    size = sum(storages(value for one in packed if (value := one()) is not None).values())
    del states
    prompt, length = max(map(len, batch.prompts)), batch.token_ids.shape[1]
    if self.shares_prompts:
        shape = len(batch.prompts), len(batch.rows), prompt, length, True
    else:
        padded = not bool(policy._whole(batch, 0)["attention_mask"].all())
        shape = 0, len(batch.rows), 0, prompt + length, padded
    return shape, size


def forward_and_measure(self, batch, **options):
    if torch.is_grad_enabled():
        HELD.setdefault("kept", []).append(kept_by(self, batch))
    return FORWARD(self, batch, **options)


STEP, UPDATE, FORWARD = Loop.step, Optimizer.step, Policy.forward


def run_all(path):
    torch.set_num_threads(1)
    Loop.step, Optimizer.step, Policy.forward = step_and_measure, update_and_measure, forward_and_measure
    for job in json.loads(Path(path).read_text()):
        HELD.clear()
        code = world_for_tests.run({"argv": job["argv"], "double": False})
        if code:
            sys.exit(code)
        HELD["gradients"] = sum(HELD["gradients"].values())
        Path(f"{job['held']}.{os.environ.get('RANK', '0')}").write_text(json.dumps(HELD))
