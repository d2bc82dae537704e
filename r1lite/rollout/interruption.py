"""Forced interruption of thinking: makes a completion answer that still thinks after a given number of tokens.

As in ScaleRL (arXiv:2510.13786 sec. 2 and 4), GLM-V and Qwen3, an end phrase is appended to the thinking, and the
answer is sampled after it. This takes two calls of any engine, so that every token except the phrase's is sampled, with
its log-probability.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.config.rollout import THINKING_END
from r1lite.errors import UserError
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import CompletionEngine, EngineError, Sampling, collect
from r1lite.rollout.continued import joined
from verifiers import Completion


@dataclass(frozen=True, slots=True)
class Interruption:
    """When thinking is interrupted, and by which phrase. A completion thinks until its text contains `</think>`."""

    after: int  # tokens
    phrase_ids: tuple[int, ...]
    tokenizer: Any = dataclasses.field(repr=False)


def make_interruption(after: int, phrase: str, max_tokens: int, tokenizer: Any) -> Interruption:
    """Builds the interruption. Raises UserError if the phrase leaves no room for an answer.

    Args:
        max_tokens: of a completion, including the phrase.
    """
    phrase_ids = tuple(tokenizer.encode(phrase, add_special_tokens=False))
    if after + len(phrase_ids) >= max_tokens:
        raise UserError(
            f"--interrupt-thinking-after {after} and the {len(phrase_ids)} tokens of --interruption-phrase leave no "
            f"room for an answer within --max-completion-tokens {max_tokens}; lower the first, shorten the phrase, or "
            "raise the last"
        )
    return Interruption(after, phrase_ids, tokenizer)


def stream(
    engine: CompletionEngine,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    interruption: Interruption,
) -> Iterator[tuple[int, list[Completion]]]:
    """As `engine.stream`, with interruptions; yields each group when it is finished.

    The phrase's tokens have log-probability 0, because no other token was possible. Tokens after the first
    `interruption.after` ones use a seed that is derived from the completion's own.

    Raises:
        EngineError: from the engine; or its weights changed between the two parts of a completion, without
            `sampling.across_weights`.
    """
    opening = dataclasses.replace(sampling, max_tokens=interruption.after)
    waiting: list[tuple[int, list[Completion]]] = []
    for i, group in engine.stream(prompts, seeds, opening):
        if any(_goes_on(completion, opening) for completion in group):
            waiting.append((i, group))
        else:
            yield i, group
    # Interrupted completions have less room left, so each kind is a separate call.
    for interrupted in (False, True):
        wanted = [
            (n, g)
            for n, (_, group) in enumerate(waiting)
            for g, completion in enumerate(group)
            if _goes_on(completion, opening) and (THINKING_END not in completion.text) == interrupted
        ]
        phrase = interruption.phrase_ids if interrupted else ()
        rest = dataclasses.replace(sampling, max_tokens=sampling.max_tokens - interruption.after - len(phrase))
        # Called even if nothing is wanted: other ranks may want something, and all must call together.
        answers = collect(
            len(wanted),
            engine.stream(
                [[*prompts[waiting[n][0]], *waiting[n][1][g].token_ids, *phrase] for n, g in wanted],
                # Another stream, because the first one's numbers are used up.
                [[completion_seed(seeds[waiting[n][0]][g], "after the interruption", 0, "", 0)] for n, g in wanted],
                rest,
            ),
        )
        for (n, g), (answer,) in zip(wanted, answers, strict=True):
            group = waiting[n][1]
            if answer.policy_version != group[g].policy_version and not sampling.across_weights:
                raise EngineError(
                    f"the engine was given weights of version {answer.policy_version} in the middle of a completion of "
                    f"version {group[g].policy_version}"
                )
            group[g] = joined(group[g], answer, sampling.stop_text, interruption.tokenizer, phrase)
    yield from waiting


def _goes_on(completion: Completion, opening: Sampling) -> bool:
    return completion.finish_reason == "length" and len(completion.token_ids) == opening.max_tokens
