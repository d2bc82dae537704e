"""GRPO on one page: a small model learns to think before it answers, with rewards from a rule-based check.

    python recipes/grpo_from_scratch.py      # two to three minutes on one CPU core: 26 % -> 96 % of 1,000 test problems

`r1lite grpo --task gsm8k` does the same with checkpoints, engines and metrics. This script contains only the algorithm
(DeepSeekMath, arXiv:2402.03300): transformers runs the model, `verifiers` checks the answers, and `r1lite.rl` has the
formulas. Replace MODEL, the problems or REWARD with your own.

Shapes: P prompts, G completions per prompt (the group), B = P * G rows, S prompt tokens, T completion tokens.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from r1lite.bundled import bundled
from r1lite.rl.advantages import group_relative
from r1lite.rl.aggregate import aggregate
from r1lite.rl.logprobs import token_logprobs
from r1lite.rl.losses import clipped_surrogate, policy_ratio
from r1lite.rl.schedule import learning_rate
from verifiers import Completion, Problem, Reward, score_many

MODEL = bundled("r1lite/nano/model")  # 1 M parameters; any causal language model of transformers works
REWARD = "math + 0.1*format"  # 1 for the right answer, 0.1 for the form <think>...</think><answer>...</answer>
TEMPLATE = "{question}\n"
MAX_TOKENS = 96  # per completion
PROMPTS, GROUP = 16, 8  # P, G
PEAK_LR, WARMUP_STEPS = 5e-4, 5
ROWS_PER_BATCH = 64  # completions per forward and backward pass; the gradient doesn't depend on it


def load_problems(split: str) -> list[Problem]:
    """Word problems with a worked answer that ends in "#### N"."""
    with open(bundled(f"datasets/gsm8k_style/{split}.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Problem(row["question"], row["answer"], id=row["id"]) for row in rows]


class Model:
    """A causal language model that samples completions and gives the log-probabilities of their tokens."""

    def __init__(self) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left", trust_remote_code=False)
        self.lm: Any = AutoModelForCausalLM.from_pretrained(MODEL, trust_remote_code=False)
        self.eos = torch.tensor(self.lm.generation_config.eos_token_id)  # one token, or several
        self.tokenizer.pad_token = self.tokenizer.pad_token or self.tokenizer.eos_token
        self.pad = self.tokenizer.pad_token_id

    @torch.inference_mode()
    def sample(self, problems: list[Problem], count: int, temperature: float) -> Batch:
        """`count` completions of each problem, in order; temperature 0 takes the most probable token."""
        prompts = [TEMPLATE.format(question=problem.prompt) for problem in problems for _ in range(count)]
        inputs = self.tokenizer(prompts, return_tensors="pt", padding=True)  # [B, S], padded on the left
        # top_k=0: sample from the whole distribution, which the loss assumes.
        how = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
        ids: Tensor = self.lm.generate(**inputs, **how, max_new_tokens=MAX_TOKENS, pad_token_id=self.pad)
        completion_ids = ids[:, inputs["input_ids"].shape[1] :]  # [B, T], padded on the right
        ends = torch.isin(completion_ids, self.eos)
        mask = ends.cumsum(dim=1) - ends.long() == 0  # [B, T]; True = sampled, the end token included
        texts = self.tokenizer.batch_decode(completion_ids, skip_special_tokens=True)
        attention = torch.cat([inputs["attention_mask"], mask.long()], dim=1)
        return Batch(ids, attention, mask, texts)

    def logprobs(self, ids: Tensor, attention: Tensor, num_tokens: int) -> Tensor:
        """log pi of the last `num_tokens` tokens of each row: [B, S+T] -> [B, T], nats."""
        positions = (attention.cumsum(dim=1) - 1).clamp(min=0)
        logits = self.lm(
            input_ids=ids, attention_mask=attention, position_ids=positions, logits_to_keep=num_tokens + 1
        ).logits
        return token_logprobs(logits[:, :-1], ids[:, -num_tokens:])  # the logits at t predict the token at t + 1


class Batch:
    """Prompts with their completions, row by row."""

    def __init__(self, ids: Tensor, attention: Tensor, mask: Tensor, texts: list[str]) -> None:
        self.ids, self.attention = ids, attention  # [B, S+T]
        self.mask, self.texts = mask, texts  # [B, T] bool; [B]

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """ids, attention and mask of some rows."""
        return self.ids[index], self.attention[index], self.mask[index]


def score(reward: Reward, problems: list[Problem], texts: list[str]) -> Tensor:
    """Rewards [P, G] of [P] problems and [P * G] texts; NaN for unscored completions."""
    group = len(texts) // len(problems)
    pairs = [(problems[row // group], Completion(text)) for row, text in enumerate(texts)]
    rewards = [float("nan") if s.reward is None else s.reward for s in score_many(reward, pairs)]
    return torch.tensor(rewards).view(len(problems), group)


def update(model: Model, optimizer: torch.optim.Optimizer, batch: Batch, advantages: Tensor) -> None:
    """One step of AdamW on the clipped surrogate, averaged over all tokens of the batch (advantages: [B])."""
    num_tokens, num_rows = int(batch.mask.sum()), len(batch.mask)
    learning = advantages.nonzero().squeeze(-1)  # groups with equal rewards have advantage 0 and no gradient
    for start in range(0, len(learning), ROWS_PER_BATCH):
        index = learning[start : start + ROWS_PER_BATCH]
        ids, attention, mask = batch.rows(index)
        logprobs = model.logprobs(ids, attention, mask.shape[1])
        ratio = policy_ratio(logprobs, logprobs.detach())  # value 1, since these weights sampled the completions
        loss = clipped_surrogate(ratio, advantages[index])
        aggregate(
            loss, mask, method="token_mean", num_tokens=num_tokens, num_rows=num_rows, max_tokens=MAX_TOKENS
        ).backward()
    torch.nn.utils.clip_grad_norm_(model.lm.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def evaluate(model: Model, problems: list[Problem]) -> float:
    """Share of problems whose most probable completion is right."""
    right, verify = 0.0, Reward("math")
    for start in range(0, len(problems), 100):
        some = problems[start : start + 100]
        right += float(score(verify, some, model.sample(some, 1, temperature=0).texts).nan_to_num().sum())
    return right / len(problems)


def train(model: Model, problems: list[Problem], steps: int) -> None:
    """GRPO: sample groups, score them, compare each completion with its group, and make better ones more likely."""
    reward = Reward(REWARD)
    optimizer = torch.optim.AdamW(model.lm.parameters(), weight_decay=0.0)
    for step in range(steps):
        chosen = random.sample(problems, PROMPTS)
        batch = model.sample(chosen, GROUP, temperature=1.0)
        rewards = score(reward, chosen, batch.texts)
        advantages = group_relative(rewards).flatten()
        for parameters in optimizer.param_groups:
            parameters["lr"] = learning_rate(
                step, peak=PEAK_LR, total_steps=steps, warmup_steps=WARMUP_STEPS, schedule="cosine"
            )
        update(model, optimizer, batch, advantages)
        if step % 10 == 0:
            print(f"step {step:3d}   mean reward {float(rewards.nanmean()):.3f}   e.g. {batch.texts[0]!r}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-problems", type=int, default=1000)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    torch.set_num_threads(1)  # such a small model isn't faster with more threads
    model, test = Model(), load_problems("test")[: options.test_problems]
    print(f"before: {evaluate(model, test):.1%} of {len(test)} test problems", flush=True)
    started = time.perf_counter()
    train(model, load_problems("train"), options.steps)
    print(f"after:  {evaluate(model, test):.1%}, {options.steps} steps in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
