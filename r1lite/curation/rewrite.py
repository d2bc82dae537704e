"""Rewrites right completions to the format <think>...</think> <answer>...</answer> before they are curated.

This is a separate pass: RUN/rewritten/part-NNNNNN.jsonl, written atomically, contain every row of the source. Wrong
completions stay unchanged and count in the pass rates; rewritten rows keep their original text in a column.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from r1lite.curation.passes import Do
from r1lite.curation.rows import Candidate, problem_columns
from r1lite.curation.scan import Plan
from r1lite.curation.sources import Block, Source, candidate, read_block
from r1lite.run.files import clear_parts, replaced_file
from verifiers import Score
from verifiers.rows import RowError
from verifiers.scoring import BatchScorer
from verifiers.segments import answering, thinking

# Maps right completions with their scores to new texts; None for a completion that can't be rewritten and is kept.
Rewrite = Callable[[Sequence[tuple[Candidate, Score]]], Sequence[str | None]]
FOLDER = "rewritten"
RULES = "rules 2"  # name and version of the rules
_BATCH = 64
_DIGITS = 6
_CODE = r"(?s:```.*?(?:```|\Z))|`[^`\n]+`|"  # in front of a pattern that must not match within code
_CALCULATOR = re.compile(_CODE + r"<<(?!\s)[^<>=\n]+=[^<>=\n]+(?<!\s)>>")  # GSM8K's marks for its calculator
# Not powers, as in 2**3 + 3**2, and no names with two underscores.
_BOLD = re.compile(_CODE + r"(?<![\w)\]}*])(\*\*|__(?!\w+__))(?=[^\s*])(.{1,500}?)(?<=\S)\1(?![\w(])")
_HEADING = re.compile(_CODE + r"^[ \t]*#{1,6}[ \t]+(?=\S)", re.MULTILINE)
_FINAL = re.compile(r"^[ \t]*####(?!#)(.*)$(?=(\s*\Z)?)", re.MULTILINE)  # GSM8K's last line, or a heading
_BLANKS = re.compile(r"[ \t]+(?=\n|\Z)")
_GAPS = re.compile(r"\n{3,}")


def by_rules(scored: Sequence[tuple[Candidate, Score]]) -> list[str | None]:
    """`house_form` of each completion, with the answer that the verifier read."""
    return [
        house_form(
            item.completion.text,
            next((verdict.answer for verdict in score.verdicts.values() if verdict.answer is not None), None),
        )
        for item, score in scored
    ]


def house_form(text: str, answer: str | None) -> str | None:
    """The same reasoning and answer in the format of this module, without markdown, calculator marks and gaps.

    Args:
        answer: the answer that a verifier read; None: the text at the expected place of the answer.

    Returns: the new text, or None if there is no reasoning or no answer.
    """
    said = ((answering(text) or "") if answer is None else answer).strip()
    reasoning = _FINAL.sub(
        lambda line: "" if line[2] is not None or line[1].strip() == said else line[0], thinking(text)
    )
    reasoning = _without(_HEADING, _without(_BOLD, _without(_CALCULATOR, reasoning), kept=2))
    reasoning = _GAPS.sub("\n\n", _BLANKS.sub("", reasoning)).strip()
    return f"<think>{reasoning}</think> <answer>{said}</answer>" if reasoning and said else None


def _without(pattern: re.Pattern[str], text: str, *, kept: int | None = None) -> str:
    """Removes what the pattern matches outside code, but for the group `kept`."""

    def replaced(match: re.Match[str]) -> str:
        if match[0].startswith("`"):
            return match[0]
        return "" if kept is None else match[kept]

    return pattern.sub(replaced, text)


class Rewriter:
    """Rewrites blocks, in this process or in an actor.

    Args:
        folder: folder of the parts.
        name: name of the rewriter, for the rows' provenance.
        make: makes the rewriting function.
    """

    def __init__(
        self, plan: Plan, folder: Path, name: str, make: Callable[[], contextlib.AbstractContextManager[Rewrite]]
    ) -> None:
        self._source, self._folder, self._name, self._opened = plan.source, folder, name, contextlib.ExitStack()
        self._rewrite = self._opened.enter_context(make())
        self._scorer = self._opened.enter_context(plan.scorer(plan.reward()))

    def __call__(self, number: int, block: Block) -> None:
        """Writes the part of a block."""
        path = _part(self._folder, number)
        with replaced_file(path, alone=False) as aside, open(aside, "w", encoding="utf-8", errors="replace") as file:
            for row in _rewritten(self._source, block, self._name, self._rewrite, self._scorer):
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    def close(self) -> None:
        """Closes the rewriting function, and ends the verifiers' processes."""
        self._opened.close()


