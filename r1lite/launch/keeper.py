"""Runs a command, and kills it with all that it started as soon as standard input ends: then its launcher is gone.

    python keeper.py COMMAND...

It is the first process of a session of its own. A pipe ends however the launcher dies, by kill -9 too. A process beside
this one waits for that: a Ray worker that dies takes its own children with it, and these alone.
"""

import os
import signal
import subprocess
import sys


def main(argv: list[str]) -> int:
    """The command's exit code; 128 + signal where one ended it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # threads of Ray's workers block Ctrl-C, for what they start too
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of scripts
    if not os.fork():
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, _: child.send_signal(signum))
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
