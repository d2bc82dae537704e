"""`r1lite launch [OPTIONS] -- STAGE [RECIPE] [FLAGS]`."""

from __future__ import annotations

from collections.abc import Sequence

from r1lite.config import load
from r1lite.config.launch import LaunchConfig
from r1lite.errors import UserError


def main(arguments: Sequence[str]) -> int:
    """Runs the command; see `start` for what it returns and raises."""
    own, words = _split(arguments)
    launch = load(LaunchConfig, own, prog="r1lite launch")
    from r1lite.launch.starting import start  # loads torch, which help and mistakes need not wait for

    return start(launch, words)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the launcher's own options, the words of the launched command)."""
    if "--" in arguments:
        at = list(arguments).index("--")
        return list(arguments[:at]), list(arguments[at + 1 :])
    if {"-h", "--help", "--help-all"} & set(arguments):
        return list(arguments), []
    raise UserError(
        "r1lite launch [OPTIONS] -- STAGE [RECIPE] [FLAGS]: write the stage's command after --, as in: r1lite launch "
        "--ranks 2 --engines 2 -- grpo gsm8k-nano --steps 4"
    )
