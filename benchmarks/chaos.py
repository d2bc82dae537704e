"""Random faults in runs on two ranks: signals at any moment, exceptions, full disks, stuck ranks, lack of memory.

Each run must end in time with at most one error line and leave no process; continued, it must end like an undisturbed
one.

    python benchmarks/chaos.py --rounds 200 [--seed 0] [--at-once 4] [--out DIR]

A round starts two processes once or twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    """Returns 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="number of the first round")
    parser.add_argument("--at-once", type=int, default=4, help="rounds that run at the same time")
    parser.add_argument("--out", type=Path, help="folder for the runs; by default a temporary one")
    options = parser.parse_args()
    from chaos_for_tests import Chaos, at_once
    from forks_for_tests import Forks

    folder = options.out or Path(tempfile.mkdtemp(prefix="r1lite-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    forks = Forks(folder)
    failed = 0
    with at_once(options.at_once) as lanes:
        rounds = Chaos(folder, forks).rounds(range(options.seed, options.seed + options.rounds), lanes)
        for seed, done in sorted(rounds.items()):
            what, wrong = done.result()
            failed += wrong is not None
            print(f"{seed:>4} {'ok' if wrong is None else 'WRONG'}  {what}", flush=True)
            if wrong is not None:
                print(wrong, flush=True)
    forks.close()
    print(f"{options.rounds} rounds, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
