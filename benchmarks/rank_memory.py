"""Growth of rank 0's memory when a run starts with a sharded model on several ranks, and when it saves a checkpoint.

Both are measured in two ways in turns, each in its own ranks. r1lite starts with weights that stay in their files until
each rank has its float32 part of the policy and of a reference; the alternative loads whole models first. r1lite saves
on each rank that rank's part, and the model's files tensor by tensor; the alternative gathers all weights and moments
on rank 0. The figure is the growth of the peak anonymous memory of rank 0's process (RssAnon), without the system's
file cache.

    python benchmarks/rank_memory.py                            # 64 M parameters, two ranks, about two minutes
    python benchmarks/rank_memory.py --ranks 4 --width 1024
    python benchmarks/rank_memory.py --files several    # starts only; norms in float32, the rest in bfloat16
    python benchmarks/rank_memory.py --files bin        # the same in files of torch.save
    python benchmarks/rank_memory.py --files head       # a reward model with a new head, no reference
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
from r1lite.distributed.world import World
from r1lite.model import parts_on_disk
from r1lite.model.mapped import read_model
from r1lite.model.policy import Policy
from r1lite.model.sharding import is_part, layers_of, shard, shard_module, whole
from r1lite.nano import nano_path
from r1lite.preference.reward_model import load_classifier
from r1lite.run import checkpoint

STARTS = ("started from the files", "started from whole models")
SAVES = ("saved in parts", "saved from rank 0")


def anonymous_mib() -> float:
    """Anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise OSError("this system doesn't report a process's anonymous memory")


def grown_mib(act: Callable[[], object]) -> float:
    """Largest growth of memory during a call of `act`."""
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
    """Gathers everything on the main rank, which writes it."""
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


def start(world: World, folder: Path, *, whole_first: bool) -> Any:
    """The policy of a run with a reference; a reward model if the folder has a tokenizer."""
    if (folder / "model" / "tokenizer.json").exists():
        classifier, _ = load_classifier(str(folder / "model"), seed=0, mapped=not whole_first)
        shard_module(classifier, layers_of(classifier), world, device="cpu")
        return classifier
    model, _ = read_model({"pretrained_model_name_or_path": folder / "model"}, mapped=not whole_first)
    policy = Policy(model, pad_id=0)
    reference = policy.frozen_copy(sharing=not whole_first)
    shard(policy, world)
    shard(reference, world, learns=False)
    return policy


def rank(way: str, folder: Path, file_mb: int) -> None:
    """Runs one rank of a measurement."""
    torch.set_num_threads(1)
    checkpoint._MODEL_FILE, parts_on_disk._FILE_BYTES = f"{file_mb}MB", file_mb * 10**6
    with joined(device="cpu", start_s=300, limit_s=0, wait_s=300) as ranks:
        world, found = ranks.world, list[Any]()
        started = grown_mib(lambda: found.append(start(world, folder, whole_first=way == STARTS[1])))
        policy = found[0]
        saved = 0.0 if way in STARTS else save(way, policy, folder, world)
        if world.is_main:
            parameters = sum(value.numel() for value in policy.parameters())
            (folder / "grown").write_text(f"{parameters} {started if way in STARTS else saved}")


def save(way: str, policy: Policy, folder: Path, world: World) -> float:
    """Makes an update, then measures a save."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    for value in policy.parameters():
        value.grad = torch.ones_like(value)
    optimizer.step()
    optimizer.zero_grad()
    if way == SAVES[1]:
        return grown_mib(lambda: save_together(policy, optimizer, folder, world.is_main))
    tokenizer, state = AutoTokenizer.from_pretrained(nano_path()), {"optimizer": optimizer.state_dict()}
    return grown_mib(
        lambda: checkpoint.save(folder, 1, model=policy.model, tokenizer=tokenizer, state=state, keep=1, world=world)
    )


def make_model(args: argparse.Namespace, folder: Path) -> None:
    """Writes a random model in bfloat16."""
    torch.manual_seed(0)
    shape: Any = {"hidden_size": args.width, "intermediate_size": 4 * args.width, "num_hidden_layers": args.layers}
    heads: Any = {"num_attention_heads": args.width // 64, "num_key_value_heads": 2, "tie_word_embeddings": True}
    model: Any = Qwen2ForCausalLM(Qwen2Config(**shape, **heads, vocab_size=8192, max_position_embeddings=512))
    model.to(torch.bfloat16)
    if args.files in ("several", "bin"):
        for name, weight in model.named_parameters():
            weight.data = weight.float() if "norm" in name else weight.data
    model.save_pretrained(folder, max_shard_size=f"{args.file_mb}MB")
    if args.files == "bin":
        weights = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
        torch.save(weights, folder / "pytorch_model.bin")
        for file in folder.glob("*.safetensors*"):
            file.unlink()
    if args.files == "head":
        AutoTokenizer.from_pretrained(nano_path()).save_pretrained(folder)


def measured(way: str, args: argparse.Namespace) -> tuple[int, float]:
    """Number of parameters, and MiB that rank 0 grew by."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.ranks)]
        command += [__file__, "--rank-of", way, "--folder", folder, "--file-mb", str(args.file_mb)]
        make_model(args, Path(folder) / "model")
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
    parser.add_argument("--file-mb", type=int, default=60, help="size of each file (5,000 in a run)")
    parser.add_argument("--files", choices=("one", "several", "bin", "head"), default="one")
    parser.add_argument("--rank-of", choices=(*STARTS, *SAVES), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank_of:
        rank(args.rank_of, args.folder, args.file_mb)
        return
    ways = (*STARTS, *SAVES) if args.files == "one" else STARTS
    grown: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(args.turns):
        for way in grown:
            parameters, mib = measured(way, args)
            grown[way].append(mib)
    print(f"{parameters / 1e6:.1f} M parameters on {args.ranks} ranks, files of {args.file_mb} MB\n")
    print("| | MiB that rank 0 grows by |\n| --- | --- |")
    for way, values in grown.items():
        print(f"| {way} | {statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f}) |")


if __name__ == "__main__":
    main()
