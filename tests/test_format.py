"""The format verifier: one <think> block, then one <answer> block."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers import Completion, Problem, resolve

TABLE = [
    ("<think>a</think><answer>4</answer>", 1.0, "ok"),
    ("  <think>\na\n</think>\n\n<answer> 4 </answer>\r\n", 1.0, "ok"),
    ("4", 0.0, "no_tags"),
    ("", 0.0, "no_tags"),
    ("<think>a</think>4", 0.0, "missing_tag"),
    ("<answer>4</answer>", 0.0, "missing_tag"),
    ("<answer>4</answer><think>a</think>", 0.0, "wrong_order"),
    ("<think>a<answer>4</think></answer>", 0.0, "wrong_order"),
    ("<think>a<answer>4</answer></think>", 0.0, "wrong_order"),
    ("<think>a<think>b</think></think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>I write <answer> later</think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>a<answer>3</answer></think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0, "repeated_tag"),
    ("<think>a</think><answer>4", 0.0, "missing_tag"),
    ("<think>\u2800\u200d</think><answer>4</answer>", 0.0, "empty_think"),
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
    assert verify(Problem(), Completion("<think>a</think><answer>4</answer>")).reason == "repeated_tag"


LENIENT = [
    ("so <think>a</think> hence <answer>4</answer> done", 1.0, "ok"),
    ("<think>a</think><answer> </answer>", 0.0, "empty_answer"),
    ("<answer>4</answer><think>a</think>", 0.0, "wrong_order"),
    ("so 4", 0.0, "no_tags"),
]


@pytest.mark.parametrize(("text", "score", "reason"), LENIENT)
def test_lenient_allows_text_around(text, score, reason):
    verdict = resolve("format", policy="lenient")(Problem(), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


PARTIAL = [  # each of six rules: think once, answer once, order, think filled, answer filled, nothing outside
    ("<think>a</think><answer>4</answer>", 6, "ok", ""),
    ("so <think>a</think><answer>4</answer>", 5, "text_outside", "text_outside"),
    ("so <think></think><answer></answer>", 3, "empty_think", "empty_think, empty_answer, text_outside"),
    ("<answer>4</answer><think>a</think>", 4, "wrong_order", "wrong_order, text_outside"),
    ("<think>a</think>4", 2, "missing_tag", "missing_tag, wrong_order, empty_answer, text_outside"),
    ("4", 0, "no_tags", "no_tags"),
    ("<think>", 0, "missing_tag", "missing_tag, missing_tag, wrong_order, empty_think, empty_answer, text_outside"),
]


@pytest.mark.parametrize(("text", "held", "reason", "detail"), PARTIAL)
def test_partial_credit(text, held, reason, detail):
    verdict = resolve("format", partial=True)(Problem(), Completion(text))
    assert (verdict.score, verdict.reason, verdict.detail) == (pytest.approx(held / 6), reason, detail)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "a", " ", "\u200b"]), max_size=9))
def test_partial_credit_is_full_exactly_where_the_format_holds(pieces):
    completion = Completion("".join(pieces))
    whole, partial = resolve("format")(Problem(), completion), resolve("format", partial=True)(Problem(), completion)
    assert (whole.score == 1.0) == (partial.score == 1.0)
    assert whole.reason == partial.reason


def test_other_tags():
    verify = resolve("format", think="reasoning", answer="final-answer")
    assert verify(Problem(), Completion("<reasoning>a</reasoning><final-answer>4</final-answer>")).score == 1.0
    assert verify(Problem(), Completion("<think>a</think><answer>4</answer>")).reason == "no_tags"


def test_a_minimum_of_thinking():
    verify = resolve("format", min_think_chars=5)
    assert verify(Problem(), Completion("<think>a b c \u200b</think><answer>4</answer>")).reason == "short_think"
    assert verify(Problem(), Completion("<think>2+2=4</think><answer>4</answer>")).score == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "lax"}, "policy must be strict or lenient"),
        ({"think": "<t>"}, "a tag's name"),
        ({"think": "answer"}, "different tags"),
        ({"min_think_chars": 0}, "min_think_chars"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        resolve("format", **options)


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<answer>", "<", "<think", "a ", "</answer><think>"])
def test_a_megabyte_costs_time_in_proportion(piece):
    verify = resolve("format")
    text = (piece * 1_000_000)[:1_000_000]
    began = time.process_time()
    assert verify(Problem(), Completion("<think>" + text)).score == 0.0
    assert time.process_time() - began < 1.0  # a quadratic scan would take minutes
