"""Rows, results and runs with parts replaced at random: every command ends with an error, or with verdicts."""

import copy
import json
import math
import random

import pytest

from verifiers.__main__ import main

STRANGE = [None, True, 0, -1, 10**30, 1.5, 1e300, math.nan, math.inf, "", " ", "nan", "\ud800", "\x00\x1b[31m"]
STRANGE += [[], {}, [[]], {"a": {"b": [1]}}, ["use"], "subprocess:call", "../../x", [{"content": None}], "x" * 3000]
VERDICTS = {"math": {"score": 1.0, "reason": "equal", "version": "3"}}
ROW = {"id": "a", "prompt": "3+4?", "completion": "<answer>7</answer>", "answer": "7", "language": "en"}
ROW |= {
    "token_ids": [1, 2],
    "meta": {"numbers": [1, 2]},
    "tests": {"style": "stdin", "inputs": ["1"], "outputs": ["1"]},
}
ROLLOUT = {"step": 1, "problem_id": "p", "sample": 0, "question": "3+4?", "gold": "7", "tests": None, "language": None}
ROLLOUT |= {"meta": {}, "completion": "7", "token_ids": [1], "logprobs": [-0.1], "finish_reason": "stop"}
ROLLOUT |= {"policy_version": 0, "reward": 1.0}
RESULT = {"row": 1, "id": "a", "reward": 1.0, "verdicts": VERDICTS}
REWARD = {"formula": "math", "options": {}, "versions": {"math": "3"}, "range": [0, 1]}
REWARDS = (
    "math",
    "format + length",
    "choice",
    "countdown",
    "exact",
    "json_schema",
    "language",
    "knights_knaves",
    "regex",
)


def mutated(rng, value):
    """A copy with one or two parts replaced or removed."""
    found = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 2])):
        part = found
        while keys := list(part) if isinstance(part, dict) else list(range(len(part))):
            key = rng.choice(keys)
            if isinstance(part[key], dict | list) and part[key] and rng.random() < 0.6:
                part = part[key]
                continue
            if rng.random() < 0.75:
                part[key] = copy.deepcopy(rng.choice(STRANGE))
            else:
                del part[key]
            break
    return found


def lines(rng, base):
    rows = [mutated(rng, base) if rng.random() < 0.8 else rng.choice([base, [], 5, None]) for _ in range(3)]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if rng.random() < 0.25:
        start, end = sorted(rng.sample(range(len(data)), 2))
        data = data[:start] + rng.choice([b"", b"\xff", b"\x00", b"9" * 5000, b"[" * 5000]) + data[end:]
    return data


def score(rng, folder):
    (folder / "rows.jsonl").write_bytes(lines(rng, ROW))
    return ["score", str(folder / "rows.jsonl"), "--reward", rng.choice(REWARDS), "--workers", "0"]


def score_again(rng, folder):
    words = [*score(rng, folder), "--out", str(folder / "out.jsonl")]
    main(words)
    (folder / "out.jsonl").write_bytes(lines(rng, RESULT))
    return words


def compare(rng, folder):
    for name in "ab":
        (folder / f"{name}.jsonl").write_bytes(lines(rng, RESULT))
    return ["compare", str(folder / "a.jsonl"), str(folder / "b.jsonl")]


def replay(rng, folder):
    (folder / "rollouts").mkdir(exist_ok=True)
    (folder / "rollouts" / "step-000001.jsonl").write_bytes(lines(rng, ROLLOUT))
    (folder / "reward.json").write_text(json.dumps(mutated(rng, REWARD) if rng.random() < 0.3 else REWARD))
    return ["replay", str(folder), "--workers", "0"]


@pytest.mark.parametrize("command", [score, score_again, compare, replay])
def test_no_traceback(command, tmp_path, capsys):
    rng = random.Random(command.__name__)
    for number in range(130):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert main(command(rng, folder)) in (0, 1, 2)
        said = capsys.readouterr()
        (said.out + said.err).encode()
