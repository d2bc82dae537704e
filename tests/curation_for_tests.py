"""Completions as a stored file might hold them."""

import json
import random
import time
from pathlib import Path

from r1lite.bundled import bundled
from verifiers.rows import rows as read_rows


def problems(count):
    """Bundled training problems: (id, question, worked solution, answer)."""
    lines = (bundled("datasets/gsm8k_style") / "train.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    found = []
    for row in map(json.loads, lines):
        work, _, answer = row["answer"].partition("####")
        found.append((row["id"], row["question"], work.strip(), answer.strip()))
    return found


def completion(work, answer):
    return f"<think>{work}</think> <answer>{answer}</answer>"


def stored(count=60, samples=6, seed=0):
    """Rows with right, wrong, malformed, repeated and cut-off completions."""
    draw = random.Random(seed)
    rows = []
    for name, question, work, answer in problems(count):
        for sample in range(samples):
            said = answer if draw.random() < 0.6 else str(int(draw.random() * 90) + 1)
            text = completion(work if draw.random() < 0.5 else f"{work}\nLet me check step {sample}: it holds.", said)
            if draw.random() < 0.1:
                text += " I am done."
            rows.append(
                {
                    "id": name,
                    "question": question,
                    "answer": answer,
                    "completion": text,
                    "sample": sample,
                    "finish_reason": "length" if draw.random() < 0.05 else "stop",
                }
            )
    return rows


def write(path, rows):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Path(path)


def lines(path):
    return [row for _, row in read_rows(Path(path))]


def no_hedging(item, *, word="maybe"):
    """A filter of one's own."""
    from r1lite.curation.filters import Rejection

    return Rejection("hedge", word) if word in item.completion.text else None


def no_first_sample(item):
    """A filter of one's own, with the reason of rows that can't be read."""
    from r1lite.curation.filters import Rejection

    return Rejection("unreadable") if item.sample == 0 else None


def takes_its_time(item):
    """A filter of one's own that keeps everything."""
    time.sleep(0.1)


def slow(problem, completion):
    """A verifier of one's own that hangs on some texts."""
    while "hang" in completion.text:
        time.sleep(0.1)
    return 1.0
