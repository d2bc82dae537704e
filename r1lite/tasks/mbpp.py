"""MBPP (arXiv:2108.07732): short Python functions. The prompt shows the first test; all tests are run."""

from __future__ import annotations

from r1lite.tasks.programs import task_of_programs
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem
from verifiers.sandbox import from_mbpp


def problem(row: Row) -> Problem:
    """The problem of a row of the full set (`text`) or of the sanitized set (`prompt`)."""
    asked = row.get("text") or row.get("prompt")
    if not isinstance(asked, str):
        raise ValueError("no column 'text' (or 'prompt', in the sanitized set)")
    return Problem(
        f"{asked.strip()} It must pass, for example:\n{row['test_list'][0]}",
        tests=from_mbpp(row),
        id=f"mbpp-{row['task_id']}",
        meta={"solution": str(row["code"]).replace("\r\n", "\n")},
    )


def split_of(row: Row) -> str:
    """The paper's split by task id: 11 to 510 test, 601 to 974 train, the rest prompts and validation."""
    number = int(row["task_id"])
    return "test" if 11 <= number <= 510 else "train" if number > 600 else "other"


TASK = task_of_programs(
    "mbpp",
    load=Rows(
        hub={split: [HubSplit("google-research-datasets/mbpp", "full", split)] for split in ("train", "test")},
        columns=("task_id", "code"),
        lists=("test_list",),
        problem=problem,
        split_of=split_of,
    ),
    example=problem(
        {
            "task_id": 0,
            "text": "Write a function to count the even numbers of a list.",
            "code": "def count_even(numbers):\n    return sum(n % 2 == 0 for n in numbers)",
            "test_list": ["assert count_even([1, 2, 4]) == 2", "assert count_even([]) == 0"],
        }
    ),
)
