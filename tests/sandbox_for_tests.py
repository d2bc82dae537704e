"""A problem for the code verifier, its solution, a process that judges it; skips of levels that are missing here."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verifiers.sandbox import probe

ROOT = Path(__file__).resolve().parents[1]
ADD = {"style": "function", "entry_point": "add", "args": [[1, 2]], "outs": [3]}
GOOD = "def add(a, b): return a + b"
HOST = """
import sys, time, os
sys.path.insert(0, {root!r})
from verifiers import Completion, Problem
from verifiers.sandbox import CodeVerifier
verifier = CodeVerifier(servers=2, isolation={level!r})
tests = {{"style": "function", "entry_point": "f", "args": [[1]], "outs": [2]}}
verdict = verifier(Problem(tests=tests), Completion("def f(x): return x + 1"))
print(verdict.score, verifier.level, flush=True)
{then}
"""


def needs(level: str) -> None:
    if level not in probe.report().works:
        pytest.skip(f"isolation level '{level}': {probe.report().missing[level]}")


def started(then: str, level: str = "auto", prefix: tuple[str, ...] = (), python: str = sys.executable) -> Any:
    code = HOST.format(root=str(ROOT), level=level, then=then)
    return subprocess.Popen([*prefix, python, "-c", code], stdout=subprocess.PIPE, text=True, cwd="/")
