"""Near duplicates that are found by partitions and blocks are those of one pass over all rows."""

import collections
import json
import random

import pytest

from r1lite.curation import near
from r1lite.curation.index import EXACT, NEAR, Index
from r1lite.curation.near import Bands, Comparing, Pairing, Signatures, bands_of, num_partitions
from r1lite.curation.scan import UNREADABLE, Record, _number, outcome
from r1lite.curation.similar import bands, jaccard, shingles
from r1lite.errors import UserError

THRESHOLD = 0.85
WORDS = [f"word{number}" for number in range(300)]


def texts(count, seed, changes):
    """Questions and completions, most of them an earlier one with up to so many words changed."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        if found and draw.random() < 0.8:
            question, completion = draw.choice(found)
            words = completion.split()
            for _ in range(draw.randrange(changes + 1)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            found.append((question, " ".join(words)))
        else:
            found.append((f"how many {draw.choice(WORDS[:3])} are there", " ".join(draw.choices(WORDS, k=60))))
    return found


def in_one_pass(rows):
    """What becomes of each row, by its definition, with all rows in memory."""
    members, seen, gone, found = collections.defaultdict(list), {}, {}, []
    for seq, row in enumerate(rows):
        if row in seen:
            found.append((EXACT, f"the same as row {seen[row]}"))
            continue
        seen[row] = seq
        kinds = [shingles(text) for text in row]
        met = set()
        for band in bands(*kinds):
            met.update(members[band][-3:])
            members[band].append(seq)
        found.append((None, ""))
        for earlier in sorted(met):
            kept = gone.get(earlier, earlier)
            share = min(jaccard(mine, shingles(text)) for mine, text in zip(kinds, rows[kept], strict=True))
            if share >= THRESHOLD:
                gone[seq], found[seq] = kept, (NEAR, f"{share:.0%} like row {kept}")
                break
    return found


def write_outcomes(folder, rows, block_rows):
    """As the first pass does. Returns: the number of blocks."""
    blocks = [rows[start : start + block_rows] for start in range(0, len(rows), block_rows)]
    for number, block in enumerate(blocks):
        lines, index = outcome(folder, number)
        signatures, records, at = Signatures(), [], 0
        with lines.open("wb") as file:
            for question, completion in block:
                line = json.dumps({"question": question, "completion": completion}).encode() + b"\n"
                file.write(line)
                exact = _number(question, completion)
                records.append(Record(at, len(line), 0, "", 1, 0, "", "", 0, exact, 0, False))
                signatures.add(at, exact, bands(shingles(question), shingles(completion)))
                at += len(line)
        signatures.write(bands_of(folder, number))
        index.write_text(json.dumps(records) + "\n")
    return len(blocks)


def by_partitions(folder, blocks, jobs=lambda jobs: jobs):
    """What becomes of each row."""
    count = num_partitions(folder, blocks)
    for job in jobs([Pairing(number, count, blocks) for number in range(count)]):
        job(folder)
    for job in jobs([Comparing(number, count, THRESHOLD) for number in range(blocks)]):
        job(folder)
    index = Index(folder, [UNREADABLE])
    try:
        index.load(blocks)
        index.drop_exact()
        index.drop_near(THRESHOLD)
        rows = index.db.execute("SELECT fate, detail FROM rows ORDER BY seq")
        return [(index.steps[fate - 1] if fate else None, detail) for fate, detail in rows]
    finally:
        index.close()


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_of_one_pass(tmp_path, monkeypatch, seed):
    """Short chains of changes, and long ones; duplicates beside each other, and far apart."""
    rows = texts(400, seed, changes=(1, 3, 8)[seed % 3])
    monkeypatch.setattr(near, "_PARTITION", (600, 10**9)[seed % 2])
    blocks = write_outcomes(tmp_path, rows, block_rows=(7, 60, 1000)[seed % 3])
    assert num_partitions(tmp_path, blocks) == (11, 1)[seed % 2]
    wanted = in_one_pass(rows)
    steps = collections.Counter(step for step, _ in wanted)
    assert min(steps[step] for step in (None, EXACT, NEAR)) > 3, steps
    assert by_partitions(tmp_path, blocks, jobs=lambda jobs: random.Random(seed).sample(jobs, len(jobs))) == wanted


def test_what_was_not_compared_before_is_compared_where_it_is_needed(tmp_path, monkeypatch):
    """A row may meet none but rows that are gone, in none of whose bands is the one that they went for."""
    rows = texts(300, 3, changes=2)
    blocks = write_outcomes(tmp_path, rows, 50)
    wanted = in_one_pass(rows)
    read, asked = Index._read_shingles, []
    monkeypatch.setattr(Index, "_read_shingles", lambda self, seq: asked.append(seq) or read(self, seq))
    assert by_partitions(tmp_path, blocks) == wanted
    before = len(asked)
    for block in range(blocks):  # nothing was computed
        path = near.near_of(tmp_path, block)
        found = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps([number, earlier, []]) + "\n" for number, earlier, _ in found))
    index = Index(tmp_path, [UNREADABLE])
    index.load(blocks)
    index.drop_exact()
    index.drop_near(THRESHOLD)
    assert len(asked) > before
    assert [detail for (detail,) in index.db.execute("SELECT detail FROM rows ORDER BY seq")] == [
        detail for _, detail in wanted
    ]
    index.close()


def test_a_set_of_one_row_and_blocks_without_bands(tmp_path):
    assert by_partitions(tmp_path, write_outcomes(tmp_path, [("a", "b")], 1)) == [(None, "")]
    Signatures().write(bands_of(tmp_path, 0))
    outcome(tmp_path, 0)[1].write_text("")
    assert by_partitions(tmp_path, 1) == []


@pytest.mark.parametrize("damage", [b"", b"\x00" * 15, b"\xff" * 400])
def test_a_damaged_file_is_named(tmp_path, damage):
    write_outcomes(tmp_path, texts(3, 0, 1), 3)
    bands_of(tmp_path, 0).write_bytes(damage)
    with pytest.raises(UserError, match=r"000000\.bands: damaged, or of another version; remove .*000000\.index and"):
        Bands.open(tmp_path, 0)
    (tmp_path / "000000.pairs").write_bytes(b"x")
    with pytest.raises(UserError, match=r"000000\.pairs: damaged, or of another version; remove it and --resume"):
        Comparing(0, 1, THRESHOLD)(tmp_path)
    near.near_of(tmp_path, 0).write_bytes(damage or b"[[1], 2, {}]\n")
    with pytest.raises(UserError, match=r"000000\.near: damaged, or of another version"):
        list(near.read_near(tmp_path, 0))
