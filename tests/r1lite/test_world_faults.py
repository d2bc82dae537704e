"""A rank that fails, dies or stops ends the run by name; nothing is left running, and --resume goes on."""

import json
import re
import signal
import time
from pathlib import Path

import pytest
from world_cases import CASES

PATIENCE_S = 900  # of a test: far beyond what a loaded machine needs


@pytest.fixture
def ended(tmp_path, tiny_path, sums_path, forks):
    """A function: what a run of so many ranks with this trouble printed. It saves after each step."""

    def play(trouble, ranks, *more, size=2, meanwhile=lambda process, out: None, env=None):
        out, pids = tmp_path / "run", tmp_path / "pids"
        pids.mkdir()
        inputs = ["--model", str(tiny_path), "--source", str(sums_path), "--save-every", "1", "--out", str(out)]
        job = {"argv": [*CASES["plain"], *inputs, *more], "trouble": trouble, "ranks": ranks, "pids": str(pids)}
        process = forks.start_ranks(tmp_path, [job], size, env=env)
        meanwhile(process, out)
        printed = "".join(process.communicate(timeout=PATIENCE_S))
        assert process.returncode != 0, printed
        assert not [file.name for file in pids.iterdir() if Path("/proc", file.read_text()).exists()], printed
        assert len(list(pids.iterdir())) == size
        return printed, out

    return play


@pytest.fixture
def goes_on(tmp_path, forks):
    """A function: --resume brings the run in this directory to its end."""

    def resume(out):
        argv = ["grpo", "--resume", "--trust", "--out", str(out)]
        again = forks.start_ranks(tmp_path, [{"argv": argv}])
        printed = "".join(again.communicate(timeout=PATIENCE_S))
        assert again.returncode == 0, printed
        assert json.loads((out / "summary.json").read_text())["steps"] == 3

    return resume


def errors(printed):
    return [line for line in printed.splitlines() if line.startswith("error: ")]


def only_error(printed):
    found = errors(printed)
    assert len(found) == 1, printed
    return found[0]


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_an_exception_on_one_rank(rank, ended):
    printed, out = ended("raises", [rank])
    assert errors(printed) == [f"error: rank {rank}, in learning (step 2, 5 groups): ValueError: boom"]
    assert (out / "checkpoints" / "step-000001").exists()


def test_ranks_with_other_software_are_refused(ended):
    printed, out = ended("other_software", [1])
    error = only_error(printed)
    assert re.fullmatch(r"error: ranks 0 and 1 have different versions of torch \(\d\S+ and 1\.0\): .*", error)
    assert not out.exists()


@pytest.mark.slow
def test_a_killed_rank_and_resume(ended, goes_on):
    printed, out = ended("killed", [1])
    error = only_error(printed)
    assert error.startswith("error: rank 1 is lost (process ")
    assert "its process has ended, as if killed" in error
    assert error.endswith(f"Continue from the last checkpoint: r1lite grpo --resume --out {out} --trust (on 2 ranks)")
    goes_on(out)


@pytest.mark.exhaustive
def test_two_ranks_that_are_killed_at_once(ended):
    printed, _ = ended("killed", [0, 1], size=3)
    error = only_error(printed)
    assert re.match(r"error: rank [01] is lost .*, as if killed, .*; rank 2 was in learning", error)


@pytest.mark.parametrize("trouble", ["killed_while_loading", "killed_while_deaf"])
def test_a_rank_that_is_killed_while_the_other_one_loads(trouble, ended):
    printed, _ = ended(trouble, [0, 1])
    error = only_error(printed)
    assert error.startswith("error: rank 0 is lost (process ")
    assert "as if killed, last in " in error
    assert error.endswith("; rank 1 was in loading")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_stopped_rank(rank, ended):
    patience = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "3"}  # seconds that the launcher waits for the stopped one
    printed, out = ended("stopped", [rank], "--stall-rank-s", "12", env=patience)
    error = only_error(printed)
    assert error.startswith(f"error: rank {rank} is lost (process ")
    assert "it sent no heartbeat for" in error
    assert ", last in " in error  # what it said before: a second may have passed
    assert (out / f"stacks-rank-{1 - rank}.txt").read_text().startswith(f"rank {1 - rank}, in learning (step 2")


@pytest.mark.slow
def test_ranks_that_hang_at_once_say_it_once(ended):
    printed, out = ended("stuck", [0, 1], "--stall-train-s", "6")
    error = only_error(printed)
    assert ": no progress for 6 s in learning (step 2, 5 groups); the last checkpoint remains: " in error
    (other,) = out.glob("stacks-rank-*.txt")
    assert "no progress for 6 s" in other.read_text()


@pytest.mark.slow
def test_a_verifier_that_sleeps_for_ever_on_one_rank(ended, goes_on):
    printed, out = ended("sleeping_verifier", [1], "--stall-score-s", "6")
    error = only_error(printed)
    assert error.startswith("error: rank 1: no progress for 6 s in scoring")
    assert "digits" in (out / "stacks.txt").read_text() + printed
    goes_on(out)


@pytest.mark.slow
def test_memory_that_runs_out_on_one_rank_of_a_model_in_parts(ended, goes_on):
    printed, out = ended("out_of_memory", [1], "--shard", "full")
    error = only_error(printed)
    assert error.startswith("error: rank 1")
    assert "--micro-batch-tokens" in error
    goes_on(out)


@pytest.mark.slow
def test_a_full_disk_on_the_main_rank(ended, goes_on):
    printed, out = ended("full_disk", [0])
    error = only_error(printed)
    assert error.startswith("error: rank 0, in saving (records of step 2): ")
    assert "No space left on device" in error
    assert (out / "checkpoints" / "step-000001").exists()
    goes_on(out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "begins", "says"),
    [
        ("full_disk_of_parts", "error: parts of the state can't be written to ", "rank 1: [Errno 28] No space left"),
        ("killed_in_parts", "error: rank 1 is lost (process ", "its process has ended, as if killed"),
    ],
)
def test_a_rank_fails_while_its_part_is_written(trouble, begins, says, ended, goes_on):
    printed, out = ended(trouble, [1], "--shard", "full")
    error = only_error(printed)
    assert error.startswith(begins)
    assert says in error
    assert [path.name for path in (out / "checkpoints").iterdir() if path.name[0] != "."] == ["step-000001"]
    goes_on(out)


@pytest.mark.slow
def test_ctrl_c_stops_all_ranks_at_a_step(ended, goes_on):
    def interrupt(process, out):
        until = time.monotonic() + PATIENCE_S
        while not (out / "checkpoints" / "step-000001").exists():
            assert time.monotonic() < until
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)

    printed, out = ended("slow", [0, 1], meanwhile=interrupt)
    assert errors(printed) == []
    assert printed.count(f"stopped; continue with r1lite grpo --resume --out {out}") == 1
    goes_on(out)
