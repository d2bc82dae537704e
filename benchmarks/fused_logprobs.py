"""Memory and CPU time of log-probabilities from hidden states, forward and backward: tiled, plain, and TRL's.

    python benchmarks/fused_logprobs.py                  # 1,024 tokens, V 151,936, H 896, float32, one thread
    python benchmarks/fused_logprobs.py --threads 2 --entropy
    python benchmarks/fused_logprobs.py --peer trl       # also TRL's fused head, interleaved: pip install trl==1.16.0
    python benchmarks/fused_logprobs.py --crossover      # number of logits from which tiles are faster

Each pass runs in its own process; the methods take turns. Extra memory is the increase of the process's peak during the
pass, so it includes the gradient of the head (545 MB at the default shape); MB = 10^6 bytes. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--width", type=int, default=896)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--entropy", action="store_true", help="with the entropies and their gradient")
    parser.add_argument("--peer", choices=["trl"])
    parser.add_argument("--crossover", action="store_true")
    parser.add_argument("--only", choices=["tiled", "plain", "trl"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.crossover:
        crossover()
        return
    if arguments.only:
        print(json.dumps(one_pass(arguments.only, arguments)))
        return
    names = ["tiled", "plain", *([arguments.peer] if arguments.peer else [])]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.runs):
        for name in names:
            found[name].append(_in_a_process(name, arguments))
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()
    }
    print(f"{arguments.tokens} tokens, V {arguments.vocabulary}, H {arguments.width}, {arguments.threads} thread(s)")
    print(f"{'':<8}{'extra MB':>10}{'CPU s':>9}{'/ plain':>9}")
    for name, row in medians.items():
        ratio = statistics.median(a["cpu_s"] / b["cpu_s"] for a, b in zip(found[name], found["plain"], strict=True))
        print(f"{name:<8}{row['extra_mb']:>10,.0f}{row['cpu_s']:>9.2f}{ratio:>9.2f}")


def _in_a_process(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--only", name]
    for key in ("tokens", "vocabulary", "width", "threads"):
        command += [f"--{key}", str(getattr(arguments, key))]
    command += ["--entropy"] * arguments.entropy
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def one_pass(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Extra memory and CPU seconds of one forward and backward pass."""
    import torch

    torch.set_num_threads(arguments.threads)
    way = _ways(arguments.entropy)[name]
    way(*_inputs(8, 64, 16))  # libraries load
    hidden, weight, ids = _inputs(arguments.tokens, arguments.vocabulary, arguments.width)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, started = _status("VmRSS"), time.process_time()
    way(hidden, weight, ids)
    seconds = time.process_time() - started
    assert weight.grad is not None
    assert hidden.grad is not None
    return {"extra_mb": (_status("VmHWM") - before) / 1e6, "cpu_s": seconds}


def _ways(entropy: bool) -> dict[str, Any]:
    import torch

    from r1lite.rl.logprobs import entropies, token_logprobs
    from r1lite.rl.tiles import Head, tiled_logprobs

    def tiled(hidden: Any, weight: Any, ids: Any) -> None:
        found, spread = tiled_logprobs(hidden, Head(weight), ids, temperature=1.0, entropy=entropy, into_grad=True)
        (found.sum() + spread.sum()).backward()

    def plain(hidden: Any, weight: Any, ids: Any) -> None:
        logits = hidden @ weight.T
        total = token_logprobs(logits, ids).sum()
        (total + entropies(logits).sum() if entropy else total).backward()

    def trl(hidden: Any, weight: Any, ids: Any) -> None:
        from trl.trainer.utils import _CHUNKED_LOGPROB_CHUNK_SIZE, _ChunkedLogProbFunction

        outputs = ("log_probs", "entropy") if entropy else ("log_probs",)
        found, spread, *_ = _ChunkedLogProbFunction.apply(  # type: ignore[no-untyped-call]
            hidden, weight, None, ids, 1.0, _CHUNKED_LOGPROB_CHUNK_SIZE, None, 1.0, outputs
        )
        (found.sum() + (spread.sum() if entropy else torch.zeros(()))).backward()

    return {"tiled": tiled, "plain": plain, "trl": trl}


def _inputs(tokens: int, vocabulary: int, width: int) -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(0)
    hidden = torch.randn(tokens, width, requires_grad=True)
    weight = torch.empty(vocabulary, width).normal_(std=0.02).requires_grad_()
    return hidden, weight, torch.randint(0, vocabulary, (tokens,))


def _status(key: str) -> int:
    """Bytes."""
    match = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


def crossover() -> None:
    """CPU time of tiles relative to all logits at once, by size; one thread."""
    import torch

    torch.set_num_threads(1)
    ways = _ways(False)
    print(f"{'H':>5}{'V':>8}{'tokens':>8}{'M logits':>10}{'tiled / plain':>15}")
    for width in (128, 896):
        for vocabulary in (128, 1024, 8192, 32_768, 151_936):
            for tokens in (64, 256, 1024, 4096):
                if not 1 << 16 <= tokens * vocabulary <= 1 << 26:
                    continue
                inputs = _inputs(tokens, vocabulary, width)
                ratios = []
                for _ in range(5):
                    seconds = []
                    for name in ("tiled", "plain"):
                        inputs[0].grad = inputs[1].grad = None
                        started = time.process_time()
                        ways[name](*inputs)
                        seconds.append(time.process_time() - started)
                    ratios.append(seconds[0] / seconds[1])
                size = tokens * vocabulary / 1e6
                print(
                    f"{width:>5}{vocabulary:>8}{tokens:>8}{size:>10.2f}{statistics.median(ratios):>15.2f}", flush=True
                )


if __name__ == "__main__":
    main()
