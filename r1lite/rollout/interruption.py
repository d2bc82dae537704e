"""Forced interruption of thinking: a completion that still thinks after so many tokens is told to answer.

As in ScaleRL (arXiv:2510.13786 sec. 2 and 4), GLM-V and Qwen3: an end phrase is put after the thinking so far, and the
answer is sampled on. Two calls of any engine do it, so that every token but the phrase's is sampled, with its
log-probability.
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
    """When thinking is interrupted, and with what. A completion thinks until `</think>` is in its text."""

    after: int  # tokens
    phrase_ids: tuple[int, ...]
    tokenizer: Any = dataclasses.field(repr=False)


def make_interruption(after: int, phrase: str, max_tokens: int, tokenizer: Any) -> Interruption:
    """Raises UserError where the phrase leaves no room for an answer.

    Args:
        max_tokens: of a completion, the phrase included.
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
    interruption: Interruption | None,
) -> Iterator[tuple[int, list[Completion]]]:
    """As `engine.stream`, with interruptions if there are to be any: a group comes when its completions are finished.

    The phrase's tokens have log-probability 0: nothing else was possible there. What goes on after `interruption.after`
    tokens draws from a seed that follows from the completion's own.

    Raises:
        EngineError: as the engine's; or its weights changed between the two parts of a completion, and not
            `sampling.across_weights`.
    """
    if interruption is None:
        yield from engine.stream(prompts, seeds, sampling)
        return
    opening = dataclasses.replace(sampling, max_tokens=interruption.after)
    waiting: list[tuple[int, list[Completion]]] = []
    for place, group in engine.stream(prompts, seeds, opening):
        if any(_goes_on(completion, opening) for completion in group):
            waiting.append((place, group))
        else:
            yield place, group
    # Interrupted ones have less room left: each kind is a call of its own.
    for told in (False, True):
        wanted = [
            (n, g)
            for n, (_, group) in enumerate(waiting)
            for g, completion in enumerate(group)
            if _goes_on(completion, opening) and (THINKING_END not in completion.text) == told
        ]
        phrase = interruption.phrase_ids if told else ()
        rest = dataclasses.replace(sampling, max_tokens=sampling.max_tokens - interruption.after - len(phrase))
        # Also where nothing is wanted: of several ranks another one may want something, and they ask together.
        found = collect(
            len(wanted),
            engine.stream(
                [[*prompts[waiting[n][0]], *waiting[n][1][g].token_ids, *phrase] for n, g in wanted],
                [[_next_seed(seeds[waiting[n][0]][g])] for n, g in wanted],
                rest,
            ),
        )
        for (n, g), (answer,) in zip(wanted, found, strict=True):
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


def _next_seed(seed: int) -> int:
    """Of another stream: the first one's numbers are used up."""
    return completion_seed(seed, "after the interruption", 0, "", 0)
