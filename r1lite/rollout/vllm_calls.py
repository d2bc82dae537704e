"""vLLM's calls, for its versions: what this project says to an engine in this process.

`load` streams complete weights. Three silent traps shape it (each measured): a stream without the tied head's alias
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
    """What all versions have in common; 0.26 doesn't know which weights it holds."""

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """Puts weights in place of the present ones, and forgets what was computed with those."""
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        self.forget(llm)

    def load_adapter(self, llm: Any, name: str, number: int, folder: Path) -> Any:
        """Puts an adapter, in peft's format, in place of every other one, over the weights that are there.

        vLLM takes one that it knows by its number for the same adapter, so each needs a new one.

        Returns: what requests name it by (vLLM's LoRARequest).

        Raises:
            AdapterRefusedError: vLLM has none for these layers, or not of this rank.
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
            raise EngineError(f"vLLM holds the adapters {sorted(held)}, and should hold {number} alone")
        self.forget(llm)
        return request

    def held_adapter(self, llm: Any, request: Any) -> dict[str, Tensor]:
        """The tensors that an adapter's layers compute with, by the model's names of them; see `adapter_tensors`."""
        (held,) = llm.collective_rpc(adapter_tensors, args=(request.lora_int_id,))
        return dict(held)

    def forget(self, llm: Any) -> None:
        """Empties the prefix cache. Raises EngineError if it can't."""
        if llm.reset_prefix_cache() is False:
            raise EngineError("vLLM did not empty its prefix cache: completions are still being sampled")

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        """Raises EngineError if a completion came from other weights than `version`."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        """[("", SHA-256 of each tensor by name)]; empty where it can't tell."""
        return []


class CallsWithVersions(Calls):
    """From 0.27 on, which keeps a name of the weights it holds."""

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        super().load(llm, weights, version)
        llm.update_weight_version(version)

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        if (held := llm.get_weight_version()) != version:
            raise EngineError(f"vLLM sampled from weights ['{held}'], not from '{version}'")


class CallsWithStamps(CallsWithVersions):
    """From 0.32 on, which stamps every completion with the names of the weights it came from, and tells digests."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        workers = llm.collective_rpc("compute_weight_checksums")
        # Of several, each holds a shard of every tensor: none can be compared.
        return [("", workers[0])] if len(workers) == 1 else []

    def check_version(self, llm: Any, outputs: Sequence[Any], version: str) -> None:
        for output in outputs:
            spans = output.weight_versions or ()
            if other := {span.version for span in spans} - {version}:
                raise EngineError(f"vLLM sampled from weights {sorted(other)}, not from '{version}'")


def adapter_tensors(worker: Any, number: int) -> dict[str, Tensor]:
    """Runs in vLLM's worker: LAYER.lora_A [most rank, in] and LAYER.lora_B [out, most rank], the latter times alpha /
    rank, padded with zeros; also of layers that this adapter leaves as they are, which are zero throughout. Layers
    that vLLM fuses come by their own names; where it can't name the parts they are left out."""
    manager = worker.model_runner.lora_manager._adapter_manager
    slot = manager.lora_index_to_id.index(number)
    found = {}
    for name, module in manager.modules.items():
        parts = manager.packed_modules.get(name) or [name]
        stacks = getattr(module, "lora_a_stacked", ()), getattr(module, "lora_b_stacked", ())
        if isinstance(stacks[0], tuple) and len(parts) == len(stacks[0]) == len(stacks[1]):
            for part, a, b in zip(parts, *stacks, strict=True):
                found[f"{part}.lora_A"], found[f"{part}.lora_B"] = a[slot, 0], b[slot, 0]
    return found


def calls_for(vllm: Installed) -> Calls:
    """The calls that this version understands."""
    if vllm.stamps_completions:
        return CallsWithStamps()
    return CallsWithVersions() if vllm.knows_weight_versions else Calls()


def request_values(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> dict[str, Any]:
    """Sampling as vLLM names it, in this process and over HTTP. Everything is said: a server has defaults of its own.

    Args:
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text, which decoding leaves out: they are known by their id.
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
        "logprobs": 0,  # those of the sampled tokens alone
    }


def endings(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> tuple[str | None, list[int]]:
    """(the text, the ids) that end a completion, where special tokens are known by their id."""
    if sampling.stop_text in special:
        return None, [*eos, special[sampling.stop_text]]
    return sampling.stop_text, list(eos)


def seed_runs(seeds: Sequence[int], *, single: bool = False) -> list[tuple[int, int]]:
    """Seeds as (first, how many) runs of consecutive ones: each is one request for n completions."""
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
