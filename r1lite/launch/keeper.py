"""Runs a command, and kills it and its children when standard input ends, which means that the launcher is gone.

    python keeper.py COMMAND...

The keeper is the first process of its own session. The pipe ends whenever the launcher dies, even by kill -9. A second
process waits for the pipe's end, because a Ray worker that dies kills its direct children, and only those.
"""

import os
import signal
import subprocess
import sys

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def main(argv: list[str]) -> int:
    """Returns the command's exit code, or 128 + signal if a signal ended it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # threads of Ray's workers block Ctrl-C, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)  # scripts ignore it in their background jobs
    if not os.fork():
        for number in _FORWARDED:
            signal.signal(number, signal.SIG_IGN)  # they may be sent to every process, but this one waits for the pipe
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    for number in _FORWARDED:
        signal.signal(number, lambda signum, _: child.send_signal(signum))
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
