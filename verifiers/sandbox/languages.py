"""Languages of stdin-style programs: how to build and how to start one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from verifiers.core import VerifierError


@dataclass(frozen=True, slots=True)
class Language:
    """Commands run inside the sandbox; `{memory}` is the memory limit in MiB."""

    name: str
    tags: tuple[str, ...]  # of fenced blocks
    file: str = ""
    build: tuple[str, ...] = ()  # makes `program` out of `file`
    start: tuple[str, ...] = ()  # empty: the program itself
    address_limit: bool = True  # False: the runtime reserves more addresses than it ever uses


_ALL = (
    Language("python", ("python", "python3", "py", "py3", "pycon")),
    Language(
        "cpp",
        ("cpp", "c++", "cc", "cxx"),
        "main.cpp",
        ("g++", "-std=c++17", "-O2", "-pipe", "-o", "program", "main.cpp"),
    ),
    Language(
        "javascript",
        ("javascript", "js", "node", "nodejs"),
        "main.js",
        start=("node", "--max-old-space-size={memory}", "--stack-size=16000", "main.js"),
        address_limit=False,
    ),
)
LANGUAGES: dict[str, Language] = {language.name: language for language in _ALL}


def installed(command: str) -> str:
    """Full path of a compiler or interpreter. Raises VerifierError where it is not installed."""
    found = shutil.which(command, path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        raise VerifierError(f"'{command}' is not installed (looked in /usr/local/bin, /usr/bin, /bin)")
    return found
