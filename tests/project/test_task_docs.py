"""The tasks' README: its example runs, is as short as it says, and its list is whole."""

import json
import re
import sys
from pathlib import Path

from r1lite.cli import main
from r1lite.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "r1lite" / "tasks" / "README.md").read_text(encoding="utf-8")


def test_a_task_of_your_own(tmp_path, monkeypatch, capsys):
    source = re.search(r"<!-- run by tests/project/test_task_docs.py -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 15
    (tmp_path / "my_tasks_of_the_docs.py").write_text(source)
    rows = [{"q": f"What is {n} squared?", "a": n * n, "digits": len(str(n))} for n in range(2, 60)]
    (tmp_path / "squares.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(ROOT))])
    assert main(["tasks", "check", "my_tasks_of_the_docs:TASK", "--source", "squares.jsonl"]) == 0
    assert "58 of 58 golds pass math and format" in capsys.readouterr().out
    import my_tasks_of_the_docs as mine

    assert mine.TASK.example.meta == {"difficulty": "1"}


def test_every_task_is_in_the_table():
    assert set(re.findall(r"^\| `(\w+)` ", TEXT, re.MULTILINE)) == set(TASKS)


def test_every_formula_of_the_comparison_is_in_the_table():
    script = (ROOT / "benchmarks" / "add_carry.py").read_text(encoding="utf-8")
    formulas = re.findall(r'^    "\w+": "(.+)",$', script, re.MULTILINE)
    assert len(formulas) == 4
    assert all(f"| `{formula}` |" in TEXT for formula in formulas)
