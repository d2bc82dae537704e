"""The part of the machine that a run can see: the interpreter, the system's libraries and programs, devices.

The tree is read-only, without setuid, and holds neither /proc nor any installed package that was not chosen, because a
site-packages folder may hold the very benchmark that is being answered.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from verifiers.sandbox import linux

BOX = "/box"  # the run's own tmpfs; /tmp, /dev/shm and /dev/stdin point into it
WORK = f"{BOX}/tmp"
PACKAGES = "/packages"  # chosen extra packages, on sys.path
_SYSTEM = (
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/include",
    "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/include",
    "/usr/share/zoneinfo", "/usr/share/terminfo", "/usr/share/nodejs",  # node's own modules in Debian's packages
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
)  # fmt: skip
_FILES = ("/etc/ld.so.cache", "/etc/alternatives")  # used by the loader and by Debian's command links
_DEVICES = ("null", "zero", "urandom", "random", "full")
_HIDDEN = ("/usr/lib/python3/dist-packages", "/usr/lib/debug", "/usr/lib/node_modules", "/usr/local/lib/node_modules")


def readable_paths() -> list[str]:
    """Returns folders that a run may read and execute from."""
    prefix = os.path.realpath(sys.base_prefix)
    paths = [path for path in _SYSTEM if os.path.isdir(path)]
    if not any(prefix == path or prefix.startswith(path + "/") for path in paths):
        # Not the whole prefix: that of conda holds every package ever downloaded.
        paths += [f"{prefix}/{name}" for name in ("bin", "lib", "lib64") if os.path.isdir(f"{prefix}/{name}")]
    return list(dict.fromkeys(paths))


def hidden_paths() -> list[str]:
    """Returns folders below the readable ones that are covered by an empty folder."""
    found = {path for path in _HIDDEN if os.path.isdir(path)}
    for prefix in {os.path.realpath(sys.base_prefix), "/usr", "/usr/local"}:
        if not os.path.isdir(f"{prefix}/lib"):
            continue
        for folder in os.listdir(f"{prefix}/lib"):
            if folder.startswith("python3"):
                paths = [f"{prefix}/lib/{folder}/{kind}" for kind in ("site-packages", "dist-packages")]
                found.update(path for path in paths if os.path.isdir(path) and not os.path.islink(path))
    return sorted(found)


def build(root: str, packages: dict[str, str]) -> None:
    """Mounts the tree at `root` and makes it read-only; the caller owns the mount namespace.

    Args:
        root: an empty folder.
        packages: extra packages, name -> file or folder.
    """
    linux.mount("sandbox", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=755")
    for path in readable_paths():
        if os.path.islink(path):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            os.symlink(os.readlink(path), root + path)
        else:
            _bind(path, root + path)
    for path in _FILES:
        if os.path.exists(path):
            _bind(path, root + path)
    for path in hidden_paths():
        if os.path.isdir(root + path):
            linux.mount("hidden", root + path, "tmpfs", linux.MS_RDONLY, "size=4k,mode=755")
    os.makedirs(root + PACKAGES)
    for name, path in packages.items():
        _bind(path, f"{root}{PACKAGES}/{name}")
    os.makedirs(root + BOX)
    os.makedirs(root + "/etc", exist_ok=True)
    with open(root + "/etc/passwd", "w", encoding="ascii") as file:
        file.write(f"sandbox:x:0:0:sandbox:{WORK}:/bin/sh\n")
    os.makedirs(root + "/dev")
    for link, target in {"/tmp": WORK, "/dev/shm": f"{BOX}/shm", "/dev/stdin": f"{BOX}/stdin"}.items():
        os.symlink(target, root + link)
    os.makedirs(root + "/var", exist_ok=True)
    os.symlink(WORK, root + "/var/tmp")
    linux.make_read_only(root)
    # Devices come last: everything is made read-only, and everything but these nodev.
    linux.mount("dev", root + "/dev", "tmpfs", linux.MS_NOSUID, "size=64k,mode=755")
    for name in _DEVICES:
        _bind("/dev/" + name, f"{root}/dev/{name}")
    os.symlink(f"{BOX}/shm", root + "/dev/shm")
    os.symlink(f"{BOX}/stdin", root + "/dev/stdin")
    linux.make_read_only(root + "/dev", devices=True)


def enter(root: str) -> None:
    """Makes `root` the only visible tree."""
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    os.chdir(root)
    linux.pivot_root(".", ".")  # the old root is now mounted over the new one; the next line removes it
    linux.unmount(".")
    os.chdir("/")


def box_calls(size_bytes: int, inodes: int) -> list[Callable[[], int]]:
    """Returns the calls that mount a run's own writable tmpfs, in its own mount namespace, and change to it."""
    options = f"size={size_bytes},nr_inodes={inodes},mode=755".encode()
    flags = linux.MS_NOSUID | linux.MS_NODEV
    return [
        linux.prepared_libc("mount", b"box", BOX.encode(), b"tmpfs", flags, options),
        linux.prepared_libc("mkdir", WORK.encode(), 0o777),
        linux.prepared_libc("mkdir", f"{BOX}/shm".encode(), 0o777),
        linux.prepared_libc("chdir", WORK.encode()),
    ]


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb"):
            pass
    linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
