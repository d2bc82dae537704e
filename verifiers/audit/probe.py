"""Measures one call of a verifier from inside a worker process."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from verifiers.core import Completion, Problem, Verdict
from verifiers.reward import Reward

_KIB = 1 << 10 if sys.platform == "darwin" else 1


class Timed:
    """Reports CPU seconds and growth of peak memory (MiB) of one call of a reward, as JSON in the detail.

    Args:
        formula: of the reward.
        options: of its verifiers.
    """

    version = "1"

    def __init__(self, *, formula: str, options: dict[str, Any] | None = None) -> None:
        self._reward = Reward(formula, options=options)

    def prepare(self) -> None:
        """Loads the reward's resources before anything is measured."""
        self._reward.prepare()

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        memory, began = _peak_mib(), time.process_time()
        self._reward(problem, completion)
        spent = time.process_time() - began
        return Verdict(None, "measured", json.dumps({"cpu_s": spent, "mib": _peak_mib() - memory}))


def timed(reward: Reward) -> Reward:
    """Returns a reward that measures this one."""
    use = {"use": "verifiers.audit.probe:Timed", "formula": reward.formula, "options": reward.options}
    return Reward("v", options={"v": use})


def _peak_mib() -> float:
    with contextlib.suppress(OSError):  # getrusage's begins with the peak of the process that started this one
        if found := re.search(rb"VmHWM:\s*(\d+)", Path("/proc/self/status").read_bytes()):
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB / 1024
