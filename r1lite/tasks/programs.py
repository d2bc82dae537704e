"""What the tasks that ask for a program share."""

from __future__ import annotations

from verifiers import Problem

# A base model is shown where the program goes: fences on lines of their own, within the answer.
TEMPLATE = (
    "{question}\n\nThe answer is the whole program in one fenced block:\n<answer>\n```python\n# program\n```\n</answer>"
)
STOP_TEXT = "</answer>"


def gold(problem: Problem) -> str:
    """The data set's own solution."""
    return f"<think>This is the known solution.</think><answer>\n```python\n{problem.meta['solution']}\n```\n</answer>"
