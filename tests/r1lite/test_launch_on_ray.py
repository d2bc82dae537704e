"""`r1lite launch --on ray`: a cluster of three nodes on this machine, one of which is lost in the middle of a run."""

import contextlib
import json
import os
import signal
import time

import psutil
import pytest
from on_ray_for_tests import remove_node, set_token, workers_of
from processes_for_tests import all_gone
from test_launch import ENGINE, STAGE, steps_of, until_steps

from r1lite.cli import main

set_token()


def ours_on(node):
    """Our processes on a node: those that keep commands, and the commands."""
    return [process for worker in workers_of(node) for process in children_of(worker, recursive=True)]


def children_of(process, *, recursive=False):
    """None for one that has just ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.children(recursive=recursive)
    return []


def environment(cluster):
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_")}


def test_a_place_that_is_wrong_is_told(capsys, tmp_path):
    stage = ["--", "grpo", "--out", str(tmp_path / "run")]
    for options, said in (
        (["--on", "rays"], "--on rays: expected ray, ray:HOST:PORT or ray://HOST:PORT, local or slurm"),
        (["--on", "ray"], "--on ray needs --gpus-per-node"),
    ):
        assert main(["launch", *options, *stage]) == 2
        assert said in capsys.readouterr().err
    pytest.importorskip("ray")
    assert main(["launch", "--on", "ray:127.0.0.1:1", "--gpus-per-node", "0", *stage]) == 2
    assert "--on ray:127.0.0.1:1: no Ray cluster answers at 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_node_that_is_lost_costs_a_restart(cluster, tiny_path, sums_path, tmp_path, forks):
    run = tmp_path / "run"
    options = ["launch", "--on", f"ray:{cluster.address}", "--gpus-per-node", "0", "--ranks", "2", "--engines", "2"]
    options += ["--engine-command", ENGINE]
    stage = ["grpo", "--model", tiny_path, "--source", sums_path, *STAGE, "--out", run]

    launcher = forks.start([*options, "--cpus", "3", "--", *stage], env=environment(cluster))
    out, err = launcher.communicate(300)
    assert launcher.returncode == 2, out + err
    assert "2 ranks and 2 engines need bundles of 6 CPU, 3 CPU, 3 CPU, which don't fit its 3 nodes" in err

    options += ["--cpus", "1", "--restarts", "3", "--"]
    launcher = forks.start([*options, *stage, "--steps", "900"], env=environment(cluster))
    until_steps(launcher, run, 2)
    # The ranks of a node share an actor, which keeps both.
    busy = [node for node in cluster.others if any(len(children_of(worker)) == 2 for worker in workers_of(node))]
    assert len(busy) == 1
    gone = [process.pid for process in ours_on(busy[0])]
    remove_node(cluster, busy[0])
    assert all_gone(gone)
    before, deadline = steps_of(run), time.monotonic() + 300
    while not ours_on(cluster.others[0]):
        assert time.monotonic() < deadline
        assert launcher.poll() is None, launcher.communicate(1)
        time.sleep(0.2)
    until_steps(launcher, run, before + 2)
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(300)
    assert launcher.returncode == 130, out + err
    assert out.count(" was lost with its node: ") == 1, out

    done = steps_of(run)
    assert (run / "checkpoints" / f"step-{done:06d}").is_dir()
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, done + 1))
    assert not ours_on(cluster.others[0])

    here = [
        *options[:1],
        "--engine-command",
        ENGINE,
        "--ranks",
        "2",
        "--engines",
        "2",
        "--",
        "grpo",
        "--resume",
        "--trust",
    ]
    code, out, err = forks.run([*here, "--out", run, "--steps", done + 2])  # the checkpoint is a whole one
    assert code == 0, out + err
    assert steps_of(run) == done + 2
