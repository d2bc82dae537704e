"""Digests of the rollouts of `r1lite grpo --task gsm8k`, to check that a change of the code doesn't change results.

    python benchmarks/digests.py            # prints this version's digests and the recorded ones
    python benchmarks/digests.py --record   # replaces the recorded digests

A digest covers tokens, log-probabilities, rewards and advantages of every completion. Other processors and versions of
torch round differently, so both are recorded.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

KEYS = ("token_ids", "logprobs", "reward", "advantage")
RECORDED = Path(__file__).with_suffix(".json")
FLAGS = ["--task", "gsm8k", "--model", "nano", "--device", "cpu", "--threads", "1", "--quiet"]
FLAGS += ["--eval-problems", "10", "--eval-sample-problems", "4"]


def digest(seed: int, steps: int) -> str:
    """The digest of one run's rollouts."""
    whole = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/run", "--seed", str(seed), "--steps", str(steps)]
        subprocess.run([sys.executable, "-m", "r1lite", "grpo", *FLAGS, *out], check=True, stdout=subprocess.DEVNULL)
        for path in sorted(Path(folder, "run", "rollouts").glob("*.jsonl*")):
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
                for line in lines:
                    row = json.loads(line)
                    whole.update(json.dumps([row[key] for key in KEYS]).encode())
    return whole.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    processor = torch.cpu.get_capabilities()["cpu_name"]
    machine = {"torch": torch.__version__, "processor": processor, "steps": options.steps}
    found = {str(seed): digest(seed, options.steps) for seed in range(options.seeds)}
    if options.record:
        RECORDED.write_text(json.dumps({**machine, "seeds": found}, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for seed, mine in found.items():
        print(f"seed {seed}: {mine}, recorded {recorded['seeds'].get(seed)}")
    if {key: recorded[key] for key in machine} != machine:
        print(f"recorded with {recorded}, this is {machine}: digests may differ without an error")


if __name__ == "__main__":
    main()
