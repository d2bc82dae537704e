"""Shares of GSM8K's written solutions that the `math` verifier pays, and of the other numbers in them.

    python benchmarks/gsm8k_solutions.py PATH/test.jsonl

Each solution is judged in four forms: with a right box before it, with one behind it, with "The answer is ..." behind
it, and as it is, without its last line, so that it announces nothing and ends in its last calculation. In that form
it is also judged against every other number that it contains, none of which should be paid.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verifiers import Completion, Problem, resolve

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NOTE = re.compile(r"<<.*?>>")  # a calculation for a tool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the test set, a line of JSON for each problem")
    rows = [json.loads(line) for line in parser.parse_args().file.read_text(encoding="utf-8").splitlines()]
    verify = resolve("math")

    def paid(question: str, gold: str, text: str) -> bool:
        return verify(Problem(question, gold), Completion(text)).score == 1.0

    right = dict.fromkeys(("box first", "box last", "announced", "as it is"), 0)
    pairs = wrong = 0
    for row in rows:
        solution, gold = (part.strip() for part in row["answer"].rsplit("####", 1))
        text, question = _NOTE.sub("", solution), row["question"]
        box = f"\\boxed{{{gold}}}"
        forms = {
            "box first": f"{box}\n{text}",
            "box last": f"{text}\n{box}",
            "announced": f"{text}\nThe answer is {gold}.",
            "as it is": text,
        }
        for form, written in forms.items():
            right[form] += paid(question, gold, written)
        numbers = {number.replace(",", "") for number in _NUMBER.findall(text)}
        others = {float(number): number for number in numbers if float(number) != float(gold.replace(",", ""))}
        pairs += len(others)
        wrong += sum(paid(question, other, text) for other in others.values())
    for form, count in right.items():
        print(f"{form}: {count} of {len(rows)} right answers paid")
    print(f"as it is: {wrong} of {pairs} other numbers paid")


if __name__ == "__main__":
    main()
