"""Texts that tried to be paid without the right answer. Every false positive ever seen gets a line in HACKS."""

import json

import pytest
from tables_for_tests import each

from verifiers import Completion, Problem, resolve
from verifiers.audit import bench

HACKS = [json.loads(line) for line in bench.HACKS.read_text(encoding="utf-8").splitlines()]


@each(HACKS)
def test_is_not_paid(hack):
    for strict in (False, True):
        verdict = resolve("math", strict=strict)(
            Problem(hack.get("prompt", ""), hack["gold"]), Completion(hack["text"])
        )
        assert verdict.score == 0.0, verdict


# Texts that cost others seconds or gigabytes; each is decided inside the budget, as what it is.
COSTLY = [
    r"\boxed{" * 50_000,
    r"\boxed{5} " * 20_000,
    r"\fbox" + r"\boxed!" * 140_000,
    "<think>" * 20_000,
    "<answer>5</answer>" * 20_000,
    "the answer is " * 20_000,
    "#### 5\n" * 20_000,
    "$" * 200_000,
    "\\[x " * 50_000,
    "5" * 300_000,
    r"\boxed{5}" + " actually the answer is not" * 5_000,
    *(
        rf"\boxed{{{inner}}}"
        for inner in (
            "9" * 2900, "(" * 1400 + ")" * 1400, r"\frac{" * 400, r"\sqrt{" * 400 + "2" + "}" * 400, "-" * 2900 + "5",
            "5" + "!" * 2000, "^".join(["9"] * 1000), "9^9^9^9^9^9^9", "9!!!!!!", r"10^{10^{10^{10}}}", "(10^{100})!",
            r"\binom{10^{9}}{10^8}", r"\sum_{k=1}^{10^9} k", r"\sum_{k=1}^{400}\sum_{j=1}^{400}\sum_{i=1}^{400} i",
            "+".join([r"\sin(x)"] * 400), "*".join(f"(x+{i})" for i in range(300)), "||x|" * 500,
            ",".join(f"x+{i}" for i in range(127)), r"\begin{pmatrix}" + "&".join(["1"] * 250) + r"\end{pmatrix}",
            "e^{e^{e^{e^{e}}}}", r"\sin(9^{9^9})", r"1" + r"\pm1" * 100, r"\text{" * 500, "1e999999",
            "[0,1]" + r"\cup[2,3]" * 300, "x=1" + r" or x=2" * 300, r"(1+\sqrt{2})^{1000000}", "x^{x^{x^{x}}}",
            r"\lfloor 10^{300}\pi\rfloor", "12 km" + "^2" * 500, "__import__('os').system('touch /tmp/owned')",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", COSTLY, ids=range(len(COSTLY)))
def test_costly_text_is_decided(text):
    for gold in ("7", "x^2", r"\{1,2\}", "Monday"):
        assert resolve("math")(Problem(answer=gold), Completion(text)).score == 0.0, gold


@pytest.mark.parametrize("gold", [r"\int_0^1 10^{10^{10}} dx", r"\lim_{x \to 0} 10^{10^{10}}", r"\int_0^1 ((9!)!)! dx"])
def test_costly_calculus_in_a_gold_is_never_carried_out(gold):
    assert resolve("math")(Problem(answer=gold), Completion(r"\boxed{1}")).score == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        r"\lim_{x\to 100}10^{10^x}",
        r"\lim_{x\to 3}((((((20^{20})^{20})^{20})^{20})^{20})^{20})^{20}",
        r"\lim_{x\to 100}10^{x^{20}}",
        r"\lim_{x\to 5} 7^{900\cdot 900\cdot900\cdot900 x}",
    ],
)
def test_a_gold_whose_calculus_would_be_written_out_is_left_as_it_is(gold):
    assert resolve("math")(Problem(answer=gold), Completion("<answer>5</answer>")).score == 0.0
