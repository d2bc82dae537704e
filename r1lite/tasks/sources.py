"""Loaders of tasks: problems from rows (of the Hub, bundled, or in files) or from a generator."""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from r1lite.bundled import bundled
from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, called, check_problem
from r1lite.tasks.rows import SUFFIXES, checked_rows, hub_rows, located_rows, made_of_each, split_file
from verifiers import Problem, VerifierError
from verifiers.golds import gold_text

_REPEATS = 5000  # after this many repeats in a row, a generator counts as exhausted
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HubSplit:
    """One split of a data set on the Hugging Face Hub."""

    dataset: str
    config: str | None
    split: str


@dataclass(slots=True)
class _Reading:
    """What the reading of a source finds beside the problems."""

    dropped: list[str] | None  # what is wrong with the rows that are left out; None: such rows are an error
    locations: dict[tuple[str, str], str] = field(default_factory=dict)  # as in Problems


@dataclass(frozen=True, slots=True)
class Rows:
    """Loads problems from rows with the columns of the Hub's data set. Called with a Source; raises UserError.

    A user's file is split by `split_of`, or else by file names train.* and test.*, or 10 % are held out by a hash.
    """

    hub: Mapping[str, Sequence[HubSplit]]  # "train" and "test"; without "train" the task is for testing only
    columns: Sequence[str]  # columns with text or a number
    problem: Callable[[Row], Problem]  # may raise ValueError or VerifierError for an unusable row
    lists: Sequence[str] = ()  # columns with a list of texts
    bundled: str | None = None  # folder under datasets/ with train.jsonl and test*.jsonl
    split_of: Callable[[Row], str] | None = None  # the data set's own split of a single file: "train", "test" or other

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that need no file."""
        hub = any(self.hub.values())
        return (*["hub"] * hub, *["bundled"] * (self.bundled is not None))

    def check(self, source: Source) -> None:
        """Rejects invalid sources before anything is read. Raises UserError."""
        if source.test_split != "test" and source.name != "bundled":
            raise UserError(f"--test-split {source.test_split} is for --source bundled, not {source.name}")
        if source.test is not None and source.name in ("hub", "bundled"):
            raise UserError(f"--test-source is for a --source of your own, not {source.name}")
        if source.name == "bundled" and self.bundled is None:
            raise UserError("--source bundled: this task has no bundled problems; use hub, or a file with its columns")
        if source.name in ("hub", "bundled") or source.name.startswith("hub@"):
            return
        if not _path(source.name).exists():
            known = "hub, or bundled" if self.bundled else "hub"
            raise UserError(f"--source {_path(source.name)}: no such file or folder (or use {known})")
        if source.test is not None and not _path(source.test).exists():
            raise UserError(f"--test-source {_path(source.test)}: no such file")

    def __call__(self, source: Source) -> Problems:
        self.check(source)
        reading = _Reading([] if source.bad == "drop" else None)
        if source.name == "hub" or source.name.startswith("hub@"):
            problems = self._from_hub(source.name.partition("@")[2] or None, reading)
        elif source.name == "bundled":
            problems = self._bundled(source.test_split, reading)
        else:
            problems = self._from_path(_path(source.name), _path(source.test) if source.test else None, reading)
        return replace(problems, dropped=tuple(reading.dropped or ()), locations=reading.locations)

    def _from_hub(self, revision: str | None, reading: _Reading) -> Problems:
        parts: dict[str, list[Problem]] = {"train": [], "test": []}
        for name, splits in self.hub.items():
            for place in splits:
                where = f"{place.dataset}{f' ({place.config})' if place.config else ''}, {place.split}"
                is_bundled = self.bundled is not None
                loaded = hub_rows(place.dataset, place.config, place.split, revision, is_bundled=is_bundled)
                rows = list(enumerate(loaded, 1))
                usable = checked_rows(where, rows, self.columns, self.lists, reading.dropped)
                parts[name] += self._made(usable, name, where, reading)
        names = sorted({place.dataset for splits in self.hub.values() for place in splits})
        return Problems(parts["train"], parts["test"], f"{' and '.join(names)} from the Hugging Face Hub")

    def _bundled(self, test_split: str, reading: _Reading) -> Problems:
        assert self.bundled is not None  # ensured by check()
        folder = bundled(f"datasets/{self.bundled}")
        train, path = self._file(folder / "train.jsonl", "train", reading), folder / f"{test_split}.jsonl"
        if not path.exists():
            splits = sorted(file.stem for file in folder.glob("test*.jsonl"))
            raise UserError(f"--test-split {test_split} is unknown; bundled: {', '.join(splits)}")
        return Problems(
            train, self._file(path, test_split, reading), "bundled GSM8K-style problems, written for r1lite"
        )

    def _from_path(self, path: Path, test_path: Path | None, reading: _Reading) -> Problems:
        if "train" not in self.hub:
            test_path = test_path or (split_file(path, "test", SUFFIXES) if path.is_dir() else path)
            if test_path is None:
                raise UserError(f"--source {path}: the folder needs test.* ({', '.join(SUFFIXES)})")
            return Problems([], self._file(test_path, "test", reading), f"{test_path}, for testing only")
        if path.is_dir():
            train_path, test_path = (
                split_file(path, "train", SUFFIXES),
                test_path or split_file(path, "test", SUFFIXES),
            )
            if train_path is None or test_path is None:
                alone = f"; --source {train_path} holds a tenth of its rows out for the test" if train_path else ""
                raise UserError(f"--source {path}: the folder needs train.* and test.* ({', '.join(SUFFIXES)}){alone}")
        else:
            train_path = path
            if test_path is None and path.name.partition(".")[0] == "train":
                test_path = split_file(path.parent, "test", SUFFIXES)
        if test_path is not None:
            train, test = self._file(train_path, "train", reading), self._file(test_path, "test", reading)
            return Problems(train, test, f"{train_path}, tested on {test_path}")
        return self._split(path, reading)

    def _split(self, path: Path, reading: _Reading) -> Problems:
        """Splits one file into train and test problems."""
        rows = located_rows(path, self.columns, self.lists, reading.dropped)
        if self.split_of is not None:
            split_of = functools.partial(called, "split_of()", self.split_of)
            splits = made_of_each(str(path), rows, lambda row: (split_of(row), row), reading.dropped)
            own = {
                name: [(place, row) for place, (split, row) in splits if split == name] for name in ("train", "test")
            }
            if own["train"] and own["test"]:
                train, test = (self._made(part, name, str(path), reading) for name, part in own.items())
                return Problems(train, test, f"{path}, with its authors' split")
        every = self._made(rows, "train", str(path), reading)
        test = [problem for problem in every if held_out(problem.prompt)]
        train = [problem for problem in every if not held_out(problem.prompt)]
        if not test or not train:
            different = len({problem.prompt for problem in every})
            problems = "problems are" if different > 1 else "problem is"
            raise UserError(
                f"--source {path}: {different} different {problems} too few to hold 10 % out for the test; "
                "set --test-source"
            )
        return Problems(train, test, f"{path}, {len(test)} of its problems held out for the test (chosen by a hash)")

    def _file(self, path: Path, split: str, reading: _Reading) -> list[Problem]:
        rows = located_rows(path, self.columns, self.lists, reading.dropped)
        return self._made(rows, split, str(path), reading)

    def _made(self, rows: Sequence[tuple[int, Row]], split: str, where: str, reading: _Reading) -> list[Problem]:
        numbers = itertools.count()
        made = made_of_each(where, rows, lambda row: self._one(row, f"{split}-{next(numbers)}"), reading.dropped)
        for place, problem in made:
            reading.locations.setdefault((problem.id, problem.prompt), f"{where}:{place}")
        return [problem for _, problem in made]

    def _one(self, row: Row, name: str) -> Problem:
        """The problem of a row; `name` is its id if it has no other. Raises ValueError or VerifierError."""
        problem = called("problem()", self.problem, row, refuses=(ValueError, VerifierError))
        check_problem("problem()", problem)
        if problem.answer:  # the reward's verifiers decide whether a problem needs an answer
            gold_text(problem.answer)
        name = problem.id.encode("utf-8", "backslashreplace").decode() or name
        return Problem(problem.prompt, problem.answer, problem.tests, problem.language, name, problem.meta)


@dataclass(frozen=True, slots=True)
class Generated:
    """Generates problems; number n of a split has its own seed. Called with a Source; raises UserError.

    Repeated problems are dropped, and so are those to train on that the test has.
    """

    name: str
    make: Callable[[str, random.Random], Problem]  # (split, the problem's own generator)
    sizes: Mapping[str, int] = field(default_factory=lambda: {"train": 4000, "test": 500})
    sources: ClassVar[tuple[str, ...]] = ("generated",)

    def check(self, source: Source) -> None:
        """Rejects every source except the generator. Raises UserError."""
        check_generated(self.name, source)

    def __call__(self, source: Source) -> Problems:
        self.check(source)
        test = self._different("test", ())
        train = self._different("train", {problem.prompt for problem in test})
        return Problems(train, test, f"{self.name}, generated")

    def item(self, split: str, number: int) -> Problem:
        """Generates problem `number` of a split ("train" or "test") alone."""
        what = f"--task {self.name}: make() for {split} problem {number}"
        made = called(what, self.make, split, random.Random(f"{self.name}/{split}/{number}"))
        check_problem(what, made)
        return Problem(made.prompt, made.answer, made.tests, made.language, f"{split}-{number}", made.meta)

    def _different(self, split: str, others: Collection[str]) -> list[Problem]:
        """Generates the problems of a split, whose prompts differ from one another and from `others`."""
        found: dict[str, Problem] = {}
        size = self.sizes[split]
        number = seen = 0  # seen: repeats since the last new problem
        while len(found) < size:
            problem = self.item(split, number)
            seen = seen + 1 if problem.prompt in found or problem.prompt in others else 0
            if seen == _REPEATS:
                besides = f", besides the {len(others):,} to test on" if others else ""
                raise UserError(
                    f"--task {self.name} makes only {len(found):,} different problem{'s' * (len(found) != 1)} to "
                    f"{split} on instead of {size:,}{besides}: request fewer in the task's definition, or draw from "
                    "wider ranges"
                )
            if not seen:
                found[problem.prompt] = problem
            number += 1
        return list(found.values())


def check_generated(name: str, source: Source) -> None:
    """Rejects every source except the generator of the task `name`. Raises UserError."""
    if source.name not in ("generated", "hub", "bundled") or source.test is not None:
        raise UserError(f"--task {name} generates its problems: omit --source and --test-source")
    if source.test_split != "test":
        raise UserError(
            f"--test-split {source.test_split} is for --source bundled, not for a task that generates problems"
        )


def held_out(text: str) -> bool:
    """True for about a tenth of all texts, chosen by a hash of the text."""
    return hashlib.blake2b(text.encode(), digest_size=2).digest()[0] % 10 == 0


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"--source {text}: {error}") from error
