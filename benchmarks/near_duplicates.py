"""Cost of finding near duplicates, for the command and its workers, by number of rows.

    python benchmarks/near_duplicates.py [--rows 1000000] [--workers 2] [--on ray] [--keep DIR]

Generates the results of `r1lite reject`'s first pass for rows of 120 words; 40 % of them are an earlier row, anywhere
in the set, with one changed word. Then finds and compares pairs and decides on the rows, as `reject` does.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import json
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from watching import Watch

from r1lite.curation.index import NEAR, Index
from r1lite.curation.near import Comparing, Pairing, Signatures, bands_of, num_partitions
from r1lite.curation.on_ray import open_nodes
from r1lite.curation.passes import Do, Passes
from r1lite.curation.rows import Provenance
from r1lite.curation.scan import Plan, Record, outcome
from r1lite.curation.similar import bands, shingles
from r1lite.curation.sources import Source
from r1lite.curation.workers import open_workers
from verifiers.on_ray import Resources

_WORDS = [f"w{number}" for number in range(5000)]
_BLOCK, _THRESHOLD = 4000, 0.85  # rows; of Jaccard


def row(seq: int) -> tuple[str, str]:
    """Question and completion."""
    draw = random.Random(seq)
    original = draw.randrange(seq) if seq and draw.random() < 0.4 else seq
    words = random.Random(-original - 1).choices(_WORDS, k=120)
    words[draw.randrange(120)] = f"x{draw.randrange(1000)}"
    return f"how many of {_WORDS[original % 5000]} are there in the end", " ".join(words)


def make_block(folder: Path, rows: int, block: int) -> None:
    """Writes the first pass's results for a block."""
    lines, index = outcome(folder, block)
    at, signatures, records = 0, Signatures(), []
    with lines.open("wb") as file:
        for seq in range(block * _BLOCK, min((block + 1) * _BLOCK, rows)):
            question, completion = row(seq)
            line = json.dumps({"question": question, "completion": completion}).encode() + b"\n"
            file.write(line)
            records.append(Record(at, len(line), seq % 5000, str(seq), 1, 0, "", "", 120, seq, seq, False))
            signatures.add(at, seq, bands(shingles(question), shingles(completion)))
            at += len(line)
    signatures.write(bands_of(folder, block))
    with index.open("w", encoding="utf-8") as file:
        for start in range(0, len(records), 256):
            file.write(json.dumps(records[start : start + 256]) + "\n")


def own_mib() -> float:
    """Peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def opened(folder: Path, workers: int, on: str) -> AbstractContextManager[Do]:
    """Opens the workers."""
    plan = Plan(Source("stored", folder, (), Provenance(), {}, {}), "math", {}, (), {}, 8, 0.5, True, False, "", 0)
    make = functools.partial(Passes, plan, folder)
    if on == "local":
        return open_workers(make, folder, max(workers, 2))
    return open_nodes(make, folder, plan=plan, on=on, resources=Resources(workers), say=print)


def done(jobs: Iterator[int]) -> None:
    """Waits for the jobs."""
    for _ in jobs:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--on", default="local")
    parser.add_argument("--keep", type=Path, help="generate the rows in this folder, or use its rows")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    blocks = -(-options.rows // _BLOCK)
    if not outcome(folder, 0)[1].exists():
        folder.mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
            list(pool.map(functools.partial(make_block, folder, options.rows), range(blocks)))
    for path in [*folder.glob("*.pairs"), *folder.glob("*.near")]:
        path.unlink()
    began, before = time.process_time(), own_mib()
    with Watch() as watch, opened(folder, options.workers, options.on) as do:
        count = num_partitions(folder, blocks)
        done(do([(number, Pairing(number, count, blocks)) for number in range(count)]))
        paired, workers_mib = watch.spent_s, watch.peak_mib
        done(do([(number, Comparing(number, count, _THRESHOLD)) for number in range(blocks)]))
        compared = watch.spent_s
        index = Index(folder, [])
        index.load(blocks)
        index.drop_near(_THRESHOLD)
        gone = sum(index.counts().get(index.fate(NEAR), {}).values())
        index.close()
        command = time.process_time() - began
    print(
        f"{options.rows:,} rows, {gone:,} near duplicates, {count} partitions: {watch.spent_s:.0f} CPU seconds "
        f"(pairs {paired:.0f}, Jaccard indexes {compared - paired:.0f}), {command:.0f} of them the command's own; peak "
        f"memory of the command {own_mib():.0f} MiB (begun with {before:.0f}), of all workers {watch.peak_mib:.0f} "
        f"(pairs {workers_mib:.0f}), of Ray's daemons {watch.daemons_mib:.0f}"
    )
    if options.keep is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
