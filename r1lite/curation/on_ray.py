"""Runs jobs on the nodes of a Ray cluster instead of in processes of this machine.

As with processes, rows travel only through files: an actor gets a job, reads the source, and writes its results to the
set's folder. All nodes must therefore see the source and the folder; this is checked at the start.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from r1lite.curation.passes import Do, Doer, Numbered
from r1lite.curation.scan import Plan
from r1lite.distributed.nodes import Nodes
from r1lite.errors import UserError
from verifiers.on_ray import Resources

_SEEN = "seen_by_nodes.txt"


@contextlib.contextmanager
def open_nodes(
    make: Callable[[], Doer], folder: Path, *, plan: Plan, on: str, resources: Resources, say: Callable[[str], None]
) -> Iterator[Do]:
    """Yields a function that runs jobs on actors. The actors start with the first jobs.

    Args:
        make: makes the doer of jobs; called on the nodes.
        folder: folder for the results.
        plan: its verifiers must have the same versions on all nodes.
        on: the cluster.
        say: called with the hosts of the actors and the sandbox's levels there.

    Raises:
        UserError: the cluster has no room for the actors, or a node doesn't see the folder or can't do the jobs.
        RunError: the cluster is lost, or a job is lost with every actor that tries it.
    """
    seen, token = folder / _SEEN, secrets.token_hex(16)
    start = functools.partial(_OnNode, make, plan, plan.versions(), seen, token)
    with contextlib.ExitStack() as opened:
        nodes: list[Nodes] = []

        def do(jobs: Sequence[Numbered]) -> Iterator[int]:
            if not jobs:
                return
            if not nodes:
                seen.write_text(token, encoding="utf-8")
                opened.callback(seen.unlink, missing_ok=True)
                nodes.append(opened.enter_context(contextlib.closing(Nodes(start, on, resources, most=len(jobs)))))
                nodes[0].start()
                levels = nodes[0].describe(lambda told: [f"{name} at level {level}" for name, level in told.items()])
                say(f"on {levels}")
            for number, _ in nodes[0].each(jobs):
                yield jobs[number][0]

        yield do


class _OnNode:
    """The doer of jobs in an actor."""

    def __init__(self, make: Callable[[], Doer], plan: Plan, versions: dict[str, str], seen: Path, token: str) -> None:
        try:
            found = seen.read_text(encoding="utf-8")
        except OSError:
            found = ""
        if found != token:
            raise UserError(f"--out {seen.parent.parent} isn't visible on this node: all nodes must see it")
        if (here := plan.versions()) != versions:
            raise UserError(f"other versions of the verifiers here, {here}: install the same r1lite on all nodes")
        self.told: Any = plan.levels()
        self._do = make()

    def __call__(self, job: Numbered) -> None:
        self._do(*job)
