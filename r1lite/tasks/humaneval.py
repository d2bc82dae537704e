"""HumanEval (arXiv:2107.03374): complete a Python function from its signature and docstring. For testing only."""

from __future__ import annotations

from r1lite.tasks.programs import task_of_programs
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem
from verifiers.sandbox import from_humaneval


def problem(row: Row) -> Problem:
    """A row's problem. The prompt shows the beginning of the function and none of the tests."""
    return Problem(
        f"Complete this function, and give all of it:\n```python\n{str(row['prompt']).strip()}\n```",
        tests=from_humaneval(row),
        id=str(row["task_id"]),
        meta={"solution": f"{row['prompt']}{row['canonical_solution']}"},
    )


TASK = task_of_programs(
    "humaneval",
    load=Rows(
        hub={"test": [HubSplit("openai/openai_humaneval", None, "test")]},
        columns=("task_id", "prompt", "canonical_solution", "test", "entry_point"),
        problem=problem,
    ),
    example=problem(
        {
            "task_id": "example",
            "prompt": 'def largest(numbers):\n    """The largest number.\n    >>> largest([3, 9, 4])\n    9\n    """\n',
            "canonical_solution": "    return max(numbers)\n",
            "test": "def check(candidate):\n    assert candidate([3, 9, 4]) == 9\n    assert candidate([-2]) == -2\n",
            "entry_point": "largest",
        }
    ),
)
