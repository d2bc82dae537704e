"""The first pass: decisions on each completion alone, block by block.

The results of a block are files in the work folder: NUMBER.rows has the rows' JSON lines, NUMBER.index the record of
each row for the second pass, and NUMBER.bands the bands for finding near duplicates. The index is written last, so it
marks a finished block.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from r1lite.curation.contamination import EvaluationSets, Overlap
from r1lite.curation.filters import Filter, chain
from r1lite.curation.near import Signatures, bands_of
from r1lite.curation.rows import Candidate, as_line, as_row, as_text
from r1lite.curation.similar import bands, shingles
from r1lite.curation.sources import Block, Source, candidate, read_block
from r1lite.errors import UserError
from r1lite.run.files import replaced_file
from verifiers import Problem, Reward
from verifiers.formula import Formula
from verifiers.rows import RowError
from verifiers.scoring import BatchScorer, workers_for

UNREADABLE, DECONTAMINATE = "readable", "decontaminate"
_BATCH = 256  # rows in memory at once
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that determines the first pass over a source. It is sent to the workers."""

    source: Source
    correct: str  # formula with its highest value for right completions
    options: Mapping[str, Mapping[str, Any]]  # options of the verifiers, by name
    filters: tuple[str, ...]
    evaluation: Mapping[str, tuple[Problem, ...]]  # evaluation sets for decontamination, by name
    ngram: int
    share: float
    near: bool  # remove near duplicates
    keep_rejects: bool  # write rejected rows too
    format: str
    seed: int
    score_workers: int | None = None  # processes for verifiers that may hang; None: 1 if there are such verifiers
    score_timeout_s: float = 30.0

    def reward(self) -> Reward:
        """The reward that decides correctness."""
        names = Formula(self.correct).names
        return Reward(self.correct, options={name: self.options[name] for name in names if name in self.options})

    def scorer(self, reward: Reward) -> BatchScorer:
        """A scorer for one of the chain's rewards."""
        workers = workers_for(reward) if self.score_workers is None else self.score_workers
        return BatchScorer(reward, workers=workers, timeout_s=self.score_timeout_s)

    def steps(self) -> list[str]:
        """Names of the steps that a row must pass in this pass, in order."""
        return [UNREADABLE, *(link.name for link in self.chain()), DECONTAMINATE]

    def chain(self) -> list[Filter]:
        """The filters."""
        return chain(self.filters, self.reward(), self.options)

    def versions(self) -> dict[str, str]:
        """Versions of the verifiers in the chain, by name."""
        return {name: version for reward in self._rewards() for name, version in reward.versions.items()}

    def levels(self) -> dict[str, str]:
        """Levels of the sandbox on this machine, by the verifiers that use it."""
        verifiers = {name: verify for reward in self._rewards() for name, verify in reward.verifiers.items()}
        return {name: str(verify.level) for name, verify in verifiers.items() if hasattr(verify, "level")}

    def _rewards(self) -> list[Reward]:
        return [link.verifier for link in self.chain() if link.verifier is not None]


class Fate(NamedTuple):
    """The step that rejects a row, as its number in steps() from 1 on (0: none), and the reason."""

    number: int = 0
    reason: str = ""
    detail: str = ""


class Record(NamedTuple):
    """A row's data for the second pass."""

    offset: int  # offset of its line in NUMBER.rows; -1: no line was kept
    size: int  # bytes of the line
    key: int  # key of the problem
    problem_id: str
    correct: int | None  # 1, 0; None: unscored
    fate: int  # 0: kept so far; i: rejected by steps()[i - 1]
    reason: str
    detail: str
    length: int  # tokens, or words
    exact: int  # the same for the same question and completion
    tie: int  # the row's random number, from the seed
    changed: bool  # the verdict differs from the source's


