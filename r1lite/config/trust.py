"""Finds the requests of a configuration that need --trust: code from outside r1lite, and places to write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from r1lite.config.engines import BUILTIN
from r1lite.errors import UserError
from verifiers.trust import NotTrustedError, beyond, beyond_in_options, is_above, require

_FORMULAS = ("reward", "verifier", "correct")
_FUNCTIONS = ("loss", "advantage")  # a built-in name, or module:function
_MARKS = ("environment.json", "reward.json", "metrics.jsonl", "manifest.json", "summary.json", ".lock")
_WRITTEN = ("out", "push_to_hub", "engine_weights_dir")  # keys that name a destination outside the run's folder
_CLUSTERS = ("scoring", "on")  # keys that name a Ray cluster
_MOST = {"workers": 64, "score_workers": 64, "engine_actors": 64, "score_timeout_s": 60}  # more is unusual
_LOCAL = "tensorboard"  # the tracker that writes only into the run's folder
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CONFIG = "config.yaml"  # a run's own configuration


def foreign(values: Mapping[str, Any]) -> list[str]:
    """The requests of a configuration that go beyond what ships with r1lite.

    These are tasks, verifiers, losses, filters, engines and attention kernels that would be imported, destinations
    outside the run's folder, and unusually many processes or seconds.
    """
    found: list[str] = []
    task = values.get("task")
    for name in task.split(",") if isinstance(task, str) else ():
        if ":" in name and not name.strip().startswith("reasoning_gym:"):
            found.append(name.strip())
    options = values.get("verifiers")
    for key in _FORMULAS:
        if isinstance(formula := values.get(key), str):
            try:
                found += beyond(formula, options)
            except ValueError as error:
                raise UserError(f"{key}: {error}") from error
    found += beyond_in_options(options)
    filters = values.get("filters")
    for spec in filters if isinstance(filters, list | tuple) else ():
        found += _of_filter(str(spec))
    for inside in _inner(values):
        found += foreign(inside)
    for key in _FUNCTIONS:
        if isinstance(function := values.get(key), str) and ":" in function:
            found.append(function)
    if isinstance(engine := values.get("engine"), str) and engine not in ("auto", *BUILTIN):
        found.append(f"engine: {engine}")
    attention = values.get("attn_implementation")
    if isinstance(attention, str) and "/" in attention:  # a kernel that transformers would load from the Hub
        found.append(attention)
    found += _destinations(values)
    found += [f"{key}: {values[key]}" for key, most in _MOST.items() if is_above(values.get(key), most)]
    return list(dict.fromkeys(found))


def _destinations(values: Mapping[str, Any]) -> list[str]:
    """Destinations that data would be written or sent to, as `key: place`, without servers of this machine."""
    found = [f"{key}: {_absolute(key, str(values[key]))}" for key in _WRITTEN if values.get(key) is not None]
    urls = values.get("engine_url")
    for url in urls if isinstance(urls, list | tuple) else ():
        try:
            parts = urlsplit(str(url))
            own = parts.hostname in _LOOPBACK and not parts.path.strip("/")
        except ValueError:
            own = False
        if not own:
            found.append(f"engine_url: {url}")
    found += [f"{key}: {values[key]}" for key in _CLUSTERS if values.get(key, "local") not in ("local", "ray")]
    trackers = values.get("log_to")
    found += [f"log_to: {name}" for name in trackers if name != _LOCAL] if isinstance(trackers, list | tuple) else []
    return found


def _absolute(key: str, path: str) -> str:
    """The path, resolved for folders: a run saves resolved paths, so both spellings must compare equal."""
    return str(Path(path).resolve()) if key == "engine_weights_dir" and "\0" not in path else path


def _inner(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Nested settings of other stages: a teacher's trajectories, and a pipeline's stages and evaluations."""
    maps = [values.get(key) for key in ("trajectories", "common", "evaluate", "settings")]
    for key in ("stages", "compare"):
        named = values.get(key)
        maps += named.values() if isinstance(named, Mapping) else []
    return [one for one in maps if isinstance(one, Mapping)]


def _of_filter(spec: str) -> list[str]:
    head, _, tail = spec.rpartition(":")
    if not head or "=" not in tail:
        return [spec] if ":" in spec else []
    options = dict(part.partition("=")[::2] for part in tail.split(","))
    return [head] if ":" in head else beyond_in_options({head: options})


def of_a_run(path: Path) -> bool:
    """True for a YAML file that a run wrote or that lies beside a run's files: such a file counts as data."""
    return path.name == _CONFIG or any((path.parent / name).exists() for name in _MARKS)


def check(values: Mapping[str, Any], where: object, *, said: Mapping[str, Any], trust: bool) -> None:
    """Raises UserError if a file's `values` contain requests that need --trust.

    Args:
        where: the file, for the message.
        said: the user's own settings of the same run, from the command line or a recipe. Names in it are allowed; its
            places and numbers replace those of the file.
        trust: allow everything.
    """
    allowed = set(foreign(said))
    replaced = {*_WRITTEN, *_MOST, *_CLUSTERS, "engine_url", "log_to"} & set(said)
    named = foreign({key: value for key, value in values.items() if key not in replaced})
    checked([name for name in named if name not in allowed], where, trust=trust)


def checked(names: list[str], where: object, *, trust: bool) -> None:
    """Like `verifiers.trust.require`, but raises UserError."""
    try:
        require(names, where, trust=trust)
    except NotTrustedError as error:
        raise UserError(str(error)) from error
