"""How one answer is read: every new spelling with a wrong twin beside it, and nothing dropped unread."""

from pathlib import Path

import pytest
from tables_for_tests import each

from verifiers import Completion, GoldError, Problem, check_gold, resolve
from verifiers.mathexpr.guard import variants


def _cases():
    """(gold, prompt, answer, is it the same) of every line of the table."""
    gold = prompt = ""
    for line in (Path(__file__).resolve().parents[1] / "reading_cases.txt").read_text(encoding="utf-8").splitlines():
        sign, text = line[:1], line[2:]
        if sign == "@":
            gold, prompt = text, ""
        elif sign == "?":
            prompt = text
        elif sign in ("=", "!"):
            yield gold, prompt, text, sign == "="


CASES = list(_cases())


def _verdict(gold, prompt, text):
    return resolve("math")(Problem(prompt, gold), Completion(f"<answer>{text}</answer>"))


@each(CASES)
def test_says_the_same_or_something_else(gold, prompt, text, same):
    verdict = _verdict(gold, prompt, text)
    assert verdict.score == float(same), verdict


# The last digits of a float say nothing, and what a worked solution says before its answer is not compared.
@each(sorted({case[0] for case in CASES if "boxed" not in case[0] and len(case[0]) != 19}))
def test_a_gold_is_equal_to_itself_and_every_number_in_it_counts(gold):
    check_gold(Problem(answer=gold))
    for _, texts in variants(gold):
        assert not all(_verdict(gold, "", text).score for text in texts), texts


@pytest.mark.parametrize("gold", [r"4\text{ ft}\times12\text{ ft}", r"7\text{ cm }+\text{ about }3"])
def test_a_gold_that_goes_on_after_its_words_is_refused(gold):
    with pytest.raises(GoldError, match="row-1"):
        check_gold(Problem(answer=gold, id="row-1"))


@pytest.mark.parametrize("gold", [r"x\ge 3, x\ge 0"])
def test_a_gold_with_a_number_that_decides_nothing_is_refused(gold):
    with pytest.raises(GoldError, match="another number"):
        check_gold(Problem(answer=gold))


@pytest.mark.parametrize(
    "gold",
    [r"0\cdot 5", "1^{100}", r"\sin(2\pi)", r"\{1,2,1\}", r"[0,3]\cup[2,4]", r"5\hspace{3pt}+\hspace{2pt}x",
     r"\begin{pmatrix}1&2\\[4pt]3&4\end{pmatrix}", "x^2+0x", r"(1^{3}, 2)"],
)  # fmt: skip
def test_a_number_that_changes_no_value_is_no_fault(gold):
    assert check_gold(Problem(answer=gold))


def test_a_gold_keeps_the_tab_that_an_escape_left_of_its_text_command():
    assert check_gold(Problem(answer="\text{Any odd number of participants}")) == "text"
