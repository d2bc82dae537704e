"""Scoring on a Ray cluster gives the results of one machine, also when actors and nodes are lost."""

import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from on_ray_for_tests import actors_of, kill_an_actor, remove_node, set_token, waits_for
from score_shards_for_tests import files, write_shards

from verifiers import Completion, Problem, Reward, VerifierError, score_many
from verifiers.__main__ import main
from verifiers.on_ray import Actors

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
set_token()


def plain(scores):
    return [(score.reward, dict(score.verdicts), score.error, score.versions) for score in scores]


def sums(count):
    return [
        (
            Problem("q", answer=str(number), id=str(number)),
            Completion(f"<think>{'so ' * (number % 40)}</think><answer>{number + (number % 3 == 0)}</answer>"),
        )
        for number in range(count)
    ]


@pytest.fixture
def on(cluster):
    """A function: actors on the cluster, ended with the test."""
    made = []

    def start(*rewards, **options):
        made.append(Actors(rewards, address=cluster.address, **options))
        return made[-1]

    yield start
    for actors in made:
        actors.close()


@pytest.mark.slow
def test_results_and_order_are_those_of_one_machine(on):
    reward, told = Reward("math + 0.1*format"), []
    actors = on(reward, Reward("format"), count=2, say=told.append)
    pairs = sums(1500)
    assert plain(actors.map(0, iter(pairs))) == plain(score_many(reward, pairs))
    assert plain(actors.map(1, pairs[:50])) == plain(score_many(Reward("format"), pairs[:50]))
    (line,) = told
    assert ": 2 actors" in line
    scores = actors.map(0, iter(pairs))  # one that is not read to its end
    assert next(scores) == score_many(reward, pairs[:1])[0]
    scores.close()
    assert plain(actors.map(0, pairs[:100])) == plain(score_many(reward, pairs[:100]))


@pytest.mark.slow
def test_trouble_costs_its_own_item(on, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS))
    reward = Reward("pool_trouble_for_tests:trouble")
    texts = ["1", "hang", "2", "crash", "x", "exit", "raise", "gold", "nan", *map(str, range(30)), "spin", "5"]
    pairs = [(Problem(id=str(place)), Completion(text)) for place, text in enumerate(texts)]
    actors = on(reward, count=1, timeout_s=2.0)
    found = list(actors.map(0, pairs))
    want = score_many(reward, pairs, workers=1, timeout_s=2.0)
    assert [(score.reward, score.error) for score in found] == [(score.reward, score.error) for score in want]
    assert [text for text, score in zip(texts, found, strict=True) if score.reward is None] == [
        *("hang", "crash", "exit", "raise", "gold", "nan", "spin")
    ]


