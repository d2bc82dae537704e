"""Rollouts by r1lite's engine compared with plain vLLM on one GPU: the same requests, in turns, at 0.5B, 1.5B and 7B.

    python benchmarks/gpu/rollouts.py

The purpose is to show that sampling through r1lite, with its checks of every weight update, reaches at least 0.95 of
plain vLLM's tokens per second. It also measures the seconds to send weights, to check them, to sleep and to wake, and
the share of sampling in a step. NOT RUN ON A GPU YET. benchmarks/rollout.py does the measurements; needs vLLM.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import ROOT, need_gpus, parser, run, tell


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--shapes", default="0.5B,1.5B,7B")
    arguments = made.parse_args()
    need_gpus(arguments)
    flags = ["--shapes", arguments.shapes]
    if arguments.dry_run:
        flags = ["--shapes", "tiny", "--prompts", "2", "--group", "2", "--completion", "4", "--repeats", "1"]
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "lines.jsonl"
        run(sys.executable, str(ROOT / "benchmarks" / "rollout.py"), *flags, "--out", str(found))
        for line in found.read_text(encoding="utf-8").splitlines():
            tell(arguments, **json.loads(line))


if __name__ == "__main__":
    main()
