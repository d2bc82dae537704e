"""Times one GRPO step: 16 prompts x 8 completions x 64 new tokens on a randomly initialised 3.4 M-parameter Qwen2.

    python benchmarks/grpo_step.py                 # r1lite alone
    python benchmarks/grpo_step.py --peer trl      # also TRL's GRPOTrainer on the same work, interleaved
    python benchmarks/grpo_step.py --peer trl --dtype bfloat16 --peer-dtype float32

Float32 by default (bfloat16 means autocast), one thread, equal micro-batches, and no end-of-text token, so that every
completion has 64 tokens. Each run is a separate process, so that peak memory is measured separately. Figures are
medians over the timed steps of all runs, in CPU seconds. The peer needs `pip install trl==1.16.0`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PROMPTS, GROUP, NEW_TOKENS, VOCAB = 16, 8, 64, 128
DTYPES = ["float32", "bfloat16"]
CHARS = [chr(33 + i) for i in range(VOCAB - 35)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["trl"])
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--micro-batch", type=int, default=32, help="completions of one forward and backward pass")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the forward pass")
    parser.add_argument("--peer-dtype", choices=DTYPES, help="the peer's dtype; by default --dtype")
    parser.add_argument("--steps", type=int, default=4, help="timed steps per run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=["r1lite", "trl"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps({"r1lite": run_r1lite, "trl": run_trl}[arguments.only](arguments)))
        return
    names = ["r1lite", *([arguments.peer] if arguments.peer else [])]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(arguments.runs):
        for name in names:
            found[name].append(_in_a_process(name, arguments))
    table = {name: _medians(runs) for name, runs in found.items()}
    print("CPU seconds; MiB of the process, and its growth after loading")
    print(f"{'':<8}{'step':>8}{'generate':>10}{'score':>8}{'train':>8}{'peak MiB':>10}{'grown by':>10}")
    for name, row in table.items():
        print(
            f"{name:<8}{row['step']:>8.3f}{row['generate']:>10.3f}{row['score']:>8.3f}{row['train']:>8.3f}"
            f"{row['peak_mib']:>10.0f}{row['peak_mib'] - row['start_mib']:>10.0f}"
        )
    if arguments.peer:
        ours, peer = table["r1lite"], table[arguments.peer]
        print(f"r1lite / {arguments.peer}: {ours['step'] / peer['step']:.2f} x CPU seconds per step, ", end="")
        print(f"{ours['peak_mib'] / peer['peak_mib']:.2f} x peak memory of the process, ", end="")
        above = (ours["peak_mib"] - ours["start_mib"]) / (peer["peak_mib"] - peer["start_mib"])
        print(f"{above:.2f} x growth after loading")


def _in_a_process(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", name, "--steps", str(arguments.steps)]
    command += ["--prompt-tokens", str(arguments.prompt_tokens), "--micro-batch", str(arguments.micro_batch)]
    dtype = arguments.dtype if name == "r1lite" else arguments.peer_dtype or arguments.dtype
    command += ["--dtype", dtype]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    steps = [step for run in runs for step in run["steps"]]
    return {
        **{key: statistics.median(step[key] for step in steps) for key in ("step", "generate", "score", "train")},
        **{key: statistics.median(run[key] for run in runs) for key in ("peak_mib", "start_mib")},
    }


def make_model(key_heads: int = 4) -> Any:
    """A randomly initialised model, the same for both."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = Qwen2Config(
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=key_heads,
        vocab_size=VOCAB,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=VOCAB,  # not in the vocabulary: no completion ends early
        pad_token_id=0,
    )
    return Qwen2ForCausalLM(config)


