"""SVAMP (arXiv:2103.07191): one-step word problems with variations that defeat shallow patterns."""

from __future__ import annotations

from r1lite.tasks import Task
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem


def problem(row: Row) -> Problem:
    """A row's problem: body and question as one text; the gold without the `.0` of the file."""
    body, answer = str(row["Body"]).strip(), str(row["Answer"]).removesuffix(".0")
    body += "" if body.endswith((".", "?", "!")) else "."
    kind = str(row.get("Type") or "").replace("Divison", "Division")  # one row has the typo
    return Problem(
        f"{body} {str(row['Question']).strip()}",
        answer,
        id=str(row.get("ID") or ""),
        meta={"source": kind} if kind else {},
    )


TASK = Task(
    name="svamp",
    load=Rows(
        hub={split: [HubSplit("ChilleD/SVAMP", None, split)] for split in ("train", "test")},
        columns=("Body", "Question", "Answer"),
        problem=problem,
    ),
    reward="math + 0.1*format",
    sources=("hub",),
    example=problem(
        {
            "Body": "A shelf holds 24 books and 9 of them are atlases",
            "Question": "How many are not?",
            "Answer": 15.0,
            "Type": "Subtraction",
        }
    ),
)
