"""Kills every stage at each call that changes a file, and checks that it can be continued with the same result.

    python benchmarks/kill_points.py --out DIR [--stages grpo sft ...] [--every N] [--fault kill|full]

Each command runs on a tiny random model, in forks of one process that has loaded torch. After the fault one of two
commands must continue the stage: the same command, or with --resume. The other one must fail with a message that names
the right one. The resulting files must equal those of an uninterrupted run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    """Returns 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--stages", nargs="+", help="default: all")
    parser.add_argument("--every", type=int, default=1, help="try only each N-th call")
    parser.add_argument("--fault", choices=["kill", "full"], default="kill", help="SIGKILL, or a full disk")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import kill_points_for_tests as points
    from kill_stages_for_tests import jobs

    options.out.mkdir(parents=True, exist_ok=True)
    failed = False
    made = jobs(options.out)
    for name in options.stages or made:
        found = points.try_points({**made[name], "points": {options.fault: []}}, options.every)
        counts = f"{found['calls']:>5} calls, {found['tried']:>5} tried, {len(found['wrong']):>4} wrong"
        print(f"{name:<18} {counts}", flush=True)
        for at, trouble in found["wrong"]:
            failed = True
            print(f"  at {at}: {trouble}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
