"""Runs submissions where they can reach neither the machine nor the verdict.

    verify.py      CodeVerifier: problem and completion -> Verdict
    spec.py        parses and checks the three test styles       convert.py    rows of public data sets
    submission.py  the program inside a completion               signs.py      signs of cheating in its text
    judge.py       runs a submission, compares outside           checkers.py   comparison of texts and values
    pool.py        starts, lends and closes fork-servers         probe.py      isolation levels of this machine
    zygote.py      the fork-server                               watch.py      clocks and memory of one run
    child.py       the untrusted process                         oracle.py     the process of trusted test code
    wire.py        values as messages                            languages.py  compile and run commands
    linux.py, seccomp.py, rootfs.py, cgroup.py, limits.py        isolation and limits

Protected: files, processes, network, memory, CPU, disk and output of the machine; tests and expected values.
Not protected: timing side channels between runs, and bugs of the kernel.
"""

from verifiers.sandbox.convert import from_apps, from_code_contests, from_humaneval, from_mbpp
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.verify import REASONS, CodeVerifier

__all__ = ["REASONS", "CodeVerifier", "Limits", "from_apps", "from_code_contests", "from_humaneval", "from_mbpp"]