@dataclass(slots=True)
class Scanner:
    """Decides on blocks. Each worker has one."""

    plan: Plan
    folder: Path
    filters: list[Filter] = field(init=False)
    sets: EvaluationSets = field(init=False)
    _scorers: list[BatchScorer | None] = field(init=False)  # one per filter; None if no verifier decides
    _find: Any = field(init=False)
    _best: float = field(init=False)
    _options: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.filters = plan.chain()
        self._options = {name: as_text(given) for name, given in verifier_options(self.filters).items()}
        self.sets = EvaluationSets(plan.ngram, plan.share)
        for name, problems in plan.evaluation.items():
            self.sets.add(name, problems)
        self._scorers = [None if link.verifier is None else plan.scorer(link.verifier) for link in self.filters]
        self._best = plan.reward().range[1] - 1e-9
        self._find = functools.lru_cache(maxsize=4096)(self.sets.find)

    def close(self) -> None:
        """Ends the verifiers' processes."""
        for scorer in self._scorers:
            if scorer is not None:
                scorer.close()

    def __call__(self, number: int, block: Block) -> None:
        """Writes the results of a block."""
        rows_path, index_path = outcome(self.folder, number)
        place, signatures = 0, Signatures()
        # Contexts exit in reverse order, so the index is written last.
        with _replaced(index_path) as index, _replaced(rows_path) as rows:
            items = read_block(block)
            while batch := list(itertools.islice(items, _BATCH)):
                records = []
                for record, line, found in self._decide(batch):
                    if line is not None:
                        rows.write(line)
                        record = record._replace(offset=place, size=len(line))
                        place += len(line)
                    records.append(record)
                    if self.plan.near:
                        signatures.add(record.offset, record.exact, found)
                index.write(json.dumps(records).encode() + b"\n")
            if self.plan.near:
                with replaced_file(bands_of(self.folder, number), alone=False) as aside:
                    signatures.write(aside)

    def _decide(self, batch: list[tuple[str, Any]]) -> Iterator[tuple[Record, bytes | None, Sequence[int]]]:
        """Each row's record, its line if it is written, and its bands if it is kept and near duplicates are removed."""
        found: list[Candidate | Record] = []
        for place, row in batch:
            try:
                found.append(candidate(row, self.plan.source))
            except (RowError, ValueError, TypeError) as error:
                found.append(_unreadable(f"{place}: {error}"))
        fates = iter(self._fates([item for item in found if isinstance(item, Candidate)]))
        for item, (_, row) in zip(found, batch, strict=True):
            if not isinstance(item, Candidate):
                yield item, None, ()
                continue
            record, line = self._record(item, row, next(fates))
            wanted = self.plan.near and not record.fate
            question, text = item.problem.prompt, item.completion.text
            yield record, line, bands(shingles(question), shingles(text)) if wanted else ()

    def _fates(self, items: Sequence[Candidate]) -> list[Fate]:
        """The fate of each item. A filter sees only items that the filters before it keep."""
        fates = [Fate()] * len(items)
        for number, (link, scorer) in enumerate(zip(self.filters, self._scorers, strict=True), 2):  # 1 is UNREADABLE
            left = [i for i, fate in enumerate(fates) if not fate.number]
            if scorer is not None:
                scores = scorer.map((items[i].problem, items[i].completion) for i in left)
                for i, score in zip(left, scores, strict=True):
                    items[i].scores[link.name] = score
            for i in left:
                rejection = link.check(items[i])
                if rejection is not None:
                    fates[i] = Fate(number, *rejection)
        return fates

    def _record(self, item: Candidate, row: Mapping[str, Any], rejection: Fate) -> tuple[Record, bytes | None]:
        fate, reason, detail = rejection
        if not fate and self.sets.count:
            repeated: Overlap | None = self._find(item.problem.prompt)
            if repeated is not None:
                fate, reason = len(self.filters) + 2, repeated.rule
                detail = f"{repeated.where}, {repeated.share:.0%} of its n-grams"
        question, text = item.problem.prompt, item.completion.text
        # A pass rate counts the sampled completions, not their rewritten forms. Foreign files may have such a column.
        rewritten = self.plan.source.kind == "samples" and "original_correct" in row
        correct = row["original_correct"] if rewritten else self._correct(item)
        correct = None if correct is None else int(bool(correct))
        stored = row.get("correct")
        line = None
        if not fate or self.plan.keep_rejects:
            made = as_line(as_row(item, self._options, self.plan.format))
            line = made.encode() + b"\n"
        exact = _number(" ".join(question.split()), " ".join(text.split()))
        return (
            Record(
                offset=-1,
                size=0,
                key=int(item.key, 16) >> 1,
                problem_id=item.problem.id,
                correct=correct,
                fate=fate,
                reason=reason,
                detail=_storable(detail),
                length=item.length,
                exact=exact,
                tie=_number(str(self.plan.seed), item.key, str(item.step), str(item.sample), text),
                changed=isinstance(stored, bool) and correct is not None and stored != bool(correct),
            ),
            line,
        )

    def _correct(self, item: Candidate) -> int | None:
        reward = item.scores["correct"].reward
        return None if reward is None else int(reward >= self._best)


def verifier_options(filters: list[Filter]) -> dict[str, Mapping[str, Any]]:
    """Options of the verifiers in a chain, by their name in the rows."""
    return {
        name: link.verifier.options.get(name, {})
        for link in filters
        if link.verifier is not None
        for name in link.verifier.verifiers
    }


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    with replaced_file(path, alone=False) as aside, open(aside, "wb") as file:
        yield file
        file.flush()


def outcome(folder: Path, number: int) -> tuple[Path, Path]:
    """The two files of a block."""
    return folder / f"{number:0{_DIGITS}d}.rows", folder / f"{number:0{_DIGITS}d}.index"


def read_index(path: Path) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the records of a block in batches. Raises UserError for a damaged file."""
    with path.open("rb") as file:
        for line in file:
            try:
                records = json.loads(line)
                found = [tuple(record) for record in records]
                if type(records) is not list or any(len(record) != len(Record._fields) for record in found):
                    raise ValueError("a record of another length")
            except (ValueError, TypeError, RecursionError) as error:
                raise UserError(f"{path}: damaged, or of another version ({error}); remove it and --resume") from error
            yield found


def _unreadable(why: str) -> Record:
    return Record(-1, 0, 0, "", None, 1, "unreadable", _storable(why[:200]), 0, 0, 0, False)


def _storable(text: str) -> str:
    """The text without lone surrogates (possible in file names and verdict details), which SQLite rejects."""
    return text.encode("utf-8", "backslashreplace").decode()


def _number(*texts: str) -> int:
    """A 63-bit hash of the texts."""
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big") >> 1
