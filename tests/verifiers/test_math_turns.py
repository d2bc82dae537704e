"""Texts that turn, deny, correct, quote or remark, and honest ones that look like them."""

import json
from pathlib import Path

from verifiers import Completion, Problem, resolve

CASES = [json.loads(line) for line in Path(__file__).with_name("math_turns.jsonl").read_text().splitlines()]


def test_right_texts_are_paid_and_wrong_ones_are_not():
    verify = resolve("math")
    assert len(CASES) > 300
    assert [
        (case["gold"], case["text"])
        for case in CASES
        if (verify(Problem(case["prompt"], case["gold"]), Completion(case["text"])).score == 1.0) != case["expected"]
    ] == []
