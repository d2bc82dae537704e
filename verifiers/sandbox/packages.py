"""Finds the files that a Python module needs, without importing it."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

_MAX_FILES = 2000  # files whose imports are read, in a folder that belongs to no distribution
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][\w.-]*")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def needed_by(module: str, more: Sequence[str] = ()) -> dict[str, str]:
    """Returns name -> path of each top-level module, package and metadata folder that `module` needs, itself included.

    For an installed package these are the distributions that its metadata requires; for a file or folder of the user,
    the modules in its import statements. `more` adds modules that neither of them lists.

    Raises: ValueError for a module that can't be found.
    """
    owners = _owners()
    found: dict[str, str] = {}
    waiting = [module.partition(".")[0], *more]
    for name in waiting:
        if name not in sys.stdlib_module_names and not _files(name):
            raise ValueError(f"module '{name}' is not installed here, nor in the working directory")
    seen: set[str] = set(sys.stdlib_module_names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        files = _files(name)
        found.update(files)
        distributions = list(_required(owners.get(name, ())))
        for distribution in distributions:
            waiting += _modules().get(distribution, ())
            found.update(_metadata(distribution))
        if not distributions:
            waiting += [each for place in files.values() for each in _imports(place)]
    return found


@functools.cache
def _owners() -> Mapping[str, Sequence[str]]:
    """Returns top-level module -> distributions, from the metadata of everything installed."""
    return importlib.metadata.packages_distributions()


@functools.cache
def _modules() -> Mapping[str, Sequence[str]]:
    """Returns distribution -> top-level modules."""
    found: dict[str, list[str]] = {}
    for top, distributions in _owners().items():
        for distribution in {_normal(name) for name in distributions}:
            found.setdefault(distribution, []).append(top)
    return found


def _files(name: str) -> dict[str, str]:
    """Returns the file or folder of a top-level module; {} if there is none."""
    spec = importlib.machinery.PathFinder.find_spec(name) if name.isidentifier() else None
    if spec is None:
        return {}
    if not spec.submodule_search_locations:
        path = spec.origin and os.path.realpath(spec.origin)
        return {os.path.basename(path): path} if path and os.path.isfile(path) else {}
    return {name: os.path.realpath(next(iter(spec.submodule_search_locations)))}


def _required(distributions: Iterable[str]) -> Iterator[str]:
    """Yields the distributions, and all that they require on this platform; extras are not followed."""
    seen: set[str] = set()
    waiting = list(distributions)
    while waiting:
        name = _normal(waiting.pop())
        if name in seen:
            continue
        requires = _requires(name)
        if requires is None:  # required only on another platform
            continue
        seen.add(name)
        yield name
        waiting += requires


@functools.cache
def _requires(distribution: str) -> Sequence[str] | None:
    """Returns the distributions that one requires by itself, without extras; None if it is not installed."""
    try:
        requires = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return [match[0] for text in requires if "extra ==" not in text and (match := _DISTRIBUTION.match(text.strip()))]


def _metadata(distribution: str) -> Mapping[str, str]:
    """Returns the dist-info folder, from which packages read their version, and the library folder of wheels."""
    path = getattr(importlib.metadata.distribution(distribution), "_path", None)
    if path is None or not os.path.isdir(path):
        return {}
    libraries = f"{str(path).removesuffix('.dist-info').rpartition('-')[0]}.libs"
    return {os.path.basename(each): os.path.realpath(each) for each in (path, libraries) if os.path.isdir(each)}


def _imports(path: str) -> set[str]:
    """Returns the top-level names in the import statements of a file, or of a folder's files."""
    names: set[str] = set()
    for file in _sources(path):
        try:
            stat = os.stat(file)
            names |= _imports_of(file, stat.st_mtime_ns, stat.st_size)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # importing it will report this
            continue
    return names


@functools.lru_cache(maxsize=2 * _MAX_FILES)
def _imports_of(file: str, mtime_ns: int, size: int) -> frozenset[str]:
    """Returns the top-level names in the import statements of a file; its time and size tell whether it changed."""
    with open(file, "rb") as source:
        waiting: list[ast.AST] = [ast.parse(source.read())]
    names: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if not node.level and node.module:
                names.add(node.module.partition(".")[0])
        else:  # the blocks of a statement; no expression holds an import
            for block in _BLOCKS:
                waiting += getattr(node, block, ())
    return frozenset(names)


def _sources(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path] if path.endswith(".py") else []
    found: list[str] = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(".py")]
        if len(found) > _MAX_FILES:
            break
    return found[:_MAX_FILES]


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def fingerprint(module: str) -> str:
    """Returns a text that changes with the code of `module`: its distribution's version, or a digest of its files."""
    top = module.partition(".")[0]
    known = [f"{name} {importlib.metadata.version(name)}" for name in sorted(set(_owners().get(top, ())))]
    if known:
        return ", ".join(known)
    digest = hashlib.sha256()
    for place in _files(top).values():
        for path in _sources(place):
            with open(path, "rb") as file:
                digest.update(file.read())
    return f"src-{digest.hexdigest()[:10]}"
