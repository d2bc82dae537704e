"""Shared code of the tasks whose answers are programs."""

from __future__ import annotations

from r1lite.tasks import Task
from r1lite.tasks.sources import Rows
from verifiers import Problem

# Shows a base model where the program goes: between fences on their own lines, inside the answer.
_TEMPLATE = (
    "{question}\n\nThe answer is the whole program in one fenced block:\n<answer>\n```python\n# program\n```\n</answer>"
)
_STOP_TEXT = "</answer>"


def task_of_programs(name: str, load: Rows, example: Problem) -> Task:
    """A task from the Hub whose answers are Python programs. Tests judge them; there are no majority votes."""
    return Task(
        name=name,
        load=load,
        reward="code + 0.1*format",
        correct="code",
        vote="none",
        template=_TEMPLATE,
        stop_text=_STOP_TEXT,
        gold=_gold,
        sources=("hub",),
        example=example,
    )


def _gold(problem: Problem) -> str:
    """The data set's own solution as a completion."""
    return f"<think>This is the known solution.</think><answer>\n```python\n{problem.meta['solution']}\n```\n</answer>"
