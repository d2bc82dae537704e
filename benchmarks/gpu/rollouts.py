"""Rollouts by r1lite's engine beside bare vLLM on one GPU: the same requests, in turns, at 0.5B, 1.5B and 7B.

    python benchmarks/gpu/rollouts.py

It would prove that sampling through r1lite, with its checks of every weight update, keeps at least 0.95 of bare vLLM's
tokens a second, and tell seconds to give weights, to check them, to sleep and to wake, and sampling's share of a step.
NOT RUN ON A GPU YET. The measuring itself is benchmarks/rollout.py; needs vLLM.
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
