"""Time and memory of a training step at 0.5B, 1.5B and 7B on one GPU: all weights, LoRA, and LoRA over 4-bit weights.

    python benchmarks/gpu/steps.py

Models have random weights and Qwen2.5's shapes; a step learns from 64 completions of 512 tokens for 8 prompts of 256.
The purpose is to show which sizes fit on which GPU, that memory stays below the estimate before the start
(`estimated_mib`), and the savings and costs of adapters and 4 bits. A case that doesn't fit is reported as such.
README.md beside this file has what was measured on an H100 and an H200; the larger cases were NOT RUN ON A GPU YET.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from common import need_gpus, parser, run, tell

WAYS = ("all", "lora", "qlora")
LENGTHS = 256, 512  # tokens of a prompt, and of a completion
STEPS = 4  # the first isn't counted: it selects kernels and allocates moments


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--shapes", default="0.5B,1.5B,7B")
    made.add_argument("--ways", default=",".join(WAYS))
    made.add_argument("--checkpointing", action="store_true", help="--gradient-checkpointing")
    made.add_argument("--micro-batch-tokens", type=int, default=16384)
    made.add_argument("--one", nargs=3, metavar=("FOLDER", "WAY", "FILE"), help=argparse.SUPPRESS)
    arguments = made.parse_args()
    need_gpus(arguments)
    if arguments.one:
        model, way, file = arguments.one
        Path(file).write_text(json.dumps(measure(model, way, arguments)), encoding="utf-8")
        return
    if arguments.dry_run:
        arguments.shapes = "tiny"
    more = [f"--{name}" for name in ("dry-run", "checkpointing") if getattr(arguments, name.replace("-", "_"))]
    for shape in arguments.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            write_model(shape, folder)
            for way in arguments.ways.split(","):
                file = str(Path(folder) / f"{way}.json")
                tokens = str(arguments.micro_batch_tokens)
                run(sys.executable, __file__, "--one", folder, way, file, "--micro-batch-tokens", tokens, *more)
                tell(arguments, shape=shape, way=way, **json.loads(Path(file).read_text(encoding="utf-8")))


def write_model(shape: str, folder: str) -> None:
    """Saves a model of this shape in bfloat16, and a tokenizer."""
    import torch
    from transformers import AutoTokenizer

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from rollout import model_of

    from r1lite.nano import nano_path

    model_of(shape, sum(LENGTHS)).to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(nano_path()).save_pretrained(folder)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # each case has the GPU to itself


def measure(folder: str, way: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures one case in its own process, with the model in a folder."""
    import torch

    from r1lite.config import GRPOConfig
    from r1lite.model.batch import Row, micro_batches
    from r1lite.model.lora import add_adapter
    from r1lite.model.optimizer import Optimizer
    from r1lite.model.policy import Policy
    from r1lite.training import memory
    from r1lite.training.loading import load_model
    from r1lite.types import Prompt
    from verifiers import Problem

    cuda = torch.cuda.is_available() and not arguments.dry_run
    prompts, group, asked, completion = (8, 8, *LENGTHS) if cuda else (2, 2, 8, 8)
    config = GRPOConfig(
        device="cuda" if cuda else "cpu",
        dtype="bfloat16" if cuda else "float32",
        threads=1,
        lora_rank=0 if way == "all" else 16,
        base_quantization="nf4" if way == "qlora" else "none",
        gradient_checkpointing=arguments.checkpointing,
        micro_batch_tokens=arguments.micro_batch_tokens if cuda else 64,
        prompts_per_step=prompts,
        group_size=group,
        max_completion_tokens=completion,
        attn_implementation="sdpa",
    )
    try:
        model, _ = load_model(config.model_copy(update={"model": folder}))
        if config.lora_rank:
            add_adapter(model, config)
        dtype = torch.bfloat16 if cuda else torch.float32
        policy = Policy(model, pad_id=0, dtype=dtype, gradient_checkpointing=arguments.checkpointing)
        optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
        generator = torch.Generator().manual_seed(0)
        texts = [tuple(torch.randint(2, 1000, (asked,), generator=generator).tolist()) for _ in range(prompts)]
        known = [Prompt(Problem("", ""), "", text, "") for text in texts]
        expected = memory.estimate(config, policy, known, [], samples_here=False)
        rows = [
            Row(text, tuple(torch.randint(2, 1000, (completion,), generator=generator).tolist()))
            for text in texts
            for _ in range(group)
        ]
        memory.forget_peak()
        seconds = []
        for _ in range(STEPS):
            began = time.perf_counter()
            for batch in micro_batches(rows, config.micro_batch_tokens, 0, config.device):
                (-policy.logprobs(batch)[batch.loss_mask].mean()).backward()
            optimizer.step(1e-9)
            if cuda:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - began)
    except torch.OutOfMemoryError:
        return {"fits": False}
    return {
        "fits": True,
        "step_s": round(statistics.median(seconds[1:]), 3),
        "tokens_per_s": round(len(rows) * completion / statistics.median(seconds[1:])),
        "peak_mib": round(memory.peak(model.device) / 2**20),
        "estimated_mib": round(expected.peak / 2**20),
    }


if __name__ == "__main__":
    main()
