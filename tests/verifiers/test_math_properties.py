"""Properties of the maths verifier: total, reflexive, symmetric, without memory, and the same in any thread or fork."""

import asyncio
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers import Completion, GoldError, Problem, VerifierError, check_gold, resolve
from verifiers.audit.math_pairs import KINDS, pairs
from verifiers.mathexpr.verify import REASONS

FRAGMENTS = st.sampled_from(
    [
        *"0123456789xyzabeifknCPU+-*/^_=<>(){}[]|!,.:;%'$ \n",
        "\\", "\\frac", "\\sqrt", "\\text{", "\\boxed{", "\\pi",
        "\\infty", "\\cup", "\\left(", "\\right]", "\\sin", "\\log_",
        "\\sum_{k=1}^{", "\\int_0^1", "\\lim_{x \\to 0}", "\\begin{pmatrix}",
        "\\end{pmatrix}", "\\\\", "&", "\\pm", "\\le ",
        "\\{", "\\}", "\\mid", "\\in", "\\mathbb{R}", "^\\circ",
        "\\%", "\\$", "\\binom{", "\\overline{", "\\ldots", "\\forall",
        "<answer>", "</answer>", "<think>", "</think>", "#### ", "the answer is ", " or ", " and ", " where ",
        " cm", "km/h",
        "PM", "March ", "½", "²", "π", "−", "٣", "，", "√", "∞", "\u200b", "1e9", "10^{10^{10}}", "not ", "?", "Wait, ",
    ]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS, max_size=30).map("".join)


@settings(max_examples=200, deadline=None)
@given(
    text=TEXTS, gold=st.sampled_from(["7", "1/2", "x^2+1", "(0,1)", r"\{1,2\}", "Monday", "5 cm", "3:30", "B", r"\pi"])
)
def test_any_completion_gets_a_verdict_with_a_known_reason(text, gold):
    for wrapped in (text, rf"\boxed{{{text}}}", f"<answer>{text}</answer>"):
        verdict = resolve("math")(Problem(answer=gold), Completion(wrapped))
        assert verdict.reason in REASONS
        assert verdict.score == float(verdict.reason == "equal")
        if verdict.span is not None:
            assert 0 <= verdict.span[0] <= verdict.span[1] <= len(wrapped)


@settings(max_examples=200, deadline=None)
@given(gold=TEXTS)
def test_a_gold_is_understood_and_equal_to_itself_or_refused_by_name(gold):
    try:
        assert check_gold(Problem(answer=gold, id="row-7"))
    except GoldError as error:
        if "row-7" not in str(error):
            raise AssertionError(f"the message does not name the row: {error}") from error


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_unicode_is_read_or_refused(text):
    assert resolve("math")(Problem(answer="7"), Completion(text)).reason in REASONS


def _verdicts(sample):
    verify = resolve("math")
    return [verify(Problem(answer=pair.gold), Completion(pair.completion)).reason for pair in sample]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_every_kind(kind):
    """The regression gate: no near miss passes, and what is the same is seen to be."""
    verify = resolve("math")
    wrong = []
    for pair in pairs(160, seed=20, kinds=(kind,)):
        verdict = verify(Problem(answer=pair.gold), Completion(pair.completion))
        if (verdict.score == 1.0) != pair.same:
            wrong.append((pair, verdict))
    assert not wrong


def test_the_same_value_is_the_same_from_both_sides():
    verify = resolve("math")
    kinds = tuple(
        set(KINDS) - {"rational", "decimal", "constant", "choice", "text", "base", "percent"}
    )  # precision and
    for pair in pairs(600, seed=3, kinds=kinds):  # wording come from the gold, so these are one-sided on purpose
        if pair.how == "unsolved":
            continue  # x >= 10 solves a gold 2x >= 20, and not the other way round
        try:
            back = verify(Problem(answer=pair.answer), Completion(rf"\boxed{{{pair.gold}}}"))
        except GoldError:
            continue
        assert (back.score == 1.0) == pair.same, pair


def test_a_verdict_does_not_depend_on_what_was_asked_before():
    sample = list(pairs(300, seed=5))
    assert _verdicts(sample) == _verdicts(sample[::-1])[::-1]


def test_threads_tasks_and_forks_agree():
    sample = list(pairs(200, seed=6))
    expected = _verdicts(sample)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(_verdicts, [sample] * 4))

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(_verdicts, sample) for _ in range(2)))

    assert all(found == expected for found in asyncio.run(together()))
    code = (
        "import os\nfrom verifiers import *\nverify = resolve('math')\n"
        "def ask(): return verify(Problem(answer=r'\\frac{\\sqrt2}{2}'), Completion(r'\\boxed{1/\\sqrt{2}}')).score\n"
        "assert ask() == 1\nchild = os.fork()\n"
        "if child == 0: os._exit(0 if ask() == 1 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        assert processes.apply(_verdicts, (sample[:20],)) == expected[:20]


def test_a_nearly_full_stack_is_too_hard_and_no_crash():
    def descend(depth):
        return ask() if depth == 0 else descend(depth - 1)

    def ask():
        return resolve("math")(Problem(answer="x+1"), Completion(r"\boxed{" + "(" * 30 + "x+1" + ")" * 30 + "}"))

    assert descend(sys.getrecursionlimit() - 150).reason in ("too_hard", "equal")


def test_importing_verifiers_loads_nothing_heavy():
    code = "import verifiers, sys; print({'torch', 'sympy', 'mpmath', 'transformers'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
    code = "import verifiers, sys; verifiers.resolve('math'); print({'torch', 'sympy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("gold", [None, "", " ", r"\frac{1}{", "(1,2", "5" * 4000, r"\unknown{3}"])
def test_a_bad_gold_is_named(gold):
    with pytest.raises(VerifierError, match="row-9"):
        resolve("math")(Problem(answer=gold, id="row-9"), Completion("7"))
