"""Distillation: its two models, their divergence, and the steps of on-policy training.

On-policy, the student samples, and learns the teacher's distribution at each token. Shapes: N completion tokens,
V vocabulary.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from r1lite.config.distill import DistillConfig
from r1lite.distributed.together import shared_out
from r1lite.errors import UserError
from r1lite.grpo.choice import by_epochs
from r1lite.grpo.metrics import rollout_metrics
from r1lite.hub.loading import load_shape, load_tokenizer, why_not
from r1lite.model import vocabulary_size
from r1lite.model.batch import MicroBatch, Row, cost
from r1lite.model.policy import Policy
from r1lite.rl.distillation import generalised_jsd
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from r1lite.run.signals import StopSignal
from r1lite.supervised.loop import Piece, RowOrder, SupervisedLearner, SupervisedLoop
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.training.loading import attention_of, load_model
from r1lite.training.machine import model_path
from r1lite.training.setup import Setup
from r1lite.training.several import loads_for_parts
from r1lite.types import Group, Prompt, Rollout


@dataclass(slots=True)
class Distilling(SupervisedLoop):
    """Trains on rows that the student samples and on rows of the set, with the same loss."""

    config: DistillConfig
    setup: Setup
    learner: SupervisedLearner
    teacher: Policy
    prompts: Sequence[Prompt]  # prompts for the student
    rows: TokenRows | None  # None if the student samples all rows
    order: RowOrder
    stop: StopSignal

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Samples the student's rows, then moves the student towards the teacher on all rows."""
        started = time.perf_counter()
        config, policy = self.config, self.learner.policy
        with self.setup.watchdog.during("rollout", f"step {step + 1}"):
            groups = self._sample(step, config.own_rows) if config.own_rows else []
        sampled = time.perf_counter()
        rows = [Row(group.prompt_ids, r.completion.token_ids) for group in groups for r in group.rollouts]
        rows += [self.rows[number] for number in self.order(step)] if self.rows is not None else []
        rows = [row for row in rows if row.token_ids]
        tokens = sum(len(row.token_ids) for row in rows)
        self.setup.engine.sleep()
        learnt = self.learner.update(functools.partial(self._pieces, rows), rows, step)
        self.setup.engine.offer(policy.named_weights, version=step + 1)
        ended = time.perf_counter()
        return groups, {
            **(rollout_metrics(groups) if groups else {}),
            **learnt,
            "rows": len(rows),
            "rows_of_the_student": len(groups),
            "tokens": tokens,
            "generate_s": sampled - started,
            "train_s": ended - sampled,
            "step_s": ended - started,
        }

    def _pieces(self, rows: Sequence[Row], max_tokens: int) -> list[Piece]:
        config, policy = self.config, self.learner.policy
        return [
            Piece(
                functools.partial(
                    divergence,
                    policy,
                    self.teacher,
                    batch,
                    vocabulary=len(self.setup.tokenizer),
                    beta=config.beta,
                    temperature=config.temperature,
                    chunk_tokens=config.chunk_tokens,
                ),
                len(batch.rows),
                cost(batch),
            )
            for batch in policy.micro_batches(rows, max_tokens)
        ]

    def _sample(self, step: int, count: int) -> list[Group]:
        """Samples one completion of the student per problem, and scores it for the metrics."""
        config, setup = self.config, self.setup
        chosen = by_epochs(self.prompts, step, count, config.seed)
        sampling = Sampling(config.temperature, config.max_completion_tokens, config.stop_text)

        def share(mine: range) -> list[Rollout]:
            asked = [chosen[place] for place in mine]
            seeds = [
                [completion_seed(config.seed, f"distill-{place}", step, chosen[place].problem.id, 0)] for place in mine
            ]
            with self.stop.interruptible(together=setup.engine.together), torch.no_grad():
                found = setup.engine.generate([prompt.token_ids for prompt in asked], seeds, sampling)
                return setup.scorer.rollouts(
                    [prompt.judged(group[0]) for prompt, group in zip(asked, found, strict=True)]
                )

        return [
            Group(prompt.problem, prompt.text, prompt.token_ids, (rollout,))
            for prompt, rollout in zip(chosen, shared_out(setup.world, count, share), strict=True)
        ]


