"""`python -m verifiers score`, `compare` and `replay`."""

import fcntl
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from verifiers.__main__ import main
from verifiers.commands.results import log_of, read
from verifiers.commands.shared import Tally

ROOT = Path(__file__).resolve().parents[2]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sums(count):
    return [
        {
            "id": f"p{i}",
            "question": f"{i}+1?",
            "answer": i + 1,
            "response": f"<think>a</think><answer>{i + 1 + (i % 4 == 0)}</answer>",
        }
        for i in range(count)
    ]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_score_writes_a_line_a_row_and_a_table(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", sums(40))
    code = main(
        ["score", str(source), "--reward", "math + 0.1*format", "--out", str(tmp_path / "out.jsonl"), "--workers", "1"]
    )
    shown = capsys.readouterr()
    assert code == 0
    assert "40 completions, 0 unscored; mean reward 0.8500 (0.1 to 1.1)" in shown.out
    assert "(from 0 to 1.1)" in shown.err
    results = lines(tmp_path / "out.jsonl")
    assert [row["id"] for row in results] == [f"p{i}" for i in range(40)]
    assert results[0]["verdicts"]["math"]["reason"] == "different"
    assert results[1]["reward"] == pytest.approx(1.1)
    assert results[1]["verdicts"]["format"]["version"] == "3"


def test_score_goes_on_where_it_was_stopped(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", sums(30))
    out = tmp_path / "out.jsonl"
    command = ["score", str(source), "--reward", "math", "--out", str(out), "--workers", "0"]
    assert main(command) == 0
    whole = out.read_bytes()
    cut = whole[: len(whole) // 2]
    assert not cut.endswith(b"\n")
    out.write_bytes(cut)
    capsys.readouterr()
    assert main(command) == 0
    assert out.read_bytes() == whole
    assert "30 completions" in capsys.readouterr().out
    assert main([*command[:3], "format", *command[4:]]) == 2  # another reward
    assert "results of different reward and versions" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_two_commands_do_not_write_the_same_results(tmp_path, capsys, name):
    path, out = write(tmp_path / "in.jsonl", sums(4)), tmp_path / name
    with log_of(out).open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert main(["score", str(path), "--reward", "math", "--workers", "0", "--out", str(out)]) == 2
    assert "another command is writing it" in capsys.readouterr().err
    assert main(["score", str(path), "--reward", "math", "--workers", "0", "--out", str(out)]) == 0
    assert len(list(read(out))) == 4


def test_parquet_out_is_the_same_and_goes_on_where_it_was_stopped(tmp_path, capsys):
    rows = [*sums(2500), {"id": "bad\ud800", "answer": "", "response": "\udc00"}]
    source = write(tmp_path / "in.jsonl", rows)
    command = ["score", str(source), "--reward", "math + 0.1*format", "--workers", "0", "--out"]
    lines_out, out = tmp_path / "out.jsonl", tmp_path / "out.parquet"
    assert main([*command, str(lines_out)]) == 1  # one row can't be scored
    table = capsys.readouterr().out
    assert main([*command, str(out)]) == 1
    assert capsys.readouterr().out == table
    assert sorted(path.name for path in tmp_path.glob("out.parquet*")) == ["out.parquet", "out.parquet.about.json"]
    assert list(read(out)) == list(read(lines_out)) == lines(lines_out)
    whole = out.read_bytes()
    assert main([*command, str(out)]) == 1  # finished: nothing is done again
    assert capsys.readouterr().out == table
    assert main(["compare", str(out), str(lines_out)]) == 0
    out.unlink()  # ... as if killed in the middle
    half = lines_out.read_bytes()[: lines_out.stat().st_size // 2]
    (tmp_path / "out.parquet.partial.jsonl").write_bytes(half)
    capsys.readouterr()
    assert main([*command, str(out)]) == 1
    assert capsys.readouterr().out == table
    assert out.read_bytes() == whole
    assert main(["score", str(source), "--reward", "math", "--workers", "0", "--out", str(out)]) == 2
    assert "results of different reward" in capsys.readouterr().err


def test_parquet_out_without_pyarrow_is_told_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = write(tmp_path / "in.jsonl", sums(3))
    assert main(["score", str(source), "--reward", "math", "--out", str(tmp_path / "out.parquet")]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not JSON"),
        ("4", "a row is an object"),
        ('{"answer": "4"}', "use --completion-column"),
        ('{"completion": 5}', "got int"),
        ('{"completion": "4"}', "has no answer"),
    ],
)
def test_bad_rows_are_unscored_and_told(tmp_path, capsys, row, message):
    good = json.dumps({"completion": "\\boxed{4}", "answer": "4"})
    (tmp_path / "in.jsonl").write_text(f"{good}\n\n{row}\n{good}\n")
    out = tmp_path / "out.jsonl"
    assert main(["score", str(tmp_path / "in.jsonl"), "--reward", "math", "--workers", "0", "--out", str(out)]) == 1
    results = lines(out)
    assert [row["reward"] for row in results] == [1.0, None, 1.0]
    assert message in results[1]["error"]
    assert "1 unscored" in capsys.readouterr().out


def test_rows_that_fail_alike_are_counted_together():
    """By the message of the first; of other kinds a hundred are told apart, so that memory stays constant."""
    tally, shards = Tally(), Tally()
    for number in range(300):
        for error in (
            f"GoldError: problem 'p{number}': can't understand the gold 'it is \\'{number}\\'': a word",
            f"a b.jsonl:{number}: the gold must be an answer, got {str(number)!r}",
            "VerifierError: 'math': no verdict within 2 s (on problem 'p')",
            "VerifierError: 'code': no verdict within 2 s (on problem 'p')",
        ):
            tally.add({"row": number, "reward": None, "error": error, "verdicts": {}})
    first = {
        "GoldError: problem 'p0': can't understand the gold 'it is \\'0\\'': a word": 300,
        "a b.jsonl:0: the gold must be an answer, got '0'": 300,
        "VerifierError: 'math': no verdict within 2 s": 300,
        "VerifierError: 'code': no verdict within 2 s": 300,
    }
    assert tally.as_json()["errors"] == first
    for _ in range(2):
        shards.add_json(tally.as_json())
    assert shards.errors == {error: 600 for error in first}
    for number in range(300):
        tally.add({"row": 1, "reward": None, "error": f"ValueError: {number} is odd", "verdicts": {}})
    assert len(tally.errors) == 101
    assert (tally.errors["other errors"], tally.errors.total()) == (204, 1500)


def test_other_files_and_columns(tmp_path, capsys):
    import pyarrow
    import pyarrow.parquet

    rows = [{"reward_model": {"gold": "4"}, "messages": [{"role": "assistant", "content": "\\boxed{4}"}]}] * 3
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "in.parquet")
    with gzip.open(tmp_path / "in.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    columns = ["--answer-column", "reward_model.gold", "--completion-column", "messages"]
    for name in ("in.parquet", "in.jsonl.gz"):
        assert main(["score", str(tmp_path / name), "--reward", "math", "--workers", "0", *columns]) == 0
        assert "3 completions, 0 unscored; mean reward 1.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl", "--reward", "math"], "nowhere.jsonl"),
        (["in.csv", "--reward", "math"], "convert the file to .jsonl"),
        (["in.jsonl", "--reward", "mth"], "did you mean 'math'"),
        (["in.jsonl", "--reward", "math", "--options", "{"], "--options is not JSON"),
        (["in.jsonl", "--reward", "math", "--options", "[]"], "must map names"),
        (["in.jsonl", "--reward", "math", "--options", '{"math": {"strikt": true}}'], "has no option 'strikt'"),
    ],
)
def test_mistakes_of_use(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name in ("in.csv", "in.jsonl"):
        (tmp_path / name).write_text("[]")
    assert main(["score", *arguments, "--workers", "0"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    script = (
        "import re, sys; from verifiers.__main__ import main; main(sys.argv[1:]);"
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"
    )
    peaks = []
    for count in (1500, 9000):
        with (tmp_path / f"{count}.jsonl").open("w") as file:
            for row in sums(count):
                file.write(json.dumps({**row, "padding": "x" * 5000}) + "\n")
        command = [sys.executable, "-c", script, "score", str(tmp_path / f"{count}.jsonl"), "--reward", "format"]
        done = subprocess.run([*command, "--workers", "1"], capture_output=True, text=True, cwd=ROOT, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] < peaks[0] + 20_000  # KiB; the larger file holds 37 MB more


def test_compare(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", sums(20))
    for name, reward in (("a", "math"), ("b", "math + 0.1*format"), ("c", "math")):
        assert main(["score", str(source), "--reward", reward, "--workers", "0", "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    assert "20 rows, 20 with the same reward" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    shown = capsys.readouterr().out
    assert "20 differ" in shown
    assert "format: - | 1.0 ok" in shown
    (tmp_path / "c").write_text("".join((tmp_path / "c").read_text().splitlines(keepends=True)[:5]))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "c")]) == 2
    assert "ends after 5 rows" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "a"), str(source)]) == 2


