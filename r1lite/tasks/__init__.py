"""Tasks by name: built-in or `module:attr`. A task is a loader, a template and a reward formula; see README.md."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from r1lite.errors import UserError
from verifiers import Problem
from verifiers.core import did_you_mean, import_failure, raised_in

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Problems:
    """A task's problems and their origin."""

    train: list[Problem]
    test: list[Problem]
    origin: str  # one line for the user
    dropped: tuple[str, ...] = ()  # why each problem that can't be used was left out, with its place
    locations: Mapping[tuple[str, str], str] = field(default_factory=dict)  # FILE:LINE by (id, prompt), where known

    def location(self, problem: Problem) -> str:
        """Returns "FILE:LINE: " for a problem that is from a file, else ""."""
        known = self.locations.get((problem.id, problem.prompt))
        return f"{known}: " if known else ""

    def trained_on(self) -> list[Problem]:
        """Returns the test problems whose question is also one to train on."""
        questions = {problem.prompt for problem in self.train}
        return [problem for problem in self.test if problem.prompt in questions]

    def conflicts(self) -> list[str]:
        """Returns a line for each problem whose question occurred before with another gold."""
        golds: dict[str, Problem] = {}
        found = []
        for problem in (*self.train, *self.test):
            first = golds.setdefault(problem.prompt, problem)
            if first.answer != problem.answer:
                where = self.location(problem) or f"{problem.name}: "
                other = self.location(first).removesuffix(": ") or first.name
                found.append(f"{where}the gold is {problem.answer!r:.80}, but {first.answer!r:.80} in {other}")
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """Choice of the problems to load."""

    name: str  # "hub", "bundled", "generated", or a path
    test: str | None = None  # path of the test problems, if `name` is a path
    test_split: str = "test"  # split of the bundled problems
    bad: Literal["error", "drop"] = "error"  # treatment of rows that can't be used


def tagged_gold(problem: Problem) -> str:
    """The problem's answer (the text after `####`, if present) as a completion that must be judged right."""
    text = problem.answer or ""
    return f"<think>This is the known answer.</think><answer>{text.rpartition('####')[2].strip()}</answer>"


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its problems and its reward."""

    name: str
    load: Callable[[Source], Problems]
    reward: str  # default formula
    correct: str = "math"  # verifier that decides whether a completion is right, independent of the reward
    well_formed: str = "format"  # verifier of the completion's form
    # Equality of answers in a majority vote: the verifier's own, the same text, or "none" for no votes.
    vote: Literal["verifier", "text", "none"] = "verifier"
    template: str = "{question}"  # the task's text around a question, inside the model's prompt template
    stop_text: str | None = None  # ends a completion, unless the user sets another
    gold: Callable[[Problem], str] = tagged_gold  # a completion that must be right; `r1lite tasks check` verifies it
    sources: tuple[str, ...] = ()  # supported sources: hub, bundled, generated; by default those of `load`
    base: str = "nano"  # bundled model that suits the task, used if no model is set and there is no GPU
    example: Problem | None = None  # an example for `r1lite tasks`, in the form of the real problems

    def __post_init__(self) -> None:
        if not self.sources:
            object.__setattr__(self, "sources", getattr(self.load, "sources", ("hub", "bundled")))


def called(what: str, function: Callable[..., R], *values: Any, refuses: tuple[type[Exception], ...] = ()) -> R:
    """Returns what a task's own function returns.

    Args:
        what: the function, for messages.
        refuses: exceptions by which it refuses a value; they pass, as UserError does.

    Raises:
        UserError: it raised any other exception; the message names the place.
    """
    try:
        return function(*values)
    except (Exception, SystemExit) as error:
        if isinstance(error, (UserError, *refuses)):
            raise
        own = getattr(getattr(function, "__code__", None), "co_filename", "")
        raise UserError(f"{what} raised {type(error).__name__}: {error}{raised_in(error, own)}") from error


def check_problem(what: str, problem: object) -> None:
    """Raises UserError unless a task's own function, called `what` in the message, made a usable problem."""
    if not isinstance(problem, Problem):
        raise UserError(f"{what} returned {type(problem).__name__}, not a verifiers.Problem")
    for name, kinds in (("prompt", str), ("answer", str | None), ("id", str)):
        if not isinstance(value := getattr(problem, name), kinds):
            raise UserError(f"{what} made a Problem whose {name} is {value!r}, which is not text")


def refuse_no_source(task: Task) -> None:
    """Raises UserError if a task has no problems of its own, so that --source must name a file."""
    if not task.sources:
        raise UserError(f"--source is missing: --task {task.name} reads its problems from a file or a folder")


def load(task: Task, source: Source) -> Problems:
    """The problems of a task. Raises UserError, also for any exception of the task's own loader."""
    what = f"--task {task.name}, --source {source.name}: load()"
    problems = called(what, task.load, source)
    if not isinstance(problems, Problems):
        raise UserError(f"{what} returned {type(problems).__name__}, not r1lite.tasks.Problems")
    for problem in (*problems.train, *problems.test):
        check_problem(what, problem)
    return problems


# Import strings, so that listing the names imports no task.
TASKS = {
    "gsm8k": "r1lite.tasks.gsm8k:TASK",
    "math": "r1lite.tasks.competition_math:TASK",
    "svamp": "r1lite.tasks.svamp:TASK",
    "countdown": "r1lite.tasks.countdown:TASK",
    "countdown_small": "r1lite.tasks.countdown_small:TASK",
    "knights_knaves": "r1lite.tasks.knights_knaves:TASK",
    "mbpp": "r1lite.tasks.programs:MBPP",
    "humaneval": "r1lite.tasks.programs:HUMANEVAL",
    "add_carry": "r1lite.tasks.add_carry:TASK",
}


def find(name: str) -> Task:
    """The task with this name or import path `module:attr`. Raises UserError."""
    if name.startswith("reasoning_gym:"):
        from r1lite.tasks.reasoning_gym import task as made

        return made(name.partition(":")[2])
    target = TASKS.get(name, name if ":" in name else None)
    if target is None:
        hint = did_you_mean(name, TASKS, f"known: {', '.join(TASKS)}, reasoning_gym:NAME.")
        raise UserError(f"unknown task '{name}'; {hint} (your own: 'module:attr')")
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # importing a user's module can raise anything
        raise UserError(f"--task {name}: {import_failure(error, target)}") from error
    try:
        task = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        tasks = [known for known, value in vars(module).items() if isinstance(value, Task)]
        hint = did_you_mean(attribute, tasks, f"its tasks: {', '.join(tasks)}" if tasks else "it defines no Task")
        raise UserError(f"--task {name}: module '{module_name}' has no '{attribute}'; {hint}") from error
    if not isinstance(task, Task):
        raise UserError(f"--task {name} is a {type(task).__name__}, not an r1lite.tasks.Task")
    return task
