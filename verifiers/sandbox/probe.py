"""The isolation levels of this machine, determined by trying them."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass

from verifiers.core import VerifierError
from verifiers.sandbox import cgroup, linux
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.pool import Pool

_ERRNO = re.compile(r"\[Errno (\d+)\]")
LEVELS = ("full", "ns", "landlock", "rlimit-only")
MEANING = {
    "full": "namespaces, read-only root, seccomp, rlimits, cgroup",
    "ns": "namespaces, read-only root, seccomp, rlimits; memory of several processes is watched, not capped",
    "landlock": "Landlock, seccomp, rlimits; no processes besides the program itself",
    "rlimit-only": "seccomp and rlimits only: a submission has its user's rights over this machine's files",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The levels that work here, and the reasons why the others don't."""

    works: tuple[str, ...]  # strongest first
    missing: dict[str, str]  # level -> reason

    @property
    def best(self) -> str | None:
        """The strongest level that may be used without being named; never `rlimit-only`."""
        return next((level for level in self.works if level != "rlimit-only"), None)


@functools.cache
def report() -> Report:
    """Starts one run at each level, the strongest first; takes seconds on the first call, then cached."""
    missing: dict[str, str] = {}
    works = []
    for level in LEVELS:
        trouble = _trouble(level)
        if trouble:
            missing[level] = trouble
        else:
            works.append(level)
    return Report(tuple(works), missing)


@functools.cache
def _trouble(level: str) -> str:
    """Returns the reason why the level is unavailable, "" if it is available."""
    if not linux.supported():
        return "needs Linux on x86_64 or aarch64"
    if level == "full":
        try:
            groups = cgroup.create("probe", 256 << 20, 32)
        except OSError as error:
            raise VerifierError(f"isolation level '{level}' can't be tried now: {error}") from error
        if groups is None:
            return "no cgroup that this user can divide (memory, pids); run as root, or ask for delegation (cgroup v2)"
        groups.remove()
    if level == "landlock" and linux.landlock_abi() < 1:
        return "the kernel has no Landlock (5.13 or later, with `landlock` among its `lsm=`)"
    pool = Pool(level, 1, Limits(), packages={}, preload=())
    try:
        run = pool.start("candidate", Limits())
        run.channel.shutdown(1)
        run.finish()
    except OSError as error:
        raise VerifierError(f"isolation level '{level}' can't be tried now: {error}") from error
    except VerifierError as error:
        number = _ERRNO.search(str(error))
        if number and int(number[1]) in cgroup.EXHAUSTED:  # a temporary shortage must not lead to a weaker level
            raise
        return f"{error}{_advice(level, str(error))}"
    finally:
        pool.close()
    return ""


def _advice(level: str, error: str) -> str:
    if level not in ("full", "ns"):
        return ""
    for path, wanted in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0"),
    ):
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                if file.read().strip() != wanted:
                    return f"; allow user namespaces: sysctl {path[len('/proc/sys/') :].replace('/', '.')}={wanted}"
    if "unshare" in error:
        return "; user namespaces are refused: in a container allow them (unconfined seccomp and apparmor profile)"
    return ""


def choose(level: str) -> str:
    """Returns the level to use for an option value: "auto", or one of LEVELS, which must be available.

    Raises:
        VerifierError: it is unavailable; the message says what is missing and what to allow.
        ValueError: there is no such level.
    """
    if level == "auto":
        for candidate in LEVELS[:-1]:
            if not _trouble(candidate):
                return candidate
        reasons = "; ".join(f"{name}: {_trouble(name)}" for name in LEVELS[:-1])
        raise VerifierError(
            f"code can't be isolated on this machine ({reasons}). isolation='rlimit-only' would run it anyway, "
            "with all rights of its user over this machine's files"
        )
    if level not in LEVELS:
        raise ValueError(f"isolation must be 'auto' or one of {', '.join(LEVELS)}; got {level!r}")
    trouble = _trouble(level)
    if trouble:
        raise VerifierError(f"isolation level '{level}' is unavailable here: {trouble}")
    return level


def doctor() -> tuple[str, bool]:
    """Returns the text of `python -m verifiers doctor`, and whether code can be isolated at all."""
    from verifiers.sandbox.languages import LANGUAGES, installed

    found = report()
    lines = ["code verifier:"]
    for level in LEVELS:
        state = "works" if level in found.works else f"no: {found.missing[level]}"
        lines.append(f"  {level:12} {state}   ({MEANING[level]})")
    lines.append(f"  in force by default: {found.best or 'none; the code verifier refuses to run'}")
    lines.append(f"  Landlock ABI {linux.landlock_abi()}, user {os.getuid()}, {os.cpu_count()} cores")
    for language in LANGUAGES.values():
        for command in (*language.build[:1], *language.start[:1]):
            try:
                lines.append(f"  {language.name}: {installed(command)}")
            except VerifierError as error:
                lines.append(f"  {language.name}: no: {error}")
    return "\n".join(lines), found.best is not None