@pytest.mark.slow
def test_what_a_node_can_not_set_up_and_what_there_is_no_room_for(on, cluster, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="99 actors need 99 CPUs, and Ray has 9 on 3 nodes"):
        on(Reward("math"), count=99).start()
    (tmp_path / "only_here.py").write_text(
        "import os\nif 'VERIFIERS_CPUS' in os.environ: raise OSError('no licence')\ndef fine(p, c): return 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=r"an actor can't be set up on .*no licence"):
        on(Reward("only_here:fine"), count=1).start()
    actors = on(Reward("math"), count=1)
    actors.fleet._here = {**actors.fleet._here, "verifiers": "0123456789ab"}
    with pytest.raises(ValueError, match=r"has verifiers with source .*, and verifiers with source 0123456789ab is"):
        actors.start()


@pytest.mark.slow
def test_programs_are_judged_in_the_sandbox_of_their_node(on, monkeypatch):
    """For as long as their own limits allow, whatever the deadline of other verifiers is."""
    monkeypatch.setattr("verifiers.on_ray.fleet._PATIENCE_S", 0.5)
    told = []
    reward = Reward("code", options={"code": {"time_s": 1.0}})
    problem = Problem("Print the sum", tests={"style": "stdin", "inputs": ["1 2"], "outputs": ["3"]})
    texts = ["print(sum(map(int, input().split())))", "print(4)", "while True: pass", "import os; os.abort()"]
    pairs = [(problem, Completion(f"```python\n{text}\n```")) for text in texts]
    actors = on(reward, count=1, timeout_s=0.05, say=told.append)
    found = [(score.reward, score.verdicts["code"].reason) for score in actors.map(0, pairs)]
    assert found == [(1.0, "AC"), (0.0, "WA"), (0.0, "TLE"), (0.0, "RTE")]
    assert f"code at level {reward.verifiers['code'].level}" in told[0]


@pytest.mark.slow
def test_a_process_that_is_stopped_and_a_node_that_is_lost_cost_nothing(on, cluster, monkeypatch, caplog):
    monkeypatch.setattr("verifiers.on_ray.fleet._SILENT_S", 3.0)
    monkeypatch.syspath_prepend(str(TESTS))
    reward = Reward("on_ray_for_tests:slow_sum")
    pairs = sums(400)
    actors = on(reward, count=3)
    actors.start()
    want = plain(score_many(reward, pairs))
    assert len({score[0] for score in want}) == 2

    def trouble():
        doomed = next(node for node in cluster.others if actors_of(node))
        stopped = next(ready.pid for ready in actors.fleet.ready if ready.pid not in actors_of(doomed))
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(0.5)
        remove_node(cluster, doomed)

    thread = threading.Thread(target=trouble)
    thread.start()
    found = plain(actors.map(0, pairs))
    thread.join()
    assert found == want
    said = [record.getMessage() for record in caplog.records]
    assert any(re.match(r"an actor on \S+ \(process \d+\) was lost, or silent for 3 s: ", line) for line in said), said
    assert plain(actors.map(0, pairs[:20])) == want[:20]


COMMAND = "import sys; from verifiers.__main__ import main; sys.exit(main(sys.argv[1:]))"
SLOW = ["--reward", "on_ray_for_tests:slow_sum"]


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.contextmanager
def client_server(cluster):
    """Ray's server for clients; yields its address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "ray.util.client.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen([*command, "--mode", "specific-server", "--address", cluster.address])
    try:
        waits_for(functools.partial(answers, port), process)
        yield f"ray://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_the_command_writes_the_same_file_and_goes_on_after_a_kill_through_rays_client(cluster, tmp_path, forks):
    pytest.importorskip("grpc")
    source = tmp_path / "rows.jsonl"
    with source.open("w") as file:
        for problem, completion in sums(600):
            file.write(json.dumps({"id": problem.id, "answer": problem.answer, "completion": completion.text}) + "\n")
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    argv = ["score", source, *SLOW, "--out", there, "--workers", "2", "--on"]
    process = forks.start([*argv, f"ray:{cluster.address}"], code=COMMAND)
    waits_for(lambda: there.exists() and there.read_bytes().count(b"\n") > 100, process)
    process.kill()
    process.communicate()
    assert there.read_bytes().count(b"\n") < 600
    with client_server(cluster) as address:
        code, out, err = forks.run([*argv, address], code=COMMAND)
    assert (code, "scoring on " in err) == (0, True), out + err
    assert main(["score", str(source), *SLOW, "--out", str(here)]) == 0
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.slow
def test_shards_with_a_kill_and_a_lost_actor(cluster, tmp_path, forks):
    shards = write_shards(tmp_path / "in", count=12, size=60)
    here, there = tmp_path / "here", tmp_path / "there"
    argv = ["score", shards, *SLOW, "--out", there, "--on", f"ray:{cluster.address}", "--workers", "2"]

    def done(count):
        return lambda: len(list(there.rglob("*.summary.json"))) >= count

    process = forks.start(argv, code=COMMAND)
    waits_for(done(2), process)
    process.kill()
    process.communicate()
    assert not (there / "manifest.json").exists()
    process = forks.start(argv, code=COMMAND)
    waits_for(done(6), process)
    kill_an_actor(cluster)
    out, err = process.communicate(300)
    assert process.returncode == 0, out + err
    assert "scoring on " in err
    assert "another actor repeats its work" in err
    assert "720 completions, 0 unscored" in out
    assert main(["score", str(shards), *SLOW, "--out", str(here)]) == 0
    assert files(there) == files(here)


def test_no_cluster():
    pytest.importorskip("ray")
    with pytest.raises(VerifierError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
        Actors([Reward("format")], address="127.0.0.1:1").start()
