"""Text out of data is shown and not obeyed."""

import json

import yaml
from trust_for_tests import HOSTILE, row, run_dir

from r1lite.cli import main
from verifiers.__main__ import main as verifiers_main


def is_safe(text):
    return all(char.isprintable() or char in "\n\t" for char in text)


def test_hostile_text_is_shown_and_not_obeyed(tmp_path, capsys):
    """Identifiers, reasons, paths and messages out of data, on every command's output."""
    rows = [
        row(problem_id=HOSTILE, reward=0.5),
        row(problem_id=f"a\nerror: b{HOSTILE}", gold=HOSTILE.replace("\ud800", "")),
    ]
    path = run_dir(tmp_path / "run", rows=rows, about={"formula": "math", "options": {}, "versions": {"math": HOSTILE}})
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 1
    shown = capsys.readouterr()
    assert "[red]x[/red]" in shown.out
    assert "\\x1b[2J" in shown.out
    assert "\nerror: b" not in shown.out
    (tmp_path / "rows.jsonl").write_text(json.dumps({"answer": "4", HOSTILE: 1}) + "\n")
    assert verifiers_main(["score", str(tmp_path / "rows.jsonl"), "--reward", "math", "--workers", "0"]) == 1
    assert verifiers_main(["score", HOSTILE.replace("\x00", ""), "--reward", "math"]) == 2
    (path / "reward.json").write_text(json.dumps({"formula": HOSTILE}))
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    for key, value in (("task", HOSTILE), ("template", HOSTILE), ("model", f"x/{HOSTILE}"), (HOSTILE, 1)):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({key: value.replace("\ud800", "") if key != HOSTILE else 1}))
        assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert main(["doctor", str(path)]) in (0, 1, 2)
    shown = shown.out + shown.err + "".join(capsys.readouterr())
    assert is_safe(shown), [char for char in shown if not is_safe(char)]


def test_the_console_reads_no_markup(capsys):
    from rich.table import Table

    from r1lite.run.display import Display
    from verifiers.terminal import guarded

    with guarded():
        display = Display()
        display.say(HOSTILE)
        display.line(HOSTILE, HOSTILE)
        display.start(HOSTILE, 3)
        table = Table(title=HOSTILE)
        table.add_column(HOSTILE)
        table.add_row(HOSTILE)
        display.console.print(table)
        display.console.print(f"x {HOSTILE}")
        print(HOSTILE)
    shown = capsys.readouterr().out
    assert shown.count("[red]x[/red]") >= 6
    assert is_safe(shown), [char for char in shown if not is_safe(char)]


def test_what_is_shown_is_the_text():
    from verifiers.terminal import one_line, visible

    for text in ("plain", "größer ∑ 数 🎉", "two\nlines\tand a tab", ""):
        assert visible(text) == text
    assert visible("a\x1b[31mb\x9b\u202e\ud800\x7f") == "a\\x1b[31mb\\x9b\\u202e\\ud800\\x7f"
    assert one_line("a\nb\tc") == "a\\nb\\tc"
