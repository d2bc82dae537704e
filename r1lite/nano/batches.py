"""Batches of pre-training text: always new problems, sorted by length to reduce padding.

Texts are sorted by the question's length, not their own: otherwise a batch of short texts would contain only guesses
and a batch of long ones only chains, and the last few batches would decide how often the model guesses. Searches differ
so much in length that they are sorted by their own length, into batches with the same number of tokens, so that every
token has the same weight.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from r1lite.nano.addition_habits import addition_habits
from r1lite.nano.habits import HABITS, Example, example
from r1lite.nano.search_habits import search_habits
from r1lite.nano.worked_habits import worked_habits
from r1lite.tasks import add_carry, countdown_small
from r1lite.tasks.prompts import render
from r1lite.tasks.word_problems import sample
from r1lite.tasks.worked import WorkedProblems

_POOL = 32  # batches generated, sorted and shuffled together
_LENGTHS = 8  # T is a multiple of this: bfloat16 kernels are compiled once for each size


@dataclass(frozen=True, slots=True)
class TextBatch:
    """input_ids [B, T] int64, padded on the right; labels [B, T] int64: the next token, or -100 for no loss."""

    input_ids: Tensor
    labels: Tensor


def examples(
    shares: Mapping[str, float], rng: random.Random, *, short_shares: Mapping[str, float] | None = None
) -> Iterator[Example]:
    """Endless examples of word problems whose masked form belongs to the train split.

    Args:
        shares: shares of the habits, as in `habits.example`.
        short_shares: shares for problems of two steps; by default `shares`.
    """
    while True:
        problem = sample("train", rng)
        chosen = short_shares if short_shares and len(problem.steps) == 2 else shares
        yield example(problem, chosen, rng, HABITS)


def sums(shares: Mapping[str, float], rng: random.Random, *, other_language: float) -> Iterator[Example]:
    """Endless examples of additions of the train split.

    Args:
        other_language: share of a chain's columns that are worked out in Chinese.
    """
    habits = addition_habits(other_language)
    while True:
        yield example(add_carry.sample("train", rng), shares, rng, habits)


def worked(shares: Mapping[str, float], rng: random.Random, problems: WorkedProblems) -> Iterator[Example]:
    """Endless examples of the user's worked problems, from the train split."""
    habits = worked_habits(problems)
    while True:
        yield example(problems.draw("train", rng), shares, rng, habits)


def searches(shares: Mapping[str, float], rng: random.Random, *, give_up: Sequence[float]) -> Iterator[Example]:
    """Endless examples of `countdown_small`, from the train split.

    Args:
        give_up: as in `search_habits`.
    """
    habits = search_habits(give_up)
    while True:
        yield example(countdown_small.draw("train", rng), shares, rng, habits)


def batches(
    texts: Iterator[Example],
    tokenizer: PreTrainedTokenizerFast,
    *,
    batch_size: int,
    template: str,
    even_tokens: bool = False,
) -> Iterator[TextBatch]:
    """Endless batches. The assignment of texts to batches depends only on the order of `texts`.

    Args:
        batch_size: number of texts in a batch; with `even_tokens` the mean number, and all batches have the same number
            of completion tokens.
    """
    shuffle = random.Random(0)
    while True:
        pool = [next(texts) for _ in range(batch_size * _POOL)]
        encode = tokenizer.backend_tokenizer.encode_batch
        prompts = [e.ids for e in encode([render(template, text.question, tokenizer) for text in pool])]
        completions = [
            [*e.ids, tokenizer.eos_token_id]
            for e in encode([text.completion for text in pool], add_special_tokens=False)
        ]
        order = sorted(range(len(pool)), key=lambda i: len(completions[i] if even_tokens else prompts[i]))
        sizes = [len(completions[i]) if even_tokens else 1 for i in order]
        ends, share = list(itertools.accumulate(sizes)), sum(sizes) / _POOL
        parts = [[i for i, end in zip(order, ends, strict=True) if n < end / share <= n + 1] for n in range(_POOL)]
        shuffle.shuffle(parts)
        for rows in filter(None, parts):  # of few texts, a long one may fill several
            yield _pad([prompts[i] for i in rows], [completions[i] for i in rows], tokenizer.pad_token_id)


def _pad(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], pad: int) -> TextBatch:
    length = max(len(p) + len(c) for p, c in zip(prompts, completions, strict=True)) - 1
    length += -length % _LENGTHS
    input_ids = torch.full((len(prompts), length), pad)
    labels = torch.full((len(prompts), length), -100)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        ids = torch.tensor([*prompt, *completion])
        input_ids[row, : len(ids) - 1] = ids[:-1]
        labels[row, len(prompt) - 1 : len(ids) - 1] = ids[len(prompt) :]
    return TextBatch(input_ids, labels)
