"""Runs one group of checks in its own process: `python -m r1lite.selftest.child`, with the request on standard input.

Results are written to the original standard output, one line of JSON each; output of libraries goes to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys

from r1lite.errors import RunError, UserError
from r1lite.selftest import Options, Result
from r1lite.selftest.groups import Group


def main() -> None:
    """Reads {"group": ..., "options": ...} and writes the results."""
    asked = json.load(sys.stdin)
    group, options = Group(**asked["group"]), Options(**asked["options"])
    with os.fdopen(os.dup(1), "w") as results:
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        try:
            for result in group.run(options):
                print(json.dumps(dataclasses.asdict(result)), file=results, flush=True)
        except (UserError, RunError) as error:
            failed = Result(group.name, "failed", str(error))
            print(json.dumps(dataclasses.asdict(failed)), file=results, flush=True)
        results.flush()


if __name__ == "__main__":
    main()