def run_dir(path):
    (path / "rollouts").mkdir(parents=True)
    (path / "reward.json").write_text(
        json.dumps({"formula": "math + 0.1*format", "options": {}, "versions": {"format": "1"}})
    )
    for step in (1, 2):
        rows = [
            {
                "step": step, "problem_id": f"p{i}", "sample": 0, "question": "?", "gold": str(i), "reward": 1.1,
                "completion": f"<think>a</think><answer>{i}</answer>", "token_ids": [1, 2], "logprobs": [-0.1, -0.2],
                "finish_reason": "stop", "policy_version": step,
            }
            for i in range(5)
        ]  # fmt: skip
        write(path / "rollouts" / f"step-{step:06d}.jsonl", rows)
    return path


def test_replay_proves_the_same_rewards(tmp_path, capsys):
    path = run_dir(tmp_path / "run")
    assert main(["replay", str(path), "--workers", "0"]) == 0
    shown = capsys.readouterr().out
    assert "10 rollouts of 2 steps: 10 have the same reward, 0 differ" in shown
    assert "the run used version 1 of 'format', this is 3" in shown
    assert main(["replay", str(path), "--workers", "0", "--reward", "math"]) == 1
    assert "1.1 then, 1.0 now" in capsys.readouterr().out
    assert main(["replay", str(tmp_path)]) == 2
    assert "is not a run of r1lite grpo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"completion": None}, "its completion is NoneType, not text"),
        ({"question": 5}, "its question is int, not text"),
        ({"reward": 10**400}, "its reward is 1000"),
        ({"meta": "abc"}, "not a rollout: ValueError"),
        (None, "no rollouts"),
    ],
)
def test_a_rollout_that_no_run_wrote_ends_replay_with_2(tmp_path, capsys, changed, message):
    path = run_dir(tmp_path / "run")
    for file in (path / "rollouts").iterdir():
        first = {**json.loads(file.read_text().splitlines()[0]), **(changed or {})}
        write(file, [] if changed is None else [first])
    assert main(["replay", str(path), "--workers", "0"]) == 2  # 1 would mean that rewards differ
    assert message in capsys.readouterr().err


