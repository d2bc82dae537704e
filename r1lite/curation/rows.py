"""The row of a curated set, with everything that is needed to verify it again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from verifiers import Completion, Problem, Score
from verifiers.prefill import as_read

# Made once, since json.dumps with options makes a new encoder in every call.
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)
_TEXT = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)
FORMATS = ("prompt_completion", "messages", "sharegpt", "alpaca")


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a completion; None: unknown (stored files may lack it)."""

    source: str | None = None  # source of the problem: "bundled", "hub", a file
    task: str | None = None
    run: str | None = None  # folder name of the run that sampled it, or the stored file's name
    model: str | None = None
    model_hash: str | None = None  # "sha256:..." of the weight files, or "hub:COMMIT"; for the run's initial weights
    policy_version: int | None = None  # optimizer steps between those weights and the ones that wrote it
    engine: str | None = None
    engine_version: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    stop_text: str | None = None
    template: str | None = None
    seed: int | None = None  # seed of the run; with step, problem and sample it determines every token
    rewritten: str | None = None  # name of the rewriter, if the text is no longer the model's own


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
    num_tokens: int | None = None  # number of tokens of the completion, the end of text included
    original: str | None = None  # the text before it was rewritten
    # Scores of the verifiers, by the name of their filter.
    scores: dict[str, Score] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for completions of the same problem with the same wording."""
        return problem_key(self.problem)

    @property
    def length(self) -> int:
        """Length in tokens, or in words if the number of tokens is unknown."""
        return len(self.completion.text.split()) if self.num_tokens is None else self.num_tokens


def problem_columns(problem: Problem) -> dict[str, Any]:
    """The columns of a problem that are needed to verify its completions again."""
    return {
        "problem_id": problem.id,
        "question": problem.prompt,
        "gold": problem.answer,
        "language": problem.language,
        "tests": None if problem.tests is None else dict(problem.tests),
        "meta": dict(problem.meta),
    }


def problem_key(problem: Problem) -> str:
    """A hash of the problem: 16 hex digits."""
    text = f"{problem.id}\x1f{problem.prompt}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def as_row(candidate: Candidate, options: Mapping[str, str], format: str) -> dict[str, Any]:
    """The row, in the order of its columns. Free-form parts are JSON text, so that every row has the same types.

    Args:
        options: options of the verifiers by name, as JSON text.
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
    """The provenance as a dict, which many rows share; don't change it."""
    return {field.name: getattr(provenance, field.name) for field in fields(provenance)}


def columns(format: str, candidate: Candidate) -> dict[str, Any]:
    """The columns of a format, without those of other formats: a trainer takes the first format that it knows.

    In formats for readers that add their own template, the answer is the complete reply, including a "<think>" that
    the prompt had opened.
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
    """The columns of a pair of rows in this format."""
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
    """The value as JSON on one line; equal values give equal text."""
    return _TEXT.encode(value)


def as_line(row: Mapping[str, Any]) -> str:
    """A row of a JSONL file without its line end. Lone surrogates become "?": Parquet and `datasets` reject them."""
    line = _LINE.encode(row)
    return line.encode("utf-8", "replace").decode() if not line.isascii() else line
