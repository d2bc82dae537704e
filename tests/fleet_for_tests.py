"""A vLLM server for tests that needs no vLLM: its routes, its states, and every way of breaking down.

Its completions are a function of the weights' bytes, the prompt and the seed, so stale weights show. Standard library
only: as a script, with a port, it is a process that can be killed.
"""

import contextlib
import hashlib
import json
import socket
import struct
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def sampled(weights, prompt, seed, *, tokens, vocabulary=48, ends=()):
    """(ids, log-probabilities, finish reason) by weights of that checksum."""
    ids, state = [], zlib.crc32(repr((weights, list(prompt), seed)).encode())
    while len(ids) < tokens:
        state = zlib.crc32(state.to_bytes(4, "big"))
        ended = bool(ends) and state >> 8 & 15 == 0
        ids.append(ends[0] if ended else 2 + state % (vocabulary - 2))
        if ended:
            break
    return ids, [-(i % 7) / 8 - weights % 5 for i in ids], "stop" if ids[-1] in ends else "length"


def checksum(folder, file="model.safetensors"):
    """Of a folder's weights, in the order of the file."""
    data = (Path(folder) / file).read_bytes()
    return zlib.crc32(data[8 + struct.unpack("<Q", data[:8])[0] :])


def digests(folder):
    """Of each tensor of a folder's weights, by name, as vLLM names its worker."""
    data = (Path(folder) / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {k: v["data_offsets"] for k, v in json.loads(data[8 : 8 + size]).items() if k != "__metadata__"}
    begin = 8 + size
    return {
        f"dp0:pp0:pcp0:tp0:{k}": hashlib.sha256(data[begin + a : begin + b]).hexdigest()
        for k, (a, b) in tensors.items()
    }


# What happens instead of an answer, or to it. After these the server is as it was ...
LIGHT = ("reset", "no body", "half a body", "half without a length", "503", "429", "408", "slow", "no length")
# ... and after these its process was another one, with the weights that it was started with.
DEADLY = ("restart", "die", "die in the body", "die with 500", "die with 400", "die with 404")
STUCK = ("hang", "drops")


class FakeVLLM:
    """One server.

    Args:
        plan: called with each request's path (without its query); a fault's name, or None.
        down_s: how long it is away after it died.
        delay: seconds of each completion, or what gives them for a request's body.
        counts: it counts tokens in its metrics: one each time it is asked while it samples.
        lora_rank: the greatest of adapters that it takes; 0 = none.
    """

    HOST = "127.0.0.1"
    GENERATES, COUNT = "v1/completions", 'vllm:generation_tokens_total{engine="0"}'
    OF_THE_ENGINE = ("v1/completions", "is_paused", "pause", "resume", "collective_rpc", "reset_prefix_cache")

    def __init__(
        self,
        port=0,
        *,
        version="0.32.0",
        context=160,
        vocabulary=48,
        delay=0.0,
        plan=None,
        down_s=0.15,
        counts=True,
        lora_rank=0,
    ):
        self.lora_rank = lora_rank
        self.version, self.context, self.vocabulary = version, context, vocabulary
        self.delay, self.down_s, self.counts = delay, down_s, counts
        self.sampling, self.running = 0, threading.Event()  # cleared: its engine hangs, and only the front answers
        self.running.set()
        self.plan = plan or (lambda path: None)
        self.calls, self.starts, self.aborted = [], 0, 0
        self.open, self.lock, self.over = set(), threading.Condition(), threading.Event()
        self.port, self.server = port, None
        self.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        """A new process: nothing of the one before is left."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def handle(self):
                with fake.lock:
                    if fake.dead:
                        return _reset(self.connection)
                    fake.open.add(self.connection)
                try:
                    with contextlib.suppress(OSError):
                        super().handle()
                finally:
                    with fake.lock:
                        fake.open.discard(self.connection)

            def parse_request(self):
                """What a client of these tests sends, in a fraction of the time that the library needs."""
                self.command, self.path, _ = self.raw_requestline.decode().split()
                self.headers = {}
                while line := self.rfile.readline().decode().strip():
                    name, _, value = line.partition(": ")
                    self.headers[name] = value
                return True

            def do_GET(self):
                fake.answer(self)

            do_POST = do_GET

            def finish(self):
                with contextlib.suppress(OSError, ValueError):
                    super().finish()

        class Listening(ThreadingHTTPServer):
            daemon_threads, block_on_close, request_queue_size = True, False, 128

            def handle_error(self, *_):
                pass

            def shutdown_request(self, request):  # tells the other side that this one hung up
                with contextlib.suppress(OSError):
                    super().shutdown_request(request)

        for patience in reversed(range(100)):
            try:
                self.server = Listening((self.HOST, self.port), Handler)
                break
            except OSError:  # a connection to somewhere took the port meanwhile
                if not patience:
                    raise
                time.sleep(0.02)
        self.port = self.server.server_port
        self.starts += 1
        self.dead = self.dying = self.paused = False
        self.label, self.weights, self.rounds, self.digests, self.tokens = "default", 0, 0, {}, 0
        self.adapters = {}
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def die(self, *, returns=True):
        """As by kill -9: whatever is under way is cut off."""
        with self.lock:
            if self.dead:
                return
            self.dead = True
            for connection in list(self.open):
                _reset(connection)
            self.lock.notify_all()
        threading.Thread(target=self._come_back, args=(self.server, returns), daemon=True).start()

    def _come_back(self, server, returns):
        server.shutdown()
        server.server_close()
        if returns and not self.over.wait(self.down_s):
            with self.lock:
                if self.dead and not self.over.is_set():
                    self.start()

    def stop(self):
        self.over.set()
        self.die(returns=False)

    def answer(self, handler):
        path = handler.path.strip("/").partition("?")[0]
        size = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(size)) if size else None
        with self.lock:
            self.calls.append(path)
            fault = self.plan(path)
        if fault == "die":
            return self.die()
        if fault == "restart":  # so quickly that nobody sees it down
            with self.lock:
                self.paused, self.label, self.weights, self.starts = False, "default", 0, self.starts + 1
                self.adapters = {}
                self.rounds += 1
                self.lock.notify_all()
        if fault == "reset":
            return _reset(handler.connection)
        if fault == "hang":
            self.over.wait(20)
            return None
        if fault == "slow":
            self.over.wait(0.3)
        with self.lock:
            self.dying |= bool(fault) and fault.startswith("die")  # vLLM knows it before anybody is told
        if fault and fault[-3:].isdigit():  # also "say 400", by one that lives
            status, value = int(fault[-3:]), {"error": "EngineDeadError"}
        elif self.dying and fault is None:
            status, value = 503 if path == "health" else 500, {"error": "EngineDeadError"}
        else:
            status, value = self.refused(handler) or self.route(path, body)
            if fault == "abort" and path == self.GENERATES:
                status, value = self.choices(body, cut=True)
        with self.lock:
            if self.dead:
                return None
        try:
            self.send(handler, fault, status, (value if isinstance(value, str) else json.dumps(value)).encode())
        finally:  # also where the other side has hung up
            if fault and fault.startswith("die"):
                self.die()
        return None

    def send(self, handler, fault, status, data):
        length = "" if fault in ("half without a length", "no length") else f"Content-Length: {len(data)}\r\n"
        head = f"HTTP/1.0 {status} \r\n{length}\r\n".encode()
        if fault in ("drops", "no body"):
            handler.wfile.write(head)
            for byte in data * 1000 * (fault == "drops"):
                handler.wfile.write(bytes([byte]))
                if self.over.wait(0.05):
                    break
        elif fault in ("half a body", "half without a length", "die in the body"):
            handler.wfile.write(head + data[: len(data) // 2])
        else:
            handler.wfile.write(head + data)

    def refused(self, handler):
        """(status, text) for a request without the token that is asked for."""

    def reach(self, path):
        """Waits where that is of the engine, and it hangs."""
        while path in self.OF_THE_ENGINE and not (self.running.wait(0.05) or self.dead or self.over.is_set()):
            pass

    def metrics(self):
        with self.lock:
            self.tokens += self.sampling > 0 and self.running.is_set()
            count = f"{self.COUNT} {self.tokens}.0\n" if self.counts else ""
        return f"# HELP\nprocess_start_time_seconds {self.starts}.5\n{count}other 1\n"

    def route(self, path, body):
        self.reach(path)
        known = {
            "health": "",
            "version": {"version": self.version},
            "v1/models": {
                "data": [{"id": "policy", "max_model_len": self.context}, *({"id": name} for name in self.adapters)]
            },
            "is_paused": {"is_paused": self.paused},
            "weight_info": {"weight_version": self.label},
            "metrics": self.metrics() if path == "metrics" else "",
            "reset_prefix_cache": {"success": True},
            "weight_checker": {"checksums": self.digests},
        }
        if path in known:
            return 200, known[path]
        if path == "v1/completions":
            if body["model"] not in ("policy", *self.adapters):
                return 404, "no such model"
            return self.complete(body)
        if path in ("v1/load_lora_adapter", "v1/unload_lora_adapter"):
            return self.adapter(path, body)
        with self.lock:
            if path == "pause":
                self.paused = True
                self.rounds += 1
            elif path == "resume":
                self.paused = False
            elif path == "update_weight_version":
                self.label = body["new_version"]
            elif path == "collective_rpc":
                try:
                    self.weights = checksum(body["kwargs"]["weights_path"])
                    self.digests = digests(body["kwargs"]["weights_path"])
                except OSError:
                    return 500, "no such file"
            else:
                return 404, "not found"
            self.lock.notify_all()
        return 200, {}

    def adapter(self, path, body):
        if not self.lora_rank:
            return 404, "not found"
        with self.lock:
            if path == "v1/unload_lora_adapter":
                return (200, {}) if self.adapters.pop(body["lora_name"], None) is not None else (404, "not loaded")
            folder = Path(body["lora_path"])
            rank = json.loads((folder / "adapter_config.json").read_text())["r"]
            if rank > self.lora_rank:
                return 500, f"LoRA rank {rank} is greater than max_lora_rank {self.lora_rank}."
            self.adapters[body["lora_name"]] = checksum(folder, "adapter_model.safetensors")
        return 200, "Success"

    def complete(self, body):
        with self.lock:
            while self.paused and not self.dead:
                self.lock.wait(1)
            until = time.monotonic() + (self.delay(body) if callable(self.delay) else self.delay)
            rounds, weights = self.rounds, self.weights + self.adapters.get(body.get("model"), 0)
            self.sampling += 1
            while self.rounds == rounds and not self.dead and (left := until - time.monotonic()) > 0:
                self.lock.wait(left)
            self.sampling -= 1
            if self.rounds == rounds:
                return self.choices(body, cut=False)
            self.aborted += 1
            return self.choices(body, cut=True, weights=weights)

    def choices(self, body, *, cut, weights=None):
        """`cut`: aborted, with what these weights had sampled by then."""
        found = []
        weights = self.weights + self.adapters.get(body["model"], 0) if weights is None else weights
        for i in range(body["n"]):
            ids, logprobs, reason = sampled(
                *(weights, body["prompt"], body["seed"] + i),
                tokens=body["max_tokens"],
                vocabulary=self.vocabulary,
                ends=body["stop_token_ids"],
            )
            values = {"token_logprobs": logprobs}
            count = ids[0] % len(ids)  # as good as any
            if cut and count < 1:  # before its first token
                ids, values, reason = [], None, "abort"
            elif cut:
                ids, values, reason = ids[:count], {"token_logprobs": logprobs[:count]}, "abort"
            found.append({"index": i, "token_ids": ids, "logprobs": values, "finish_reason": reason})
        return 200, {"choices": found[::-1], "model": body["model"]}


def _reset(connection):
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    FakeVLLM(int(sys.argv[1]), delay=float(sys.argv[2]))
    threading.Event().wait()
