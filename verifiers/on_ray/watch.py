"""Ends an actor that gives no sign of life: one that is stopped, or stuck in code that lets no other thread run.

Ray notices processes that are gone, and no others.

    python watch.py PARENT SECONDS    kills its parent after so long without a byte on standard input
"""

from __future__ import annotations

import os
import select
import signal
import sys

_LOOK_S = 1.0


def watch(parent: int, silent_s: float) -> None:
    """Returns when this process is no child of `parent` any more."""
    silent = 0.0
    while os.getppid() == parent:
        if select.select([0], [], [], _LOOK_S)[0]:
            if not os.read(0, 1 << 16):
                return
            silent = 0.0
            continue
        silent += _LOOK_S  # not by a clock: while this process is stopped as well, nothing is learnt of its parent
        if silent >= silent_s:
            os.kill(parent, signal.SIGKILL)
            return


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]))