CURATED = {
    "tests": None, "meta": None, "question": "1 + 1?", "gold": "2", "language": None, "problem_id": "p", "sample": 0,
    "num_tokens": 1, "completion": "2", "finish_reason": "stop",
    "verdicts": [{"verifier": "math", "score": 1.0, "reason": "equal", "answer": "2"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "name", "code", "message"),
    [
        ({}, "math", 0, ""),
        ({}, "math + format", 2, "names no verifiers"),
        ({}, "2*math", 2, "names no verifiers"),
        (None, "math", 2, "no rows"),
        ({"num_tokens": 10**12}, "math", 2, "at most 16,777,216"),
        ({"tests": "[" * 100_000}, "math", 2, "not a row of a curated set"),
        ({"question": None}, "math", 2, "not a row of a curated set"),
        *(
            ({"verdicts": verdicts}, "math", 2, "not a row of a curated set")
            for verdicts in (None, "abc", [1], [{}], [{**CURATED["verdicts"][0], "score": "1"}], {"a": 1})
        ),
    ],
)
def test_a_curated_set_that_can_t_be_read_ends_replay_with_2(tmp_path, capsys, changed, name, code, message):
    about = {"verifiers": {name: {"options": {}, "version": "1"}}, "data": {"file": "train.jsonl"}}
    (tmp_path / "manifest.json").write_text(json.dumps(about))
    write(tmp_path / "train.jsonl", [] if changed is None else [{**CURATED, **changed}])
    assert main(["replay", str(tmp_path), "--workers", "0"]) == code
    assert message in capsys.readouterr().err
