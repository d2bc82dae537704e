"""Finds rows that may be near duplicates by common bands, with at most a partition or a block in memory.

Files of the work folder, written atomically by jobs that can run anywhere:

NUMBER.bands   of a block, by the first pass: the offsets of its rows, and their bands, sorted
NUMBER.pairs   of a partition, which is a range of bands: rows with a common band
NUMBER.near    of a block: for each row the earlier rows with a common band, and Jaccard indexes

`Index.drop_near` then decides in the order of the set, and computes the further indexes that it needs.
"""

from __future__ import annotations

import array
import bisect
import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from r1lite.curation.similar import jaccard, shingles
from r1lite.errors import UserError
from r1lite.run.files import replaced_file
from verifiers.rows import completion_of

_PARTITION = 1 << 19  # entries of a partition; pairing takes about 200 bytes per entry
_LOOK_BACK = 3  # earlier members of a band that a row is compared with
_SPACE = 1 << 63  # bands are below it
_ROW = 32  # bits of an id for the row's number in its block
_CACHE = 256  # texts
_DIGITS = 6
_HEAD = 16  # bytes: two numbers
_PLACES = np.dtype([("offset", "<i8"), ("exact", "<i8")])
_PAIR = np.dtype([("row", "<i8"), ("other", "<i8"), ("far", "u1")])

RowId = int  # a row's block and its number in the block; ids are in the order of the set
Shingles = tuple[set[str], set[str]]  # of question and completion


class Met(NamedTuple):
    """A row that has a band in common with earlier rows."""

    number: int  # in its block
    earlier: list[RowId]  # rows to compare it with, in order
    shares: dict[RowId, float]  # the Jaccard indexes with other rows that were computed


def split_id(row_id: RowId) -> tuple[int, int]:
    """The block, and the row's number in the block."""
    return row_id >> _ROW, row_id & ((1 << _ROW) - 1)


def share_of(a: Shingles, b: Shingles) -> float:
    """The lower one of the Jaccard indexes of questions and completions."""
    return min(jaccard(a[0], b[0]), jaccard(a[1], b[1]))


def shingles_of(row: dict[str, Any]) -> Shingles:
    """The shingles of a row that the first pass wrote."""
    return shingles(row["question"]), shingles(completion_of(row))


