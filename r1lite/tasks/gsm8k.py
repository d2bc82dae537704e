"""Grade-school maths word problems: GSM8K (arXiv:2110.14168), or others in its format."""

from __future__ import annotations

from r1lite.tasks import Task
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem


def problem(row: Row) -> Problem:
    """A row's problem. Difficulty is the number of marked calculations in the worked answer, if there are any."""
    steps = str(row["answer"]).count("<<")
    meta = {"difficulty": str(steps)} if steps else {}
    if row.get("family"):  # only bundled problems have it
        meta["source"] = str(row["family"])
    return Problem(str(row["question"]), str(row["answer"]), id=str(row.get("id") or ""), meta=meta)


load = Rows(
    hub={split: [HubSplit("openai/gsm8k", "main", split)] for split in ("train", "test")},
    columns=("question", "answer"),
    problem=problem,
    bundled="gsm8k_style",
)
TASK = Task(
    name="gsm8k",
    load=load,
    reward="math + 0.1*format",
    example=problem(
        {
            "question": "A baker fills 6 trays with 12 rolls each and drops 5 rolls. How many are left?",
            "answer": "There are 6 * 12 = <<6*12=72>>72 rolls.\n72 - 5 = <<72-5=67>>67 are left.\n#### 67",
        }
    ),
)
