"""Ends commands at their n-th call that changes a file, in forked children, and has them continued.

    python kill_points_for_tests.py JOB.json

JOB: {"out", "argv", "points": {"kill": [...], "full": [...]}}, points as shares of all calls. Prints a line of JSON for
each job: how many calls there are, how many were tried, and for each that went wrong what did.

A call is: opening a file to write, fsync, rename, mkdir, unlink, rmdir, truncate, below the folder that holds `out`.
"kill" ends the process before the call (SIGKILL). "full" lets it and all later ones that need room fail for want of it.
"""

import contextlib
import ctypes
import errno
import functools
import io
import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path

import preloaded  # noqa: F401  # so that no child has to
import torch

import r1lite.pipeline.run
from r1lite.cli import main

_CLOCKS = {
    *("generate_s", "score_s", "train_s", "step_s", "wall_s", "peak_rss_mib", "memory", "engine_start_s", "started"),
    *("argv", "cpu_s", "cpu_s_in_all", "resumed", "sync_s", "max_rss_mib"),
}
_LIBC = ctypes.CDLL(None)
_NEEDS_ROOM = {"open", "os.mkdir", "fsync"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Shim:
    """Counts the calls of this process, and does what is to be done at the `at`-th; None: nothing."""

    def __init__(self, root, at=None, fault="kill"):
        self.root, self.at, self.fault, self.calls = f"{root}{os.sep}", at, fault, 0
        self.pid = os.getpid()  # a stage of a pipeline is a fork, and left alone
        sys.addaudithook(self._hook)
        self.fsync, os.fsync = os.fsync, self._fsync

    def end(self):
        os.fsync, self.pid = self.fsync, 0

    def _fsync(self, handle):
        number = handle if isinstance(handle, int) else handle.fileno()
        self._count("fsync", os.readlink(f"/proc/self/fd/{number}"))
        self.fsync(handle)

    def _hook(self, event, given):
        if event == "open" and isinstance(given[2], int) and given[2] & _WRITES:
            self._count(event, given[0])
        elif event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"):
            path = given[0]
            folder = given[-1] if event in ("os.remove", "os.rmdir") else -1
            if isinstance(folder, int) and folder >= 0:
                path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
            self._count(event, path)

    def _count(self, event, path):
        if (
            os.getpid() != self.pid
            or isinstance(path, int)
            or not os.path.abspath(os.fsdecode(path)).startswith(self.root)
        ):
            return
        self.calls += 1
        if self.fault == "kill" and self.calls == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "full" and self.at is not None and self.calls >= self.at and event in _NEEDS_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(path))


class Stage:
    """A pipeline's stage as a fork of this process, in place of `multiprocessing.Process`."""

    def __init__(self, argv, log, usage, progress):
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            _LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # dies with the pipeline
            os._exit(70 if os.getppid() != parent else command(argv, log))
        self.sentinel, self.exitcode = os.pidfd_open(self.pid), None
        self.join()  # one after the other

    def join(self, timeout=None):
        if self.exitcode is None:
            self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def terminate(self):
        pass

    kill = terminate


def command(argv, log):
    """The command's exit code; its output goes to a file."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), line_buffering=True)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), line_buffering=True)
    try:
        return main(argv)
    except BaseException:
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def run(argv, log, shim=None):
    """(exit code, what it said) of the command in a forked child; `shim` makes one there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    pid = os.fork()
    if not pid:
        code = 71
        try:
            if shim is not None:
                shim()
            code = command(argv, log)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, Path(log).read_text(errors="replace") if Path(log).exists() else ""


def run_here(argv, root):
    """(exit code, number of calls) of the command in this process: its imports need not be made in every fork."""
    shim = Shim(root)
    try:
        with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
            return main(argv), shim.calls
    finally:
        shim.end()


def state(out):
    """Everything in a folder that two runs have in common."""
    found = {}
    for path in sorted(Path(out).parent.rglob("*")):
        name = str(path.relative_to(Path(out).parent))
        if path.is_file() and path.name != ".lock" and path.suffix not in (".log", ".usage"):
            found[name] = _content(path)
    return found


def _content(path):
    if path.name in ("trainer.pt", "manifest.json") and path.parent.name.startswith("step-"):
        return "there"  # it holds clocks
    if path.name == "report.html":
        return "there"  # likewise
    if path.suffix in (".json", ".jsonl"):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        return [_without_clocks(json.loads(line)) for line in lines]
    return path.read_bytes()


def _without_clocks(value):
    if isinstance(value, dict):
        return {key: _without_clocks(inner) for key, inner in value.items() if key not in _CLOCKS}
    return [_without_clocks(inner) for inner in value] if isinstance(value, list) else value


