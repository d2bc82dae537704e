"""In the place of `r1lite` on PATH: the command is a fork of the process that the environment names (`Forks`)."""

import os
import sys

from forks_for_tests import Forks

paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
code, said, errors = Forks.of_environment().run(sys.argv[1:], paths=paths)
sys.stdout.write(said)
sys.stderr.write(errors)
sys.exit(code)
