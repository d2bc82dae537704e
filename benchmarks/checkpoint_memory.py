"""What saving a checkpoint adds to rank 0's memory, with the model in parts on several ranks.

Two ways in turns, each in ranks of its own: as a run saves, each rank what it holds and the model's files a tensor at a
time; and all weights and moments put together on rank 0 first. The figure is the anonymous memory of rank 0's process
(RssAnon) at its highest above what it was before; what the system keeps of files is not in it.

    python benchmarks/checkpoint_memory.py                            # 70 M parameters, two ranks, about a minute
    python benchmarks/checkpoint_memory.py --ranks 4 --width 1024
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from r1lite.distributed.joining import joined
from r1lite.model import parts_on_disk
from r1lite.model.policy import Policy
from r1lite.model.sharding import is_part, shard, whole
from r1lite.nano import nano_path
from r1lite.run import checkpoint

WAYS = ("in parts", "put together")


def anonymous_mib() -> float:
    """This process's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise OSError("this system does not tell a process's anonymous memory")


def grown_mib(act: Callable[[], object]) -> float:
    """By how much memory grew at most while something was done."""
    before, ended = anonymous_mib(), threading.Event()
    highest = before

    def watch() -> None:
        nonlocal highest
        while not ended.wait(0.005):
            highest = max(highest, anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    act()
    ended.set()
    watcher.join()
    return highest - before


def save_together(policy: Any, optimizer: Any, folder: Path, is_main: bool) -> None:
    """Everything put together on the main rank, and written there."""
    values = dict(policy.model.named_parameters())
    for number, moments in enumerate(optimizer.state.values()):
        values |= {f"{number}.{name}": value for name, value in moments.items()}
    held = {}
    for name, value in values.items():
        one = whole(value.detach()) if is_part(value) else value
        if is_main:
            held[name] = one
    if is_main:
        torch.save(held, folder / "all.pt")


def rank(way: str, width: int, layers: int, folder: Path, file_mb: int) -> None:
    """One rank of one way: an update, and then the save that is measured."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(nano_path())
    shape: Any = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    heads: Any = {"num_attention_heads": width // 64, "num_key_value_heads": 2, "tie_word_embeddings": True}
    model = Qwen2ForCausalLM(Qwen2Config(**shape, **heads, vocab_size=8192, max_position_embeddings=512))
    checkpoint._MODEL_FILE, parts_on_disk._FILE_BYTES = f"{file_mb}MB", file_mb * 10**6
    with joined(device="cpu", start_s=300, limit_s=0, wait_s=300) as ranks:
        policy = Policy(model, pad_id=0)
        shard(policy)
        optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
        for value in policy.parameters():
            value.grad = torch.ones_like(value)
        optimizer.step()
        optimizer.zero_grad()
        is_main = ranks.world.is_main
        if way == "in parts":
            state = {"optimizer": optimizer.state_dict()}
            grown = grown_mib(
                lambda: checkpoint.save(
                    folder, 1, model=model, tokenizer=tokenizer, state=state, keep=1, world=ranks.world
                )
            )
        else:
            grown = grown_mib(lambda: save_together(policy, optimizer, folder, is_main))
        if is_main:
            parameters = sum(value.numel() for value in policy.parameters())
            (folder / "grown").write_text(f"{parameters} {grown}")


def measured(way: str, args: argparse.Namespace) -> tuple[int, float]:
    """Parameters, and MiB that the save added to rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.ranks)]
        command += [__file__, "--rank-of", way, "--folder", folder, "--width", str(args.width)]
        command += ["--layers", str(args.layers), "--file-mb", str(args.file_mb)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        parameters, grown = (Path(folder) / "grown").read_text().split()
    return int(parameters), float(grown)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--file-mb", type=int, default=60, help="of each file; of a run's 5,000")
    parser.add_argument("--rank-of", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank_of:
        rank(args.rank_of, args.width, args.layers, args.folder, args.file_mb)
        return
    grown: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(args.turns):
        for way in WAYS:
            parameters, mib = measured(way, args)
            grown[way].append(mib)
    print(f"{parameters / 1e6:.1f} M parameters on {args.ranks} ranks, files of {args.file_mb} MB\n")
    print("| checkpoint | MiB that rank 0 grows by |\n| --- | --- |")
    for way, values in grown.items():
        print(f"| {way} | {statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f}) |")


if __name__ == "__main__":
    main()
