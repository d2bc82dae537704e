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
from r1lite.distributed.launcher import rank_info
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.run.display import Display
from r1lite.run.environment import read_environment
from r1lite.run.files import read_bytes
from r1lite.run.run_dir import RunDir
from verifiers.yaml_text import read_yaml


def resumption(folder: Path) -> str:
    """Returns the command that resumes the run in a folder: with --trust if its settings need that."""
    return _command(read_environment(folder)["stage"], folder, _needs_trust(_saved(folder)))


def resumption_of(config: Section, folder: Path) -> str:
    """Returns the command of `resumption` for a configuration, without reading a file."""
    values = config.model_dump(mode="json", exclude=set(OF_THE_COMMAND))
    return _command(config.stage, folder, _needs_trust(values))


def resuming_options(folder: Path) -> str:
    """Returns the options of `resumption` alone, for a command that starts the ranks."""
    return _options(folder, _needs_trust(_saved(folder)))


def _saved(folder: Path) -> Any:
    with contextlib.suppress(OSError, ValueError, UserError):
        return read_yaml(read_bytes(folder / "config.yaml"))
    return None


def _needs_trust(values: Any) -> bool:
    with contextlib.suppress(UserError):
        return isinstance(values, dict) and bool(foreign(values))
    return False


def _command(stage: Any, folder: Path, trust: bool) -> str:
    if "r1lite.cli" not in sys.modules:  # a program of the user's: the command line would not run its code
        return f"resume=True, out={str(folder)!r}{', trust=True' * trust} in the program's configuration"
    here = rank_info()
    ranks = f" (on {here.size} ranks)" if here is not None and here.size > 1 else ""
    command = f"r1lite {shlex.quote(stage)} " if isinstance(stage, str) else ""  # older runs don't tell it
    return f"{command}{_options(folder, trust)}{ranks}"


def _options(folder: Path, trust: bool) -> str:
    return f"--resume --out {shlex.quote(str(folder))}{' --trust' * trust}"


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
            f"{error.filename or run_dir.path}: {error.strerror or error}. What was saved is kept; once this is "
            f"fixed, continue with {resumption(run_dir.path)}"
        ) from error
    finally:
        display.finish()
