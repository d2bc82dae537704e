"""What scoring on Ray consists of: places, room, calls that come back in any order; without a cluster."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from verifiers import Completion, Problem, Reward
from verifiers.commands.score import make_scorer
from verifiers.cores import cores
from verifiers.on_ray import Actors, Fleet, Resources, address_of
from verifiers.on_ray.fleet import _Actor
from verifiers.on_ray.host import Host, Ready
from verifiers.on_ray.versions import difference, reader
from verifiers.on_ray.work import Call, Scoring

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"


@pytest.mark.quick
def test_places():
    assert address_of("ray") is None
    assert address_of("ray:10.0.0.1:6379") == "10.0.0.1:6379"
    assert address_of("ray://head:10001") == "ray://head:10001"
    for wrong in ("", "Ray", "rays", "ray:", "ray:head", "ray://", "local"):
        with pytest.raises(ValueError, match="expected ray, ray:HOST:PORT or ray://HOST:PORT"):
            address_of(wrong)


@pytest.mark.quick
def test_cores(monkeypatch):
    monkeypatch.delenv("VERIFIERS_CPUS", raising=False)
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.setenv("VERIFIERS_CPUS", "3")
    assert cores() == 3
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("VERIFIERS_CPUS", wrong)
        with pytest.raises(ValueError, match="VERIFIERS_CPUS must be a whole number above 0"):
            cores()


def items(count):
    return ((Problem(id=str(number)), Completion(str(number))) for number in range(count))


def ids(call):
    return [(float(Problem(*problem).id), [], "") for problem, _ in call.job[1]]


@pytest.mark.quick
def test_calls_come_back_in_order_whenever_they_end():
    work = Scoring(items(100))
    calls = [work.next_call() for _ in range(7)]
    assert [call.size for call in calls] == [16, 16, 16, 16, 16, 16, 4]
    assert work.next_call() is None
    seen = []
    for call in (*calls[3:], *calls[:3]):
        assert not work.is_done
        work.finished(call, (ids(call), 1.0))
        seen += [result[0] for results in work.in_turn() for result in results]
    assert seen == list(map(float, range(100)))
    assert work.is_done


@pytest.mark.quick
def test_lost_calls_are_made_again_and_unscored_at_last():
    work = Scoring(items(32))
    first, second = work.next_call(), work.next_call()
    work.again([first], "gone")
    assert work.next_call() is first
    work.finished(second, (ids(second), 1.0))
    work.again([first], "gone")
    assert work.next_call() is first
    work.again([first], "gone")
    assert work.next_call() is None
    lost, kept = work.in_turn()
    assert lost == [(None, [], "VerifierError: no verdict from 3 actors: gone")] * 16
    assert kept == ids(second)
    assert work.is_done


@pytest.mark.quick
def test_calls_last_about_half_a_second_and_the_source_is_not_read_far_ahead():
    read = []

    def source():
        for number in range(10**9):
            read.append(number)
            yield Problem(id=str(number)), Completion("x")

    work = Scoring(source())
    for seconds, size in ((0.0, 16), (0.0, 32), (60.0, 64), (0.5, 16), (1.0, 16), (0.0, 8), (0.0, 16)):
        call = work.next_call()
        assert call.size == size
        work.finished(call, (ids(call), seconds))
        list(work.in_turn())
    opened = 0
    while work.next_call() is not None:
        opened += 1
    assert opened == 131072 / 32
    assert len(read) == 168 + 131072
    assert next(work.in_turn(), None) is None


@pytest.mark.quick
def test_very_many_actors_get_longer_calls_and_may_go_further_ahead(monkeypatch):
    """They would ask for too many calls in a second, and wait for each that takes long."""
    monkeypatch.setattr("verifiers.on_ray.work._OPEN", 1 << 10)
    monkeypatch.setattr("verifiers.on_ray.work._OPEN_EACH", 8)
    endless = ((Problem(), Completion("x")) for _ in iter(int, 1))
    work = Scoring(endless, actors=400)
    sizes = []
    for _ in range(8):
        call = work.next_call()
        sizes.append(call.size)
        work.finished(call, ([(1.0, [], "")] * call.size, call.size * 0.005))
        list(work.in_turn())
    assert sizes[-1] == 200  # a second
    opened = 0
    while (call := work.next_call()) is not None:
        opened += call.size
    assert opened == 3200


def test_ray_that_is_missing_and_verifiers_that_can_not_travel(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"Ray is not installed: pip install 'r1lite\[ray\]'"):
        Actors([Reward("math")])
    with pytest.raises(ValueError, match="--workers counts the actors"):
        make_scorer(Reward("math"), 0, 30.0, None, on="ray")
    monkeypatch.undo()
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match="name its verifiers as 'module:attr'"):
        Actors([Reward("mine", verifiers={"mine": lambda problem, completion: 1.0})])


class Reads:
    """Works in an actor; it was named by a relative path."""

    def __init__(self):
        self.told = Path("here.txt").read_text()

    def __call__(self, job):
        return job


def test_relative_paths_are_those_of_the_command(tmp_path, monkeypatch):
    """Whatever folder the cluster was started in."""
    pytest.importorskip("ray")
    for name in ("command", "cluster"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "here.txt").write_text(name)
    monkeypatch.chdir(tmp_path / "command")
    setup = Fleet(Reads)._setup
    monkeypatch.chdir(tmp_path / "cluster")
    monkeypatch.setenv("VERIFIERS_CPUS", "1")
    assert Host(setup).ready().told == "command"
    monkeypatch.chdir(tmp_path / "cluster")
    (tmp_path / "command").rename(tmp_path / "gone")  # a node that does not have it stays where it is
    assert Host(setup).ready().told == "cluster"


def test_a_stopped_process_is_ended_and_a_living_one_is_not():
    code = "import os, signal, time; from verifiers.on_ray.host import be_watched; be_watched(2.0); time.sleep(4); "
    code += "print('lives', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "lives\n")


@pytest.mark.quick
def test_what_differs_on_a_node(tmp_path, monkeypatch):
    package = tmp_path / "pack_for_tests"
    (package / "_bundled").mkdir(parents=True)
    for name in ("__init__.py", "_bundled/data.py"):
        (package / name).touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    read = reader()
    here = read(["pack_for_tests", "nothing_for_tests"])
    assert here["nothing_for_tests"] == "none"
    (package / "_bundled" / "data.py").write_text("# data")
    assert difference("node", read([*here][1:]), here) == ""
    (package / "__init__.py").write_text("# newer")
    there = {**read([*here][1:]), "Python": "3.9"}
    assert difference("node", there, here) == (
        f"node has Python 3.9 and pack_for_tests with source {there['pack_for_tests']}, and Python {here['Python']} "
        f"and pack_for_tests with source {here['pack_for_tests']} is needed, as on this machine: install the same on "
        "all nodes"
    )
    assert "node has no pack_for_tests, and" in difference("node", {**here, "pack_for_tests": "none"}, here)


@pytest.mark.quick
def test_as_many_actors_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr("verifiers.on_ray.fleet._POLL_S", 0.0)
    free = iter([1, 1, 3, 5, 5, 5, 2])
    ray = SimpleNamespace(
        cluster_resources=lambda: {"CPU": 5.0},
        available_resources=lambda: {"CPU": next(free)},
        nodes=lambda: [{"Alive": True}, {"Alive": False}],
    )
    monkeypatch.setattr("verifiers.on_ray.fleet.imported", lambda: ray)

    def room(**options):
        return Fleet(Reads, **options)._room()

    assert room(resources=Resources(3)) == 3  # Ray frees the CPUs of actors that ended a little later
    assert room() == 4  # one is left for others
    assert room(most=2) == 2
    assert room(resources=Resources(cpus=2)) == 2
    with pytest.raises(ValueError, match="6 actors need 6 CPUs, and Ray has 5 on 1 nodes, 2 of them free"):
        room(resources=Resources(6))


@pytest.mark.quick
def test_a_call_has_its_time_from_when_the_one_before_it_ended(monkeypatch):
    """A short call that waited for a long one is not late."""
    ray = SimpleNamespace(wait=lambda ready, **_: (ready[:1], []), get=lambda reference: reference)
    monkeypatch.setattr("verifiers.on_ray.fleet.imported", lambda: ray)
    fleet, seen = Fleet(Reads), []
    calls = {"long": Call(0, None, limit_s=1000.0), "short": Call(1, None, limit_s=1.0, began=-500.0)}
    fleet._actors = [_Actor(None, None, Ready("host", 1, None), calls)]
    fleet._collect(SimpleNamespace(finished=lambda call, result: seen.append(result)))
    assert seen == ["long"]
    assert list(fleet._actors[0].calls) == ["short"]


# --- a cluster -------------------------------------------------------------------------------------------------------
