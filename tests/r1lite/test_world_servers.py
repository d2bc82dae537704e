"""Several ranks sample from servers that break down: the main rank asks for all, and all go on, or end by one error."""

import json
import shutil
import threading
from pathlib import Path

import pytest
import torch
from served_model_for_tests import ServedModel, dies_at
from test_world import differences, outcome, same_numbers, torchrun, weights
from world_cases import CASES

from r1lite.distributed.together import streamed
from r1lite.distributed.world import ALONE
from r1lite.rollout import EngineError
from r1lite.rollout.relay import of_weights

_FLAGS = ["--engine", "vllm-server", "--engine-timeout-s", "10", "--save-every", "1"]


class Threads:
    """A world whose ranks are threads."""

    def __init__(self, rank, size, shared):
        self.rank, self.size, self.is_main, self._shared = rank, size, rank == 0, shared

    def all_gather_object(self, value):
        barrier, values = self._shared
        values[self.rank] = value
        barrier.wait(20)
        found = [values[rank] for rank in range(self.size)]
        barrier.wait(20)
        return found

    def broadcast_object(self, value):
        return self.all_gather_object(value)[0]


def on_threads(size, work):
    """What `work(world)` returns or raises, by rank."""
    found, shared = {}, (threading.Barrier(size), {})

    def run(rank):
        try:
            found[rank] = work(Threads(rank, size, shared))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found[rank] for rank in range(size)]


@pytest.mark.quick
def test_every_rank_gets_what_the_main_one_streams_up_to_its_error():
    def stream():
        yield from (3, 1, 2)
        raise EngineError("gone")

    def work(world):
        seen = []
        items = streamed(world, stream)
        for _ in range(3):
            seen.append(next(items))
        with pytest.raises(EngineError, match="gone"):
            next(items)
        return seen, list(streamed(world, lambda: iter("ab")))

    assert on_threads(3, work) == [([3, 1, 2], ["a", "b"])] * 3
    assert list(streamed(ALONE, lambda: iter("ab"))) == ["a", "b"]


@pytest.mark.quick
def test_weights_are_gone_through_by_all_whatever_becomes_of_them():
    def work(world, takes):
        went = []

        def whole_ones():
            for n in range(4):
                world.all_gather_object(None)  # each is put together by all ranks
                went.append(n)
                yield f"w{n}", torch.full((2,), float(n))

        def first(whole):
            found = [next(iter(whole)) for _ in range(takes)]
            if takes == 2:
                raise EngineError("no room")
            return len(found)

        try:
            return of_weights(world, whole_ones(), first), went
        except EngineError as error:
            return str(error), went

    assert on_threads(2, lambda world: work(world, 4)) == [(4, [0, 1, 2, 3])] * 2
    assert on_threads(2, lambda world: work(world, 2)) == [("no room", [0, 1, 2, 3])] * 2


@pytest.fixture
def served(tmp_path, tiny_path, sums_path):
    """A function: a job of world_for_tests.py that samples from servers with these plans, which never come back."""
    made = []

    def job(name, *plans):
        servers = [ServedModel(plan=plan, down_s=1e9) for plan in plans]
        made.extend(servers)
        urls = [word for server in servers for word in ("--engine-url", server.url)]
        inputs = ["--model", str(tiny_path), "--source", str(sums_path), "--out", str(tmp_path / name)]
        return {"argv": [*CASES["plain"], *_FLAGS, *urls, *inputs], "pids": str(tmp_path)}

    yield job
    for server in made:
        server.stop()


def left(folder):
    return [file.name for file in folder.glob("[0-9]") if Path("/proc", file.read_text()).exists()]


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_of_an_update_is_done_without(served, tmp_path, forks):
    # The third time: after the first weights and those of step 1.
    jobs = [served("whole", None, None), served("parts", dies_at("collective_rpc", 3), None)]
    jobs[1]["argv"] += ["--shard", "full"]
    done = torchrun(forks, 2, jobs, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    same_numbers(tmp_path / "whole", tmp_path / "parts")
    assert left(tmp_path) == []


@pytest.mark.slow
def test_the_last_server_that_dies_ends_all_ranks_by_one_error(served, tmp_path, forks):
    job = served("run", dies_at("collective_rpc", 3))
    job["argv"] += ["--shard", "full"]
    done = torchrun(forks, 2, [job], tmp_path)
    assert done.returncode != 0
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "no vLLM server has answered for 10 s" in error
    assert left(tmp_path) == []
    other = served("unused", None)["argv"]
    url = other[other.index("--engine-url") + 1]
    run = tmp_path / "run"
    again = torchrun(
        forks, 2, [{"argv": ["grpo", "--resume", "--trust", "--out", str(run), "--engine-url", url]}], tmp_path
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads((run / "summary.json").read_text())["steps"] == 3
    assert torchrun(forks, 1, [served("calm", None)], tmp_path).returncode == 0
    calm = tmp_path / "calm"
    # What a first push proves and checks, in the resumed process, is not what a later one does.
    assert differences(outcome(calm)["rollouts"], outcome(run)["rollouts"]) == []
    assert all(torch.allclose(value, weights(run)[name], rtol=0, atol=1e-10) for name, value in weights(calm).items())


@pytest.mark.slow
def test_two_ranks_learn_from_what_is_sampled_ahead(served, tmp_path, forks):
    """Done once more by one rank in the order of two, killed or not: the same numbers."""
    job = served("two", None, None)
    job["argv"] += ["--shard", "full", "--max-staleness", "2"]
    done = torchrun(forks, 2, [job], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    two, one = tmp_path / "two", tmp_path / "one"
    versions = [(row["step"] - 1 - row["policy_version"], row["ticket"]) for row in outcome(two)["rollouts"]]
    assert {0, 1, 2} >= {age for age, _ in versions} > {0}
    shutil.rmtree(two / "checkpoints" / "step-000003")
    (two / "summary.json").unlink()
    before = outcome(two)["rollouts"]
    again = torchrun(forks, 2, [{"argv": ["grpo", "--resume", "--trust", "--out", str(two)]}], tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert outcome(two)["rollouts"] == before
    job = served("one", None, None)
    job["argv"] += ["--max-staleness", "2", "--replay-order", str(two)]
    done = torchrun(forks, 1, [job], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(before, outcome(one)["rollouts"]) == []
    assert all(torch.allclose(value, weights(two)[name], rtol=0, atol=1e-10) for name, value in weights(one).items())
    assert left(tmp_path) == []
