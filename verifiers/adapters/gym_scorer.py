"""reasoning-gym's own scorers, in the form that is called inside the sandbox."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any


class GymScorer:
    """`score_answer` of any data set of reasoning-gym; the data set `name` is loaded in advance."""

    def __init__(self, name: str) -> None:
        importlib.import_module("reasoning_gym")
        self._ready: dict[str, Any] = {}
        if name:
            with contextlib.suppress(Exception):  # an unknown name is reported when a problem asks for it
                self._ready[name] = _made(name)
                for entry in self._ready[name]:  # fills caches, so that not every score has to fill them
                    self._ready[name].score_answer(entry["answer"], entry)

    def __call__(self, answer: str, entry: dict[str, Any]) -> float:
        """`entry` holds the data set's name and its item."""
        name = entry["name"]
        data = self._ready[name] if name in self._ready else _made(name)
        return float(data.score_answer(answer, entry["entry"]))


def _made(name: str) -> Any:
    return importlib.import_module("reasoning_gym").create_dataset(name, seed=0, size=1)
