"""Stand-ins for Slurm's commands, which start the tasks of steps on this machine.

`install(folder)` makes srun, scontrol, squeue, scancel and sbatch there, for PATH. folder/calls has what was asked,
folder/steps/STEP the numbers of a step's processes.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from forks_for_tests import Forks

COMMANDS = ("srun", "scontrol", "squeue", "scancel", "sbatch")


def install(folder):
    (folder / "steps").mkdir(parents=True)
    for name in COMMANDS:
        path = folder / name
        path.write_text(f'#!/bin/bash\nexec "{sys.executable}" -S "{__file__}" {name} "{folder}" "$@"\n')
        path.chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "nodes[1-2]",
    }


def start(words, variables, log):
    """A task; a command of Python's is a fork where the environment tells of one that forks."""
    with open(log, "ab") as output:
        if "TESTS_FORKS" not in os.environ or words[0] != sys.executable:
            return subprocess.Popen(words, env={**os.environ, **variables}, stdout=output, stderr=output)
    if words[1:3] == ["-m", "r1lite"]:
        return Forks.of_environment().start(words[3:], env=variables, output=log)
    return Forks.of_environment().start(words[2:], script=words[1], env=variables, output=log)


def _path(pattern, rank):
    return re.sub("%(.)", lambda found: {"%": "%", "t": str(rank)}[found[1]], pattern)


def srun(folder, options, words):
    """Its own death by SIGTERM kills all its tasks, as that of the real one does."""
    size = int(options["ntasks"])
    assert "overlap" in options
    tasks = []
    for rank in range(size):
        variables = {
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank % int(options.get("ntasks-per-node", size))),
            "SLURM_STEP_NUM_TASKS": str(size),
            "SLURM_NTASKS_PER_NODE": options.get("ntasks-per-node", str(size)),
        }
        tasks.append(start(words, variables, _path(options["output"], rank)))
    (folder / "steps" / options["job-name"]).write_text(" ".join(str(task.pid) for task in tasks))

    def kill(*_):
        for task in tasks:
            task.kill()

    signal.signal(signal.SIGTERM, kill)
    return max(task.wait() % 256 for task in tasks)


def scontrol(folder, options, words):
    if words[:2] == ["show", "hostnames"]:
        print("localhost\n127.0.0.1")


def squeue(folder, options, words):
    if (folder / "steps" / options["name"]).exists():
        print(f"{options['jobs']}.{options['name']}")


def scancel(folder, options, words):
    for pid in (folder / "steps" / words[0].partition(".")[2]).read_text().split():
        os.kill(int(pid), getattr(signal, f"SIG{options['signal']}"))


def sbatch(folder, options, words):
    print("7")


def main(name, folder, *argv):
    words = list(argv)
    options = {}
    while words and (found := re.fullmatch(r"--([\w-]+)(?:=(.*))?", words[0], re.DOTALL)):
        options[found[1]] = found[2]
        words.pop(0)
    with open(Path(folder) / "calls", "a") as calls:
        calls.write(f"{name} {' '.join(argv)}\n")
    return globals()[name](Path(folder), options, words) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
