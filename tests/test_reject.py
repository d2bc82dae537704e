"""`r1lite reject`: whole runs."""

import itertools
import json

import pytest
from curation_for_tests import lines, stored, write

from r1lite.cli import main

FILES = ("train.jsonl", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "manifest.json", "README.md", "reward.json")


def reject(source, out, *more):
    return main(["reject", "--rollouts", str(source), "--out", str(out), "--quiet", "--workers", "1", *more])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stored") / "rows.jsonl", stored())


@pytest.fixture(scope="module")
def made(tmp_path_factory, source):
    out = tmp_path_factory.mktemp("made") / "set"
    assert reject(source, out, "--pairs", "2", "--source", "bundled") == 0
    return out


def test_rows_add_up(made, source):
    manifest = json.loads((made / "manifest.json").read_text())
    steps = manifest["steps"]
    assert steps[0]["entered"] == len(lines(source))
    for before, after in itertools.pairwise(steps):
        assert before["left"] == after["entered"]
    for step in steps:
        assert step["entered"] - step["left"] == sum(step["reasons"].values())
        assert {example["reason"] for example in step["examples"]} == set(step["reasons"])
    kept, rejected = lines(made / "train.jsonl"), lines(made / "rejected.jsonl")
    assert len(kept) == steps[-1]["left"] == manifest["data"]["rows"] > 0
    assert len(kept) + len(rejected) == len(lines(source))
    assert {row["rejected_by"] for row in rejected} >= {"correct", "finished", "format", "exact_duplicates"}


def test_what_is_kept_is_right_and_says_how_it_was_made(made):
    for row in lines(made / "train.jsonl"):
        verdicts = {verdict["verifier"]: verdict for verdict in row["verdicts"]}
        assert verdicts["math"]["score"] == verdicts["format"]["score"] == 1.0
        assert verdicts["math"]["version"]
        assert verdicts["math"]["answer"] in row["completion"]
        assert 0 < row["pass_rate"] < 1
        assert row["pass_rate"] == row["num_correct"] / row["num_samples"]
        assert row["prompt_hash"].startswith("sha256:")
        assert row["provenance"]["run"] == "rows.jsonl"


def test_any_number_of_workers_makes_the_same_bytes(made, source, tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.curation.sources._BLOCK_BYTES", 20_000)
    assert reject(source, tmp_path / "set", "--pairs", "2", "--source", "bundled", "--workers", "3") == 0
    for name in FILES:
        assert (tmp_path / "set" / name).read_bytes() == (made / name).read_bytes(), name
