"""Competition mathematics: MATH (arXiv:2103.03874) to train on, MATH-500 (arXiv:2305.20050) to test on."""

from __future__ import annotations

import re

from r1lite.tasks import Task
from r1lite.tasks.sources import HubSplit, Row, Rows
from verifiers import Problem
from verifiers.golds import gold_text

_SUBJECTS = (
    *("algebra", "counting_and_probability", "geometry", "intermediate_algebra"),
    *("number_theory", "prealgebra", "precalculus"),
)


def problem(row: Row) -> Problem:
    """The gold is `answer`, or else the content of the last box in `solution`; without both, verifiers reject it."""
    if "answer" not in row and "solution" not in row:
        raise ValueError(f"no column 'answer', and no 'solution' to take it from; the row has {', '.join(sorted(row))}")
    answer = gold_text(row.get("answer"))
    if answer is None:
        answer = last_box(str(row.get("solution") or "")) or ""
    level = str(row.get("level") or row.get("difficulty") or "").removeprefix("Level ").removesuffix(".0")
    subject = str(row.get("subject") or row.get("type") or "")
    meta = {key: value for key, value in (("difficulty", level), ("source", subject)) if value}
    return Problem(str(row["problem"]), answer, id=str(row.get("unique_id") or ""), meta=meta)


def last_box(text: str) -> str | None:
    """The content of the last `\\boxed{...}` (or `\\fbox`) with balanced braces; None if there is none.

    Without braces, as in `$\\boxed 5$`, it is the rest of the formula, as in MATH's own code.
    """
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return None
    rest = re.sub(r"\\(?:boxed|fbox)\s*", "", text[start:], count=1)
    if not rest.startswith("{"):  # a later brace is another command's
        return re.split(r"\$|\\[\])]|\n", rest)[0].strip().rstrip(".") or None
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", rest, re.DOTALL):  # an escaped brace opens and closes nothing
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return rest[1 : brace.start()].strip() or None
    return None


TASK = Task(
    name="math",
    load=Rows(
        hub={
            "train": [HubSplit("EleutherAI/hendrycks_math", subject, "train") for subject in _SUBJECTS],
            "test": [HubSplit("HuggingFaceH4/MATH-500", None, "test")],
        },
        columns=("problem",),
        problem=problem,
    ),
    reward="math + 0.1*format",
    sources=("hub",),
    example=problem(
        {
            "problem": r"What is the area of a circle whose circumference is $6\pi$?",
            "solution": r"From $2\pi r = 6\pi$ follows $r = 3$, and the area is $\boxed{9\pi}$.",
            "level": "Level 2",
            "type": "Geometry",
        }
    ),
)
