"""Both command lines: a reader that has read enough (`| head`) is no error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from r1lite.cli import COMMANDS, PLAIN, main

ROOT = Path(__file__).resolve().parents[2]


def closed(argv, folder, given=b""):
    """(exit code, standard error) of a command whose reader is gone before it begins."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", *argv], stdout=write, stderr=subprocess.PIPE, input=given, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=300,
        )  # fmt: skip
    finally:
        os.close(write)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    "argv",
    [
        *(
            ["r1lite", *words.split()]
            for words in ("--help", "--version", "tasks", "show-preset dapo", "grpo --help-all")
        ),
        ["r1lite", "r1", "r1_nano", "--check", "--quiet"],
        *(["verifiers", *words.split()] for words in ("--help", "score --help", "math --gold 4 --answer 4 --explain")),
        ["verifiers", "score", "in.jsonl", "--reward", "format", "--out", "out.jsonl", "--workers", "0"],
    ],
    ids=" ".join,
)
def test_a_reader_that_is_gone_is_no_error(argv, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"completion": "4"}\n')
    code, told = closed(argv, tmp_path)
    assert not told or "score" in argv, told  # which tells its progress there
    assert "rror" not in told
    assert code == 0


@pytest.mark.parametrize("argv", [["r1lite", "grpo", "--steps", "1"], ["r1lite", "grpo", "--group-size", "1"]])
def test_a_mistake_is_told_in_one_line_to_who_still_reads(argv, tmp_path):
    argv = [*argv, "--source", "nowhere.jsonl"]
    code, told = closed(argv, tmp_path)
    assert (code, told.count("\n")) == (2, 1)
    assert "Traceback" not in told


def test_every_command_has_help_that_can_be_cut_short(tmp_path):
    """One process for all of them: the output is closed once, and what comes after is dropped."""
    code = (
        "import os, sys\n"
        "from r1lite.cli import main\n"
        f"for name in {[*COMMANDS, *PLAIN]!r}:\n"
        "    try: main([name, '--help'])\n"
        "    except SystemExit as end: assert end.code in (0, None), (name, end.code)\n"
    )
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, cwd=ROOT, timeout=300)
    os.close(write)
    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["r1lite --version", "r1lite grpo --help", "verifiers math --gold 4 --answer 4"])
def test_output_to_a_full_disk_is_one_line(words, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", *words.split()], stdout=full, stderr=subprocess.PIPE, cwd=ROOT, env=environment
        )
    assert done.returncode in (1, 2)
    assert done.stderr.decode().splitlines() == ["error: standard output: No space left on device"]


@pytest.mark.parametrize(("words", "code"), [("r1lite grpo --help", 0), ("verifiers math --gold 4", 1)])
def test_closed_streams_are_no_error(words, code):
    done = subprocess.run(f"{sys.executable} -m {words} <&- >&-", shell=True, stderr=subprocess.PIPE, cwd=ROOT)
    assert (done.returncode, done.stderr) == (code, b"")


def test_closed_streams_are_the_null_device():
    """A file that is opened later would otherwise be standard output."""
    code = "import os, sys; from r1lite.cli import main; main(['--version']); sys.exit(os.open('.', os.O_RDONLY) < 3)"
    assert subprocess.run(f'{sys.executable} -c "{code}" <&- >&- 2>&-', shell=True, cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "error", [MemoryError(), ImportError("libtorch_cpu.so: failed to map segment from shared object")]
)
def test_too_little_memory_to_start_is_one_line(error, monkeypatch, capsys):
    def check(config):
        raise error

    monkeypatch.setattr("r1lite.training.early.check_early", check)
    assert main(["grpo"]) == 1
    assert capsys.readouterr().err == "error: grpo: this machine, or its limit (ulimit -v), has too little memory\n"
