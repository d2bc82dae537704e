"""The second pass: decisions that depend on all rows together, in an SQLite file that may be larger than memory.

SQLite sorts and groups on disk. The pass always starts with a new file, made from the results of the blocks, so a
killed pass leaves no state behind.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from r1lite.curation.near import RowId, Shingles, read_near, share_of, shingles_of, split_id
from r1lite.curation.scan import UNREADABLE, outcome, read_index
from r1lite.curation.similar import jaccard

EXACT, NEAR = "exact_duplicates", "near_duplicates"
DIFFICULTY, PER_PROBLEM, MAX_ROWS = "difficulty", "per_problem", "max_rows"
STEPS = (EXACT, NEAR, DIFFICULTY, PER_PROBLEM, MAX_ROWS)
_CACHE_KIB = 64 << 10
_SCHEMA = """
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY,     -- the order of the source
    block INTEGER, offset INTEGER, size INTEGER,
    key INTEGER, problem_id TEXT, correct INTEGER, fate INTEGER, reason TEXT, detail TEXT,
    length INTEGER, exact INTEGER, tie INTEGER, changed INTEGER
);
"""
_CACHE = 256  # texts


class Index:
    """All rows, and which of them are still kept.

    Args:
        folder: folder with the results of the blocks; the file is made in it.
        steps: names of the first pass's filters, in order; STEPS follow them.
    """

    def __init__(self, folder: Path, steps: Sequence[str]) -> None:
        self.folder, self.steps = folder, [*steps, *STEPS]
        path = folder / "index.sqlite"
        path.unlink(missing_ok=True)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{_CACHE_KIB}; "
            # Not in /tmp, which may be in memory.
            f"PRAGMA temp_store=FILE; PRAGMA temp_store_directory='{str(folder).replace(chr(39), chr(39) * 2)}';"
        )
        self.db.executescript(_SCHEMA)
        self._starts: list[int] = []  # the first row of each block
        self._shingles = functools.lru_cache(maxsize=_CACHE)(self._read_shingles)

    def close(self) -> None:
        """Closes the file."""
        self.db.close()

    def load(self, num_blocks: int) -> None:
        """Loads the results of the first pass, block by block."""
        count = 0
        self.db.execute("BEGIN")
        for block in range(num_blocks):
            self._starts.append(count)
            for batch in read_index(outcome(self.folder, block)[1]):
                found = [(seq, block, *record) for seq, record in enumerate(batch, count)]
                count += len(found)
                self.db.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * 14)})", found)
        self.db.execute("COMMIT")
        # For an unbiased rate, every verified completion counts, before any other filter. Unscored ones may be right.
        self.db.executescript(
            "CREATE TABLE problems AS SELECT key, min(seq) AS first, count(*) AS num_rows, count(correct) AS n, "
            f"sum(correct) AS c FROM rows WHERE fate != {self.fate(UNREADABLE)} GROUP BY key; "
            "CREATE UNIQUE INDEX by_key ON problems (key);"
        )

    def fate(self, step: str) -> int:
        """The number that means "rejected by this step"."""
        return self.steps.index(step) + 1

    def drop_exact(self) -> None:
        """Keeps the first of the rows with the same question and completion."""
        self.db.execute(
            "UPDATE rows SET fate = ?, reason = 'duplicate', detail = 'the same as row ' || d.first FROM "
            "(SELECT seq, min(seq) OVER (PARTITION BY exact) AS first FROM rows WHERE fate = 0) AS d "
            "WHERE rows.seq = d.seq AND d.first < d.seq",
            (self.fate(EXACT),),
        )

    def drop_near(self, threshold: float) -> None:
        """Keeps the first of the rows that are nearly the same.

        A row is rejected if its question and its completion each have a Jaccard index of at least `threshold` with
        those of a kept row. Indexes that `near.Comparing` has not computed are computed here.
        """
        writer = self.db.cursor()
        self.db.execute("CREATE TEMP TABLE gone (seq INTEGER PRIMARY KEY, kept INTEGER)")
        for block, start in enumerate(self._starts):
            for met in read_near(self.folder, block):
                seq, tried = start + met.number, set()
                shares = {self._seq(row_id): share for row_id, share in met.shares.items()}
                for earlier in map(self._seq, met.earlier):
                    instead = writer.execute("SELECT kept FROM gone WHERE seq = ?", (earlier,)).fetchone()
                    kept = instead[0] if instead else earlier
                    if kept in tried:
                        continue
                    tried.add(kept)
                    share = shares[kept] if kept in shares else share_of(self._shingles(seq), self._shingles(kept))
                    if share >= threshold:
                        writer.execute("INSERT INTO gone VALUES (?, ?)", (seq, kept))
                        writer.execute(
                            "UPDATE rows SET fate = ?, reason = 'near_duplicate', detail = ? WHERE seq = ?",
                            (self.fate(NEAR), f"{share:.0%} like row {kept}", seq),
                        )
                        break

    def _seq(self, row_id: RowId) -> int:
        block, number = split_id(row_id)
        return self._starts[block] + number

    def keep_difficulty(self, above: float, below: float) -> None:
        """Keeps only problems with a pass rate strictly between the two bounds."""
        self.db.execute(
            "UPDATE rows SET fate = ?, reason = iif(p.c <= ? * p.n, 'too_hard', 'too_easy'), "
            "detail = p.c || ' of ' || p.n || ' right' "
            "FROM problems AS p WHERE rows.key = p.key AND fate = 0 AND NOT (p.c > ? * p.n AND p.c < ? * p.n)",
            (self.fate(DIFFICULTY), above, above, below),
        )

    def keep_per_problem(self, most: int, choice: str) -> None:
        """Keeps at most `most` rows of each problem: the shortest, longest, most diverse or random ones."""
        if choice == "diverse":
            self._keep_diverse(most)
            return
        order = {"shortest": "length, tie, seq", "longest": "-length, tie, seq", "random": "tie, seq"}[choice]
        self.db.execute(
            "UPDATE rows SET fate = ?, reason = 'enough' FROM "
            f"(SELECT seq, row_number() OVER (PARTITION BY key ORDER BY {order}) AS place FROM rows WHERE fate = 0) "
            "AS d WHERE rows.seq = d.seq AND d.place > ?",
            (self.fate(PER_PROBLEM), most),
        )

    def _keep_diverse(self, most: int) -> None:
        """Max-min selection: the shortest row, then always the row whose nearest selected row is furthest (Jaccard)."""
        found = self.db.execute("SELECT key, seq FROM rows WHERE fate = 0 ORDER BY key, length, tie, seq")
        writer = self.db.cursor()
        for _, group in itertools.groupby(found, key=lambda row: row[0]):
            left = [seq for _, seq in group]
            if len(left) <= most:
                continue
            texts = {seq: self._shingles(seq)[1] for seq in left}
            nearest = {seq: 0.0 for seq in left}
            newest = left.pop(0)
            for _ in range(most - 1):
                for seq in left:
                    nearest[seq] = max(nearest[seq], jaccard(texts[seq], texts[newest]))
                newest = min(left, key=lambda seq: nearest[seq])  # the first of equals
                left.remove(newest)
            writer.executemany(
                "UPDATE rows SET fate = ?, reason = 'enough' WHERE seq = ?",
                [(self.fate(PER_PROBLEM), seq) for seq in left],
            )

    def keep_rows(self, most: int, seed: int) -> None:
        """Keeps at most `most` rows: each problem's first, then each problem's second, ..., in a seeded order."""

        def shuffled(key: int) -> int:
            return int.from_bytes(hashlib.blake2b(f"{seed}-{key}".encode(), digest_size=8).digest(), "big") >> 1

        self.db.create_function("shuffled", 1, shuffled, deterministic=True)
        self.db.execute(
            "UPDATE rows SET fate = ?, reason = 'enough' FROM (SELECT seq, row_number() OVER "
            "(ORDER BY turn, shuffled(key), seq) AS place FROM (SELECT seq, key, row_number() OVER "
            "(PARTITION BY key ORDER BY tie, seq) AS turn FROM rows WHERE fate = 0)) AS d "
            "WHERE rows.seq = d.seq AND d.place > ?",
            (self.fate(MAX_ROWS), most),
        )

    def pairs(self, each: int) -> Iterator[tuple[int, int]]:
        """Pairs (kept row, wrong row) of the same problem, at most `each` per problem, chosen in a seeded order.

        Wrong rows with the same text count once. The pairs are returned in the order of the source.
        """
        self.db.execute("CREATE TEMP TABLE pairs (kept INTEGER PRIMARY KEY, wrong INTEGER)")
        found = self.db.execute(
            "SELECT key, fate, seq, exact FROM rows WHERE fate = 0 OR (correct = 0 AND size > 0) ORDER BY key, tie, seq"
        )
        writer = self.db.cursor()
        for _, group in itertools.groupby(found, key=lambda row: row[0]):
            kept: list[int] = []
            wrong: dict[int, int] = {}
            for _, fate, seq, exact in group:
                if fate == 0:
                    kept.append(seq)
                else:
                    wrong.setdefault(exact, seq)
            chosen = list(zip(kept[:each], wrong.values(), strict=False))
            writer.executemany("INSERT INTO pairs VALUES (?, ?)", chosen)
        yield from self.db.execute("SELECT kept, wrong FROM pairs ORDER BY kept")

    def line(self, seq: int) -> dict[str, Any]:
        """A row as the first pass wrote it."""
        block, offset, size = self.db.execute("SELECT block, offset, size FROM rows WHERE seq = ?", (seq,)).fetchone()
        with outcome(self.folder, block)[0].open("rb") as file:
            file.seek(offset)
            found: dict[str, Any] = json.loads(file.read(size))
        return found

    def _read_shingles(self, seq: int) -> Shingles:
        return shingles_of(self.line(seq))

    def kept(self) -> int:
        """Number of rows that are still kept."""
        count: int = self.db.execute("SELECT count(*) FROM rows WHERE fate = 0").fetchone()[0]
        return count

    def counts(self) -> dict[int, dict[str, int]]:
        """Rows by fate and reason."""
        found: dict[int, dict[str, int]] = {}
        for fate, reason, count in self.db.execute(
            "SELECT fate, reason, count(*) FROM rows GROUP BY fate, reason ORDER BY fate, count(*) DESC, reason"
        ):
            found.setdefault(fate, {})[reason] = count
        return found

    def examples(self, each: int) -> Iterator[tuple[int, str, int, str, str, bool]]:
        """The first rejected rows of every reason: (fate, reason, seq, problem, detail, whether its line exists)."""
        yield from self.db.execute(
            "SELECT fate, reason, seq, problem_id, detail, size > 0 FROM (SELECT *, row_number() OVER "
            "(PARTITION BY fate, reason ORDER BY seq) AS place FROM rows WHERE fate > 0) "
            "WHERE place <= ? ORDER BY fate, reason, seq",
            (each,),
        )
