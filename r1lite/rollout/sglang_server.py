"""One SGLang server: the same as a vLLM server, by SGLang's calls.

The calls and their answers are those of SGLang 0.5.23's sources (`srt/entrypoints/http_server.py`,
`srt/managers/io_struct.py`). They were tried with a scripted server that answers as those sources do, and never with a
real one: `--engine-untested` takes that on, and the canary compares what it samples.

- A seed counts only with --enable-deterministic-inference, and only one for each completion: n completions of one
  request would be the same one n times, so a group is a batch of requests.
- Where top_p, top_k or min_p cut the distribution, log-probabilities stay those of the whole one, and min_p with a seed
  ends the scheduler: all three are refused.
- Checksums of its weights (/weights_checker) are of a hash of its own, so they are not compared; the name of the
  weights, which it sets when it has loaded them and stamps every completion with, is.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from r1lite.errors import UserError
from r1lite.rollout import AdapterRefusedError, EngineError, Sampling
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.http_server import HELLO_S, QUICK_S, TOKEN, HTTPServer, why
from r1lite.rollout.server import Sampled
from r1lite.rollout.vllm_calls import endings, special_tokens
from r1lite.rollout.weight_files import Weights

SOURCES = "0.5.23"  # the version whose sources say what is asked and answered
_TOKENS = "sglang:realtime_tokens_total"
_RESERVED = 2  # tokens of the context that it leaves unused
_FLUSH_S = 30  # that it may wait for requests to be over, before its cache is emptied


def sglang_fleet(
    urls: Sequence[str], tokenizer: Any, eos: Sequence[int], *, dtype: torch.dtype, timeout_s: float, **settings: Any
) -> ServerEngine:
    """SGLang's servers at these addresses. `settings` are those of ServerEngine; `eos` are ids that end a text."""
    special = special_tokens(tokenizer)

    def connect(url: str, run: str) -> SGLangServer:
        server = SGLangServer(url, run=run, timeout_s=timeout_s, eos=eos, special=special)
        server.dtype = dtype
        return server

    settings = {"dtype": dtype, "no_adapters": "SGLang is given complete weights only", **settings}
    return ServerEngine(urls, tokenizer, connect, timeout_s=timeout_s, eos=eos, **settings)


