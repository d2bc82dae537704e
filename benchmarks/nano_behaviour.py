"""Behaviour of a nano model before RL: the figures of its model card.

    python benchmarks/nano_behaviour.py [--model DIR] [--problems 1000] [--samples 8] [--threads 2]

greedy          accuracy and format rate of greedy completions
sampled         accuracy, format rate and length at temperature 1; pass@k with k = --samples
chain_forced    greedy accuracy if the first token after `<think>` may not be the lazy habit's: RL can reach about this
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor, LogitsProcessorList

from r1lite.nano import nano_path
from r1lite.tasks.prompts import render
from r1lite.tasks.word_problems import WordProblem, generate
from verifiers import Completion, Problem, resolve
from verifiers.format import ThinkAnswer

_ROWS = 250
_VERIFIER = resolve("math")


class _NoGuess(LogitsProcessor):
    """Forces `<think>` and then anything but the lazy habit's first token."""

    def __init__(self, tokenizer: Any) -> None:
        self.think = tokenizer.convert_tokens_to_ids("<think>")
        self.lazy = tokenizer.encode("I guess")[0]
        self.start: int | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.start = self.start or input_ids.shape[1]
        at = input_ids.shape[1] - self.start
        if at == 0:
            scores = torch.full_like(scores, -torch.inf)
            scores[:, self.think] = 0.0
        elif at == 1:
            scores[:, self.lazy] = -torch.inf
        return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(nano_path()))
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    for split in ("test", "test_hard"):
        problems = generate(split, arguments.problems if split == "test" else arguments.problems // 2, 0)
        print(
            json.dumps(
                {"split": split, "problems": len(problems), **measure(model, tokenizer, problems, arguments.samples)}
            )
        )


def measure(model: Any, tokenizer: Any, problems: Sequence[WordProblem], samples: int) -> dict[str, float]:
    greedy = complete(model, tokenizer, problems)
    sampled = complete(model, tokenizer, problems, samples=samples)
    forced = complete(model, tokenizer, problems, processor=_NoGuess(tokenizer))
    solved = [[right(p, text) for text in row] for p, row in zip(problems, sampled, strict=True)]
    figures = {
        "greedy": mean([right(p, row[0]) for p, row in zip(problems, greedy, strict=True)]),
        "greedy_format": mean([well_formed(row[0]) for row in greedy]),
        "greedy_tokens": mean([len(tokenizer.encode(row[0])) + 1 for row in greedy]),
        "sampled": mean([mean(row) for row in solved]),
        f"pass_at_{samples}": mean([any(row) for row in solved]),
        "sampled_format": mean([mean([well_formed(text) for text in row]) for row in sampled]),
        "sampled_tokens": mean([len(tokenizer.encode(text)) + 1 for row in sampled for text in row]),
        "chain_forced": mean([right(p, row[0]) for p, row in zip(problems, forced, strict=True)]),
    }
    return {name: round(value, 4) for name, value in figures.items()}


@torch.inference_mode()
def complete(
    model: Any,
    tokenizer: Any,
    problems: Sequence[WordProblem],
    *,
    samples: int = 0,
    processor: _NoGuess | None = None,
) -> list[list[str]]:
    """Texts by problem: a greedy one, or `samples` at temperature 1. Prompts of the same length are batched."""
    prompts = [tokenizer.encode(render("short", problem.question, tokenizer)) for problem in problems]
    texts: list[list[str]] = [[] for _ in problems]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    rows = max(_ROWS // max(samples, 1), 1)
    for start in range(0, len(order), rows):
        batch = order[start : start + rows]
        inputs = tokenizer.pad({"input_ids": [prompts[i] for i in batch]}, return_tensors="pt")
        if processor is not None:
            processor.start = None
        out = model.generate(
            **inputs,
            max_new_tokens=96,
            do_sample=samples > 0,
            **({"temperature": 1.0, "top_k": 0} if samples else {}),
            num_return_sequences=max(samples, 1),
            logits_processor=LogitsProcessorList([processor] if processor else []),
        )
        done = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        for at, i in enumerate(batch):
            texts[i] = done[at * max(samples, 1) : (at + 1) * max(samples, 1)]
    return texts


def right(problem: WordProblem, text: str) -> bool:
    """True if `r1lite eval` counts the text as right."""
    asked = Problem(prompt=problem.question, answer=str(problem.answer))
    return _VERIFIER(asked, Completion(text=text)).score == 1.0


def well_formed(text: str) -> bool:
    return ThinkAnswer()(Problem(id="", prompt="", answer=""), Completion(text=text)).score == 1.0


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
