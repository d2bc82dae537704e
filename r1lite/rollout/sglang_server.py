"""One SGLang server: the same as a vLLM server, with SGLang's calls.

The calls and their answers follow the sources of SGLang 0.5.23 (`srt/entrypoints/http_server.py`,
`srt/managers/io_struct.py`). They were tested with a scripted server that answers as those sources do, and never with a
real one: `--engine-untested` accepts that, and the canary compares the samples.

- Seeds take effect only with --enable-deterministic-inference, and only one per request: the n completions of one
  request would all be equal, so a group is a batch of requests.
- If top_p, top_k or min_p cut the distribution, log-probabilities are still those of the whole one, and min_p with a
  seed crashes the scheduler: all three are refused.
- The checksums of its weights (/weights_checker) use another hash, so they are not compared. The name of the weights,
  which it sets after loading them and stamps on every completion, is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.server import (
    HELLO_S,
    QUICK_S,
    TOKEN,
    Sampled,
    Server,
    largest_answer,
    log_probability,
    token_id,
    why,
)
from r1lite.rollout.vllm_calls import endings, special_tokens
from r1lite.rollout.weight_files import Weights

SOURCES = "0.5.23"  # the version whose sources define the calls and answers
_RESERVED = 2  # tokens of the context that it does not use
_FLUSH_S = 30  # limit for waiting until requests end, before its cache is emptied


def sglang_fleet(
    urls: Sequence[str], tokenizer: Any, eos: Sequence[int], *, dtype: torch.dtype, timeout_s: float, **settings: Any
) -> ServerEngine:
    """A fleet of SGLang servers. `settings` are those of ServerEngine; `eos` are ids that end a text."""
    special = special_tokens(tokenizer)

    def connect(url: str, run: str) -> SGLangServer:
        server = SGLangServer(url, run=run, timeout_s=timeout_s, eos=eos, special=special)
        server.dtype = dtype
        return server

    settings = {"dtype": dtype, "no_adapters": "SGLang is given complete weights only", **settings}
    return ServerEngine(urls, tokenizer, connect, timeout_s=timeout_s, eos=eos, **settings)


def sampling_values(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> dict[str, Any]:
    """Sampling settings with SGLang's names. All are set, because a server has defaults of its own.

    Raises:
        EngineError: the distribution is cut.
    """
    if sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0 or sampling.min_p > 0):
        raise EngineError(
            "SGLang's log-probabilities are not those of a distribution cut by top_p, top_k or min_p: leave these "
            "flags out with --engine sglang-server"
        )
    stop_text, ends_at = endings(sampling, eos, special)
    return {
        "max_new_tokens": sampling.max_tokens,
        "min_new_tokens": 0,
        "temperature": float(sampling.temperature),
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "stop": [stop_text] if stop_text else [],
        "stop_token_ids": ends_at,
        "ignore_eos": False,
        "no_stop_trim": True,
        "skip_special_tokens": False,
        "n": 1,
    }


class SGLangServer(Server):
    """An SGLang server, its state and its load."""

    software, launcher = "SGLang", "`python -m sglang.launch_server` (r1lite/rollout/README.md has the arguments)"
    counters, probe = "sglang:realtime_tokens_total", "health_generate"  # answers once any token was computed

    def context_flag(self, tokens: int) -> str:
        return f"--context-length {tokens + _RESERVED}"

    def healthy(self, timeout_s: float = HELLO_S) -> bool:
        """True if its HTTP process answers. /health is not used, as it generates a token and waits in the queue."""
        try:
            self._doctor.get("model_info", timeout_s=timeout_s)
            return True
        except Refused as error:
            return error.status in (401, 403)  # introduce() reports the missing token
        except Unreachable:
            return False

    def lives(self) -> bool:
        """True if its scheduler answers too."""
        return self._answers("server_info", self._patience_s)

    def metrics(self, timeout_s: float) -> str:
        """As `Server.metrics`; empty for a server started without --enable-metrics."""
        try:
            return super().metrics(timeout_s)
        except Refused as error:
            if error.status != 404:
                raise
            return ""

    def introduce(self, *, untested: bool) -> None:
        try:
            info = self.client.get("server_info", timeout_s=QUICK_S)
            (model, *_) = self.client.get("v1/models", timeout_s=QUICK_S)["data"]
            generates = self.client.get("model_info", timeout_s=QUICK_S)["is_generation"]
            version, seeded = str(info["version"]), info["enable_deterministic_inference"]
            room = min(int(model["max_model_len"]), int(info["max_total_num_tokens"]))
            name = str(model["id"])
        except (Unreachable, Refused, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, Refused) and error.status in (401, 403):
                raise UserError(f"--engine-url {self.url}: {_token(error)}") from error
            raise UserError(f"--engine-url {self.url}: this is not an SGLang server: {why(error)}") from error
        if not untested:
            raise UserError(
                f"--engine-url {self.url}: the calls to SGLang {version} follow the sources of {SOURCES} and were "
                "never tested with a real server; allow it with --engine-untested, and watch canary_logprob_max"
            )
        if not generates:
            raise UserError(f"--engine-url {self.url}: its model ({name}) does not generate text")
        if seeded is not True:
            raise UserError(
                f"--engine-url {self.url}: it ignores seeds, so no completion could be reproduced; "
                "start it with --enable-deterministic-inference"
            )
        self.check_dtype(info.get("dtype"))
        self.version, self.model, self.context = version, name, room - _RESERVED

    def give(self, weights: Weights) -> None:
        folder, label = weights.folder, weights.label
        self._label = None  # not current until the end
        self.times_given += 1
        begun = f"r1lite-{self.run}-begun-{self.times_given}"
        update = {"model_path": str(folder), "load_format": "auto", "weight_version": label, "flush_cache": True}
        try:
            self._ask("pause_generation", {"mode": "abort"})
            # A server that is restarted from here on has lost this name, which no weights ever have.
            self._ask("update_weight_version", {"new_version": begun, "abort_all_requests": False})
            self._ask("update_weights_from_disk", update)
            self.forget()
            self._ask("continue_generation", {})
        except (Refused, EngineError) as error:
            later = isinstance(error, Refused) and error.later
            if later or not self.lives() or self._held() not in (begun, label):  # it died of another cause
                raise Unreachable(f"{self.url} died while it loaded weights: {error}") from error
            if isinstance(error, Refused) and error.status in (401, 403):
                raise EngineError(f"{self.url}: {_token(error)}") from error
            if isinstance(error, EngineError):
                raise
            raise EngineError(
                f"{self.url} did not load the weights of this run's model, {error}. Is its model (served as "
                f"{self.model}) another one, or can't it read {folder}? --engine-weights-dir names a folder that "
                "trainer and servers share"
            ) from error
        held = self._held()
        if held == begun:  # it was not restarted
            raise EngineError(
                f"{self.url} says that it loaded weights, but still holds '{held}': SGLang {self.version} does not "
                f"answer as the sources of {SOURCES} do"
            )
        if not self._is_label(held, label):
            raise Unreachable(f"{self.url} was restarted while it loaded weights")
        self._label = label

    def forget(self) -> None:
        try:
            self.client.post(f"flush_cache?timeout={_FLUSH_S}", timeout_s=self.timeout_s)
        except Refused as error:
            if error.status == 400:
                raise EngineError(f"{self.url} did not empty its prefix cache: {error}") from error
            raise

    def is_current(self, label: str) -> bool:
        return self._label == label and self._is_label(self._held(), label)

    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        values, label = sampling_values(sampling, self._eos, self._special), self._label
        body = {
            "input_ids": [list(prompt) for _ in seeds],
            "sampling_params": [{**values, "sampling_seed": seed} for seed in seeds],
            "return_logprob": True,
            "logprob_start_len": -1,  # only of the completion
            "stream": False,
        }
        largest = largest_answer(len(seeds), prompt, sampling.max_tokens)
        try:
            answers = self.client.post("generate", body, timeout_s=self.timeout_s, largest=largest)
        except Refused as error:
            # Its scheduler died, it is overloaded, or it is no longer the server that was given the weights.
            if error.status >= 500 or error.later or label is None or not self.is_current(label):
                raise Unreachable(f"{self.url}: {error}") from error
            raise EngineError(f"{self.url} refused a prompt of {len(prompt)} tokens, {error}") from error
        try:
            sampled = [self._read(answer, label) for answer in answers]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EngineError(f"{self.url} answered without token ids and log-probabilities: {why(error)}") from error
        if len(sampled) != len(seeds):
            raise EngineError(f"{self.url} answered with {len(sampled)} completions of {len(seeds)}")
        return sampled

    def _read(self, answer: Any, label: str | None) -> Sampled:
        """One completion. Raises KeyError, TypeError or ValueError for an invalid answer, Unreachable, EngineError."""
        about = answer["meta_info"]
        reason = about["finish_reason"]["type"]
        if reason not in ("stop", "length"):  # somebody paused the server
            raise Unreachable(f"{self.url}: the request was aborted")
        versions = {
            str(about["weight_version"]),
            *(str(span["version"]) for span in about.get("weight_versions") or ()),
        }
        if versions != {label}:
            raise Unreachable(f"{self.url} sampled from weights {sorted(versions)}, not from {label}")
        ids = tuple(map(token_id, answer["output_ids"]))
        pairs = [(token_id(token), log_probability(logprob)) for logprob, token, *_ in about["output_token_logprobs"]]
        if tuple(token for token, _ in pairs) != ids or len(ids) != token_id(about["completion_tokens"]):
            raise EngineError(
                f"{self.url} answered with an incomplete completion: {len(ids)} ids, {len(pairs)} log-probabilities"
            )
        return ids, tuple(logprob for _, logprob in pairs), str(reason)

    def _held(self) -> str:
        """The name of its weights, as it reports."""
        with self._asked("which weights"):
            return str(self.client.get("model_info", timeout_s=self._patience_s)["weight_version"])

    def _ask(self, path: str, body: dict[str, Any]) -> None:
        """A call that changes its state. Raises Unreachable or Refused; EngineError if the answer reports a failure."""
        answer = self.client.post(path, body, timeout_s=self.timeout_s)
        if isinstance(answer, dict) and answer.get("success") is False:
            raise EngineError(f"{self.url}: /{path} failed: {answer.get('message')}")


def _token(error: Refused) -> str:
    return f"it requires a token ({error}); set {TOKEN} to the key that it was started with (--api-key)"
