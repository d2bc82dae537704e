"""Encodes a fine-tuning set as tokens, and refuses rows that can't be used."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from r1lite.config.supervised import SupervisedConfig
from r1lite.errors import UserError
from r1lite.model import vocabulary_size
from r1lite.rollout import eos_ids
from r1lite.supervised.sft.formats import FORMATS, Example, RowError, example, format_of
from r1lite.supervised.sft.reading import rows
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.tasks import Problems, find
from r1lite.tasks import prompts as templates
from r1lite.training.setup import Loaded
from r1lite.types import Prompt
from verifiers import Problem
from verifiers.prefill import prefill_of

_SHOWN = 5
_CHUNK = 1000  # number of rows tokenized together
_THINK = "<think>"


def load_set(
    config: SupervisedConfig, problems: Problems, test: Sequence[Prompt], model: Any, tokenizer: Any
) -> Loaded:
    """Loads and tokenizes the rows of `--data`.

    Raises:
        UserError: there is no set, rows are unusable or too long, test problems are among them, or the tokenizer is
            unsuitable.
    """
    if config.data is None:
        raise UserError("--data is missing: the set to learn from (a file, a folder, or OWNER/NAME on the Hub)")
    encoder = Encoder(config, model, tokenizer)
    overlap = Overlap(problems.test, config, tokenizer)
    bad = Refused()
    read = rows(config.data, config.data_split)
    while chunk := list(itertools.islice(read, _CHUNK)):
        found: list[tuple[str, Example]] = []
        for place, row in chunk:
            try:
                found.append((place, encoder.read(row)))
            except RowError as error:
                bad.add(place, str(error))
        for _, one in found:
            overlap.see(one)
        for place, problem in encoder.add(found):
            bad.add(place, problem)
    bad.complain(config.data)
    if not config.allow_test_overlap:
        overlap.complain(config)
    return encoder.loaded(config.data, overlap.count)


class Encoder:
    """Encodes examples as tokens, with the same prompts as in evaluation.

    Args:
        pairs: a row of the set holds two examples, so that it becomes two rows of tokens.
    """

    def __init__(self, config: SupervisedConfig, model: Any, tokenizer: Any, *, pairs: bool = False) -> None:
        templates.check(config.template)
        self._sides, self._unit = (2, "pairs") if pairs else (1, "rows")
        self.config, self.tokenizer = config, tokenizer
        self._around = find(config.task).template
        self.rows, self.read_rows = TokenRows(), 0
        self.format: str | None = None  # format of the first row
        self.long: list[tuple[str, str]] = []
        self._vocabulary = vocabulary_size(model)
        self._context = getattr(model.config, "max_position_embeddings", None)
        self._ends = eos_ids(model, tokenizer)
        if not self._ends:
            raise UserError(
                f"--model {config.model}: neither its tokenizer nor its generation config has a token that ends a "
                "text, so the model could not learn to end a completion"
            )
        own = tokenizer.eos_token_id
        self._end = own if own is not None else self._ends[0]

    def read(self, row: Any) -> Example:
        """Converts a row to an example. All rows must have the format of the first. Raises RowError."""
        self.read_rows += 1
        if not isinstance(row, dict):
            raise RowError(f"a row must be an object, not {type(row).__name__}")
        if self.format is None:
            self.format = format_of(row)
        if self.format is None:
            forms = "; ".join(f"{name} ({', '.join(columns)})" for name, (columns, _) in FORMATS.items())
            raise RowError(f"the columns {', '.join(sorted(row))} match none of the formats {forms}")
        found = example(row, self.format, verbatim=self.config.prompts == "verbatim")
        if found.turns and self.config.template != "chat":
            raise RowError("a conversation with several questions or a system message needs --template chat")
        return found

    def add(self, examples: Sequence[tuple[str, Example]]) -> Iterator[tuple[str, str]]:
        """Tokenizes (place, example) pairs and keeps those that fit. Yields (place, reason) of unusable rows."""
        if not examples:
            return
        texts = [self._prompt(read) for _, read in examples]
        prompts = templates.encode(texts, self.config.template, self.tokenizer)
        said = [_after(text, read) for text, (_, read) in zip(texts, examples, strict=True)]
        completions = self.tokenizer(said, add_special_tokens=False)["input_ids"]
        for (place, _), prompt, completion in zip(examples, prompts, completions, strict=True):
            body = completion[:-1] if completion and completion[-1] in self._ends else completion
            if not prompt:
                yield place, "the prompt has no tokens"
            elif any(token in self._ends for token in body):
                yield place, "a token that ends the text is inside the completion"
            elif max(prompt + completion) >= self._vocabulary:
                yield (
                    place,
                    f"token id {max(prompt + completion)}, but the model has only {self._vocabulary} tokens: the "
                    "tokenizer does not belong to the model",
                )
            elif too_long := self._too_long(len(prompt), len(body) + 1):
                self.long.append((place, too_long))
            else:
                self.rows.add(prompt, completion if len(body) < len(completion) else [*completion, self._end])

    def loaded(self, data: str, overlap: int = 0) -> Loaded:
        """Returns the rows, with lines for the header and facts to store, which count pairs once. Raises UserError."""
        read, count = self.read_rows // self._sides, len(self.rows) // self._sides
        if self.long and self.config.long_rows == "error":
            raise UserError(
                f"--data {data}: {len(self.long):,} of {read:,} {self._unit} are too long:\n"
                + _listing(self.long)
                + f"\nraise the limits, or drop such {self._unit} with --long-rows drop"
            )
        if not count:
            why = f": all {len(self.long):,} are too long" if self.long else ""
            raise UserError(f"--data {data}: no usable {self._unit[:-1]} is left{why}")
        before, after = self.rows.lengths()
        fingerprint = self.rows.fingerprint()
        facts = {
            "data": data,
            "split": self.config.data_split,
            "format": self.format,
            "rows_read": read,
            "rows_too_long": len(self.long),
            "rows": count,
            "prompt_tokens": int(before.sum()),
            "completion_tokens": int(after.sum()),
            "longest_row_tokens": int((before + after).max()),
            "test_problems_in_the_set": overlap,
            "template": template_facts(self.config.template, self.tokenizer),
            "fingerprint": fingerprint,
        }
        dropped = f", {len(self.long):,} dropped as too long" if self.long else ""
        form = f" ({self.format})" if self._sides == 1 else ""
        line = f"{data}: {count:,} {self._unit}{form}, {int(after.sum()):,} completion tokens to learn{dropped}"
        return Loaded(self.rows, fingerprint, [("set", line)], {"set": facts})

    def _prompt(self, read: Example) -> str:
        if read.prompt is not None:
            return read.prompt
        if read.question is not None:
            return templates.render_problem(self.config.template, self._around, read.question, self.tokenizer)
        messages = [{"role": role, "content": text} for role, text in read.turns]
        return templates.render_messages(messages, self.tokenizer)

    def _too_long(self, prompt: int, completion: int) -> str | None:
        config = self.config
        if prompt > config.max_prompt_tokens:
            return f"prompt of {prompt} tokens; --max-prompt-tokens is {config.max_prompt_tokens}"
        if completion > config.max_completion_tokens:
            return f"completion of {completion} tokens; --max-completion-tokens is {config.max_completion_tokens}"
        if self._context is not None and prompt + completion > self._context:
            return f"{prompt + completion} tokens; the model's context is {self._context}"
        return None


def template_facts(template: str, tokenizer: Any) -> dict[str, str]:
    """Returns the name of the prompt template and the SHA-256 of its text."""
    name = template if template in (*templates.TEMPLATES, "chat") else "own"
    text = tokenizer.chat_template if template == "chat" else templates.TEMPLATES.get(template, template)
    if not isinstance(text, str):  # a tokenizer may have several named templates
        text = json.dumps(text, sort_keys=True)
    return {"name": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}


class Overlap:
    """Counts test problems that occur in the set, ignoring white space and case."""

    def __init__(self, test: Sequence[Problem], config: SupervisedConfig, tokenizer: Any) -> None:
        template, around = config.template, find(config.task).template
        self._names = [problem.id or problem.prompt[:40] for problem in test]
        self._test = {
            _plain(text): number
            for number, problem in enumerate(test)
            for text in (problem.prompt, templates.render_problem(template, around, problem.prompt, tokenizer))
        }
        self._seen = set[int]()

    def see(self, read: Example) -> None:
        """Checks the questions of a row."""
        self._seen.update(found for text in read.asked if (found := self._test.get(_plain(text))) is not None)

    @property
    def count(self) -> int:
        """Number of test problems found."""
        return len(self._seen)

    def complain(self, config: SupervisedConfig) -> None:
        """Raises UserError if the count is not 0."""
        if self._seen:
            shown = ", ".join(self._names[number] for number in sorted(self._seen)[:_SHOWN])
            raise UserError(
                f"--data {config.data}: {self.count:,} of the {len(self._names):,} test problems of --task "
                f"{config.task} are in the set ({shown}{', ...' if self.count > _SHOWN else ''}), so the evaluation "
                "would measure memorization. Remove them, or pass --allow-test-overlap"
            )


class Refused:
    """Counts unusable rows and keeps the first ones for the message."""

    def __init__(self) -> None:
        self.count, self.shown = 0, list[tuple[str, str]]()

    def add(self, where: str, why: str) -> None:
        """Counts a row."""
        self.count += 1
        if len(self.shown) < _SHOWN:
            self.shown.append((where, why))

    def complain(self, data: str) -> None:
        """Raises UserError if the count is not 0."""
        if self.count:
            raise UserError(
                f"--data {data}: {self.count:,} rows can't be learnt from:\n" + _listing(self.shown, self.count)
            )


def _after(prompt: str, read: Example) -> str:
    """Returns the completion for this prompt; the thinking block is opened by one of the two, not by both."""
    completion, opened = read.completion, prefill_of(prompt)
    if opened == _THINK and completion.lstrip().startswith(_THINK):
        return completion.lstrip()[len(_THINK) :].removeprefix("\n" if prompt.endswith("\n") else "")
    if read.prefill == _THINK and not opened:
        return _THINK + completion
    return completion


def _listing(refused: Iterable[tuple[str, str]], count: int | None = None) -> str:
    refused = list(refused)
    count = len(refused) if count is None else count
    lines = [f"  {where}: {why}" for where, why in refused[:_SHOWN]]
    return "\n".join([*lines, *([f"  ... and {count - _SHOWN:,} more"] if count > _SHOWN else [])])


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