def divergence(
    student: Policy,
    teacher: Policy,
    batch: MicroBatch,
    *,
    vocabulary: int,
    beta: float,
    temperature: float,
    chunk_tokens: int,
) -> Tensor:
    """Returns the sum of `generalised_jsd` over the completion tokens, with a gradient for the student.

    Logits [chunk, V] of both models exist for one chunk at a time; the backward pass computes them again.

    Args:
        vocabulary: number of tokens that both models know; padding of the embeddings is ignored.
    """
    with torch.no_grad():
        teacher_states, teacher_read = teacher.states(batch)

    def summed(states: Tensor, read: Callable[[Tensor], Tensor]) -> Tensor:
        def chunk(ours: Tensor, theirs: Tensor) -> Tensor:
            return generalised_jsd(
                read(ours)[:, :vocabulary], teacher_read(theirs)[:, :vocabulary], beta=beta, temperature=temperature
            ).sum()

        parts = zip(states.split(chunk_tokens), teacher_states.split(chunk_tokens), strict=True)
        total = states.new_zeros((), dtype=torch.float64 if states.dtype == torch.float64 else torch.float32)
        for ours, theirs in parts:
            total = total + checkpoint(chunk, ours, theirs, use_reentrant=False)
        return total

    return student.of_states(batch, summed)


def load_teacher(config: DistillConfig) -> tuple[Any, Any]:
    """Returns (model, tokenizer) of the frozen teacher. Raises UserError."""
    try:
        model, tokenizer = load_model(config.model_copy(update={"model": config.teacher, "student_shape": {}}))
    except UserError as error:
        raise UserError(str(error).replace("--model", "--teacher")) from error
    return model.requires_grad_(False), tokenizer


def load_student(config: DistillConfig) -> tuple[Any, Any]:
    """Returns (model, tokenizer) of --model, or a random model: the teacher's architecture with `student_shape`.

    Raises:
        UserError: there is no such model, or the shape is impossible.
    """
    if not config.student_shape:
        return load_model(config)
    from transformers import AutoModelForCausalLM

    assert config.teacher is not None
    place = model_path(config.model_copy(update={"model": config.teacher}))
    try:
        teacher = load_shape(place)
        tokenizer = load_tokenizer(place)
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(f"--teacher {config.teacher}: can't be loaded: {why_not(place, error)}") from error
    values = teacher.to_dict()
    if unknown := sorted(set(config.student_shape) - set(values)):
        raise UserError(f"student_shape: {', '.join(unknown)} are not settings of {type(teacher).__name__}")
    if "num_hidden_layers" in config.student_shape:
        values.pop("layer_types", None)  # one entry per layer; the library fills it in
    try:
        shape = type(teacher)(**{**values, **config.student_shape})
        torch.manual_seed(config.seed)
        model = AutoModelForCausalLM.from_config(
            shape, dtype=torch.float32, attn_implementation=attention_of(config, shape), trust_remote_code=False
        )
        with torch.inference_mode():
            model(input_ids=torch.tensor([[0, 1]]))  # incompatible numbers of heads are only noticed here
    except Exception as error:  # inconsistent numbers can make the library raise anything
        raise UserError(f"student_shape: no model can have it: {type(error).__name__}: {error}") from error
    if vocabulary_size(model) < len(tokenizer):
        raise UserError(f"student_shape: vocab_size is below the tokenizer's {len(tokenizer):,} tokens")
    return model.eval() if loads_for_parts(config) else model.eval().to(config.device), tokenizer


def check_one_tokenizer(config: DistillConfig, student: Any, teacher: Any, texts: list[str]) -> None:
    """Raises UserError unless both tokenizers use the same token ids.

    Args:
        student, teacher: tokenizers.
        texts: examples that both tokenizers must split into the same tokens.
    """
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    if ours != theirs:
        other = min(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
        raise UserError(
            f"--teacher {config.teacher} ({len(theirs):,} tokens) and the student {config.model} ({len(ours):,} "
            f"tokens) don't share a tokenizer: {other!r} has the ids {theirs.get(other)} and {ours.get(other)}. "
            "On-policy distillation compares models token by token; --method off-policy only uses text"
        )
    for text in texts:
        if student(text)["input_ids"] != teacher(text)["input_ids"]:
            raise UserError(
                f"--teacher {config.teacher} and the student {config.model} have the same tokens but split text "
                f"differently, such as {text[:60]!r}; --method off-policy only uses text"
            )
