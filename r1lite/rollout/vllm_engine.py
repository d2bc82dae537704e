"""The vLLM engine in this process: own weights on the trainer's device, own scheduler and cache."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import UserError, first_line
from r1lite.hub.revisions import split
from r1lite.model.lora import Adapter
from r1lite.model.out_of_memory import free_what_is_unused, is_out_of_memory
from r1lite.rollout import EngineError, RolloutEngine, Sampling, check_prompts, text_of
from r1lite.rollout.layout import Layout, unchanged
from r1lite.rollout.vllm_calls import Calls, calls_for, request_values, seed_runs, special_tokens
from r1lite.rollout.vllm_support import WORKER, Installed, adapter_settings, environment, no_adapters_for
from r1lite.rollout.weight_files import WeightFiles
from verifiers import Completion


@dataclass(frozen=True, slots=True)
class Start:
    """Settings for starting an engine."""

    model: str  # a folder, or an id on the Hub
    dtype: torch.dtype
    device: str
    context: int  # tokens of the longest prompt and completion together
    rows: int  # completions sampled at once
    threads: int
    cache_gib: int
    memory: float | None  # share of the GPU's memory
    sleeps: bool  # free the GPU's memory while the trainer works
    eager: bool
    batch_invariant: bool
    lora_rank: int = 0  # of the adapter that it will get; 0 = complete weights
    no_adapters: str = ""  # the reason why it gets complete weights though an adapter is trained
    architectures: tuple[str, ...] = ()  # class names from the model's configuration


class VLLMEngine(RolloutEngine):
    """Group sampling with vLLM.

    Args:
        eos: ids that end a text, as `eos_ids` returns them.
        layout: converts weights to the layout of the model's files.

    Raises (when made): UserError if vLLM can't be imported or can't load the model.
    """

    shares_weights, runs_aside = False, False

    def __init__(
        self, installed: Installed, tokenizer: Any, eos: Sequence[int], start: Start, layout: Layout = unchanged
    ) -> None:
        self.tokenizer, self.start, self._layout = tokenizer, start, layout
        self.policy_version = 0
        self._eos, self._special = list(eos), special_tokens(tokenizer)
        self._calls: Calls = calls_for(installed)
        self._asleep = False
        self._numbers, self._adapters = itertools.count(), itertools.count(1)
        self._label = "default"  # vLLM's own name of its initial weights
        self.base_loads = self.bytes_given = 0
        self._adapter: Any = None  # vLLM's LoRARequest of the adapter in use
        self._has_base = False
        self._files: WeightFiles | None = None  # of adapters
        self._llm: Any
        self._llm, self.no_adapters = _start(start)

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        check_prompts(prompts, sampling.max_tokens, self.start.context)
        llm = self._awake()
        waiting: dict[str, tuple[int, int]] = {}  # request -> (index of the prompt, first sample)
        groups: list[list[Completion | None]] = [[None] * len(group) for group in seeds]
        try:
            for i, (prompt, group) in enumerate(zip(prompts, seeds, strict=True)):
                first = 0
                for seed, count in seed_runs(group, single=sampling.temperature == 0):
                    name = f"r1lite-{next(self._numbers)}"
                    waiting[name] = (i, first)
                    with _failures("adding a prompt"):
                        self._add(llm, name, prompt, seed, count, sampling)
                    first += count
            while waiting:
                if self._llm is None:
                    raise EngineError("the vLLM engine was closed while it sampled")
                with _failures("sampling"):
                    outputs = [output for output in llm.llm_engine.step() if output.finished]
                for output in outputs:
                    self._opened()  # checked per output, because several groups may end in one step
                    i, first = waiting.pop(output.request_id)
                    self._calls.check_version(llm, output.outputs, self._label)
                    if (used := output.lora_request) != self._adapter:
                        raise EngineError(f"vLLM sampled with the adapter {used}, not with {self._adapter}")
                    for part in output.outputs:
                        groups[i][first + part.index] = self._completion(part)
                    whole = [completion for completion in groups[i] if completion is not None]
                    if len(whole) == len(groups[i]):
                        yield i, whole
        finally:
            if waiting and self._llm is not None:  # the caller left early: cancel the rest
                with contextlib.suppress(Exception):
                    llm.llm_engine.abort_request(list(waiting))

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Loads every weight under every name it has; see `vllm_calls`."""
        llm = self._opened()
        with _failures("loading new weights"), self._waking(llm):
            self._load(llm, weights, label := f"r1lite-{version}")
        self._adapter, self._has_base = None, False
        self.policy_version, self._label = version, label

    def load_adapter(self, adapter: Adapter, *, version: int, base_too: bool = False) -> None:
        """As `AdapterEngine.load_adapter`: from a file in shared memory, under a name that is new to vLLM."""
        llm = self._opened()
        self._files = self._files or WeightFiles(None, self.start.dtype)
        with _failures("loading a new adapter"), self._waking(llm):
            if base_too or not self._has_base:
                self._has_base, self._adapter = False, None
                self._load(llm, adapter.base(), label := f"r1lite-below-{version}")
                self.base_loads += 1
                self._has_base, self._label = True, label
            before, number = self._files.written, next(self._adapters)
            folder = self._files.write_adapter(adapter, f"r1lite-{version}-{number}")
            self._adapter = self._calls.load_adapter(llm, folder.name, number, folder)
            self.bytes_given += self._files.written - before
            self._files.keep_only(folder)
        self.policy_version = version

    def held_adapter(self) -> dict[str, Tensor]:
        """The tensors that the adapter's layers compute with; see `vllm_calls.adapter_tensors`."""
        with _failures("reading its adapter"):
            return self._calls.held_adapter(self._opened(), self._adapter)

    def forget(self) -> None:
        """Empties the prefix cache."""
        with _failures("emptying its cache"):
            self._calls.forget(self._opened())

    def weight_digests(self) -> list[tuple[str, dict[str, str]]]:
        """[("", digest of each tensor by name)]; empty for versions that don't report digests."""
        with _failures("computing digests of its weights"):
            return self._calls.digests(self._opened())

    def sleep(self) -> None:
        """Gives the GPU's memory to the trainer, weights included; load_weights() wakes the engine.

        With an adapter, the base weights are kept in CPU memory (level 1) and not sent again.
        """
        if self.start.sleeps and not self._asleep:
            with _failures("going to sleep"):
                llm = self._opened()
                llm.sleep(level=2 if self._adapter is None else 1)
                if not llm.llm_engine.is_sleeping():
                    raise EngineError(
                        "vLLM did not go to sleep, so the trainer would lack the memory. Continue with --resume and a "
                        "lower --engine-memory, or with --engine transformers"
                    )
            self._asleep = True

    def close(self) -> None:
        if self._llm is None:
            return
        llm, self._llm = self._llm, None
        if self._files is not None:
            self._files.close()
        with contextlib.suppress(Exception):  # the engine is discarded, whatever it raises
            llm.llm_engine.engine_core.shutdown()
        del llm
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cleanup_dist_env_and_memory()

    def _load(self, llm: Any, weights: Iterable[tuple[str, Tensor]], label: str) -> None:
        def cast() -> Iterator[tuple[str, Tensor]]:
            for name, weight in self._layout(weights):
                value = weight.to(self.start.dtype)
                self.bytes_given += value.nbytes
                yield name, value

        self._calls.load(llm, cast(), label)

    @contextlib.contextmanager
    def _waking(self, llm: Any) -> Iterator[None]:
        """Wakes a sleeping engine: memory for weights before they are loaded, memory for its cache after it."""
        # vLLM takes this memory from the driver, which does not know what torch only keeps for later tensors. vLLM 0.26
        # does not free that itself.
        if self._asleep:
            free_what_is_unused()
            llm.wake_up(tags=["weights"])
        yield
        if self._asleep:
            free_what_is_unused()
            llm.wake_up(tags=["kv_cache"])
            if llm.llm_engine.is_sleeping():  # its scheduler stays paused, and sampling would wait forever
                raise EngineError("vLLM woke up only partly. Continue with --resume")
        self._asleep = False

    def _opened(self) -> Any:
        if self._llm is None:
            raise EngineError("the vLLM engine is closed")
        return self._llm

    def _awake(self) -> Any:
        llm = self._opened()
        if self._asleep:
            raise EngineError("the vLLM engine is asleep and holds no weights: load weights first")
        return llm

    def _add(self, llm: Any, name: str, prompt: Sequence[int], seed: int, count: int, sampling: Sampling) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        values = request_values(sampling, self._eos, self._special)
        params = SamplingParams(n=count, seed=seed, output_kind=RequestOutputKind.FINAL_ONLY, **values)
        llm.llm_engine.add_request(name, {"prompt_token_ids": list(prompt)}, params, lora_request=self._adapter)

    def _completion(self, part: Any) -> Completion:
        ids = tuple(part.token_ids)
        return Completion(
            # vLLM cuts its own text within the last token if a stop text ends there; the ids are the sampled tokens.
            text=text_of(self.tokenizer, ids, self._eos),
            token_ids=ids,
            logprobs=tuple(step[token].logprob for token, step in zip(ids, part.logprobs, strict=True)),
            finish_reason="length" if part.finish_reason == "length" else "stop",
            policy_version=self.policy_version,
        )