def sampling_values(sampling: Sampling, eos: Sequence[int], special: dict[str, int]) -> dict[str, Any]:
    """Sampling as SGLang names it. Everything is said: a server has defaults of its own.

    Raises:
        EngineError: a cut distribution.
    """
    if sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0 or sampling.min_p > 0):
        raise EngineError(
            "SGLang's log-probabilities are not those of a distribution that top_p, top_k or min_p cut: leave them off "
            "with --engine sglang-server"
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


class SGLangServer(HTTPServer):
    """An SGLang server, whether it is alive, and how much it has to do."""

    software, launcher = "SGLang", "`python -m sglang.launch_server` (r1lite/rollout/README.md has the arguments)"

    def context_flag(self, tokens: int) -> str:
        """As `Server.context_flag`."""
        return f"--context-length {tokens + _RESERVED}"

    def healthy(self, timeout_s: float = HELLO_S) -> bool:
        """True if the process that takes requests answers. /health would generate a token, and wait for its turn."""
        try:
            self._doctor.get("model_info", timeout_s=timeout_s)
            return True
        except Refused as error:
            return error.status in (401, 403)  # introduce() says what it wants
        except Unreachable:
            return False

    def lives(self) -> bool:
        """True if its scheduler answers too."""
        try:
            self._doctor.get("server_info", timeout_s=self._patience_s)
            return True
        except (Unreachable, Refused):
            return False

    def tokens(self, timeout_s: float) -> int | None:
        """As `Server.tokens`: None from one that was started without --enable-metrics.

        Then /health_generate tells whether anything comes from the scheduler: a step's tokens, or one made for it.
        """
        deadline = time.monotonic() + timeout_s
        try:
            text = str(self._doctor.get("metrics", timeout_s=timeout_s))
        except Refused as error:
            if error.status != 404:
                raise
            text = ""
        counts = [line.split()[-1] for line in text.splitlines() if line.startswith(_TOKENS)]
        if counts:
            return sum(int(float(count)) for count in counts)
        self._doctor.get("health_generate", timeout_s=max(0.1, deadline - time.monotonic()))
        return None

    def introduce(self, *, untested: bool) -> None:
        """Asks what it is. Raises UserError if this code can't work with it."""
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
            raise UserError(f"--engine-url {self.url}: this is no SGLang server: {why(error)}") from error
        if not untested:
            raise UserError(
                f"--engine-url {self.url}: the calls to SGLang {version} follow the sources of {SOURCES} and were "
                "never tried with a real server; take that on with --engine-untested, and watch canary_logprob_max"
            )
        if not generates:
            raise UserError(f"--engine-url {self.url}: its model ({name}) does not generate text")
        if seeded is not True:
            raise UserError(
                f"--engine-url {self.url}: it takes no notice of seeds, so that no completion could be made again; "
                "start it with --enable-deterministic-inference"
            )
        self.check_dtype(info.get("dtype"))
        self.version, self.model, self.context = version, name, room - _RESERVED

    def give(self, weights: Weights) -> None:
        """Puts the weights of a folder in place.

        Raises:
            Unreachable: it is gone, or another process than the one this began with.
            EngineError: it can't take them.
        """
        folder, label = weights.folder, weights.label
        self._label = None  # nobody takes it for current before the end
        self.times_given += 1
        begun = f"r1lite-{self.run}-begun-{self.times_given}"
        update = {"model_path": str(folder), "load_format": "auto", "weight_version": label, "flush_cache": True}
        try:
            self._ask("pause_generation", {"mode": "abort"})
            # A server that is started anew from here on has lost this name, which no weights ever have.
            self._ask("update_weight_version", {"new_version": begun, "abort_all_requests": False})
            self._ask("update_weights_from_disk", update)
            self.forget()
            self._ask("continue_generation", {})
        except (Refused, EngineError) as error:
            later = isinstance(error, Refused) and error.later
            if later or not self.lives() or self._held() not in (begun, label):  # it died of something else
                raise Unreachable(f"{self.url} died while it took weights: {error}") from error
            if isinstance(error, Refused) and error.status in (401, 403):
                raise EngineError(f"{self.url}: {_token(error)}") from error
            if isinstance(error, EngineError):
                raise
            raise EngineError(
                f"{self.url} did not take the weights of this run's model, {error}. Is its model (served as "
                f"{self.model}) another one, or can't it read {folder}? --engine-weights-dir names a folder that "
                "trainer and servers share"
            ) from error
        if not self._is_label(self._held(), label):
            raise Unreachable(f"{self.url} was started anew while it took weights")
        self._label = label

    def give_adapter(self, folder: Path) -> None:
        """Raises AdapterRefusedError: complete weights alone go to SGLang."""
        raise AdapterRefusedError(f"{self.url}: SGLang is given complete weights only")

    def has_adapter(self, name: str) -> bool:
        """No."""
        return False

    def forget(self) -> None:
        """Empties the prefix cache. Raises Unreachable or Refused; EngineError if it didn't."""
        try:
            self.client.post(f"flush_cache?timeout={_FLUSH_S}", timeout_s=self.timeout_s)
        except Refused as error:
            if error.status == 400:
                raise EngineError(f"{self.url} did not empty its prefix cache: {error}") from error
            raise

    def digests(self) -> dict[str, str]:
        """Nothing: its checksums are of another kind."""
        return {}

    def is_current(self, label: str) -> bool:
        """True if it holds these weights; a server that was restarted doesn't. Raises Unreachable, EngineError."""
        return self._label == label and self._is_label(self._held(), label)

    def complete(self, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """A completion for each seed, in order. Raises Unreachable if it is gone, EngineError if it refuses."""
        values, label = sampling_values(sampling, self._eos, self._special), self._label
        body = {
            "input_ids": [list(prompt) for _ in seeds],
            "sampling_params": [{**values, "sampling_seed": seed} for seed in seeds],
            "return_logprob": True,
            "logprob_start_len": -1,  # of the completion alone
            "stream": False,
        }
        try:
            answers = self.client.post("generate", body, timeout_s=self.timeout_s)
        except Refused as error:
            # Its scheduler died, it has too much to do, or it is not the server any more that was given weights.
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
        """One completion. Raises KeyError, TypeError or ValueError for what is none, Unreachable, EngineError."""
        about = answer["meta_info"]
        reason = about["finish_reason"]["type"]
        if reason not in ("stop", "length"):  # somebody paused it
            raise Unreachable(f"{self.url}: the request was aborted")
        versions = {
            str(about["weight_version"]),
            *(str(span["version"]) for span in about.get("weight_versions") or ()),
        }
        if versions != {label}:
            raise Unreachable(f"{self.url} sampled from weights {sorted(versions)}, not from {label}")
        ids = tuple(operator.index(token) for token in answer["output_ids"])
        pairs = [(operator.index(token), float(logprob)) for logprob, token, *_ in about["output_token_logprobs"]]
        if tuple(token for token, _ in pairs) != ids or len(ids) != operator.index(about["completion_tokens"]):
            raise EngineError(
                f"{self.url} answered with a completion in parts: {len(ids)} ids, {len(pairs)} of them told"
            )
        return ids, tuple(logprob for _, logprob in pairs), str(reason)

    def _held(self) -> str:
        """The name of its weights."""
        try:
            return str(self.client.get("model_info", timeout_s=self._patience_s)["weight_version"])
        except Refused as error:
            raise Unreachable(str(error)) from error
        except (KeyError, TypeError) as error:
            raise EngineError(f"{self.url} does not say which weights it holds: {why(error)}") from error

    def _ask(self, path: str, body: dict[str, Any]) -> None:
        """A call that changes its state. Raises Unreachable or Refused; EngineError where it says that it failed."""
        answer = self.client.post(path, body, timeout_s=self.timeout_s)
        if isinstance(answer, dict) and answer.get("success") is False:
            raise EngineError(f"{self.url}: /{path} failed: {answer.get('message')}")


def _token(error: Refused) -> str:
    return f"it wants a token ({error}); set {TOKEN} to the key that it was started with (--api-key)"
