"""`python -m verifiers math`, and the options of the verifier."""

import pytest

from verifiers import Completion, Problem, check_gold, resolve
from verifiers.__main__ import main


def test_explain_shows_every_rung(capsys):
    assert main(["math", "--gold", r"\frac{\sqrt2}{2}", "--answer", r"so \boxed{\frac{1}{\sqrt{2}}}", "--explain"]) == 0
    shown = capsys.readouterr().out
    for part in ("gold", "constant", "extract", "box", "read", "interval", "equal", "10-28"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--gold", "1/2", "--answer", r"\boxed{0.5}"], 0),
        (["--gold", "1/2", "--answer", r"\boxed{0.6}"], 1),
        (["--gold", r"\frac{1", "--answer", "1"], 2),
        (["--gold", "1", "--answer", "1", "--precision", "-1"], 2),
        (["--gold", "1/3", "--answer", "<answer>0.3333333</answer>", "--strict"], 1),
    ],
)
def test_exit_codes(arguments, code, capsys):
    assert main(["math", *arguments]) == code


@pytest.mark.parametrize(
    ("options", "gold", "text", "score", "reason"),
    [
        ({"strict": True}, "7", r"\boxed{7}", 0.0, "no_answer"),
        ({"strict": True}, "7", "<think>x</think><answer>7</answer>", 1.0, "equal"),
        ({"strict": True}, "1/2", "<answer>0.5</answer>", 1.0, "equal"),
        ({"strict": True}, "1/3", "<answer>0.33333333</answer>", 0.0, "imprecise"),
        ({"strict": True, "precision": 4}, "1/3", "<answer>0.3333</answer>", 1.0, "equal"),
        ({"precision": 2}, "1/3", r"\boxed{0.33}", 1.0, "equal"),
        ({"precision": 0}, "1/3", r"\boxed{0.33333333}", 0.0, "imprecise"),
        ({"precision": 2}, "100", r"\boxed{99.9}", 0.0, "different"),
        ({"percent": "value"}, "50%", r"\boxed{50}", 0.0, "different"),
        ({"percent": "value"}, "50%", r"\boxed{0.5}", 1.0, "equal"),
        ({"units": "require"}, "5 cm", r"\boxed{5}", 0.0, "unit_clash"),
        ({"units": "require"}, "5 cm", r"\boxed{50\text{ mm}}", 1.0, "equal"),
    ],
)
def test_options(options, gold, text, score, reason):
    verdict = resolve("math", **options)(Problem(answer=gold), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason), verdict


PROMPT = "What is the capital of France?\n(A) London\n(B) Paris\n(C) Rome\n(D) 12"


@pytest.mark.parametrize(
    ("options", "gold", "text", "score"),
    [
        ({}, "B", "<answer>Paris</answer>", 1.0),
        ({}, "B", "<answer>Rome</answer>", 0.0),
        ({}, "D", r"\boxed{12}", 1.0),
        ({}, "12", r"\boxed{D}", 1.0),
        ({"multiple_choice": "letter"}, "B", "<answer>Paris</answer>", 0.0),
    ],
)
def test_the_text_of_an_option(options, gold, text, score):
    assert resolve("math", **options)(Problem(PROMPT, gold), Completion(text)).score == score


@pytest.mark.parametrize(("name", "value"), [("percent", "maybe"), ("units", "x"), ("precision", -1), ("colour", 1)])
def test_a_wrong_option_is_told(name, value):
    with pytest.raises(ValueError, match=name):
        resolve("math", **{name: value})


def test_verdict_says_what_it_took_and_where():
    text = "so we get $x = \\boxed{ \\frac{1}{2} }$."
    verdict = resolve("math")(Problem(answer="0.5"), Completion(text))
    assert verdict.span is not None
    assert text[slice(*verdict.span)].strip() == verdict.answer == r"\frac{1}{2}"
    assert (verdict.gold_type, verdict.rung) == ("decimal", "rational")


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("7", "integer"), ("work\n#### 1,234", "integer"), (r"\frac{1}{2}", "rational"), ("0.5", "decimal"),
        (r"2\sqrt{3}", "constant"), (r"50\%", "percent"), (r"\$5", "money"), ("5 cm", "quantity"), ("1:2:3", "ratio"),
        ("3:30 PM", "clock"), ("March 5, 2020", "date"), ("101_2", "base"), ("1+2i", "complex"), ("(1,2)", "tuple"),
        (r"\{1,2\}", "set"), ("1, 2", "list"), ("(1,2]", "region"), ("x>3", "region"), ("x+y=3", "equation"),
        ("f(x)=2x", "function"), ("x^2", "expression"), (r"\begin{pmatrix}1\\2\end{pmatrix}", "matrix"),
        (r"1\pm\sqrt2", "list"), (r"\infty", "infinity"), ("no solution", "empty"), ("DNE", "undefined"),
        ("Yes", "truth"), ("(C)", "choice"), ("Monday", "text"),
    ],
)  # fmt: skip
def test_gold_types(gold, kind):
    assert check_gold(Problem(answer=gold)) == kind
