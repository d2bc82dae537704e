"""Small sample problems, for auditing a verifier without your own data."""

from __future__ import annotations

import json
from typing import Any

from verifiers.core import Problem

_SUMS = [(12, 30), (7, 8), (250, 1750), (999, 1), (64, 36), (13, -20), (4096, 1004), (5, 0)]
_GYM = ("chain_sum", "gcd", "leg_counting")  # tasks with one right answer each, a number
_OPTIONS = "Which of these is a prime?\nA) 21\nB) 27\nC) 29\nD) 33"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}},
    "additionalProperties": False,
}


def sample(target: str) -> list[Problem]:
    """Returns problems that fit one of our verifiers, or sums for any other."""
    if target == "reasoning_gym":
        from verifiers.adapters.reasoning_gym import problems

        return [problem for name in _GYM for problem in problems(name, seed=0, size=4)]
    found = _SAMPLES.get(target)
    return found if found is not None else _sums()


def _sums() -> list[Problem]:
    return [
        Problem(prompt=f"What is {a} + {b}?", answer=str(a + b), language="en", id=f"sum-{i}")
        for i, (a, b) in enumerate(_SUMS)
    ]


_TESTS = {"style": "function", "entry_point": "total", "time_s": 0.5}
_SAMPLES: dict[str, list[Problem]] = {
    "code": [
        Problem(
            "Write total(numbers), the sum of the even ones.", id="function", language="en",
            tests={**_TESTS, "args": [[[1, 2, 4]], [[]], [[-2, 3]]], "outs": [6, 0, -2]},
            meta={
                "right": [
                    "def total(numbers):\n    return sum(n for n in numbers if n % 2 == 0)",
                    "class Solution:\n    def total(self, xs):\n        return sum([x for x in xs if not x & 1])",
                ],
                "wrong": [
                    "def total(numbers):\n    return sum(numbers)",
                    "def total(numbers):\n    return 6",
                    "total = 6",
                ],
            },
        ),
        Problem(
            "Read two numbers and print their sum.", id="program", language="en",
            tests={"style": "stdin", "inputs": ["1 2\n", "-5 5\n"], "outputs": ["3\n", "0\n"], "time_s": 0.5},
            meta={
                "right": [
                    "a, b = map(int, input().split())\nprint(a + b)",
                    "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
                ],
                "wrong": ["print(3)", "a, b = map(int, input().split())\nprint(a - b)", "print('3\\n0')"],
            },
        ),
    ],
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
