"""Reports how to resume an interrupted run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from r1lite.errors import Interrupted, RunError
from r1lite.run.display import Display
from r1lite.run.run_dir import RunDir


@contextlib.contextmanager
def ending(run_dir: RunDir, display: Display, *, speaks: bool = True) -> Iterator[None]:
    """Around all that is done in the run directory; leaves the terminal as it was, however that ends.

    Args:
        speaks: say how to go on; of several ranks one does.

    Raises:
        RunError: instead of an OSError (disk full, no permission), naming the file.
    """
    try:
        yield
    except (Interrupted, BrokenPipeError, SystemExit):
        display.finish()
        if speaks:
            print(f"stopped; continue with --resume --out {run_dir.path}", file=sys.stderr)
        raise
    except OSError as error:
        raise RunError(
            f"{error.filename or run_dir.path}: {error.strerror or error}. What was saved stands; once that is mended, "
            f"continue with --resume --out {run_dir.path}"
        ) from error
    finally:
        display.finish()
