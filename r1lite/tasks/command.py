"""`r1lite tasks` lists the tasks with examples; `r1lite tasks check NAME` verifies the golds. Doesn't load torch."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r1lite.errors import UserError
from r1lite.tasks import TASKS, Problems, Source, Task, called, find, load, refuse_no_source
from verifiers import Completion, Problem, Reward, VerifierError, score_many

CARDS = Path(__file__).resolve().parent / "cards"
_WIDTH = 110


def main(argv: Sequence[str]) -> int:
    """Returns 0, or 1 if `check` found a gold that its own verifier rejects. Raises UserError."""
    options = _arguments(argv)
    if options.action == "check":
        return _check(options)
    if options.action == "card":
        print(card(options.name), end="")
        return 0
    for name in TASKS:
        print(describe(find(name)))
    print("reasoning_gym:NAME   any task of reasoning-gym, scored by its own scorer (pip install reasoning-gym)")
    print("module:attr          your own task: see r1lite/tasks/README.md")
    return 0


def describe(task: Task) -> str:
    """A task's line in the list, and its example."""
    lines = [f"{task.name:<16} {', '.join(task.sources)}; reward {task.reward}"]
    if task.example is not None:
        shown = " ".join(task.example.prompt.split())
        gold = task.gold(task.example).partition("<answer>")[2].removesuffix("</answer>")
        lines += textwrap.wrap(shown, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        lines.append(
            f"    -> {' '.join(gold.split()) if task.correct != 'code' else 'a program that passes the tests'}"
        )
    return "\n".join(lines) + "\n"


def card(name: str) -> str:
    """A task's card: origin, licence, rows, splits, known bad rows. Raises UserError."""
    path = CARDS / f"{name}.md"
    if name not in TASKS or not path.exists():
        raise UserError(f"no card for '{name}'; tasks with cards: {', '.join(TASKS)}")
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Failure:
    """A gold that its task's own verifier does not accept."""

    split: str
    problem: Problem
    why: str


def failures(task: Task, problems: Problems) -> list[Failure]:
    """The problems whose known answer doesn't get the full score from the verifiers of correctness and form.

    Raises:
        UserError: the verifier can't run on this machine (no isolation for code).
    """
    found = []
    correct, well_formed = Reward(task.correct), Reward(task.well_formed)
    for verify in correct.verifiers.values():
        try:
            getattr(verify, "level", None)  # makes a verifier that runs programs check its isolation
        except VerifierError as error:
            raise UserError(f"--task {task.name}: {error}") from error
    for split, part in (("train", problems.train), ("test", problems.test)):
        pairs: list[tuple[Problem, Completion]] = []
        for problem in part:
            try:
                pairs.append((problem, Completion(called("gold()", task.gold, problem))))
            except UserError as error:
                found.append(Failure(split, problem, f"can't write the gold: {error}"))
        for asked in (correct, well_formed):
            scores = score_many(asked, pairs)
            for (problem, _), score in zip(pairs, scores, strict=True):
                if score.reward != 1.0:
                    verdict = next(iter(score.verdicts.values()), None)
                    why = score.error or (f"{verdict.reason} {verdict.detail}".strip() if verdict else "no verdict")
                    found.append(Failure(split, problem, f"{asked.formula}: {why}"))
            pairs = [pair for pair, score in zip(pairs, scores, strict=True) if score.reward == 1.0]
    for verify in correct.verifiers.values():
        close = getattr(verify, "close", None)  # verifiers with worker processes have it
        if close is not None:
            close()
    return found


def _check(options: argparse.Namespace) -> int:
    task = find(options.name)
    if options.source is None:
        refuse_no_source(task)
    default = next((source for source in ("generated", "bundled", "hub") if source in task.sources), "hub")
    problems = load(task, Source(options.source or default, options.test_source, options.test_split, "drop"))
    bad = failures(task, problems)
    failed = [
        *problems.dropped,
        *(f"{problems.location(one.problem) or f'{one.split} {one.problem.name}: '}{one.why}" for one in bad),
    ]
    conflicts = problems.conflicts()
    failed += [f"{line}, with the same question" for line in conflicts]
    every = [problem.prompt for problem in (*problems.train, *problems.test)]
    total = len(problems.dropped) + len(every)
    print(f"{problems.origin}: {len(problems.train):,} train problems, {len(problems.test):,} test problems")
    for line in failed[: options.show]:
        print(f"  {line}")
    if len(failed) > options.show:
        print(f"  ... and {len(failed) - options.show} more (--show N)")
    passed = total - len(problems.dropped) - len({id(one.problem) for one in bad})
    print(f"{passed:,} of {total:,} golds pass {task.correct} and {task.well_formed}")
    if repeated := len(every) - len(set(every)):
        print(f"{repeated:,} questions repeat an earlier one, {len(conflicts):,} of them with another gold")
    if shared := problems.trained_on():
        print(f"{len(shared):,} of {len(problems.test):,} test questions are also train questions")
    return 1 if failed else 0


def _count(text: str) -> int:
    if (count := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"must be >= 0, got {count}")
    return count


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="r1lite tasks", description="Lists the tasks with an example each.", allow_abbrev=False
    )
    actions = parser.add_subparsers(dest="action")
    check = actions.add_parser("check", help="verify every gold of a task with the task's own verifiers")
    check.add_argument("name", help="a task: gsm8k, ..., reasoning_gym:NAME or module:attr")
    check.add_argument("--source", help="hub, bundled, or a file or folder with the columns of the Hub's data set")
    check.add_argument("--test-source", help="file with the test problems")
    check.add_argument("--test-split", default="test", help="split of the bundled problems to test on (test)")
    check.add_argument("--show", type=_count, default=20, metavar="N", help="number of failures to print (20)")
    show = actions.add_parser("card", help="print a task's card: origin, licence, columns, known bad rows")
    show.add_argument("name")
    return parser.parse_args(list(argv))
