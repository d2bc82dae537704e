"""Tasks by name: ours, or `module:attr`. Each is one short file: a loader, a template, a reward formula; README.md."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from r1lite.errors import UserError
from verifiers import Problem
from verifiers.core import raised_in


@dataclass(frozen=True, slots=True)
class Problems:
    """A task's problems and where they come from."""

    train: list[Problem]
    test: list[Problem]
    origin: str  # one line for the reader


@dataclass(frozen=True, slots=True)
class Source:
    """Which problems are wanted."""

    name: str  # "hub", "bundled", "generated", or a path
    test: str | None = None  # path of the test problems, for a path
    test_split: str = "test"  # of the bundled ones


def tagged_gold(problem: Problem) -> str:
    """The problem's answer (what follows its `####`, if it has one) as a completion that must be right."""
    text = problem.answer or ""
    return f"<think>This is the known answer.</think><answer>{text.rpartition('####')[2].strip()}</answer>"


@dataclass(frozen=True, slots=True)
class Task:
    """What to solve and how it is rewarded."""

    name: str
    load: Callable[[Source], Problems]
    reward: str  # default formula
    correct: str = "math"  # the verifier that says whether a completion is right, whatever the reward
    well_formed: str = "format"  # the verifier of its form
    # What makes two answers one in a majority vote: the verifier's own equality, the same text, or "none": no votes.
    vote: Literal["verifier", "text", "none"] = "verifier"
    template: str = "{question}"  # what the task says around a question, inside the model's prompt template
    stop_text: str | None = None  # ends a completion, where the user names no other
    gold: Callable[[Problem], str] = tagged_gold  # a completion that must be right: what `r1lite tasks check` tries
    sources: tuple[str, ...] = ("hub", "bundled")  # which of hub, bundled and generated it has
    base: str = "nano"  # the bundled model that suits it, where no other is named and there is no GPU
    example: Problem | None = None  # written for `r1lite tasks`, in the shape of the real ones


# Import strings, so that naming the tasks loads none of them.
TASKS = {
    "gsm8k": "r1lite.tasks.gsm8k:TASK",
    "math": "r1lite.tasks.competition_math:TASK",
    "svamp": "r1lite.tasks.svamp:TASK",
    "countdown": "r1lite.tasks.countdown:TASK",
    "countdown_small": "r1lite.tasks.countdown_small:TASK",
    "knights_knaves": "r1lite.tasks.knights_knaves:TASK",
    "mbpp": "r1lite.tasks.mbpp:TASK",
    "humaneval": "r1lite.tasks.humaneval:TASK",
    "add_carry": "r1lite.tasks.add_carry:TASK",
}


def find(name: str) -> Task:
    """The task of this name, or at `module:attr`. Raises UserError."""
    if name.startswith("reasoning_gym:"):
        from r1lite.tasks.reasoning_gym import task as made

        return made(name.partition(":")[2])
    target = TASKS.get(name, name if ":" in name else None)
    if target is None:
        near = difflib.get_close_matches(name, TASKS, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(TASKS)}, reasoning_gym:NAME."
        raise UserError(f"unknown task '{name}'; {hint} (your own: 'module:attr')")
    module_name, _, attribute = target.partition(":")
    try:
        task = functools.reduce(getattr, attribute.split("."), importlib.import_module(module_name))
    except Exception as error:  # a user's module may fail in any way while it is imported
        raise UserError(f"--task {name}: {type(error).__name__}: {error}{raised_in(error)}") from error
    if not isinstance(task, Task):
        raise UserError(f"--task {name} is a {type(task).__name__}, not an r1lite.tasks.Task")
    return task
