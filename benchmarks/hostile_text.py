"""CPU milliseconds of the verifiers that read text only, on a megabyte of whatever is known to hurt.

    python benchmarks/hostile_text.py                         the format verifier
    python benchmarks/hostile_text.py format repetition language --size 100000

Every filling is tried bare, inside `<think>`, and inside a whole format; the least of three calls counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verifiers import Completion, Problem, resolve
from verifiers.audit.cases import FILLS
from verifiers.core import Verifier

MORE = {
    "half a tag": "<think",
    "a tag's end": "think>",
    "slashes": "</",
    "control characters": "\x01",
    "soft hyphens": "\xad",
    "private use": "\ue000",
    "invisible, astral": "\U000e0001",
    "Chinese and a bracket": "\u4e00<",
    "white space of all kinds": "\ufeff \t\u3000",
}
PLACES = {"bare": "{}", "in think": "<think>{}", "whole": "<think>{}</think><answer>4</answer>"}


def cost(verify: Verifier, problem: Problem, text: str) -> float:
    """CPU milliseconds of one call."""
    found = []
    for _ in range(3):
        began = time.process_time()
        verify(problem, Completion(text))
        found.append(time.process_time() - began)
    return 1e3 * min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verifiers", nargs="*", default=["format"], help="names (default: format)")
    parser.add_argument("--size", type=int, default=1_000_000, help="characters (default: 1,000,000)")
    options = parser.parse_args()
    problem = Problem(prompt="What is 2 + 2?", answer="4", language="en")
    for name in options.verifiers:
        verify = resolve(name)
        costs = {
            (fill, place): cost(verify, problem, form.format(piece * (options.size // len(piece))))
            for fill, piece in {**FILLS, **MORE}.items()
            for place, form in PLACES.items()
        }
        print(f"{name}: {len(costs)} texts of {options.size:,} characters")
        for (fill, place), spent in sorted(costs.items(), key=lambda item: -item[1])[:5]:
            print(f"  {spent:8.2f} ms  {fill}, {place}")


if __name__ == "__main__":
    main()
