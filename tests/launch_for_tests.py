"""An engine for `r1lite launch --engine-command`: vLLM's routes, a token for each call, completions of no model.

python launch_for_tests.py HOST PORT [FOLDER]    FOLDER: gets a file with its process's number, named after its port
"""

import os
import sys
import threading
from pathlib import Path

from fleet_for_tests import FakeVLLM


class Guarded(FakeVLLM):
    def refused(self, handler):
        if handler.headers.get("Authorization") != f"Bearer {os.environ['R1LITE_ENGINE_TOKEN']}":
            return 401, "no token"
        return None


if __name__ == "__main__":
    Guarded.HOST, port, *folder = sys.argv[1:]
    if folder:
        (Path(folder[0]) / port).write_text(str(os.getpid()))
    Guarded(int(port), delay=0.1)
    print("an engine of no model", flush=True)
    threading.Event().wait()
