"""GRPO on 1, 2, 4, ... GPUs of one machine: step time and memory per GPU, with whole and with sharded models (FSDP2).

    python benchmarks/gpu/sharding.py --model Qwen/Qwen2.5-1.5B
    python benchmarks/gpu/sharding.py --model Qwen/Qwen2.5-7B --ways full

The purpose is to show that steps get faster with more GPUs (`speedup`, relative to the smallest number that ran), that
`--shard full` leaves each GPU its part of weights, gradients and moments, and that every number of GPUs reaches the
same reward. NOT RUN ON A GPU YET.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import need_gpus, of_run, parser, run, tell


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--model", default="Qwen/Qwen2.5-1.5B")
    made.add_argument("--gpus", default="1,2,4,8")
    made.add_argument("--ways", default="none,full", help="of --shard")
    made.add_argument("--steps", type=int, default=10)
    arguments = made.parse_args()
    need_gpus(arguments, 2)
    counts, ways = [int(count) for count in arguments.gpus.split(",")], arguments.ways.split(",")
    flags = ["--task", "gsm8k", "--engine", "transformers", "--no-report", "--eval-sample-problems", "2"]
    flags += ["--eval-samples", "2"]
    if arguments.dry_run:
        counts, ways, arguments.steps = [1, 2], ["none", "full"], 1
        flags += [
            "--model",
            "nano",
            "--device",
            "cpu",
            "--threads",
            "1",
            "--prompts-per-step",
            "2",
            "--group-size",
            "2",
        ]
        flags += ["--max-completion-tokens", "16", "--eval-problems", "2"]
    else:
        import torch

        counts = [count for count in counts if count <= torch.cuda.device_count()]
        flags += ["--model", arguments.model, "--source", "hub", "--template", "r1_zero", "--stop-text", "</answer>"]
        flags += ["--prompts-per-step", "64", "--group-size", "8", "--max-completion-tokens", "512"]
        flags += ["--eval-problems", "64"]
    first: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            for count in counts:
                if way != "none" and count == 1:
                    continue
                out = Path(folder) / f"{way}-{count}"
                launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
                same = [*flags, "--shard", way, "--steps", str(arguments.steps), "--out", str(out)]
                try:
                    run(sys.executable, *(launcher if count > 1 else []), "-m", "r1lite", "grpo", *same)
                except subprocess.CalledProcessError:
                    if arguments.dry_run:
                        raise
                    tell(arguments, shard=way, gpus=count, fits=False)  # its output is printed above
                    continue
                lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
                figures, reward = of_run(out), json.loads(lines[-1])["reward"]
                began = first.setdefault(way, figures["wall_s"])
                speedup = round(began / figures["wall_s"], 2)
                tell(arguments, shard=way, gpus=count, fits=True, **figures, last_reward=reward, speedup=speedup)


if __name__ == "__main__":
    main()
