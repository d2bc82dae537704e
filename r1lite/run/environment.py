"""environment.json: the environment that a run started in, and the differences when it is resumed in another."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1lite import __version__
from r1lite.errors import UserError
from r1lite.hub.revisions import commits
from r1lite.run.files import as_json, read_json

FILE = "environment.json"
SCHEMA = 2  # of run directories; increased when an older r1lite could misread one
_PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "sympy", "numpy")
_MATTERS = {  # item -> what may change when it changes
    "r1lite": "sampling, scores and updates",
    "torch": "sampled tokens and weights, by rounding",
    "transformers": "prompts, sampled tokens and weights",
    "tokenizers": "prompts",
    "numpy": "numbers in the records, by rounding",
    "python": "the order of problems",
    "machine": "sampled tokens and weights, by rounding",
    "processor": "sampled tokens and weights, by rounding",
    "accelerator": "sampled tokens and weights, by rounding",
    "threads": "sampled tokens and weights, by rounding",
    "ranks": "sampled tokens and weights, by rounding",
}


def environment(settings: Mapping[str, Any] | None = None, *, ranks: int = 1) -> dict[str, Any]:
    """Returns versions, machine and command line.

    Args:
        settings: settings of the run; those that affect its exact results are included.
        ranks: number of ranks.
    """
    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    given = settings or {}
    return {
        "r1lite": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "accelerator": _accelerator(str(given.get("device") or "cpu")),
        "threads": given.get("threads"),
        "ranks": ranks,
        "cpu_count": os.cpu_count(),
        "versions": versions,
        "hub": commits(),
        "argv": [os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv],
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def software() -> dict[str, str | None]:
    """Returns the versions of the software that results depend on."""
    about = environment()
    found = {**about, **about["versions"]}
    return {name: found[name] for name in ("r1lite", "python", "torch", "transformers", "tokenizers", "numpy")}


def read_environment(path: Path) -> dict[str, Any]:
    """Reads the run's environment.json; stage and problems are None, and models empty, if it does not say them."""
    unknown: dict[str, Any] = {"stage": None, "problems": None, "models": {}}
    with contextlib.suppress(UserError):
        return {**unknown, **read_json(path / FILE)}
    return unknown


def check_schema(path: Path) -> None:
    """Raises UserError for a run directory of a newer r1lite, or an environment.json that can't be read."""
    if not (path / FILE).exists():  # older versions could be killed before they wrote it
        return
    try:
        kept = read_json(path / FILE)
    except UserError as error:
        raise UserError(
            f"--resume: {error}; restore it from a copy, or remove it: the run then continues, but changed problems "
            "and versions go unnoticed"
        ) from error
    resumed = kept.get("resumed", [])
    sound = isinstance(resumed, list) and all(isinstance(one, dict) for one in resumed)
    for one in (kept, *resumed) if sound else ():
        sound = sound and isinstance(one.get("versions") or {}, dict)
    try:
        as_json(kept)  # it is written again
    except ValueError:  # an infinite number
        sound = False
    if not sound or not isinstance(kept.get("models", {}), dict):
        raise UserError(f"--resume: {path / FILE}: damaged: restore it from a copy, or remove it")
    schema = kept.get("schema", 0)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise UserError(
            f"--resume: {path} has schema {schema}, but r1lite {__version__} only supports {SCHEMA}: continue it with "
            f"the r1lite that created it ({kept.get('r1lite')})"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns a line for each item that changed since the run started, with the possible consequence."""
    then, here = ({**kept, **(kept.get("versions") or {})} for kept in (before, now))
    return [
        f"{name} was {then[name]} when this run began and is {here[name]}: {what} may differ from here on"
        for name, what in _MATTERS.items()
        if then.get(name) is not None and then[name] != here.get(name)
    ]


def _processor() -> str | None:
    """Returns the processor's model name; libraries choose kernels by it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or None


def _accelerator(device: str) -> str | None:
    if not device.startswith("cuda"):
        return None
    import torch

    return str(torch.cuda.get_device_name(device)) if torch.cuda.is_available() else None
