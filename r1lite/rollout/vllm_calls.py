"""Calls to vLLM in this process, for its different versions.

`load` streams complete weights. It avoids three silent errors (each measured): a stream without the tied head's alias
leaves the old head in place, the prefix cache keeps keys and values of the old weights, and a folder written by
`save_pretrained` lacks the alias too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from r1lite.rollout import AdapterRefusedError, EngineError, Sampling
from r1lite.rollout.vllm_support import Installed


class Calls:
    """Calls that all versions support; 0.26 keeps no name of its weights."""

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """Replaces the current weights, and empties the caches computed with them."""
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        self.forget(llm)

    def load_adapter(self, llm: Any, name: str, number: int, folder: Path) -> Any:
        """Replaces every loaded adapter by this one, in peft's format, over the current base weights.

        vLLM identifies an adapter by its number, so each needs a new number.

        Returns: vLLM's LoRARequest, which requests use to name the adapter.

        Raises:
            AdapterRefusedError: vLLM does not support these layers or this rank.
        """
        from vllm.lora.request import LoRARequest

        for old in llm.llm_engine.list_loras():
            llm.llm_engine.remove_lora(old)
        request = LoRARequest(name, number, str(folder))
        try:
            llm.llm_engine.add_lora(request)
        except ValueError as error:
            raise AdapterRefusedError(f"vLLM: {error}") from error
        if (held := set(llm.llm_engine.list_loras())) != {number}:
            raise EngineError(f"vLLM holds the adapters {sorted(held)}, but should hold only {number}")
        self.forget(llm)
        return request

    def held_adapter(self, llm: Any, request: Any) -> dict[str, Tensor]:
        """The tensors that the adapter's layers compute with, by the model's names; see `adapter_tensors`."""
        (held,) = llm.collective_rpc(adapter_tensors, args=(request.lora_int_id,))
        return dict(held)

    def forget(self, llm: Any) -> None:
        """Empties the prefix cache. Raises EngineError if that fails."""
        if llm.reset_prefix_cache() is False:
            raise EngineError("vLLM did not empty its prefix cache: completions are still being sampled")

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        """Raises EngineError if a completion came from other weights than `version`."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        """[("", SHA-256 of each tensor by name)]; empty if the version can't report them."""
        return []


class CallsWithVersions(Calls):
    """From 0.27: keeps a name of its weights."""

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        super().load(llm, weights, version)
        llm.update_weight_version(version)

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        if (held := llm.get_weight_version()) != version:
            raise EngineError(f"vLLM sampled from weights ['{held}'], not from '{version}'")


class CallsWithStamps(CallsWithVersions):
    """From 0.32: stamps every completion with the names of its weights, and reports digests."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        workers = llm.collective_rpc("compute_weight_checksums")
        # With several workers, each holds a shard of every tensor, which can't be compared.
        return [("", workers[0])] if len(workers) == 1 else []

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        for output in outputs:
            spans = output.weight_versions or ()
            if other := {span.version for span in spans} - {version}:
                raise EngineError(f"vLLM sampled from weights {sorted(other)}, not from '{version}'")


def adapter_tensors(worker: Any, number: int) -> dict[str, Tensor]:
    """Runs in vLLM's worker. Returns LAYER.lora_A [largest rank, in] and LAYER.lora_B [out, largest rank] (times
    alpha / rank), padded with zeros, also for layers without this adapter, where all values are zero. Layers that vLLM
    fuses are listed by their parts' names, and left out if vLLM can't name the parts."""
    manager = worker.model_runner.lora_manager._adapter_manager
    slot = manager.lora_index_to_id.index(number)
    tensors = {}
    for name, module in manager.modules.items():
        parts = manager.packed_modules.get(name) or [name]
        stacks = getattr(module, "lora_a_stacked", ()), getattr(module, "lora_b_stacked", ())
        if isinstance(stacks[0], tuple) and len(parts) == len(stacks[0]) == len(stacks[1]):
            for part, a, b in zip(parts, *stacks, strict=True):
                tensors[f"{part}.lora_A"], tensors[f"{part}.lora_B"] = a[slot, 0], b[slot, 0]
    return tensors


def calls_for(vllm: Installed) -> Calls:
    """The calls for this version."""
    if vllm.stamps_completions:
        return CallsWithStamps()
    return CallsWithVersions() if vllm.knows_weight_versions else Calls()


def request_values(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> dict[str, Any]:
    """Sampling settings with vLLM's names, for this process and HTTP. All are set: a server has defaults of its own.

    Args:
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text; decoding drops these, so they are matched by id.
    """
    stop_text, ends_at = endings(sampling, eos, special)
    greedy = sampling.temperature == 0
    return {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": 1.0 if greedy else sampling.top_p,
        "top_k": 0 if greedy else sampling.top_k,
        "min_p": 0.0 if greedy else sampling.min_p,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "stop": [stop_text] if stop_text else [],
        "stop_token_ids": ends_at,
        "include_stop_str_in_output": True,
        "logprobs": 0,  # only those of the sampled tokens
    }


def endings(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> tuple[str | None, list[int]]:
    """(text, ids) that end a completion; special tokens are matched by id."""
    if sampling.stop_text in special:
        return None, [*eos, special[sampling.stop_text]]
    return sampling.stop_text, list(eos)


def seed_runs(seeds: Sequence[int], *, single: bool = False) -> list[tuple[int, int]]:
    """Seeds as runs (first, count) of consecutive ones: each run is one request for n completions."""
    runs: list[tuple[int, int]] = []
    for seed in seeds:
        if runs and not single and seed == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((seed, 1))
    return runs


def special_tokens(tokenizer: Any) -> dict[str, int]:
    """The tokenizer's special tokens: text -> id."""
    return {text: int(tokenizer.convert_tokens_to_ids(text)) for text in tokenizer.all_special_tokens}
