"""vLLM's calls, for its versions: what this project says to an engine in this process.

`load` streams complete weights. Three silent traps shape it (each measured): a stream without the tied head's alias
leaves the old head in place, the prefix cache keeps keys and values of the old weights, and a folder written by
`save_pretrained` lacks the alias too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.vllm_support import Installed


class Calls:
    """What 0.26 and 0.32 have in common; 0.26 doesn't know which weights it holds."""

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """Puts weights in place of the present ones, and forgets what was computed with those."""
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        self.forget(llm)

    def forget(self, llm: Any) -> None:
        """Empties the prefix cache. Raises EngineError if it can't."""
        if llm.reset_prefix_cache() is False:
            raise EngineError("vLLM did not empty its prefix cache: completions are still being sampled")

    def check_version(self, outputs: Sequence[Any], version: str) -> None:
        """Raises EngineError if a completion came from other weights than `version`."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        """[("", SHA-256 of each tensor by name)]; empty where it can't tell."""
        return []


class CallsWithVersions(Calls):
    """0.32, which stamps every completion with the names of the weights it came from."""

    def digests(self, llm: Any) -> list[tuple[str, dict[str, str]]]:
        workers = llm.collective_rpc("compute_weight_checksums")
        # Of several, each holds a shard of every tensor: none can be compared.
        return [("", workers[0])] if len(workers) == 1 else []

    def load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        super().load(llm, weights, version)
        llm.update_weight_version(version)

    def check_version(self, outputs: Sequence[Any], version: str) -> None:
        for output in outputs:
            spans = output.weight_versions or ()
            if other := {span.version for span in spans} - {version}:
                raise EngineError(f"vLLM sampled from weights {sorted(other)}, not from '{version}'")


def calls_for(vllm: Installed) -> Calls:
    """The calls that this version understands."""
    return CallsWithVersions() if vllm.knows_weight_versions else Calls()


def request_values(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> dict[str, Any]:
    """Sampling as vLLM names it, in this process and over HTTP. Everything is said: a server has defaults of its own.

    Args:
        eos: ids that end a text.
        special: the tokenizer's special tokens by their text, which decoding leaves out: they are known by their id.
    """
    stop_text, ends_at = sampling.stop_text, list(eos)
    if stop_text in special:
        ends_at, stop_text = [*ends_at, special[stop_text]], None
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