def _start(start: Start) -> tuple[Any, str]:
    """An `LLM`, and the reason why it takes no adapters. Other changes that vLLM makes to this process are undone."""
    cuda = start.device.startswith("cuda")
    preload, set_threads = os.environ.get("LD_PRELOAD"), torch.set_num_threads
    os.environ.update(
        environment(
            threads=start.threads,
            cache_gib=start.cache_gib,
            cuda=cuda,
            batch_invariant=start.batch_invariant,
            float32=start.dtype == torch.float32,
        ),
        VLLM_ENABLE_V1_MULTIPROCESSING="0",  # weights are passed as tensors of this process
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from vllm import LLM

            no_adapters = start.no_adapters
            if start.lora_rank and not no_adapters:
                no_adapters = no_adapters_for(start.architectures)
            settings: dict[str, Any] = {
                "dtype": str(start.dtype).removeprefix("torch."),
                "max_model_len": start.context,
                "max_num_seqs": start.rows,
                "seed": 0,
                "logprobs_mode": "processed_logprobs",  # after temperature, as in the trainer
                "enable_prefix_caching": True,
                "generation_config": "vllm",  # ignores the model's sampling defaults
                "disable_log_stats": True,
                "use_tqdm_on_load": False,
                "enforce_eager": start.eager or not cuda,
                **adapter_settings(0 if no_adapters else start.lora_rank),
            }
            if cuda:
                settings |= {"gpu_memory_utilization": start.memory, "enable_sleep_mode": start.sleeps}
            else:
                # vLLM's CPU runner rewinds a request's generator after part of a prompt; CPU generators can't rewind.
                settings |= {
                    "enable_chunked_prefill": False,
                    "max_num_batched_tokens": max(start.context, 4096),
                    "worker_extension_cls": WORKER,
                }
            name, revision = split(start.model)
            if revision is not None:
                settings |= {"revision": revision, "tokenizer_revision": revision}
            return LLM(name, trust_remote_code=False, **settings), no_adapters
    except ImportError as error:
        raise UserError(
            f"--engine vllm: vLLM can't be imported: {error}. If a CUDA build of torchvision, torchaudio or torchcodec "
            "is installed beside a CPU torch, remove it: pip uninstall torchvision torchaudio torchcodec"
        ) from error
    except Exception as error:
        raise UserError(_why_not(start, error)) from error
    finally:
        torch.set_num_threads = set_threads
        if preload is None:  # restored for the scoring processes; vLLM sets it for its own workers
            os.environ.pop("LD_PRELOAD", None)
        else:
            os.environ["LD_PRELOAD"] = preload


def _why_not(start: Start, error: Exception) -> str:
    first = first_line(error, type(error).__name__)
    name = Path(start.model).name
    if "memory" in str(error).lower():
        return (
            f"--engine vllm: not enough memory for {name}: {first}. Lower --rollout-rows (now {start.rows}), "
            f"--max-completion-tokens or --engine-memory, or use --engine transformers"
        )
    return f"--engine vllm: vLLM can't load {name}: {first}. Use --engine transformers for this model"


@contextlib.contextmanager
def _failures(doing: str) -> Iterator[None]:
    """Turns any exception of vLLM into an EngineError with advice."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise EngineError(
                f"vLLM ran out of memory while {doing}. Continue with --resume and a lower --rollout-rows or "
                "--engine-memory"
            ) from error
        raise EngineError(
            f"vLLM failed while {doing}: {type(error).__name__}: {first_line(error)}. Continue with --resume; if it "
            "fails again, --resume --engine transformers continues without vLLM"
        ) from error
