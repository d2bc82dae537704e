"""Updates the table of verifiers in verifiers/README.md: `python -m verifiers bench` on the bundled cases.

    python benchmarks/verifiers_table.py [VERIFIER...]

By default math, math-verify and trl:accuracy_reward, which need `pip install 'math-verify[antlr4_13_2]' trl`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from verifiers.__main__ import main  # noqa: E402

BEGIN, END = "<!-- verifiers-table -->\n", "<!-- end -->\n"


def write(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "table.md"
        code = main(["bench", *names, "--show", "0", "--markdown", str(made)])
        if code:
            return code
        table = made.read_text(encoding="utf-8")
    readme = ROOT / "verifiers" / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write(sys.argv[1:] or ["math", "math-verify", "trl:accuracy_reward"]))
