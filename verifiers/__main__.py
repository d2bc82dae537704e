"""`python -m verifiers COMMAND`: the command line of the verifiers. Each command loads only what it needs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from verifiers.core import Completion, Problem, VerifierError
from verifiers.terminal import guarded, unbroken


class Command(NamedTuple):
    """One sub-command: its help, a function that adds its arguments, and one that runs it and returns the exit code."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _math_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gold", required=True, help="the right answer: a number, LaTeX or text")
    parser.add_argument("--answer", help="the model's answer; read from standard input if left out")
    parser.add_argument("--prompt", default="", help="the question, for multiple choice and percentages")
    parser.add_argument("--explain", action="store_true", help="show every step that led to the verdict")
    parser.add_argument(
        "--strict", action="store_true", help="only the <answer> block counts; an exact gold needs an exact answer"
    )
    parser.add_argument(
        "--precision", type=int, help="significant digits at which a decimal is accepted for an exact gold; 0: never"
    )
    parser.add_argument("--percent", choices=("either", "value"), default="either", help="may 50%% be written 50?")
    parser.add_argument("--units", choices=("drop", "require"), default="drop", help="may a unit be left out?")
    parser.add_argument("--multiple-choice", choices=("auto", "letter"), default="auto",
                        help="may the text of an option be given instead of its letter?")  # fmt: skip


def _math(options: argparse.Namespace) -> int:
    """Exit code 0: the answer is right; 1: it is wrong; 2: the check can't be made."""
    from verifiers.mathexpr.verify import Explanation, MathVerifier

    text = sys.stdin.read() if options.answer is None else options.answer
    explanation = Explanation() if options.explain else None
    try:
        verifier = MathVerifier(
            strict=options.strict, precision=options.precision, percent=options.percent, units=options.units,
            multiple_choice=options.multiple_choice,
        )  # fmt: skip
        verdict = verifier.judge(Problem(options.prompt, answer=options.gold), Completion(text), explanation)
    except (VerifierError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if explanation is not None:
        print(f"{'gold':<10} {verdict.gold_type}: {options.gold!r}")
        for rung, what in explanation.steps:
            print(f"{rung:<10} {what}")
    where = "" if verdict.span is None else f"  answer {verdict.answer!r} at {verdict.span[0]}-{verdict.span[1]}"
    rung = f"  rung {verdict.rung}" if verdict.rung else ""
    detail = f"  ({verdict.detail})" if verdict.detail else ""
    print(f"{verdict.score:g}  {verdict.reason}{rung}{where}{detail}")
    return 0 if verdict.score == 1.0 else 1


def _doctor(options: argparse.Namespace) -> int:
    """Exit code 0: code can run in isolation on this machine; 1: it can't."""
    from verifiers.sandbox.probe import doctor

    text, usable = doctor()
    print(text)
    return 0 if usable else 1


def _lazy(module: str, name: str) -> Callable[[Any], Any]:
    """Returns a function of `verifiers.commands` that is imported when its command is called."""

    def call(argument: Any) -> Any:
        return getattr(importlib.import_module(f"verifiers.commands.{module}"), name)(argument)

    return call


def _from(module: str, help: str) -> Command:
    return Command(help, _lazy(module, "arguments"), _lazy(module, "run"))


COMMANDS: dict[str, Command] = {
    "audit": _from("audit", "try a verifier on right, wrong and hostile answers"),
    "bench": _from("bench", "measure verifiers side by side on labelled cases"),
    "compare": _from("compare", "show where two files of results disagree"),
    "doctor": Command("what this machine offers for running code in isolation", lambda parser: None, _doctor),
    "math": Command("compare one answer with its gold", _math_arguments, _math),
    "replay": _from(
        "replay", "score a run's rollouts, or a curated set, again and check that the verdicts are the same"
    ),
    "score": _from("score", "score a file of completions"),
    "serve": _from("serve", "serve rewards over HTTP"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command, with control characters in its output escaped; returns its exit code."""
    code = 0  # also when the reader of the output closes it early
    with guarded(), unbroken():
        code = _ran(arguments)
    return code


def _ran(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verifiers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help)
        if given[:1] == [name]:  # the modules of other commands need not be loaded
            command.arguments(sub)
    options = parser.parse_args(given)
    try:
        return COMMANDS[options.command].run(options)
    except BrokenPipeError:
        raise
    except (ValueError, VerifierError, OSError) as error:
        what: object = error
        if isinstance(error, OSError) and error.filename is not None:
            what = f"{error.filename}: {error.strerror}"
        print(f"error: {what}", file=sys.stderr)
        return 2
    except SystemExit as error:
        if error.code not in (0, None):
            raise
        # Without a message, a command that did nothing would look like a success.
        print("error: code that this command called ended the program by sys.exit()", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
