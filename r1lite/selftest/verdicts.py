"""Checks verdicts on known texts and programs, with the isolation that this machine supports."""

from __future__ import annotations

import time
from collections.abc import Iterator

from r1lite.selftest import Options, Result
from verifiers import Completion, Problem, Verdict, VerifierError, resolve

_MATHS = [
    (r"\frac{1}{2}", r"Half of it, so \boxed{0.5}.", 1.0),
    (r"\sqrt{8}", r"The answer is $2\sqrt{2}$.", 1.0),
    ("x=3", r"\boxed{3}", 1.0),
    (r"(1,\infty)", r"\boxed{x>1}", 1.0),
    ("12", r"\boxed{12 \text{ or } 13}", 0.0),
    ("7", r"\boxed{7} is wrong; it is \boxed{8}.", 0.0),
    ("0.5", "I can not solve it.", 0.0),
]
_FORMAT = [
    ("<think>2 + 2 = 4</think><answer>4</answer>", 1.0),
    ("<answer>4</answer>", 0.0),
]
_TIME_S = 2  # time limit of a program
_ADD = Problem(tests={"style": "function", "entry_point": "add", "args": [[1, 2], [3, 4]], "outs": [3, 7]})
_PROGRAMS = [
    ("right", "def add(a, b):\n    return a + b", 1.0),
    ("wrong", "def add(a, b):\n    return a - b", 0.0),
    ("endless", "def add(a, b):\n    while True:\n        pass", 0.0),
    ("opens a connection", "import socket\ndef add(a, b):\n    socket.create_connection(('127.0.0.1', 1))", 0.0),
    ("ends its process", "import os\ndef add(a, b):\n    os._exit(0)", 0.0),
    ("takes memory", "def add(a, b):\n    return len(bytearray(1 << 40))", 0.0),
]


def check(options: Options) -> Iterator[Result]:
    """Checks the verifiers `math`, `format` and `code` on cases with known verdicts."""
    maths, form = resolve("math"), resolve("format")
    started = time.process_time()
    wrong = [f"{text!r} for {gold}" for gold, text, score in _MATHS if not _is(maths, gold, text, score)]
    seconds = time.process_time() - started
    wrong += [repr(text) for text, score in _FORMAT if not _is(form, None, text, score)]
    yield Result(
        "maths and format",
        "failed" if wrong else "ok",
        f"unexpected verdicts: {'; '.join(wrong)}" if wrong else f"{len(_MATHS) + len(_FORMAT)} known verdicts",
        {"cpu_s": seconds, "cases": len(_MATHS) + len(_FORMAT), "wrong": len(wrong)},
    )
    yield _programs()


def _programs() -> Result:
    verify = resolve("code", time_s=_TIME_S)
    wrong, started = [], time.perf_counter()
    try:
        for name, code, score in _PROGRAMS:
            verdict: Verdict = verify(_ADD, Completion(f"```python\n{code}\n```"))
            if verdict.score != score:
                wrong.append(f"a program that {name}: {verdict.score} ({verdict.reason})")
    except VerifierError as error:
        return Result("sandbox", "note", f"programs can't be judged here: {error}")
    level, seconds = str(getattr(verify, "level", "")), time.perf_counter() - started
    return Result(
        "sandbox",
        "failed" if wrong else "ok",
        f"unexpected verdicts: {'; '.join(wrong)}"
        if wrong
        else f"level {level}: {len(_PROGRAMS)} programs, including hostile ones, judged in {seconds:.1f} s",
        {"level": level, "wall_s": seconds, "wrong": len(wrong)},
    )


def _is(verify: object, gold: str | None, text: str, score: float) -> bool:
    verdict: Verdict = verify(Problem(answer=gold), Completion(text))  # type: ignore[operator]
    return verdict.score == score
