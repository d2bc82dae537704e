"""vLLM in this process: speed relative to plain vLLM, seconds to sync weights, sleep and wake, and share of a step.

Models have random weights and the shapes of Qwen2.5, since the figures don't depend on their output. Plain vLLM is the
same engine called directly with the same requests, in turns with r1lite's calls.

    python benchmarks/rollout.py                         # with CUDA: 0.5B, 1.5B and 7B
    python benchmarks/rollout.py --shapes tiny           # on any machine, to test the script
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from r1lite.config import GRPOConfig
from r1lite.model.batch import Row, micro_batches
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.nano import nano_path
from r1lite.rollout import Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_calls import request_values, seed_runs

# width, feed-forward width, layers, heads, heads of keys, tied, vocabulary
SHAPES = {
    "tiny": (128, 512, 4, 4, 2, True, 1024),
    "0.5B": (896, 4864, 24, 14, 2, True, 151936),
    "1.5B": (1536, 8960, 28, 12, 2, True, 151936),
    "7B": (3584, 18944, 28, 28, 4, False, 152064),
}


def model_of(shape: str, context: int) -> Any:
    """A Qwen2 with random weights, on the GPU if there is one: drawing them on a CPU takes minutes."""
    width, inner, layers, heads, key_heads, tied, vocabulary = SHAPES[shape]
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        return Qwen2ForCausalLM(
            Qwen2Config(
                hidden_size=width,
                intermediate_size=inner,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=key_heads,
                tie_word_embeddings=tied,
                vocab_size=vocabulary,
                max_position_embeddings=context,
            )
        ).eval()


def timed(work: Any) -> tuple[float, Any]:
    """(seconds, result): on a GPU synchronized wall time, otherwise CPU time, which ignores other programs."""
    if not torch.cuda.is_available():
        before = time.process_time()
        result = work()
        return time.process_time() - before, result
    torch.cuda.synchronize()
    started = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - started, result


def plain(llm: Any, engine: Any, prompts: list[list[int]], seeds: list[list[int]], sampling: Sampling) -> int:
    """Makes the same requests with vLLM's own `generate`. Returns the number of tokens."""
    from vllm import SamplingParams

    values = request_values(sampling, engine._eos, engine._special)
    inputs, params = [], []
    for prompt, row in zip(prompts, seeds, strict=True):
        for seed, count in seed_runs(row):
            inputs.append({"prompt_token_ids": prompt})
            params.append(SamplingParams(n=count, seed=seed, **values))
    outputs = llm.generate(inputs, params, use_tqdm=False)
    return sum(len(part.token_ids) for output in outputs for part in output.outputs)


def measure(shape: str, options: argparse.Namespace) -> dict[str, Any]:
    """One line of the table."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    context = options.prompt + options.completion
    model = model_of(shape, context)
    tokenizer = AutoTokenizer.from_pretrained(nano_path())
    config = GRPOConfig(engine="vllm", device=device, threads=torch.get_num_threads(), rollout_rows=options.rows)
    with tempfile.TemporaryDirectory() as folder:
        model.to(dtype).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model = model.float().to(device)
        started = start(Request(config, folder, model, tokenizer, dtype, context))
    engine: Any = started.engine
    policy = Policy(model, pad_id=0, dtype=dtype)
    trusted = TrustedEngine(
        engine,
        # Random weights give nearly uniform distributions, so the tolerance accepts any difference.
        Canary(policy, tokens=min(16, options.completion), seed=0, stop_text=None, tolerance=1e9),
        policy.named_weights,
        pad_id=0,
    )
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(2, 1000, (options.prompts, options.prompt), generator=generator).tolist()
    seeds = [[1000 * p + g for g in range(options.group)] for p in range(options.prompts)]
    sampling = Sampling(1.0, options.completion)

    ours, theirs, syncs, canaries = [], [], [], []
    groups: Any = None
    trusted.generate(prompts, seeds, sampling)  # the first use builds kernels
    for turn in range(options.repeats):
        trusted.offer(policy.named_weights, version=turn + 1)
        trusted.push(prompts)
        metrics = trusted.take_metrics()
        syncs.append(metrics["sync_s"])
        canaries.append(metrics["canary_s"])
        engine.forget()
        seconds, groups = timed(lambda: trusted.generate(prompts, seeds, sampling))
        ours.append(sum(len(c.token_ids) for group in groups for c in group) / seconds)
        engine.forget()
        seconds, tokens = timed(lambda: plain(engine._llm, engine, prompts, seeds, sampling))
        theirs.append(tokens / seconds)

    rows = [Row(tuple(p), c.token_ids) for p, group in zip(prompts, groups, strict=True) for c in group]
    asleep, _ = timed(engine.sleep)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)

    def train() -> None:
        for batch in micro_batches(rows, config.micro_batch_tokens, 0, device):
            (-policy.logprobs(batch)[batch.loss_mask].mean()).backward()
        optimizer.step(1e-9)

    training, _ = timed(train)
    awake, _ = timed(lambda: engine.load_weights(policy.named_weights(), version=99))
    engine.close()
    generating = statistics.median(len(rows) * options.completion / speed for speed in ours)
    sync = statistics.median(syncs)
    return {
        "shape": shape,
        "start_s": round(started.start_s, 1),
        "tokens_per_s": round(statistics.median(ours)),
        "plain_vllm_tokens_per_s": round(statistics.median(theirs)),
        "ratio": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3),
        "sync_s": round(sync, 3),
        "canary_s": round(statistics.median(canaries), 3),
        "sleep_s": round(asleep, 3),
        "wake_and_sync_s": round(awake, 3),
        "train_s": round(training, 2),
        "generate_share_of_step": round(generating / (generating + sync + training), 3),
    }


def main() -> None:
    """Prints one line per shape."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="0.5B,1.5B,7B" if cuda else "tiny")
    parser.add_argument("--prompts", type=int, default=64 if cuda else 16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=256 if cuda else 160, help="tokens")
    parser.add_argument("--completion", type=int, default=512 if cuda else 64, help="largest number of tokens")
    parser.add_argument("--rows", type=int, default=512 if cuda else 128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="JSON Lines")
    options = parser.parse_args()
    print(torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine(), torch.__version__)
    for shape in options.shapes.split(","):
        line = measure(shape, options)
        print(json.dumps(line))
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
