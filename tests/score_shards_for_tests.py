"""Shards of completions, and what lies in a folder."""

import json


def row(number):
    said = number + (number % 3 == 0)
    return {"id": str(number), "answer": str(number), "completion": f"<think>so</think><answer>{said}</answer>"}


def write_shards(folder, count=6, size=20):
    """JSONL, compressed and Parquet shards, one of them in a folder of its own, and a file that is none."""
    import gzip

    import pyarrow
    import pyarrow.parquet

    (folder / "more").mkdir(parents=True)
    for shard in range(count):
        rows = [row(number) for number in range(shard * size, (shard + 1) * size)]
        text = "".join(json.dumps(one) + "\n" for one in rows)
        if shard == 1:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"part-{shard}.parquet")
        elif shard == 2:
            (folder / f"part-{shard}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / ("more" if shard == 3 else ".") / f"part-{shard}.jsonl").write_text(text)
    (folder / "readme.txt").write_text("no shard")
    return folder


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
