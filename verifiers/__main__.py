"""`python -m verifiers COMMAND`: the verifiers at the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def _doctor(arguments: list[str]) -> int:
    """What this machine offers for running code in isolation."""
    argparse.ArgumentParser(prog="python -m verifiers doctor", description=_doctor.__doc__).parse_args(arguments)
    from verifiers.sandbox.probe import doctor

    text, usable = doctor()
    print(text)
    return 0 if usable else 1


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "doctor": _doctor,
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    lines = "\n".join(f"  {name:10} {(command.__doc__ or '').splitlines()[0]}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m verifiers",
        description="Rule-based rewards.",
        epilog=f"commands:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    return COMMANDS[given.command](given.arguments)


if __name__ == "__main__":
    sys.exit(main())
