"""The row of a curated set, with everything that is needed to prove it again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from verifiers import Completion, Problem, Score
from verifiers.prefill import as_read

# Made once: json.dumps with options of its own makes an encoder every time.
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)
_TEXT = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)
FORMATS = ("prompt_completion", "messages", "sharegpt", "alpaca")


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a completion came to be; None = not known (a stored file need not say)."""

    source: str | None = None  # where the problem comes from: "bundled", "hub", a file
    task: str | None = None
    run: str | None = None  # folder name of the run it was sampled in, or the stored file's name
    model: str | None = None
    model_hash: str | None = None  # "sha256:..." of the weight files, or "hub:COMMIT"; of the run's first weights
    policy_version: int | None = None  # optimizer steps between those weights and the ones that wrote it
    engine: str | None = None
    engine_version: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    stop_text: str | None = None
    template: str | None = None
    seed: int | None = None  # of the run; together with step, problem and sample it decides every token
    rewritten: str | None = None  # by what, where the text is not the model's own any more


@dataclass(slots=True)
class Candidate:
    """A completion on its way through the filters."""

    problem: Problem
    completion: Completion
    prompt: str  # as the model saw it
    sample: int
    step: int | None
    provenance: Provenance
    num_prompt_tokens: int | None = None
    num_tokens: int | None = None  # of the completion, the end of text included
    original: str | None = None  # the text before it was rewritten
    # What verifiers said, by the name of the filter that asked them.
    scores: dict[str, Score] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What makes two completions siblings: the same problem, asked with the same words."""
        return problem_key(self.problem)

    @property
    def length(self) -> int:
        """In tokens, or in words where the tokens are not known."""
        return len(self.completion.text.split()) if self.num_tokens is None else self.num_tokens


def problem_key(problem: Problem) -> str:
    """16 hex digits that stand for the problem."""
    text = f"{problem.id}\x1f{problem.prompt}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def as_row(candidate: Candidate, options: Mapping[str, str], format: str) -> dict[str, Any]:
    """The row, in the order of its columns. Free-form parts are JSON text, so that every row has the same types.

    Args:
        options: of the verifiers, by name, as JSON text.
        format: one of FORMATS.
    """
    problem, completion = candidate.problem, candidate.completion
    return {
        **columns(format, candidate),
        "prefill": completion.prefill,
        "problem_id": problem.id,
        "sample": candidate.sample,
        "step": candidate.step,
        "question": problem.prompt,
        "gold": problem.answer,
        "language": problem.language,
        "tests": None if problem.tests is None else as_text(problem.tests),
        "meta": as_text(problem.meta) if problem.meta else None,
        "num_prompt_tokens": candidate.num_prompt_tokens,
        "num_tokens": candidate.num_tokens,
        "finish_reason": completion.finish_reason,
        "prompt_hash": f"sha256:{hashlib.sha256(candidate.prompt.encode('utf-8', 'surrogatepass')).hexdigest()}",
        "original": candidate.original,
        "verdicts": [
            {
                "verifier": name,
                "version": score.versions.get(name, ""),
                "options": options.get(name, "{}"),
                "score": verdict.score,
                "reason": verdict.reason,
                "detail": verdict.detail,
                "answer": verdict.answer,
                "span": None if verdict.span is None else list(verdict.span),
            }
            for score in candidate.scores.values()
            for name, verdict in score.verdicts.items()
        ],
        "provenance": _as_dict(candidate.provenance),
    }


@functools.lru_cache(maxsize=64)
def _as_dict(provenance: Provenance) -> dict[str, Any]:
    """Shared by many rows: for reading only."""
    return {field.name: getattr(provenance, field.name) for field in fields(provenance)}


def columns(format: str, candidate: Candidate) -> dict[str, Any]:
    """The columns that a format is made of, and no other format's: a trainer takes the first that it knows.

    Where the reader's own template stands around a question, the answer is the whole reply, with a "<think>" that the
    prompt had opened.
    """
    question, completion = candidate.problem.prompt, candidate.completion
    if format == "prompt_completion":  # TRL
        return {"prompt": candidate.prompt, "completion": completion.text}
    reply = as_read(completion).text
    if format == "messages":  # TRL, axolotl chat_template
        return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]}
    if format == "sharegpt":  # LLaMA-Factory, axolotl
        return {"conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": reply}]}
    assert format == "alpaca", format  # LLaMA-Factory, axolotl
    return {"instruction": question, "input": "", "output": reply}


def pair_columns(format: str, chosen: Mapping[str, Any], rejected: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a pair of rows in this format, and no other format's."""
    if format == "prompt_completion":  # TRL
        return {"prompt": chosen["prompt"], "chosen": chosen["completion"], "rejected": rejected["completion"]}
    if format == "messages":  # TRL
        (*prompt, answer), (*_, other) = chosen["messages"], rejected["messages"]
        return {"prompt": prompt, "chosen": [answer], "rejected": [other]}
    if format == "sharegpt":  # LLaMA-Factory
        (*turns, answer), (*_, other) = chosen["conversations"], rejected["conversations"]
        return {"conversations": turns, "chosen": answer, "rejected": other}
    assert format == "alpaca", format  # LLaMA-Factory
    return {
        "instruction": chosen["instruction"],
        "input": "",
        "chosen": chosen["output"],
        "rejected": rejected["output"],
    }


def as_text(value: Any) -> str:
    """JSON on one line, the same for the same value."""
    return _TEXT.encode(value)


def as_line(row: Mapping[str, Any]) -> str:
    """A row of a JSONL file, without its line end. A lone surrogate becomes "?": Parquet and `datasets` take none."""
    line = _LINE.encode(row)
    return line.encode("utf-8", "replace").decode() if not line.isascii() else line