def make_tokenizer(vocabulary: int = VOCAB) -> Any:
    """A tokenizer with one token per character; the end-of-text token is the one after the vocabulary."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", *CHARS]
    names += [f"<{i}>" for i in range(vocabulary - len(names))] + ["<eos>"]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def make_questions(count: int, tokens: int) -> list[str]:
    import random

    rng = random.Random(0)
    return ["".join(rng.choice(CHARS) for _ in range(tokens)) for _ in range(count)]


def reward_of(text: str) -> float:
    """A reward that differs within a group, so that every group has a signal."""
    return sum(ord(char) % 7 for char in text) % 101 / 100


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_r1lite(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    from r1lite.config import GRPOConfig
    from r1lite.grpo.learner import PolicyLearner
    from r1lite.grpo.loop import Loop
    from r1lite.model.attention import register
    from r1lite.model.optimizer import Optimizer
    from r1lite.model.policy import Policy
    from r1lite.rollout.hf import HFEngine
    from r1lite.rollout.trust import TrustedEngine
    from r1lite.run.bad_batches import BadBatches
    from r1lite.run.signals import StopSignal
    from r1lite.run.watchdog import Watchdog
    from r1lite.scoring.scorer import Scorer
    from r1lite.training.heap import keep_freed_memory
    from r1lite.types import Prompt
    from verifiers import Completion, Problem, Reward, Verdict

    def even(problem: Problem, completion: Completion) -> Verdict:
        return Verdict(reward_of(completion.text), "ok")

    config = GRPOConfig(
        prompts_per_step=PROMPTS,
        group_size=GROUP,
        max_completion_tokens=NEW_TOKENS,
        rollout_rows=PROMPTS * GROUP,
        # For a micro-batch of B completions with separate prompts, as in the peer.
        micro_batch_tokens=arguments.micro_batch * (NEW_TOKENS + arguments.prompt_tokens // GROUP),
        lr=1e-5,
        steps=arguments.steps + 1,
    )
    keep_freed_memory()  # as a run does
    model, tokenizer = make_model(), make_tokenizer()
    questions = make_questions(PROMPTS * config.steps, arguments.prompt_tokens)
    model.set_attn_implementation(register())
    dtype = getattr(torch, arguments.dtype)
    engine = HFEngine(model, tokenizer, max_rows=config.rollout_rows, dtype=dtype)
    policy = Policy(model, pad_id=0, dtype=dtype)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    loop = Loop(
        config=config,
        prompts=[Prompt(Problem(q, id=str(i)), q, tuple(tokenizer(q)["input_ids"])) for i, q in enumerate(questions)],
        scorer=Scorer(*(Reward("even", verifiers={"even": even}) for _ in range(3))),
        engine=TrustedEngine(engine, None, policy.named_weights, pad_id=0),
        learner=PolicyLearner(config, policy, optimizer, reference=None, bad=BadBatches(Path("unused"))),
        stop=StopSignal(),
        watchdog=Watchdog(config),
    )
    clock = _Clock()
    # Scoring runs in a thread during sampling: the time that is neither scoring nor learning counts as sampling.
    score, learn = clock.timed("score", Scorer.score), clock.timed("learn", PolicyLearner.learn)
    Scorer.score = lambda self, *given: score(self, *given)  # type: ignore[method-assign]
    PolicyLearner.learn = lambda self, *given: learn(self, *given)  # type: ignore[method-assign]
    start = peak_mib()
    assert sum(p.numel() for p in model.parameters()) > 3e6
    for step in range(config.steps):
        groups, _ = loop.step(step)
        assert all(len(r.completion.token_ids) == NEW_TOKENS for group in groups for r in group.rollouts)
        clock.end_step()
    steps = clock.steps[1:]
    for parts in steps:
        parts["generate"], parts["train"] = parts["train"], parts.pop("learn")
    return {"steps": steps, "peak_mib": peak_mib(), "start_mib": start}


def run_trl(arguments: argparse.Namespace) -> dict[str, Any]:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [reward_of(text) for text in completions]

    num_steps = arguments.steps + 1
    clock = _Clock()
    rows = Dataset.from_dict({"prompt": make_questions(PROMPTS * num_steps, arguments.prompt_tokens)})
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=make_model(),
            processing_class=make_tokenizer(),
            reward_funcs=clock.timed("score", reward),
            train_dataset=rows,
            args=GRPOConfig(
                output_dir=folder,
                use_cpu=True,
                bf16=arguments.dtype == "bfloat16",
                gradient_checkpointing=False,
                per_device_train_batch_size=arguments.micro_batch,
                gradient_accumulation_steps=PROMPTS * GROUP // arguments.micro_batch,
                num_generations=GROUP,
                max_completion_length=NEW_TOKENS,
                max_steps=num_steps,
                beta=0.0,
                learning_rate=1e-5,
                logging_strategy="no",
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                shuffle_dataset=False,
            ),
        )
        generated = []
        generate = clock.timed("generate", trainer._generate_and_score_completions)

        def generate_and_check(inputs: Any) -> Any:
            outputs = generate(inputs)
            generated.append(outputs["completion_mask"].sum())
            return outputs

        trainer._generate_and_score_completions = generate_and_check  # type: ignore[method-assign]

        class EndOfStep(TrainerCallback):
            def on_step_end(self, *_: Any, **__: Any) -> None:
                clock.end_step()

        trainer.add_callback(EndOfStep())
        start = peak_mib()
        clock.end_step()
        trainer.train()
    assert all(int(count) == PROMPTS * GROUP * NEW_TOKENS for count in generated), generated
    steps = clock.steps[2:]
    for step in steps:
        step["generate"] -= step["score"]  # scoring runs inside
        step["train"] = step["step"] - step["generate"] - step["score"]
    return {"steps": steps, "peak_mib": peak_mib(), "start_mib": start}


class _Clock:
    """CPU seconds by part of a step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._parts: dict[str, float] = {}
        self._began = time.process_time()

    def timed(self, name: str, function: Any) -> Any:
        def run(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            result = function(*given, **named)
            self._parts[name] = self._parts.get(name, 0.0) + time.process_time() - began
            return result

        run.__name__ = name
        return run

    def end_step(self) -> None:
        now = time.process_time()
        parts = {"generate": 0.0, "score": 0.0, **self._parts}
        total = now - self._began
        self.steps.append({"step": total, **parts, "train": total - sum(parts.values())})
        self._parts, self._began = {}, now


if __name__ == "__main__":
    main()
