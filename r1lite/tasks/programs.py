"""The tasks whose answers are programs; tests judge them.

HumanEval (arXiv:2107.03374): complete a Python function from its signature and docstring. For testing only.
MBPP (arXiv:2108.07732): short Python functions. The prompt shows the first test; all tests are run.
"""

from __future__ import annotations

from r1lite.tasks import Task
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem
from verifiers.sandbox import from_humaneval, from_mbpp

# Shows a base model where the program goes: between fences on their own lines, inside the answer.
_TEMPLATE = (
    "{question}\n\nThe answer is the whole program in one fenced block:\n<answer>\n```python\n# program\n```\n</answer>"
)
_STOP_TEXT = "</answer>"


def _task(name: str, load: Rows, example: Problem) -> Task:
    """A task from the Hub whose answers are Python programs. There are no majority votes."""
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


def _of_humaneval(row: Row) -> Problem:
    """A row's problem. The prompt shows the beginning of the function and none of the tests."""
    return Problem(
        f"Complete this function, and give all of it:\n```python\n{str(row['prompt']).strip()}\n```",
        tests=from_humaneval(row),
        id=str(row["task_id"]),
        meta={"solution": f"{row['prompt']}{row['canonical_solution']}"},
    )


HUMANEVAL = _task(
    "humaneval",
    load=Rows(
        hub={"test": [HubSplit("openai/openai_humaneval", None, "test")]},
        columns=("task_id", "prompt", "canonical_solution", "test", "entry_point"),
        problem=_of_humaneval,
    ),
    example=_of_humaneval(
        {
            "task_id": "example",
            "prompt": 'def largest(numbers):\n    """The largest number.\n    >>> largest([3, 9, 4])\n    9\n    """\n',
            "canonical_solution": "    return max(numbers)\n",
            "test": "def check(candidate):\n    assert candidate([3, 9, 4]) == 9\n    assert candidate([-2]) == -2\n",
            "entry_point": "largest",
        }
    ),
)


def _of_mbpp(row: Row) -> Problem:
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


def _split_of_mbpp(row: Row) -> str:
    """The paper's split by task id: 11 to 510 test, 601 to 974 train, the rest prompts and validation."""
    number = int(row["task_id"])
    return "test" if 11 <= number <= 510 else "train" if number > 600 else "other"


MBPP = _task(
    "mbpp",
    load=Rows(
        hub={split: [HubSplit("google-research-datasets/mbpp", "full", split)] for split in ("train", "test")},
        columns=("task_id", "code"),
        lists=("test_list",),
        problem=_of_mbpp,
        split_of=_split_of_mbpp,
    ),
    example=_of_mbpp(
        {
            "task_id": 0,
            "text": "Write a function to count the even numbers of a list.",
            "code": "def count_even(numbers):\n    return sum(n % 2 == 0 for n in numbers)",
            "test_list": ["assert count_even([1, 2, 4]) == 2", "assert count_even([]) == 0"],
        }
    ),
)
