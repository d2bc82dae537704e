"""Kills an actor that gives no sign of life: one that is stopped, or stuck in code that blocks all other threads.

Ray only notices processes that have ended.

    python watch.py PARENT SECONDS    kills its parent after so long without a byte on standard input
"""

from __future__ import annotations

import os
import select
import signal
import sys

_LOOK_S = 1.0


def watch(parent: int, silent_s: float) -> None:
    """Kills `parent` after `silent_s` without input. Returns when this process is no longer a child of `parent`."""
    silent = 0.0
    while os.getppid() == parent:
        if select.select([0], [], [], _LOOK_S)[0]:
            if not os.read(0, 1 << 16):
                return
            silent = 0.0
            continue
        silent += _LOOK_S  # not by a clock, as this process may have been stopped too
        if silent >= silent_s:
            os.kill(parent, signal.SIGKILL)
            return


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]))
