"""Starts a worker of Ray as a fork of the process that has imported torch; takes the place of Ray's `setup_worker.py`.

python ray_worker_for_tests.py FILE ARGUMENTS...
"""

import os
import sys
from pathlib import Path

from forks_for_tests import Forks

_OF_SETUP = ("--language=", "--serialized-runtime-env-context=")


def worker_file(pid):
    """Holds the number of the worker that the process `pid` of this program has started: it isn't this one's child."""
    return Path(os.environ["TESTS_FORKS"].split(os.pathsep)[0]) / f"ray-worker-{pid}"


if __name__ == "__main__":
    file, *argv = (word for word in sys.argv[1:] if not word.startswith(_OF_SETUP))
    worker = Forks.of_environment().start(argv, script=file, hooks=False)  # Ray's threads don't survive a fork
    worker_file(os.getpid()).write_text(str(worker.pid))
    sys.exit(worker.wait())
