"""A server of vLLM's routes that samples from a real model with the weights it was given, in float32."""

from pathlib import Path

import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from fleet_for_tests import FakeVLLM
from safetensors.torch import load_file

from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine

_GRID = 1e-5  # weights are rounded to it: what another order of sums changed in them changes no completion


class ServedModel(FakeVLLM):
    """One server."""

    def __init__(self, **settings):
        self.model = make_tiny_model()
        self.engine = HFEngine(self.model, make_tiny_tokenizer())
        self.given = 0  # updates
        super().__init__(**settings)

    def route(self, path, body):
        if path == "collective_rpc":
            values = load_file(Path(body["kwargs"]["weights_path"]) / "model.safetensors")
            with self.lock, torch.no_grad():
                own = self.model.state_dict()
                for name, value in values.items():
                    own[name].copy_((value / _GRID).round() * _GRID)
                self.given += 1
        return super().route(path, body)

    def choices(self, body, *, cut, weights=None):
        sampling = Sampling(
            body["temperature"], body["max_tokens"], (body.get("stop") or [None])[0], min_p=body.get("min_p", 0.0)
        )
        seeds = [body["seed"] + i for i in range(body["n"])]
        torch.set_num_threads(1)
        (group,) = self.engine.generate([body["prompt"]], [seeds], sampling)
        found = [
            {
                "index": i,
                "token_ids": list(one.token_ids),
                "logprobs": {"token_logprobs": list(one.logprobs)},
                "finish_reason": one.finish_reason,
            }
            for i, one in enumerate(group)
        ]
        if cut:
            found = [{**one, "token_ids": [], "logprobs": None, "finish_reason": "abort"} for one in found]
        return 200, {"choices": found, "model": body["model"]}


def dies_at(path, count):
    """A plan: the server dies when it is asked for `path` the time of this number, from 1."""
    asked = []

    def plan(now):
        if now != path:
            return None
        asked.append(now)
        return "die" if len(asked) == count else None

    return plan
