"""One GRPO step with vLLM on the trainer's GPU, by r1lite and by TRL's GRPOTrainer, in turns.

    python benchmarks/gpu/step_beside_trl.py                # 0.5B
    python benchmarks/gpu/step_beside_trl.py --shape 1.5B

The model has random weights and Qwen2.5's shapes, so nothing is downloaded. A step samples 8 completions of 512 tokens
for each of 8 prompts of 256, scores them, learns from them and sends the weights to vLLM. The purpose is to show that a
step of r1lite takes no longer than TRL's. Measured are wall seconds of the whole step, of sampling and scoring and
sending weights, and of learning; medians without the first two steps. `peak_mib` is that of torch's allocator: r1lite's
excludes what vLLM holds, TRL's includes vLLM's reserve. README.md beside this file has what an earlier version measured
at 0.5B; this version and larger shapes were NOT RUN ON A GPU YET. Needs `pip install trl==1.16.0` and vLLM.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from common import need_gpus, parser, run, tell
from grpo_step import CHARS, make_questions, make_tokenizer, reward_of

from r1lite.tasks import Task
from r1lite.tasks.sources import Generated
from verifiers import Completion, Problem, Verdict

HERE = Path(__file__).resolve().parent
UNTIMED = 2  # steps that build kernels and allocate moments


def varied(problem: Problem, completion: Completion) -> Verdict:
    """A reward that differs within a group, so that every group has a signal."""
    return Verdict(reward_of(completion.text), "ok")


def question(split: str, rng: Random) -> Problem:
    """A prompt of PROMPT_TOKENS characters, each of which is a token."""
    return Problem("".join(rng.choice(CHARS) for _ in range(int(os.environ["PROMPT_TOKENS"]))), "0")


TASK = Task(
    name="varied", load=Generated("varied", question, {"train": 512, "test": 2}), reward="step_beside_trl:varied"
)


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--shape", default="0.5B")
    made.add_argument("--steps", type=int, default=8, help="timed steps of each run")
    made.add_argument("--runs", type=int, default=1)
    made.add_argument("--prompts", type=int, default=8, help="a step")
    made.add_argument("--group", type=int, default=8)
    made.add_argument("--prompt-tokens", type=int, default=256)
    made.add_argument("--tokens", type=int, default=512, help="of a completion")
    made.add_argument("--micro-batch", type=int, default=16, help="completions of one forward and backward pass")
    made.add_argument("--only-trl", nargs=2, metavar=("MODEL", "FILE"), help=argparse.SUPPRESS)
    arguments = made.parse_args()
    need_gpus(arguments)
    if arguments.dry_run:
        arguments.shape, arguments.steps, arguments.prompts, arguments.group = "tiny", 1, 2, 2
        arguments.prompt_tokens, arguments.tokens, arguments.micro_batch = 8, 8, 2
    if arguments.only_trl:
        model, file = arguments.only_trl
        Path(file).write_text(json.dumps(by_trl(arguments, model)), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        write_model(arguments, model)
        for number in range(arguments.runs):
            same = {"shape": arguments.shape, "run": number}
            tell(arguments, **same, by="r1lite", **by_r1lite(arguments, model, Path(folder) / f"r1lite-{number}"))
            file = Path(folder) / f"trl-{number}.json"
            again = [part for part in sys.argv[1:] if part != str(arguments.out) and part != "--out"]
            run(sys.executable, __file__, *again, "--only-trl", model, str(file))
            tell(arguments, **same, by="trl", **json.loads(file.read_text(encoding="utf-8")))


def write_model(arguments: argparse.Namespace, folder: str) -> None:
    """Saves the model in bfloat16, and a tokenizer with its vocabulary, whose last token ends a text."""
    import torch
    from rollout import SHAPES, model_of

    model = model_of(arguments.shape, 2 * (arguments.prompt_tokens + arguments.tokens)).to(torch.bfloat16)
    model.save_pretrained(folder)
    make_tokenizer(SHAPES[arguments.shape][-1] - 1).save_pretrained(folder)


def by_r1lite(arguments: argparse.Namespace, model: str, out: Path) -> dict[str, Any]:
    """Runs `r1lite grpo` and reads the seconds of its steps."""
    os.environ["PROMPT_TOKENS"] = str(arguments.prompt_tokens)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH", ""))))
    share = arguments.prompt_tokens // arguments.group  # a group's prompt is read once
    engine = ("transformers", "--device", "cpu", "--threads", "1") if arguments.dry_run else ("vllm",)
    run(
        *(sys.executable, "-m", "r1lite", "grpo", "--task", "step_beside_trl:TASK", "--model", model),
        *("--template", "{question}", "--out", str(out), "--steps", str(arguments.steps + UNTIMED), "--no-report"),
        *("--prompts-per-step", str(arguments.prompts), "--group-size", str(arguments.group), "--engine", *engine),
        *("--max-prompt-tokens", str(arguments.prompt_tokens), "--max-completion-tokens", str(arguments.tokens)),
        *("--micro-batch-tokens", str(arguments.micro_batch * (arguments.tokens + share)), "--lr", "1e-6"),
        *("--warmup-steps", "0", "--kl-coef", "0", "--aggregation", "token_mean"),
        # Random weights give nearly uniform distributions, so the tolerance accepts any difference.
        *("--canary-tolerance", "100", "--eval-problems", "2", "--eval-sample-problems", "2", "--eval-samples", "2"),
    )
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()][UNTIMED:]
    memory = json.loads((out / "summary.json").read_text(encoding="utf-8"))["memory"]
    return figures(
        [(row["step_s"], row["train_s"], row["completion_tokens"]) for row in rows], arguments, memory["peak"]
    )


def by_trl(arguments: argparse.Namespace, model: str) -> dict[str, Any]:
    """Trains with TRL, and times its steps."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions: list[str], **_: Any) -> list[float | None]:
        return [reward_of(text) for text in completions]

    cuda = torch.cuda.is_available() and not arguments.dry_run
    steps = arguments.steps + UNTIMED
    engine: dict[str, Any] = {}
    if cuda:
        engine = {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.3}
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=AutoTokenizer.from_pretrained(model),
            reward_funcs=reward,
            train_dataset=Dataset.from_dict(
                {"prompt": make_questions(arguments.prompts * steps, arguments.prompt_tokens)}
            ),
            args=GRPOConfig(
                output_dir=folder,
                use_cpu=not cuda,
                bf16=cuda,
                model_init_kwargs={"dtype": torch.float32},
                gradient_checkpointing=False,
                per_device_train_batch_size=arguments.micro_batch,
                gradient_accumulation_steps=arguments.prompts * arguments.group // arguments.micro_batch,
                num_generations=arguments.group,
                max_completion_length=arguments.tokens,
                max_steps=steps,
                temperature=1.0,
                beta=0.0,
                learning_rate=1e-6,
                lr_scheduler_type="constant",
                logging_strategy="no",
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                **engine,
            ),
        )
        sampling, sampled = 0.0, 0.0
        generate = trainer._generate_and_score_completions

        def timed(inputs: Any) -> Any:
            nonlocal sampling, sampled
            began = _now(cuda)
            outputs = generate(inputs)
            sampling += _now(cuda) - began
            sampled += float(outputs["completion_mask"].sum())
            return outputs

        trainer._generate_and_score_completions = timed  # type: ignore[method-assign]
        measured: list[tuple[float, float, float]] = []

        class Steps(TrainerCallback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                self.began = _now(cuda)

            def on_step_end(self, *_: Any, **__: Any) -> None:
                nonlocal sampling, sampled
                seconds = _now(cuda) - self.began
                rows = arguments.prompts * arguments.group
                measured.append((seconds, seconds - sampling, sampled / rows))
                sampling, sampled = 0.0, 0.0

        trainer.add_callback(Steps())
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        trainer.train()
    return figures(measured[UNTIMED:], arguments, torch.cuda.max_memory_allocated() >> 20 if cuda else None)


def _now(cuda: bool) -> float:
    """Wall time when the GPU has finished."""
    import torch

    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def figures(
    steps: list[tuple[float, float, float]], arguments: argparse.Namespace, peak_mib: int | None
) -> dict[str, Any]:
    """A line of the output, from each step's seconds, seconds of learning, and mean tokens of a completion."""
    rows = arguments.prompts * arguments.group
    return {
        "step_s": round(statistics.median(step for step, _, _ in steps), 3),
        "sample_s": round(statistics.median(step - learning for step, learning, _ in steps), 3),
        "train_s": round(statistics.median(learning for _, learning, _ in steps), 3),
        "tokens_per_s": round(statistics.median(rows * tokens / step for step, _, tokens in steps)),
        "peak_mib": peak_mib,
    }


if __name__ == "__main__":
    main()
