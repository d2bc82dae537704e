"""The groups of checks for given engines and precisions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from r1lite.selftest import Options, Result

DTYPES = ("float32", "bfloat16")
ENGINES = ("transformers", "vllm", "vllm-server")


@dataclass(frozen=True, slots=True)
class Group:
    """Checks that share a process: a "module:function" that takes the options and `arguments`."""

    name: str
    target: str
    arguments: tuple[str, ...] = ()

    def run(self, options: Options) -> Iterator[Result]:
        """Yields the results of the checks as they are known."""
        module, _, function = self.target.partition(":")
        check: Callable[..., Iterator[Result]] = getattr(importlib.import_module(module), function)
        yield from check(options, *self.arguments)


def groups(engines: Sequence[str], dtypes: Sequence[str]) -> list[Group]:
    """Returns all groups for these engines and precisions, in running order."""
    found = [
        Group("machine", "r1lite.selftest.machine:check"),
        Group("verdicts", "r1lite.selftest.verdicts:check"),
        Group("model", "r1lite.selftest.model:check"),
    ]
    for engine in engines:
        for dtype in dtypes:
            found.append(Group(f"{engine} {dtype}", "r1lite.selftest.engine:check", (engine, dtype)))
    found += [Group(f"training {dtype}", "r1lite.selftest.training:check", (dtype,)) for dtype in dtypes]
    return found
