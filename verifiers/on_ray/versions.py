"""Compares the versions of Python and of our packages on a node with those of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Found = dict[str, str]


def reader() -> Callable[[Sequence[str]], Found]:
    """Returns a function that reads the installed versions where it is called.

    It is sent by value and imports nothing of ours, so it works on a node with another version of this module.
    """

    def read(packages: Sequence[str]) -> Found:
        import hashlib
        import importlib.util
        import pathlib
        import sys

        versions = {"Python": ".".join(map(str, sys.version_info[:2]))}
        for package in packages:
            spec = importlib.util.find_spec(package)
            if spec is None or spec.origin is None:
                versions[package] = "none"
                continue
            folder, digest = pathlib.Path(spec.origin).parent, hashlib.sha256()
            for path in sorted(folder.rglob("*.py")):
                name = path.relative_to(folder).as_posix()
                if not name.startswith("_bundled/"):  # data, which a checkout has elsewhere
                    digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
            versions[package] = digest.hexdigest()[:12]
        return versions

    return read


def difference(host: str, there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Returns a sentence with the versions that a node has and those that it needs; "" if nothing differs."""
    other = [name for name in here if there.get(name) != here[name]]
    if not other:
        return ""
    has = " and ".join(_said(name, there.get(name, "none")) for name in other)
    needs = " and ".join(_said(name, here[name]) for name in other)
    return f"{host} has {has}, and {needs} is needed, as on this machine: install the same on all nodes"


def _said(name: str, value: str) -> str:
    if name == "Python":
        return f"Python {value}"
    return f"no {name}" if value == "none" else f"{name} with source {value}"
