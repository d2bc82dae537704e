"""An SGLang server for tests, after the sources of 0.5.23: its routes, its refusals, and the shapes of its answers."""

import time

from fleet_for_tests import FakeVLLM, checksum, sampled

FLUSH_S = 30  # for which the cache's emptying waits until no request runs
REQUEST = {"input_ids", "sampling_params", "return_logprob", "logprob_start_len", "stream"}
# Some of what its contract (sglang/api/v1/api_types.py) takes, and of which type; it refuses unknown names.
PARAMETERS = {
    "max_new_tokens": int,
    "min_new_tokens": int,
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
    "presence_penalty": float,
    "frequency_penalty": float,
    "stop": list,
    "stop_token_ids": list,
    "ignore_eos": bool,
    "no_stop_trim": bool,
    "skip_special_tokens": bool,
    "n": int,
    "sampling_seed": int,
}


class FakeSGLang(FakeVLLM):
    """One server.

    Args:
        seeded: it was started with --enable-deterministic-inference.
        key: as --api-key; the metrics and signs of health are open all the same.
    """

    GENERATES, COUNT = "generate", 'sglang:realtime_tokens_total{mode="decode"}'
    OF_THE_ENGINE = ("generate", "server_info", "health_generate", "update_weights_from_disk", "flush_cache")

    def __init__(self, *arguments, version="0.5.23", seeded=True, key=None, **settings):
        self.seeded, self.key = seeded, key
        super().__init__(*arguments, version=version, **settings)

    def refused(self, handler):
        open_to_all = handler.path.startswith(("/health", "/ready", "/metrics"))
        if self.key and not open_to_all and handler.headers.get("Authorization") != f"Bearer {self.key}":
            return 401, {"error": "Unauthorized"}
        return None

    def route(self, path, body):
        self.reach(path)
        if path == "generate":
            return self.generate(body)
        if path == "metrics":
            return (200, self.metrics()) if self.counts else (404, {"detail": "Not Found"})
        with self.lock:
            found = getattr(self, f"on_{path.replace('/', '_')}", lambda body: (404, {"detail": "Not Found"}))(body)
            self.lock.notify_all()
        return found

    def on_health_generate(self, body):
        return (503, "") if self.paused else (200, "")  # its own request of a token would wait

    def on_model_info(self, body):
        return 200, {"model_path": "policy", "is_generation": True, "weight_version": self.label, "load_format": "auto"}

    def on_server_info(self, body):
        about = {"enable_deterministic_inference": self.seeded, "max_total_num_tokens": 10**6, "internal_states": [{}]}
        return 200, {"version": self.version, **about}

    def on_v1_models(self, body):
        return 200, {"object": "list", "data": [{"id": "policy", "root": "policy", "max_model_len": self.context}]}

    def on_pause_generation(self, body):
        assert body == {"mode": "abort"}
        self.paused = True
        self.rounds += 1
        return 200, {"message": "Generation paused successfully.", "status": "ok"}

    def on_continue_generation(self, body):
        self.paused = False
        return 200, {"message": "Generation continued successfully.", "status": "ok"}

    def on_update_weight_version(self, body):
        assert body["abort_all_requests"] is False
        self.label = body["new_version"]
        return 200, {"success": True, "message": "Weight version updated", "new_version": self.label}

    def on_update_weights_from_disk(self, body):
        assert (body["load_format"], body["flush_cache"]) == ("auto", True)
        try:
            self.weights = checksum(body["model_path"])
        except OSError as error:
            message = f"Failed to get weights iterator: {error}."
            return 400, {"success": False, "message": message, "num_paused_requests": 0}
        self.label = body["weight_version"]
        return 200, {"success": True, "message": "Succeeded to update model weights.", "num_paused_requests": 0}

    def on_flush_cache(self, body):
        until = time.monotonic() + FLUSH_S  # what was aborted takes a moment to end
        while self.sampling and not self.dead and time.monotonic() < until:
            time.sleep(0.005)
        if self.sampling:
            return 400, "Flush cache failed."
        return 200, "Cache flushed.\nPlease check backend logs for more details.\n"

    def generate(self, body):
        assert set(body) == REQUEST
        for prompt, asked in zip(body["input_ids"], body["sampling_params"], strict=True):
            for name, value in asked.items():
                if name not in PARAMETERS or type(value) is not PARAMETERS[name]:
                    return 400, {"error": f"sampling_params: {name}"}
            if len(prompt) + asked["max_new_tokens"] > self.context:
                return 400, {"error": {"message": "Requested token count exceeds the model's maximum context length"}}
        return self.complete(body)

    def choices(self, body, *, cut, weights=None):
        answers = []
        for prompt, asked in zip(body["input_ids"], body["sampling_params"], strict=True):
            tokens = min(asked["max_new_tokens"], self.context - 2 - len(prompt))  # without a word
            ids, logprobs, reason = sampled(
                *(self.weights, prompt, asked["sampling_seed"]),
                tokens=tokens,
                vocabulary=self.vocabulary,
                ends=asked["stop_token_ids"],
            )
            finish = {"type": "stop", "matched": ids[-1]} if reason == "stop" else {"type": "length", "length": tokens}
            if cut:
                ids, logprobs = ids[:1], logprobs[:1]
                finish = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
            about = {
                "id": "0",
                "finish_reason": finish,
                "prompt_tokens": len(prompt),
                "weight_version": self.label,
                "completion_tokens": len(ids),
                "cached_tokens": 0,
                "input_token_logprobs": [],
                "output_token_logprobs": [[logprob, token, None] for logprob, token in zip(logprobs, ids, strict=True)],
                "output_token_logprobs_length": len(ids),
            }
            answers.append({"text": "", "output_ids": ids, "meta_info": about})
        return 200, answers