def differing(found, expected):
    names = sorted({*found, *expected})
    return [name for name in names if found.get(name) != expected.get(name)]


def resume_of(argv, out):
    return [argv[0], "--resume", "--trust", "--out", out] if argv[0] not in ("pretrain", "r1") else None


def continued(argv, out, log, *, resume_first):
    """What went wrong when the run was continued by one of the two commands; "" if nothing did."""
    again = resume_of(argv, out)
    if again is None:
        code, said = run(argv, log)
        return "" if code == 0 else f"the same command: exit {code}: {said[-2000:]}"
    commands = [(again, "without --resume"), (argv, "--resume")]
    for (words, other), (others, _) in [commands, commands[::-1]] if resume_first else [commands[::-1], commands]:
        code, said = run(words, log)
        if code == 0:
            return ""
        if code != 2 or other not in said or "Traceback" in said:
            return f"{' '.join(words[:2])}: exit {code}: {said[-2000:]}"
        code, said = run(others, log)
        return "" if code == 0 else f"{' '.join(others[:2])}: exit {code}: {said[-2000:]}"


def try_points(job, every=None):
    """A run that nothing happens to, and then one for each point, or for `every`-th call."""
    torch.set_num_threads(1)
    r1lite.pipeline.run.start = Stage
    out, argv = job["out"], job["argv"]
    root, log, fresh = Path(out).parent, f"{Path(out).parent}.log", f"{Path(out).parent}.fresh"
    root.mkdir(exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(root, fresh)  # what was there before
    code, calls = run_here(argv, root)
    if code:
        return {"calls": calls, "tried": 0, "wrong": [[0, f"without a fault: exit {code}"]]}
    expected, wrong, tried = state(out), [], 0
    for fault, shares in job["points"].items():
        chosen = {1 + round(share * (calls - 1)) for share in shares} if every is None else range(1, calls + 1, every)
        for at in sorted(chosen):
            shutil.rmtree(root)
            shutil.copytree(fresh, root)
            tried += 1
            if trouble := try_point(argv, out, log, at, fault, expected):
                wrong.append([at, f"{fault}: {trouble}"])
    return {"calls": calls, "tried": tried, "wrong": wrong}


def compared_later(argv, out, log, found, expected):
    """What went wrong with the results that `eval --against MODEL` keeps if MODEL was not measured to the end, and with
    the command that it names for the comparison; "" if nothing did."""
    model = found["out/summary.json"][0]["against"]
    kept, wanted = ({name: it for name, it in one.items() if "/against/" not in name} for one in (found, expected))
    wanted["out/summary.json"] = [{**wanted["out/summary.json"][0], "comparison": None}]
    # Nothing is written there any more, so what a kill left half-written under a hidden name stays.
    if names := [name for name in differing(kept, wanted) if not name.endswith(("report.html", ".json.part"))]:
        return f"not kept: {names}"
    code, said = run([argv[0], "--resume", "--out", out], log)
    if code or f"r1lite eval --model {model} --against {out}" not in " ".join(said.split()):
        return f"--resume: exit {code}: {said[-2000:]}"
    other = f"{out}-other"
    code, said = run([*argv[:2], "--model", model, "--against", out, "--out", other], log)
    if code:
        return f"the comparison: exit {code}: {said[-2000:]}"
    rows, summary = (_content(Path(other, name)) for name in ("problems.jsonl", "summary.json"))
    is_same = rows == expected["out/against/problems.jsonl"] and summary[0]["comparison"]
    return "" if is_same else "the comparison is another one"


def try_point(argv, out, log, at, fault, expected):
    """What went wrong, or ""."""
    code, said = run(argv, log, functools.partial(Shim, Path(out).parent, at, fault))
    if "Traceback" in said or code not in {"kill": (-signal.SIGKILL,), "full": (0, 1, 2)}[fault]:
        return f"exit {code}: {said[-2000:]}"
    if code and (trouble := continued(argv, out, log, resume_first=at % 2 == 0)):
        return trouble
    found = state(out)
    if (
        argv[0] == "eval"
        and not found["out/summary.json"][0]["comparison"]
        and expected["out/summary.json"][0]["comparison"]
    ):
        return compared_later(argv, out, log, found, expected)
    names = differing(found, expected)
    if fault == "full" and code == 0:  # a run does not fail for want of room for its report, and says how to make it
        names = [name for name in names if not name.endswith("report.html")]
    return f"not the same: {names[:10]}" if names else ""


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps(try_points(json.loads(Path(path).read_text()))), flush=True)
