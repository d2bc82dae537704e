"""Reports how to resume an interrupted run."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.config import OF_THE_COMMAND, Section
from r1lite.config.trust import foreign
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.run.display import Display
from r1lite.run.files import read_bytes
from r1lite.run.run_dir import RunDir
from verifiers.yaml_text import read_yaml


def resumption(folder: Path) -> str:
    """Returns the options that resume the run in a folder: with --trust if its settings need that."""
    values: Any = None
    with contextlib.suppress(OSError, ValueError, UserError):
        values = read_yaml(read_bytes(folder / "config.yaml"))
    return _options(folder, values)


def resumption_of(config: Section, folder: Path) -> str:
    """Returns the options of `resumption` for a configuration, without reading a file."""
    return _options(folder, config.model_dump(mode="json", exclude=set(OF_THE_COMMAND)))


def _options(folder: Path, values: Any) -> str:
    trust = ""
    with contextlib.suppress(UserError):
        trust = " --trust" if isinstance(values, dict) and foreign(values) else ""
    return f"--resume --out {shlex.quote(str(folder))}{trust}"


@contextlib.contextmanager
def ending(run_dir: RunDir, display: Display, *, speaks: bool = True) -> Iterator[None]:
    """Wraps all work in a run directory; restores the terminal at the end, also after an error.

    Args:
        speaks: print how to continue; with several ranks only one does.

    Raises:
        RunError: replaces an OSError (disk full, no permission) and names the file.
    """
    try:
        yield
    except (Interrupted, BrokenPipeError, SystemExit):
        display.finish()
        if speaks:
            print(f"stopped; continue with {resumption(run_dir.path)}", file=sys.stderr)
        raise
    except OSError as error:
        raise RunError(
            f"{error.filename or run_dir.path}: {error.strerror or error}. Saved checkpoints remain; once this is "
            f"fixed, continue with {resumption(run_dir.path)}"
        ) from error
    finally:
        display.finish()
