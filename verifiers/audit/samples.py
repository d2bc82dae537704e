"""Small problems for auditing a verifier without data of one's own."""

from __future__ import annotations

import json
from typing import Any

from verifiers.core import Problem

_SUMS = [(12, 30), (7, 8), (250, 1750), (999, 1), (64, 36), (13, -20), (4096, 1004), (5, 0)]
_OPTIONS = "Which of these is a prime?\nA) 21\nB) 27\nC) 29\nD) 33"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}},
    "additionalProperties": False,
}


def sample(target: str) -> list[Problem]:
    """Problems that fit one of our verifiers, or sums for any other."""
    found = _SAMPLES.get(target)
    return found if found is not None else _sums()


def _sums() -> list[Problem]:
    return [
        Problem(prompt=f"What is {a} + {b}?", answer=str(a + b), language="en", id=f"sum-{i}")
        for i, (a, b) in enumerate(_SUMS)
    ]


_SAMPLES: dict[str, list[Problem]] = {
    "choice": [
        Problem(
            _OPTIONS, "C", id="prime",
            meta={"right": ["C", "(C)", "c", "29", "C) 29"], "wrong": ["A", "B", "D", "27", "C) 27"]},
        )
    ],
    "countdown": [
        Problem(
            "Use 3, 4, 6 and 6 to make 24.",
            "24",
            id="countdown",
            meta={
                "numbers": [3, 4, 6, 6],
                "right": ["6*6 - 3*4", "6 * 6 - 4 * 3 = 24", "(6*6) - (3*4)"],
                "wrong": ["24", "6*4", "6*6 - 3*4 + 0", "6+6+3+4", "66 - 34 - 8", "4*6*(6/3-1)/1"],
            },
        )
    ],
    "exact": [
        Problem("The capital of France?", "Paris", id="capital"),
        Problem("2 + 2, in words?", "four", id="words"),
    ],
    "regex": [
        Problem(
            "A day in May 2024?", r"2024-05-(0[1-9]|[12]\d|3[01])", id="day",
            meta={
                "right": ["2024-05-01", "2024-05-31"],
                "wrong": ["2024-05-32", "2024-06-01", "2024-05-1", "2024-05-011"],
            },
        )
    ],
    "json_schema": [
        Problem(
            "A number as JSON?", id="json", answer=None,
            meta={
                "schema": _SCHEMA,
                "right": ['{"n": 4}', json.dumps({"n": -1}), '{ "n" : 4 }'],
                "wrong": ["4", '{"n": "4"}', '{"n": 4.5}', '{"n": 4, "m": 1}', "{}", '{"n": true}'],
            },
        )
    ],
    "knights_knaves": [
        Problem(
            "Zoey and Oliver ...", "Zoey is a knight, and Oliver is a knave.", id="knights",
            meta={
                "right": ["(1) Zoey is a knight\n(2) Oliver is a knave", "Oliver: knave, Zoey: knight"],
                "wrong": ["Zoey is a knave, Oliver is a knight", "Zoey is a knight", "Zoey and Oliver are knights"],
            },
        )
    ],
}  # fmt: skip
