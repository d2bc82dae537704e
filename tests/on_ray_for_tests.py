"""A Ray cluster on this machine, and what its nodes are given to do."""

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path
from unittest import mock

import psutil
import ray_worker_for_tests

STORE = 100 << 20
_PATIENCE_S = 300
# Neither a web page, nor what would start more machines, nor what prints the actors' output here.
HEAD = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
WORKER = {"setup_worker_path": ray_worker_for_tests.__file__}
_open = contextlib.ExitStack()
_cluster = None


def set_token():
    """To be called before Ray is imported, which reads it once: its nodes listen on all addresses, and take nobody's
    calls but those with this token."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"RAY_enable_worker_prestart": "0"}  # a process for each CPU, which nobody needs
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def shared_cluster(forks):
    """A cluster of nodes with one, four and four CPUs, numbers that Ray alone counts with. It stays until
    `end_cluster`; a node that a test has removed is replaced."""
    global _cluster
    from ray._private import services
    from ray.cluster_utils import Cluster

    with mock.patch("ray._private.services.get_node", patiently(services.get_node)):
        if _cluster is None:
            os.environ |= forks.environment
            head = {"num_cpus": 1, "object_store_memory": STORE, **HEAD, **WORKER}
            _cluster = Cluster(initialize_head=True, head_node_args=head)
            _cluster.others = []
            _open.callback(_cluster.shutdown)
        while len(_cluster.others) < 2:
            _cluster.others.append(_cluster.add_node(num_cpus=4, object_store_memory=STORE, **WORKER))
    _cluster.wait_for_nodes(timeout=_PATIENCE_S)
    return _cluster


def patiently(get_node):
    """Ray gives a node half a minute to start; a loaded machine is slow, not wrong."""

    def found(*arguments):
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.2)

    return found


def end_cluster():
    """Ends the cluster, if there is one."""
    global _cluster
    _open.close()
    _cluster = None


def remove_node(cluster, node):
    """Ends a node at once, with all that runs on it."""
    cluster.remove_node(node, allow_graceful=False)
    cluster.others.remove(node)


def workers_of(node):
    """The processes in which a node does work."""
    (raylet,) = node.all_processes["raylet"]
    found = []
    for starter in psutil.Process(raylet.process.pid).children():
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            found.append(psutil.Process(int(ray_worker_for_tests.worker_file(starter.pid).read_text())))
    return found


def actors_of(node):
    """Processes of its actors."""
    found = []
    for process in workers_of(node):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "ray::Actor" in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


def waits_for(found, process=None):
    """Waits until `found()` is true; fails if that takes minutes, or once `process` has ended."""
    until = time.monotonic() + 240
    while not found():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def remove_a_busy_node(cluster):
    """Ends a node that has actors, and not the first one; waits for such a node, as an actor is named late."""
    waits_for(lambda: any(map(actors_of, cluster.others)))
    remove_node(cluster, next((node for node in cluster.others if actors_of(node)), cluster.others[0]))


def kill_an_actor(cluster):
    """Ends an actor's process at once; waits for one, as an actor is named late."""
    waits_for(lambda: any(map(actors_of, cluster.others)))
    os.kill(next(pid for node in cluster.others for pid in actors_of(node)), signal.SIGKILL)


def slow_sum(problem, completion):
    """A verifier that takes its time."""
    time.sleep(0.01)
    return float(f"<answer>{problem.answer}</answer>" in completion.text)


def odd_length(problem, completion):
    """A verifier that finds half of all texts right."""
    return float(len(completion.text) % 2)


def takes_time(candidate, *, ms=5):
    """A filter that keeps everything."""
    time.sleep(ms / 1000)


def ends_its_process(candidate, *, once):
    """A filter that ends the process, the first time that it is asked; `once` is a file that tells whether it was."""
    if not Path(once).exists():
        Path(once).touch()
        os._exit(9)


class Asked:
    """Does what its job says."""

    told = "ready"

    def __call__(self, job):
        if isinstance(job, Exception):
            raise job
        if job == "exit":
            os._exit(9)
        return job
