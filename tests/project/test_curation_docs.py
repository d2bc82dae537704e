"""The examples of r1lite/curation/README.md run, one after the other in one folder."""

import re
import shlex
from pathlib import Path

import pytest
from curation_for_tests import lines, problems, stored, write

from r1lite.bundled import bundled
from r1lite.cli import main
from r1lite.curation.filters import FILTERS
from r1lite.curation.rows import Provenance
from verifiers.__main__ import main as verifiers_main

TEXT = (Path(__file__).resolve().parents[2] / "r1lite" / "curation" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- run by tests/project/test_curation_docs.py -->\n```(\w*)\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("completions.jsonl", stored(20))
    write("test.jsonl", [{"question": question} for _, question, _, _ in problems(3)])
    (tmp_path / "recipes").symlink_to(bundled("recipes"))
    commands = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        words = shlex.split(command)
        if words[0] == "r1lite":
            assert main([*words[1:], *([] if "grpo" in words else ["--workers", "1"]), "--quiet"]) == 0, command
        else:
            assert words[:3] == ["python", "-m", "verifiers"]
            assert verifiers_main([*words[3:], "--workers", "0"]) == 0, command
    gone = [row["problem_id"] for row in lines("sets/second/rejected.jsonl") if row["rejected_by"] == "decontaminate"]
    assert set(gone) == {name for name, *_ in problems(3)}


def test_a_filter_of_your_own(tmp_path, monkeypatch, capsys):
    (source,) = [block for kind, block in BLOCKS if kind == "python"]
    (tmp_path / "my_filters.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = write(tmp_path / "rows.jsonl", stored(10))
    more = ["--filters", "correct", "my_filters:no_hedging:word=check", "--workers", "1", "--no-difficulty-window"]
    assert main(["reject", "--rollouts", str(rows), "--out", str(tmp_path / "set"), *more]) == 0
    assert "hedge" in capsys.readouterr().out


def test_everything_is_described():
    for name in FILTERS:
        assert f"`{name}`" in TEXT
    for name in Provenance.__slots__:
        assert f"`{name}`" in TEXT
