"""A pass over blocks on the nodes of a Ray cluster instead of processes of this machine.

As here, rows travel through files only: an actor is told which block to do, reads it, and writes its outcome into the
set's folder. So all nodes must see both, and each proves that at the start.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from r1lite.curation.scan import Plan, Scanner
from r1lite.curation.sources import Block
from r1lite.distributed.nodes import Nodes
from r1lite.errors import UserError
from verifiers.on_ray import Resources

_SEEN = "seen_by_nodes.txt"

Numbered = tuple[int, Block]
OfBlocks = Callable[[int, Block], None]  # writes the outcome of a block


def scan_on_nodes(
    plan: Plan, folder: Path, blocks: Sequence[Numbered], *, on: str, resources: Resources, say: Callable[[str], None]
) -> Iterator[int]:
    """`workers.scan_all` on the nodes of a cluster."""
    make = functools.partial(Scanner, plan, folder)
    yield from on_nodes(make, folder, blocks, plan=plan, on=on, resources=resources, say=say)


def on_nodes(
    make: Callable[[], OfBlocks],
    folder: Path,
    blocks: Sequence[Numbered],
    *,
    plan: Plan,
    on: str,
    resources: Resources,
    say: Callable[[str], None],
) -> Iterator[int]:
    """Does the blocks, and gives their numbers as they are done.

    Args:
        make: called on the nodes.
        folder: where outcomes are written.
        plan: whose verifiers must be of the same versions everywhere.
        on: the cluster.
        say: told where the blocks are done, with the sandbox's levels there.

    Raises:
        UserError: there is no room for the actors, or a node does not see the folder or can't do the pass.
        RunError: the cluster is lost, or a block is lost with every actor that does it.
    """
    if not blocks:
        return
    seen, token = folder / _SEEN, secrets.token_hex(16)
    seen.write_text(token, encoding="utf-8")
    start = functools.partial(_OnNode, make, plan, plan.versions(), seen, token)
    with contextlib.closing(Nodes(start, on, resources, most=len(blocks))) as nodes:
        nodes.start()
        say(f"on {nodes.describe(lambda levels: [f'{name} at level {level}' for name, level in levels.items()])}")
        for number, _ in nodes.each(blocks):
            yield blocks[number][0]
    seen.unlink(missing_ok=True)


class _OnNode:
    """A pass, in an actor."""

    def __init__(
        self, make: Callable[[], OfBlocks], plan: Plan, versions: dict[str, str], seen: Path, token: str
    ) -> None:
        try:
            found = seen.read_text(encoding="utf-8")
        except OSError:
            found = ""
        if found != token:
            raise UserError(f"--out {seen.parent.parent} is not seen here: it must lie where all nodes see it")
        if (here := plan.versions()) != versions:
            raise UserError(f"other versions of the verifiers here, {here}: install the same r1lite on all nodes")
        self.told: Any = plan.levels()
        self._pass = make()

    def __call__(self, job: Numbered) -> None:
        self._pass(*job)
