"""Runs commands in forked children, which need not import torch again, and kills them at random moments.

    python kills_for_tests.py JOB.json

JOB: {"seed", "kills", "argv", "resume": argv, "out"}. Prints a line of JSON for each kill: when it came, the steps that
were recorded, the newest checkpoint, and the checksums of rollouts/.
"""

import gc
import glob
import json
import os
import random
import signal
import sys
import time
import traceback
import zlib
from pathlib import Path

import preloaded  # noqa: F401  # so that no child has to
import torch

from r1lite.cli import main
from r1lite.run import checkpoint

_PATIENCE_S = 120.0


def start(argv):
    """A child that runs the command."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        code = main(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def recorded(out):
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_at(pid, out, when, rng):
    """Waits for the moment and kills. Returns the exit code if the child ended before."""
    began, before = time.monotonic(), recorded(out)
    pause = rng.random()
    while time.monotonic() - began < _PATIENCE_S:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if (
            (when == "start" and time.monotonic() - began > 0.4 * pause)
            or (when == "step" and recorded(out) > before)
            or (when == "save" and glob.glob(str(out / "checkpoints" / ".step-*.part")))
        ):
            break
        time.sleep(0.001)
    time.sleep(0.02 * pause if when == "step" else 0.008 * pause if when == "save" else 0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def newest(out):
    found, damaged = checkpoint.latest(out / "checkpoints")
    return (found[0] if found else 0), [path.name for path in damaged]


def run(job):
    out, rng = Path(job["out"]), random.Random(job["seed"])
    for number in range(job["kills"]):
        begun = (out / "config.yaml").exists()
        pid = start(job["resume"] if begun else job["argv"])
        when = "start" if number % 7 == 0 else rng.choice(["step", "save"])
        code = kill_at(pid, out, when, rng)
        step, damaged = newest(out)
        told = {"when": when, "code": code, "recorded": recorded(out), "checkpoint": step, "damaged": damaged}
        told["rollouts"] = {
            path.name: zlib.crc32(path.read_bytes()) for path in (out / "rollouts").glob("step-*") if path.is_file()
        }
        print(json.dumps(told), flush=True)
        if code is not None:
            sys.exit(f"kill {number} came too late: the command had ended with {code}")
    pid = start(job["resume"] if (out / "config.yaml").exists() else job["argv"])
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.freeze()  # a collection in a child would copy all of it
    run(json.loads(Path(sys.argv[1]).read_text()))
