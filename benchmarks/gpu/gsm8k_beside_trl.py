"""GSM8K with Qwen2.5-0.5B or 1.5B on one GPU, trained by r1lite and by TRL's GRPOTrainer.

    python benchmarks/gpu/gsm8k_beside_trl.py                                   # 0.5B, three seeds, both with vLLM
    python benchmarks/gpu/gsm8k_beside_trl.py --model Qwen/Qwen2.5-1.5B --engine transformers

Both use the same model, problems, prompts, reward, group size, steps, learning rate and seeds, and take turns, each run
in its own process. The purpose is to show that r1lite reaches TRL's accuracy in no more time and memory. Measured are
the accuracy by the same `r1lite eval` for both models, tokens per second and wall time of all steps (without loading),
and the peak memory of torch's allocator (with vLLM in the process, whose share both reserve). Both use one update per
rollout, no KL term, temperature 1 and a mean over all tokens. NOT RUN ON A GPU YET. Needs `pip install trl==1.16.0` and
vLLM.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from common import need_gpus, of_run, parser, run, tell

STOP = "</answer>"


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--model", default="Qwen/Qwen2.5-0.5B")
    made.add_argument("--engine", choices=["vllm", "transformers"], default="vllm")
    made.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    made.add_argument("--steps", type=int, default=200)
    made.add_argument("--prompts", type=int, default=32, help="a step")
    made.add_argument("--group", type=int, default=8)
    made.add_argument("--tokens", type=int, default=512, help="largest number of tokens of a completion")
    made.add_argument("--micro-batch", type=int, default=16, help="completions; for r1lite of the largest length")
    made.add_argument("--lr", type=float, default=1e-6)
    made.add_argument("--test", type=int, default=1319, help="test problems")
    made.add_argument("--only-trl", type=Path, help=argparse.SUPPRESS)
    arguments = made.parse_args()
    need_gpus(arguments)
    if arguments.dry_run:
        arguments.model, arguments.engine, arguments.seeds, arguments.steps = "nano", "transformers", [0], 2
        arguments.prompts, arguments.group, arguments.tokens, arguments.micro_batch, arguments.test = 2, 2, 24, 4, 4
    if arguments.only_trl:
        print(json.dumps(by_trl(arguments, arguments.only_trl)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for seed in arguments.seeds:
            place = Path(folder) / str(seed)
            by_r1lite(arguments, seed, place / "r1lite")
            same = {"model": arguments.model, "engine": arguments.engine, "seed": seed, "steps": arguments.steps}
            ours = of_run(place / "r1lite")
            tell(arguments, **same, by="r1lite", **ours)
            again = [part for part in sys.argv[1:] if part != str(arguments.out) and part != "--out"]
            run(sys.executable, __file__, *again, "--seeds", str(seed), "--only-trl", str(place / "trl"))
            found = json.loads((place / "trl" / "figures.json").read_text(encoding="utf-8"))
            accuracy = evaluated(arguments, place / "trl" / "model", place / "trl-eval")
            tell(arguments, **same, by="trl", **found, accuracy_before=ours["accuracy_before"], accuracy=accuracy)


def of_the_task(arguments: argparse.Namespace) -> list[str]:
    """Flags for the task and the device."""
    small = ["--device", "cpu", "--threads", "1"] if arguments.dry_run else ["--stop-text", STOP, "--source", "hub"]
    return [
        *("--task", "gsm8k", "--model", arguments.model, "--template", "r1_zero", "--max-prompt-tokens", "512"),
        *("--max-completion-tokens", str(arguments.tokens), "--engine", arguments.engine, *small),
    ]


def by_r1lite(arguments: argparse.Namespace, seed: int, out: Path) -> None:
    tokens = arguments.micro_batch * (arguments.tokens + (0 if arguments.dry_run else 256))
    run(
        *(sys.executable, "-m", "r1lite", "grpo", *of_the_task(arguments), "--out", str(out), "--seed", str(seed)),
        *("--steps", str(arguments.steps), "--prompts-per-step", str(arguments.prompts), "--no-report"),
        *("--group-size", str(arguments.group), "--lr", str(arguments.lr), "--warmup-steps", "0"),
        *("--micro-batch-tokens", str(tokens), "--eval-problems", str(arguments.test), "--aggregation", "token_mean"),
        *("--eval-sample-problems", "2", "--eval-samples", "2", "--rollout-rows", "256", "--kl-coef", "0"),
    )


def evaluated(arguments: argparse.Namespace, model: Path, out: Path) -> float:
    """Greedy accuracy of the model in a folder, by `r1lite eval`."""
    flags = of_the_task(argparse.Namespace(**{**vars(arguments), "model": str(model)}))
    run(
        *(sys.executable, "-m", "r1lite", "eval", *flags, "--out", str(out), "--eval-problems", str(arguments.test)),
        *("--eval-sample-problems", "2", "--eval-samples", "2"),
    )
    return float(json.loads((out / "summary.json").read_text(encoding="utf-8"))["tasks"]["gsm8k"]["pass_at_1"])


def by_trl(arguments: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Trains with TRL; the model is saved in `out`/model."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from r1lite.nano import nano_path
    from r1lite.tasks import Source, find, prompts
    from verifiers.adapters.trl import trl_reward

    task = find("gsm8k")
    problems = task.load(Source("bundled" if arguments.dry_run else "hub")).train
    place = str(nano_path()) if arguments.model == "nano" else arguments.model
    tokenizer = AutoTokenizer.from_pretrained(place)
    rendered = [
        prompts.render("r1_zero", task.template.replace("{question}", one.prompt), tokenizer) for one in problems
    ]
    rows = Dataset.from_dict({"prompt": rendered, "answer": [one.answer for one in problems]})
    cuda = torch.cuda.is_available()
    stops: dict[str, Any] = {}
    if arguments.engine == "vllm":
        stops = {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.3}
        stops |= {"generation_kwargs": {"stop": [STOP], "include_stop_str_in_output": True}}
    elif not arguments.dry_run:
        stops = {"generation_kwargs": {"stop_strings": [STOP], "tokenizer": tokenizer}}
    (seed,) = arguments.seeds
    trainer = GRPOTrainer(
        model=place,
        processing_class=tokenizer,
        reward_funcs=trl_reward(task.reward),
        train_dataset=rows,
        args=GRPOConfig(
            output_dir=str(out / "trainer"),
            use_cpu=not cuda,
            bf16=cuda,
            model_init_kwargs={"dtype": torch.float32},
            gradient_checkpointing=False,
            per_device_train_batch_size=arguments.micro_batch,
            gradient_accumulation_steps=max(1, arguments.prompts * arguments.group // arguments.micro_batch),
            num_generations=arguments.group,
            max_completion_length=arguments.tokens,
            max_steps=arguments.steps,
            temperature=1.0,
            beta=0.0,
            learning_rate=arguments.lr,
            lr_scheduler_type="constant",
            seed=seed,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            **stops,
        ),
    )
    sampled = 0
    generate = trainer._generate_and_score_completions

    def counted(inputs: Any) -> Any:
        nonlocal sampled
        outputs = generate(inputs)
        sampled += int(outputs["completion_mask"].sum())
        return outputs

    trainer._generate_and_score_completions = counted  # type: ignore[method-assign]
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    trainer.save_model(str(out / "model"))
    tokenizer.save_pretrained(out / "model")
    peak = torch.cuda.max_memory_allocated() / 2**20 if cuda else None
    figures = {"wall_s": round(seconds, 2), "tokens_per_s": round(sampled / seconds, 1), "peak_mib": peak}
    (out / "figures.json").write_text(json.dumps(figures), encoding="utf-8")
    return figures


if __name__ == "__main__":
    main()
