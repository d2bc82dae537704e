"""A Ray cluster on this machine, and what its nodes are given to do."""

import contextlib
import os
import secrets
import time
from pathlib import Path

NODE = {"num_cpus": 2, "object_store_memory": 100 << 20}
# Neither a web page, nor what would start more machines, nor what prints the actors' output here.
HEAD = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}


def set_token():
    """To be called before Ray is imported, which reads it once: its nodes listen on all addresses, and take nobody's
    calls but those with this token."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextlib.contextmanager
def three_nodes():
    """A cluster of nodes with one, two and two CPUs; `others` are the two that may be removed."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, **HEAD, "num_cpus": 1})
    made.others = [made.add_node(**NODE) for _ in range(2)]
    made.wait_for_nodes()
    try:
        yield made
    finally:
        made.shutdown()


@contextlib.contextmanager
def without_a_node(cluster):
    """Removes a node at once, and adds another one at the end."""
    cluster.remove_node(cluster.others.pop(), allow_graceful=False)
    try:
        yield
    finally:
        cluster.others.append(cluster.add_node(**NODE))


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
