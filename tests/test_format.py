"""The format verifier: one <think> block, then one <answer> block."""

import time

import pytest

from verifiers import Completion, Problem, resolve

TABLE = [
    ("<think>a</think><answer>4</answer>", 1.0, "ok"),
    ("  <think>\na\n</think>\n\n<answer> 4 </answer>\r\n", 1.0, "ok"),
    ("4", 0.0, "no_tags"),
    ("", 0.0, "no_tags"),
    ("<think>a</think>4", 0.0, "bad_layout"),
    ("<answer>4</answer>", 0.0, "bad_layout"),
    ("<answer>4</answer><think>a</think>", 0.0, "bad_layout"),
    ("<think>a<think>b</think></think><answer>4</answer>", 0.0, "bad_layout"),
    ("<think>a<answer>3</answer></think><answer>4</answer>", 0.0, "bad_layout"),
    ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0, "bad_layout"),
    ("<think>a</think><answer>4", 0.0, "bad_layout"),
    ("<think></think><answer>4</answer>", 0.0, "empty_think"),
    ("<think> \u200b\n</think><answer>4</answer>", 0.0, "empty_think"),
    ("<think>a</think><answer>\ufeff</answer>", 0.0, "empty_answer"),
    ("so <think>a</think><answer>4</answer>", 0.0, "text_outside"),
    ("<think>a</think> so <answer>4</answer>", 0.0, "text_outside"),
    ("<think>a</think><answer>4</answer> done", 0.0, "text_outside"),
]


@pytest.mark.parametrize(("text", "score", "reason"), TABLE)
def test_table(text, score, reason):
    verdict = resolve("format")(Problem(), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


def test_prefilled_think():
    verify = resolve("format", prefilled_think=True)
    assert verify(Problem(), Completion("a</think><answer>4</answer>")).score == 1.0
    assert verify(Problem(), Completion("<think>a</think><answer>4</answer>")).reason == "bad_layout"


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<answer>", "<", "<think", "a ", "</answer><think>"])
def test_a_megabyte_costs_time_in_proportion(piece):
    verify = resolve("format")
    text = (piece * 1_000_000)[:1_000_000]
    began = time.process_time()
    assert verify(Problem(), Completion("<think>" + text)).score == 0.0
    assert time.process_time() - began < 1.0  # a quadratic scan would take minutes