def rewrite_all(
    plan: Plan,
    folder: Path,
    name: str,
    workers: Callable[[Path], contextlib.AbstractContextManager[Do]],
    progress: Callable[[float], None] = lambda done: None,
) -> Source:
    """Writes the missing parts. Returns the source that consists of the parts.

    Args:
        name: name of the rewriter.
        workers: opens workers for a folder, which run a `Rewriter` on blocks.
        progress: called with the number of finished blocks.
    """
    folder.mkdir(exist_ok=True)
    blocks = plan.source.blocks
    paths = [_part(folder, number) for number in range(len(blocks))]
    waiting = [(number, block) for number, block in enumerate(blocks) if not paths[number].exists()]
    done = len(blocks) - len(waiting)
    with workers(folder) as do:
        for _ in do(waiting):
            done += 1
            progress(done)
    clear_parts(folder)  # left over from lost actors
    provenance = dataclasses.replace(plan.source.provenance, rewritten=name)
    return dataclasses.replace(plan.source, kind="samples", path=folder, files=tuple(paths), provenance=provenance)


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:0{_DIGITS}d}.jsonl"


def _rewritten(
    source: Source, block: Block, name: str, rewrite: Rewrite, scorer: BatchScorer
) -> Iterator[dict[str, Any]]:
    best = scorer.reward.range[1] - 1e-9
    rows = read_block(block)
    while batch := list(itertools.islice(rows, _BATCH)):
        found = [_read(row, place, source) for place, row in batch]
        items = [item for item in found if not isinstance(item, str)]
        scored = list(zip(items, scorer.map((item.problem, item.completion) for item in items), strict=True))
        texts = iter(rewrite([(item, score) for item, score in scored if (score.reward or 0) >= best]))
        scores = (score for _, score in scored)
        for item in found:
            if isinstance(item, str):
                yield {"unreadable": item}
                continue
            score = next(scores)
            yield _row(item, score, next(texts) if (score.reward or 0) >= best else None, name, best)


def _read(row: Any, where: str, source: Source) -> Candidate | str:
    try:
        return candidate(row, source)
    except (RowError, ValueError, TypeError) as error:
        return f"{where}: {error}"


def _row(item: Candidate, score: Score, text: str | None, name: str, best: float) -> dict[str, Any]:
    provenance, prefill = item.provenance, item.completion.prefill
    if text is not None:
        text = text.removeprefix(prefill)  # the row's prompt contains it
    return {
        **problem_columns(item.problem),
        "sample": item.sample,
        "step": item.step,
        "prompt": item.prompt,
        "prefill": prefill,
        "completion": item.completion.text if text is None else text,
        "original": None if text is None else item.completion.text,
        "original_correct": None if score.reward is None else score.reward >= best,
        "finish_reason": item.completion.finish_reason,
        "policy_version": item.completion.policy_version,
        "num_prompt_tokens": item.num_prompt_tokens,
        "num_tokens": item.num_tokens if text is None else None,  # unknown for a new text
        "provenance": dataclasses.asdict(dataclasses.replace(provenance, rewritten=None if text is None else name)),
    }