class Signatures:
    """Collects the rows of a block with their bands."""

    def __init__(self) -> None:
        self._places, self._bands, self._rows = array.array("q"), array.array("q"), array.array("I")

    def add(self, offset: int, exact: int, bands: Sequence[int]) -> None:
        """Adds the next row: its line's offset, a number that equal rows share, and its bands (none if rejected)."""
        self._rows.extend([len(self._places) // 2] * len(bands))
        self._places.extend((offset, exact))
        self._bands.extend(bands)

    def write(self, path: Path) -> None:
        """The file that `Bands` opens."""
        bands, rows = np.array(self._bands, "<i8"), np.array(self._rows, "<u4")
        order = np.argsort(bands, kind="stable")
        with path.open("wb") as file:
            np.array([len(self._places) // 2, len(bands)], "<i8").tofile(file)
            for part in (np.array(self._places, "<i8"), bands[order], rows[order]):
                part.tofile(file)


@dataclass(frozen=True, slots=True)
class Bands:
    """A block's bands, sorted, with the row of each band; `exact` by row."""

    exact: NDArray[np.int64]
    bands: NDArray[np.int64]
    rows: NDArray[np.uint32]

    @classmethod
    def open(cls, folder: Path, block: int) -> Bands:
        """Maps the file into memory. Raises UserError for a damaged file."""
        path = bands_of(folder, block)
        rows, entries = num_bands(folder, block)
        parts = list[NDArray[Any]]()
        at = _HEAD
        for kind, count in ((_PLACES, rows), (np.dtype("<i8"), entries), (np.dtype("<u4"), entries)):
            parts.append(np.memmap(path, kind, "r", at, (count,)) if count else np.empty(0, kind))
            at += kind.itemsize * count
        return cls(parts[0]["exact"], *parts[1:])


def bands_of(folder: Path, block: int) -> Path:
    """The path of a block's bands."""
    return folder / f"{block:0{_DIGITS}d}.bands"


def num_bands(folder: Path, block: int) -> tuple[int, int]:
    """Numbers of rows and of bands in a block. Raises UserError for a damaged file."""
    path = bands_of(folder, block)
    try:
        with path.open("rb") as file:
            rows, entries = map(int, np.fromfile(file, "<i8", 2))
        whole = path.stat().st_size == _HEAD + _PLACES.itemsize * rows + 12 * entries
    except (OSError, ValueError):
        whole = False
    if not whole:
        raise UserError(f"{path}: damaged, or of another version; remove {path.with_suffix('.index')} and --resume")
    return rows, entries


def num_partitions(folder: Path, blocks: int) -> int:
    """Number of partitions, at least 1, such that each fits into memory."""
    return 1 + sum(num_bands(folder, block)[1] for block in range(blocks)) // _PARTITION


@dataclass(frozen=True, slots=True)
class Pairing:
    """Finds the pairs of a partition of the bands."""

    partition: int
    of: int  # partitions
    blocks: int

    def outcome(self, folder: Path) -> Path:
        """The path of the file of pairs."""
        return folder / f"{self.partition:0{_DIGITS}d}.pairs"

    def __call__(self, folder: Path) -> None:
        pairs = _pairs(*self._entries(folder))
        with replaced_file(self.outcome(folder), alone=False) as aside:
            pairs.tofile(aside)

    def _entries(self, folder: Path) -> list[NDArray[Any]]:
        """Bands, ids and `exact` of all rows in this partition, in the order of the set."""
        low, high = (_SPACE * number // self.of for number in (self.partition, self.partition + 1))
        found = []
        for block in range(self.blocks):
            held = Bands.open(folder, block)
            start = np.searchsorted(held.bands, low)
            end = len(held.bands) if high == _SPACE else np.searchsorted(held.bands, high)
            rows = held.rows[start:end]
            found.append((held.bands[start:end], rows.astype(np.int64) | block << _ROW, held.exact[rows]))
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _pairs(bands: NDArray[Any], ids: NDArray[Any], exact: NDArray[Any]) -> NDArray[Any]:
    """Pairs of each row with the rows just before it in a band and with the band's first row (`far`), sorted.

    Equal rows share all bands; only the first of them is used.
    """
    order = np.lexsort((ids, exact, bands))
    bands, ids, exact = bands[order], ids[order], exact[order]
    first = np.ones(len(bands), bool)
    first[1:] = (bands[1:] != bands[:-1]) | (exact[1:] != exact[:-1])
    bands, ids = bands[first], ids[first]
    order = np.lexsort((ids, bands))
    bands, ids = bands[order], ids[order]
    starts = np.searchsorted(bands, bands)  # start of each entry's band
    numbers = np.arange(len(bands))
    made = []
    for back in range(1, _LOOK_BACK + 1):
        met = np.flatnonzero(numbers - starts >= back)
        made.append(_as_pairs(ids[met], ids[met - back], far=False))
    met = np.flatnonzero(numbers - starts > _LOOK_BACK)
    made.append(_as_pairs(ids[met], ids[starts[met]], far=True))
    return _distinct(made)


def _as_pairs(rows: NDArray[Any], others: NDArray[Any], *, far: bool) -> NDArray[Any]:
    made = np.empty(len(rows), _PAIR)
    made["row"], made["other"], made["far"] = rows, others, far
    return made


def _distinct(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All pairs, in order, each once; a pair that is near in one of the parts counts as near."""
    found = np.concatenate(parts)
    found = found[np.lexsort((found["far"], found["other"], found["row"]))]
    first = np.ones(len(found), bool)
    first[1:] = (found["row"][1:] != found["row"][:-1]) | (found["other"][1:] != found["other"][:-1])
    return found[first]


@dataclass(frozen=True, slots=True)
class Comparing:
    """Computes the Jaccard indexes that most likely decide on the rows of a block."""

    block: int
    of: int  # partitions
    threshold: float

    def outcome(self, folder: Path) -> Path:
        """The path of the file of indexes."""
        return near_of(folder, self.block)

    def __call__(self, folder: Path) -> None:
        read = functools.lru_cache(maxsize=_CACHE)(functools.partial(_read_shingles, folder))
        path = self.outcome(folder)
        with replaced_file(path, alone=False) as aside, aside.open("w", encoding="ascii") as file:
            for met in self._met(folder, read):
                file.write(json.dumps([met.number, met.earlier, list(met.shares.items())]) + "\n")

    def _met(self, folder: Path, read: Callable[[RowId], Shingles]) -> Iterator[Met]:
        low, high = self.block << _ROW, (self.block + 1) << _ROW
        parts = []
        for partition in range(self.of):
            path = Pairing(partition, self.of, 0).outcome(folder)
            try:
                held = np.memmap(path, _PAIR, "r") if path.stat().st_size else np.empty(0, _PAIR)
            except ValueError as error:  # no whole number of pairs
                raise UserError(f"{path}: damaged, or of another version; remove it and --resume") from error
            start, end = (bisect.bisect_left(held["row"], at) for at in (low, high))
            parts.append(np.array(held[start:end]))
        for row_id, group in itertools.groupby(_distinct(parts).tolist(), key=lambda pair: pair[0]):
            pairs = list(group)
            shares: dict[RowId, float] = {}
            for _, other, _ in pairs:
                shares[other] = share_of(read(row_id), read(other))
                if shares[other] >= self.threshold:  # most likely the reason to reject the row
                    break
            yield Met(split_id(row_id)[1], [other for _, other, far in pairs if not far], shares)


def near_of(folder: Path, block: int) -> Path:
    """The path of a block's indexes."""
    return folder / f"{block:0{_DIGITS}d}.near"


def read_near(folder: Path, block: int) -> Iterator[Met]:
    """The results of `Comparing`, in order. Raises UserError for a damaged file."""
    path = near_of(folder, block)
    with path.open("rb") as file:
        for line in file:
            try:
                number, earlier, shares = json.loads(line)
                found = Met(int(number), [*map(int, earlier)], {int(row_id): float(share) for row_id, share in shares})
            except (ValueError, TypeError, RecursionError) as error:
                raise UserError(f"{path}: damaged, or of another version ({error}); remove it and --resume") from error
            yield found


def _read_shingles(folder: Path, row_id: RowId) -> Shingles:
    block, number = split_id(row_id)
    with bands_of(folder, block).open("rb") as file:
        file.seek(_HEAD + _PLACES.itemsize * number)
        offset = int.from_bytes(file.read(8), "little")
    with (folder / f"{block:0{_DIGITS}d}.rows").open("rb") as file:
        file.seek(offset)
        return shingles_of(json.loads(file.readline()))
