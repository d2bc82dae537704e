"""One vLLM server: its identity, new weights, and completions."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from r1lite.errors import UserError
from r1lite.rollout import AdapterRefusedError, EngineError, Sampling
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.continued import ABORTED
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.senders import ExternalSender, GlooSender, Sender
from r1lite.rollout.server import HELLO_S, QUICK_S, Sampled, Server, largest_answer, log_probability, token_id, why
from r1lite.rollout.vllm_calls import request_values, seed_runs, special_tokens
from r1lite.rollout.vllm_support import TESTED, Installed, no_adapters, no_transport
from r1lite.rollout.weight_files import Weights
from r1lite.rollout.weight_memory import Snapshot, WeightMemory

_STARTED = "process_start_time_seconds"


def vllm_fleet(
    urls: Sequence[str],
    tokenizer: Any,
    eos: Sequence[int],
    *,
    dtype: torch.dtype,
    timeout_s: float,
    lora_rank: int = 0,
    transport: str = "file",
    delta: bool = True,
    device: str = "cpu",
    **settings: Any,
) -> ServerEngine:
    """A fleet of vLLM servers.

    Args:
        eos: ids that end a text.
        transport: of weights, as in `--weight-transport`.
        delta: send weights over a connection as changes if that is smaller.
        device: the trainer's device.
        settings: further arguments of ServerEngine.

    Raises: UserError as ServerEngine does, and for a transport that can't be used.
    """
    special = special_tokens(tokenizer)

    def connect(url: str, run: str) -> VLLMServer:
        server = VLLMServer(url, run=run, timeout_s=timeout_s, eos=eos, special=special)
        server.dtype = dtype
        if transport == "gloo":
            server.sender = GlooSender(server.client, timeout_s=timeout_s)
        elif transport != "file":
            server.sender = ExternalSender(server.client, timeout_s=timeout_s, backend=transport, device=device)
        return server

    memory = None if transport == "file" else WeightMemory(dtype, delta=delta and transport == "gloo")
    fleet = ServerEngine(urls, tokenizer, connect, dtype=dtype, timeout_s=timeout_s, eos=eos, memory=memory, **settings)
    if transport != "file":
        for server in fleet.servers:
            if why := no_transport(Installed("vllm", server.version), transport, cuda=device.startswith("cuda")):
                fleet.close()
                raise UserError(f"--weight-transport {transport}: {why}")
        fleet.no_adapters = f"--weight-transport {transport} carries complete weights only"
        return fleet
    reasons = (no_adapters(Installed("vllm", server.version), lora_rank) for server in fleet.servers)
    fleet.no_adapters = next(filter(None, reasons), "")
    return fleet


class VLLMServer(Server):
    """A vLLM server, its state and its load."""

    software, launcher = "vLLM", "`r1lite serve-engine`"
    counters, probe = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total"), "is_paused"
    sender: Sender | None = None  # of weights over a connection; None = weights are files
    _adapter: str | None = None  # name of the adapter in use
    _born: float | None = None  # start time of its process, for versions that can't name their weights

    def context_flag(self, tokens: int) -> str:
        return f"--context {tokens}"

    def healthy(self, timeout_s: float = HELLO_S) -> bool:
        """True if it answers, and does not report its engine as dead."""
        return self._answers("health", timeout_s)

    def lives(self) -> bool:
        """True if its engine answers too; the HTTP process does not notice an engine that hangs."""
        return self._answers(self.probe, self._patience_s) and self.healthy(self._patience_s)

    def introduce(self, *, untested: bool) -> None:
        try:
            version = str(self.client.get("version", timeout_s=QUICK_S)["version"])
            (model, *_) = self.client.get("v1/models", timeout_s=QUICK_S)["data"]
            name, context = str(model["id"]), int(model["max_model_len"] or 0)
        except (Unreachable, Refused, KeyError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"--engine-url {self.url}: this is not a vLLM server: {why(error)}") from error
        if not Installed("vllm", version).tested and not untested:
            raise UserError(
                f"--engine-url {self.url}: vLLM {version} is not a version this was tested with ({TESTED}), and a "
                "wrong weight update raises no error; try it with --engine-untested"
            )
        try:
            self.client.get("is_paused", timeout_s=QUICK_S)
        except (Unreachable, Refused) as error:
            raise UserError(
                f"--engine-url {self.url}: this server takes no weights; start it with `r1lite serve-engine`, or with "
                "VLLM_SERVER_DEV_MODE=1 in its environment"
            ) from error
        with contextlib.suppress(Unreachable, Refused, KeyError, TypeError):  # versions that don't report it
            info = self.client.get("server_info?config_format=json", timeout_s=QUICK_S)
            self.check_dtype(info["vllm_config"]["model_config"]["dtype"])
        self.version, self.model, self.context = version, name, context  # set together, or not at all

    @property
    def bytes_sent(self) -> int:
        return self.sender.bytes_sent if self.sender else 0

    def close(self) -> None:
        super().close()
        if self.sender is not None:
            self.sender.close()

    def give(self, weights: Weights) -> None:
        self._label = self._adapter = None  # not current until the end
        self.times_given += 1
        if weights.snapshot is None:
            self._born = self._give_files(weights.folder, weights.label)
        else:
            self._send(weights.snapshot)
        self._label = weights.label

    def _send(self, snapshot: Snapshot) -> None:
        """Sends weights over a connection. Raises as give()."""
        assert self.sender is not None
        try:
            self.sender.send(snapshot)
            self.forget()
        except Refused as error:
            if error.later or not self.lives():
                raise Unreachable(f"{self.url} died while it loaded weights: {error}") from error
            raise EngineError(
                f"{self.url} did not load the weights of this run's model, {error}. Was it started by `r1lite "
                "serve-engine` with this run's --model, --dtype and --weight-transport?"
            ) from error
        except EngineError as error:
            if not self.lives():
                raise Unreachable(f"{self.url} died while it loaded weights: {error}") from error
            raise
        if not self._holds(snapshot.label, None):
            raise Unreachable(f"{self.url} was restarted while it loaded weights")

    def _give_files(self, folder: Path, label: str) -> float | None:
        """Loads weights of a folder. Returns the process's start time if it can't name weights. Raises as give()."""
        ask = self.client.post
        reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        born = self._process_start()
        try:
            ask("pause?mode=abort", timeout_s=self.timeout_s)
            # The name is sent first: a server that is restarted from here on has lost it.
            if Installed("vllm", self.version).knows_weight_versions:
                ask("update_weight_version", {"new_version": label}, timeout_s=self.timeout_s)
            ask("collective_rpc", reload, timeout_s=self.timeout_s)
            self.forget()
            ask("resume", timeout_s=self.timeout_s)
        except (Refused, EngineError) as error:
            later = isinstance(error, Refused) and error.later
            if later or not self.lives() or not self._holds(label, born):  # its engine died of another cause
                raise Unreachable(f"{self.url} died while it loaded weights: {error}") from error
            if isinstance(error, EngineError):
                raise
            raise EngineError(
                f"{self.url} did not load the weights of this run's model, {error}. Is its model (served as "
                f"{self.model}) another one, or can't it read {folder}? --engine-weights-dir names a folder that "
                "trainer and servers share"
            ) from error
        if not self._holds(label, born):
            raise Unreachable(f"{self.url} was restarted while it loaded weights")
        return born

    def give_adapter(self, folder: Path) -> None:
        """As `Server.give_adapter`. Raises Unreachable if it is gone, EngineError if its cache is not emptied."""
        ask, name = self.client.post, folder.name
        self.times_given += 1
        try:
            ask("pause?mode=abort", timeout_s=self.timeout_s)
            self._adapter = None  # only now, because the aborted requests all used the previous adapter
            for old in self._adapters():
                ask("v1/unload_lora_adapter", {"lora_name": old}, timeout_s=self.timeout_s)
            refusal = None
            try:
                ask("v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}, timeout_s=self.timeout_s)
            except Refused as error:
                refusal = error
            self.forget()
            ask("resume", timeout_s=self.timeout_s)
        except (Refused, EngineError) as error:
            if isinstance(error, EngineError) and self.lives():
                raise
            raise Unreachable(f"{self.url} died while it loaded an adapter: {error}") from error
        if refusal is not None and (refusal.later or not self.lives()):
            raise Unreachable(f"{self.url} died while it loaded an adapter: {refusal}") from refusal
        if refusal is not None:
            raise AdapterRefusedError(
                f"{self.url} ({refusal}); `r1lite serve-engine` takes adapters with its --lora-rank"
            ) from refusal
        if name not in self._adapters():
            raise Unreachable(f"{self.url} was restarted while it loaded an adapter")
        self._adapter = name

    def has_adapter(self, name: str) -> bool:
        return self._adapter == name and name in self._adapters()

    def _adapters(self) -> list[str]:
        """Names of the adapters of runs, as the server reports them."""
        with self._asked("which adapters"):
            models = self.client.get("v1/models", timeout_s=self._patience_s)["data"]
            return [name for model in models if (name := str(model["id"])).startswith("r1lite-")]

    def forget(self) -> None:
        answer = self.client.post("reset_prefix_cache", timeout_s=self.timeout_s)
        if isinstance(answer, dict) and answer.get("success") is False:  # versions before 0.32 don't report it
            raise EngineError(f"{self.url} did not empty its prefix cache: other completions use it")

    def digests(self) -> dict[str, str]:
        """As `Server.digests`. Raises Unreachable, Refused; EngineError for an invalid answer."""
        if not Installed("vllm", self.version).stamps_completions:
            return {}
        try:
            answer = self.client.post("weight_checker", {"action": "checksum"}, timeout_s=self.timeout_s)
        except Refused as error:
            if error.status == 404:  # a version that lacks the call
                return {}
            raise
        try:
            held = {str(name): str(digest) for name, digest in answer["checksums"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"{self.url} does not report digests of its weights: {why(error)}") from error
        workers = {name.rpartition(":")[0] for name in held}
        return held if len(workers) == 1 else {}

    def is_current(self, label: str) -> bool:
        return self._label == label and self._holds(label, self._born)

    def _holds(self, label: str, born: float | None) -> bool:
        """As is_current(), by the server's own report."""
        if not Installed("vllm", self.version).knows_weight_versions:
            return self._process_start() == born
        with self._asked("which weights"):
            held = str(self.client.get("weight_info", timeout_s=self._patience_s)["weight_version"])
        return self._is_label(held, label)

    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        values = request_values(sampling, self._eos, self._special)
        runs, ends = seed_runs(seeds, single=sampling.temperature == 0), {"stop", "length"}
        if sampling.across_weights:
            ends.add(ABORTED)
        sampled: list[Sampled] = []
        for seed, count in runs:
            if any(reason == ABORTED for *_, reason in sampled):  # the rest would come from the newer weights
                sampled += [((), (), ABORTED)] * count
            else:
                sampled += self._complete(prompt, seed, count, values, ends)
        return sampled

    def _complete(
        self, prompt: Sequence[int], seed: int, count: int, values: dict[str, Any], ends: set[str]
    ) -> list[Sampled]:
        asked = self._adapter or self.model
        body = {
            "model": asked,
            "prompt": list(prompt),
            "n": count,
            "seed": seed,
            "return_token_ids": True,
            **values,
        }
        largest = largest_answer(count, prompt, values["max_tokens"])
        try:
            answer = self.client.post("v1/completions", body, timeout_s=self.timeout_s, largest=largest)
        except Refused as error:
            # Its engine died, it is overloaded, or it is no longer the server that was given the weights.
            label = self._label
            lost = label is None or not self.is_current(label) or (asked != self.model and not self.has_adapter(asked))
            if error.status >= 500 or error.later or lost:
                raise Unreachable(f"{self.url}: {error}") from error
            raise EngineError(f"{self.url} refused a prompt of {len(prompt)} tokens, {error}") from error
        try:
            if self._adapter is not None and answer["model"] != asked:
                raise EngineError(f"{self.url} sampled from '{answer['model']}' instead of '{asked}'")
            choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
            if any(choice["finish_reason"] not in ends for choice in choices):  # somebody paused the server
                raise Unreachable(f"{self.url}: the request was aborted")
            sampled = [
                (
                    tuple(map(token_id, c["token_ids"])),
                    tuple(map(log_probability, c["logprobs"]["token_logprobs"] if c["token_ids"] else ())),
                    str(c["finish_reason"]),
                )
                for c in choices
            ]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EngineError(f"{self.url} answered without token ids and log-probabilities: {why(error)}") from error
        whole = [int(choice["index"]) for choice in choices] == list(range(count))
        if not whole or any(len(ids) != len(logprobs) for ids, logprobs, _ in sampled):
            raise EngineError(f"{self.url} answered with {len(sampled)} completions of {count}, or incomplete ones")
        return sampled

    def _process_start(self) -> float | None:
        """The start time of its process, from its metrics."""
        if Installed("vllm", self.version).knows_weight_versions:
            return None
        try:
            text = str(self.client.get("metrics", timeout_s=self._patience_s))
            return float(next(line for line in text.splitlines() if line.startswith(_STARTED)).split()[-1])
        except Refused as error:
            raise Unreachable(str(error)) from error
        except (StopIteration, ValueError) as error:
            raise EngineError(
                f"{self.url} does not say when it was started, so a restart that loses its weights can't be detected: "
                f"its metrics lack {_STARTED}. Start it with `r1lite serve-engine`"
            ) from error
