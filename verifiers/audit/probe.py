"""Measures one call of a verifier from inside a worker process."""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

from verifiers.core import Completion, Problem, Verdict
from verifiers.registry import resolve

_KIB = 1 << 10 if sys.platform == "darwin" else 1


class Timed:
    """The verdict of another verifier, with CPU seconds and growth of peak memory (MiB) as JSON in its detail.

    Args:
        target: the verifier, as `resolve` takes it.
        options: its options.
    """

    version = "1"

    def __init__(self, *, target: str, options: dict[str, Any] | None = None) -> None:
        self._verify = resolve(target, **(options or {}))

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        memory, began = _peak_mib(), time.process_time()
        found: Any = self._verify(problem, completion)
        spent = time.process_time() - began
        score = found.score if isinstance(found, Verdict) else float(found)
        return Verdict(score, "measured", json.dumps({"cpu_s": spent, "mib": _peak_mib() - memory}))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB / 1024
