"""Problems that can't be used: an error with their places, or left out, counted and listed."""

import json

import pytest

from r1lite.cli import main
from r1lite.tasks import Source
from r1lite.tasks.gsm8k import load

GOOD = [{"question": f"{i} + 1?", "answer": str(i + 1)} for i in range(60)]
BAD = {
    3: "{",  # not JSON
    5: json.dumps({"question": "blank?", "answer": " "}),
    7: json.dumps({"question": "prove it", "answer": "proof"}),
    9: json.dumps({"question": "1 : 0?", "answer": "1/0"}),
    11: json.dumps({"question": "long " * 300, "answer": "4"}),
}
START = f"{'long ' * 12}..."  # of the question that is too long, 60 characters
SHORT = ["--template", "short", "--max-completion-tokens", "8", "--max-prompt-tokens", "120"]
RUN = [*SHORT, "--steps", "2", "--prompts-per-step", "2", "--group-size", "2", "--eval-samples", "1"]


@pytest.fixture
def mixed(tmp_path):
    lines = [json.dumps(row) for row in GOOD]
    for at, line in BAD.items():
        lines.insert(at - 1, line)
    path = tmp_path / "mixed.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.quick
def test_by_default_they_are_an_error_with_a_way_out(mixed, tiny_path, tmp_path, capsys):
    argv = ["grpo", "--model", str(tiny_path), "--source", str(mixed), "--out", str(tmp_path / "run"), *RUN]
    assert main(argv) == 2
    shown = capsys.readouterr().err
    assert "4 problems can't be used" in shown
    assert "'proof': it stands for a missing answer" in shown
    assert all(f"{mixed}:{line}: " in shown for line in (3, 5, 7, 9))
    assert "--bad-problems drop" in shown
    kept = mixed.read_text().split("\n")
    for line in (3, 5, 7, 9):
        kept[line - 1] = json.dumps(GOOD[0])
    mixed.write_text("\n".join(kept))
    assert main(argv) == 2  # prompts are tokenized after the model is loaded
    shown = capsys.readouterr().err
    assert f"' ({START}) has " in shown
    assert "--max-prompt-tokens is 120" in shown
    assert "--bad-problems drop" in shown
    assert not (tmp_path / "run").exists()


def test_dropped_they_are_counted_and_listed(mixed, tiny_path, tmp_path, capsys):
    argv = ["grpo", "--model", str(tiny_path), "--source", str(mixed), "--out", str(tmp_path / "run"), *RUN]
    assert main([*argv, "--bad-problems", "drop"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "5 of 65 problems can't be used and are left out" in shown
    found = json.loads((tmp_path / "run" / "dropped.json").read_text())["problems"]
    assert sorted(int(line.removeprefix(f"{mixed}:").partition(":")[0]) for line in found) == sorted(BAD)
    (long,) = (line for line in found if line.startswith(f"{mixed}:11: the prompt of problem '"))
    assert f"' ({START}) has " in long
    assert main(["grpo", "--resume", "--out", str(tmp_path / "run"), "--steps", "3"]) == 0  # the same are dropped
    argv = ["eval", "--model", str(tiny_path), "--source", str(mixed), "--out", str(tmp_path / "eval"), *SHORT]
    assert main([*argv, "--eval-samples", "1", "--bad-problems", "drop"]) == 0


@pytest.mark.quick
def test_nothing_left_is_an_error(tiny_path, tmp_path, capsys):
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(BAD[7] + "\n")
    argv = ["grpo", "--model", str(tiny_path), "--source", str(tmp_path), "--out", str(tmp_path / "run"), *RUN]
    assert main([*argv, "--bad-problems", "drop"]) == 2
    assert "2 problems can't be used" in (shown := capsys.readouterr().err)
    assert "leave them out" not in shown


@pytest.mark.quick
def test_tasks_check_names_every_bad_row(mixed, capsys):
    assert main(["tasks", "check", "gsm8k", "--source", str(mixed)]) == 1
    shown = capsys.readouterr().out
    for line in (3, 5, 7, 9):
        assert f"{mixed}:{line}: " in shown
    assert "61 of 65 golds pass" in shown


@pytest.mark.quick
def test_a_source_keeps_its_rows_and_their_lines(mixed):
    problems = load(Source(str(mixed), bad="drop"))
    assert [line.rpartition(f"{mixed}:")[2].partition(":")[0] for line in problems.dropped] == ["3", "5"]
    every = {problem.prompt: problem for problem in (*problems.train, *problems.test)}
    assert problems.location(every["prove it"]) == f"{mixed}:7: "
    assert problems.location(every["59 + 1?"]) == f"{mixed}:65: "


@pytest.mark.quick
def test_a_question_with_two_golds_is_reported(tiny_path, tmp_path, capsys):
    path = tmp_path / "two.jsonl"
    rows = [*GOOD, {"question": "3 + 1?", "answer": "5"}, GOOD[7], {"question": "4 + 1?", "answer": "6"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["tasks", "check", "gsm8k", "--source", str(path)]) == 1
    shown = capsys.readouterr().out
    assert f"{path}:61: the gold is '5', but '4' in {path}:4, with the same question" in shown
    assert "3 questions repeat an earlier one, 2 of them with another gold" in shown
    assert "test questions" not in shown
    argv = ["grpo", "--model", str(tiny_path), "--source", str(path), "--out", str(tmp_path / "run"), *RUN]
    assert main(argv) == 0
    assert "2 questions occur with different golds" in " ".join(capsys.readouterr().out.split())


@pytest.mark.quick
def test_test_problems_that_are_trained_on_are_warned_of(tiny_path, tmp_path, capsys):
    for split, some in (("train", GOOD[:20]), ("test", GOOD[18:24])):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    assert main(["tasks", "check", "gsm8k", "--source", str(tmp_path)]) == 0
    assert "2 of 6 test questions are also train questions" in capsys.readouterr().out
    argv = ["grpo", "--model", str(tiny_path), "--source", str(tmp_path), "--out", str(tmp_path / "run"), *RUN]
    assert main(argv) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of 6 test problems are also trained on, so the test's accuracy is too high" in shown
    assert f"the first is {tmp_path}/test.jsonl:1" in shown.replace(" ", "").replace("thefirstis", "the first is ")


@pytest.mark.quick
def test_bad_golds_with_one_id_are_counted_one_by_one(tmp_path, capsys):
    for split, some in (("train", GOOD[:1]), ("test", [{**row, "id": "x"} for row in GOOD[1:9]])):
        bad = [{"id": "x", "question": f"{split} {n}?", "answer": "see figure"} for n in range(3)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*some, *bad)))
    assert main(["tasks", "check", "gsm8k", "--source", str(tmp_path)]) == 1
    assert "9 of 15 golds pass" in capsys.readouterr().out
