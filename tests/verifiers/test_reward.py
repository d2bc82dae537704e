"""Reward formulas: value, abstention, refusals."""

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers import Completion, Problem, Reward, Verdict, VerifierError, resolve, score_many, verifier
from verifiers.formula import Formula
from verifiers.reward import score_one

pytestmark = pytest.mark.quick

PROBLEM, COMPLETION = Problem(prompt="?", answer="4"), Completion("x")


def fixed(score):
    return lambda problem, completion: Verdict(score, "fixed")


def value(formula, **scores):
    verifiers = {name: fixed(score) for name, score in scores.items()}
    return Reward(formula, verifiers=verifiers)(PROBLEM, COMPLETION).reward


@pytest.mark.parametrize(
    ("formula", "scores", "expected"),
    [
        ("a + 0.1*b", {"a": 1.0, "b": 1.0}, 1.1),
        ("a * (0.5 + 0.5*b) + 0.1*c", {"a": 1.0, "b": 0.4, "c": 1.0}, 0.8),
        ("a - b/4", {"a": 1.0, "b": 1.0}, 0.75),
        ("-a + 1e-3", {"a": 1.0}, -0.999),
        ("2.5e1*a", {"a": 1.0}, 25.0),
        ("a*a", {"a": 0.5}, 0.25),
        # A part that abstains adds nothing and gates nothing.
        ("a + 0.1*b", {"a": 1.0, "b": None}, 1.0),
        ("a * (0.5 + 0.5*b)", {"a": 1.0, "b": None}, 1.0),
        ("a - b", {"a": None, "b": 1.0}, -1.0),
        ("a - b", {"a": 1.0, "b": None}, 1.0),
        ("b * a", {"a": 0.5, "b": None}, 0.5),
        ("a + b", {"a": None, "b": None}, None),
        ("1 + a", {"a": None}, None),
    ],
)
def test_value(formula, scores, expected):
    found = value(formula, **scores)
    assert found is None if expected is None else found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("mth", "did you mean 'math'"),
        ("math +", "can't read"),
        ("", "can't read"),
        ("math**2", "only verifiers, numbers"),
        ("__import__('os')", "only verifiers"),
        ("math.real", "unknown verifier"),
        ("math if 1 else format", "can't read"),
        ("[math]", "only verifiers"),
        ("math / format", "divide only by a number"),
        ("math / 0", "divide only by a number"),
        ("math + folder/mine.py:calm", "written MODULE:FUNCTION, without folders"),
        ("./mine:calm", "written MODULE:FUNCTION, without folders"),
        ("math + ", r"a term is missing after its last \+"),
        ("1 + 1", "names no verifier"),
        ("True * math", "unknown verifier"),
        ("math * 1e999", "too large"),
        ("math * " + "9" * 400, "too large"),
        ("math / 1e-320", "too small"),
        ("1e9 * 1e9 * math", "too large"),
        ("º00", "only ASCII"),
        ("math + 0*format", "'format' can't change the reward"),
        ("math + format - format", "'format' can't change the reward"),
        ("math:foo", "has no 'foo'"),
        ("no_such_module:foo", "run the command in the folder that contains no_such_module.py"),
        ("contextlib.py:suppress", "write the module without its suffix: contextlib:suppress"),
        ("(" * 5000 + "math" + ")" * 5000, "characters"),
        ("(" * 900 + "math" + ")" * 900, "can't read"),
        ("*".join(["(math+format)"] * 140), "too many products"),
        ("*".join(f"(a{i}+1)" for i in range(12)) + "+1" * 900, "too many products"),
        ("*".join(f"(a{i}+1)" for i in range(12)) + "/2" * 900, "too many products"),
        ("-(" * 60 + "*".join(f"(a{i}+1)" for i in range(12)) + ")" * 60, "too many products"),
    ],
)
def test_refused(formula, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Reward(formula)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        Reward(text)


def test_options_reach_the_verifier_and_unused_ones_are_refused():
    reward = Reward("format", options={"format": {"prefilled_think": True}})
    assert reward(PROBLEM, Completion("a</think><answer>4</answer>")).reward == 1.0
    with pytest.raises(ValueError, match="does not use"):
        Reward("math", options={"format": {}})


def needy(problem, completion, *, words, least=1):
    return float(len(completion.text.split()) >= least)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("format", {"prefilled": True}, "'format' has no option 'prefilled'; did you mean 'prefilled_think'?"),
        ("format", {"xyz": 1}, "'format' has no option 'xyz'; it takes policy, prefilled_think, "),
        ("test_reward:needy", {"word": []}, "'test_reward:needy' has no option 'word'; did you mean 'words'?"),
        ("test_reward:needy", {}, "'test_reward:needy' needs the option 'words'; it takes words, least"),
        ("knights_knaves", {"problem": 1}, "'knights_knaves' has no option 'problem'"),
    ],
)
def test_mistyped_options(name, options, message, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))
    with pytest.raises(ValueError, match=r"has no option|needs the option") as caught:
        resolve(name, **options)
    assert message in str(caught.value)


def test_every_part_is_kept():
    score = Reward("math + 0.1*format")(PROBLEM, Completion("<think>2+2</think><answer>4</answer>"))
    assert score.reward == pytest.approx(1.1)
    assert {name: verdict.reason for name, verdict in score.verdicts.items()} == {"math": "equal", "format": "ok"}


def test_plain_functions_may_return_numbers():
    assert Reward("f", verifiers={"f": lambda p, c: True})(PROBLEM, COMPLETION).reward == 1.0
    assert Reward("f", verifiers={"f": lambda p, c: 0.25})(PROBLEM, COMPLETION).reward == 0.25


@pytest.mark.parametrize(("kind", "value"), [("bool", True), ("float32", 0.25), ("int64", 1)])
def test_plain_functions_may_return_numpy_s_numbers(kind, value):
    returned = getattr(pytest.importorskip("numpy"), kind)(value)
    score = Reward("f", verifiers={"f": lambda p, c: returned})(PROBLEM, COMPLETION)
    assert (score.reward, type(score.reward)) == (value, float)


@pytest.mark.parametrize("score", ["1", b"1", "nan"])
def test_a_verdict_whose_score_is_text_is_refused(score):
    with pytest.raises(TypeError, match="score must be a number or None, got "):
        Verdict(score, "ok")


@pytest.mark.parametrize("returned", [2.0, float("nan"), None, "yes"])
def test_nonsense_from_a_verifier_is_unscored_and_named(returned):
    (score,) = score_many(Reward("f", verifiers={"f": lambda p, c: returned}), [(PROBLEM, COMPLETION)])
    assert score.reward is None
    assert "verifier 'f' returned" in score.error


def test_a_check_that_fails_costs_only_its_own_row():
    def picky(problem, completion):
        if completion.text == "bad":
            raise VerifierError("sandbox down")
        return 1.0

    pairs = [(PROBLEM, Completion(text)) for text in ("a", "bad", "c")]
    scores = score_many(Reward("f", verifiers={"f": picky}), pairs)
    assert [score.reward for score in scores] == [1.0, None, 1.0]
    assert scores[1].error == "VerifierError: sandbox down"


@pytest.mark.parametrize("many", [False, True])
def test_a_verifier_that_exits_costs_only_its_own_row(many):
    class Exits:
        def __call__(self, problem, completion):
            if completion.text == "bad":
                raise SystemExit(0)
            return 1.0

        if many:

            def verify_many(self, pairs):
                return [self(*pair) for pair in pairs]

    pairs = [(PROBLEM, Completion(text)) for text in ("a", "bad", "c")]
    scores = score_many(Reward("f", verifiers={"f": Exits()}), pairs)
    assert [score.reward for score in scores] == [1.0, None, 1.0]
    assert "raised SystemExit" in scores[1].error


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_verdict_cannot_be_out_of_range(score):
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        Verdict(score, "x")


def no_hedging(problem: Problem, completion: Completion, *, words: tuple[str, ...] = ("maybe", "not sure")) -> Verdict:
    """1 unless the text hedges."""
    found = [word for word in words if word in completion.text.lower()]
    return Verdict(float(not found), "hedge" if found else "ok", ", ".join(found))


def test_your_own_by_module_and_attribute():
    reward = Reward(f"{__name__}:no_hedging", options={f"{__name__}:no_hedging": {"words": ("perhaps",)}})
    assert reward(PROBLEM, Completion("maybe")).reward == 1.0
    assert reward(PROBLEM, Completion("perhaps")).reward == 0.0


@pytest.mark.parametrize(
    ("formula", "low", "high", "exact"),
    [
        ("math + 0.1*format", 0.0, 1.1, True),
        ("math * (0.5 + 0.5*language) + 0.1*format - overlong", -1.0, 1.1, True),
        ("2*math - 1", -1.0, 1.0, True),
        ("math*(1 - format)", 0.0, 1.0, True),
        ("math*math - math", -1.0, 1.0, False),
        ("(math + format)/4", 0.0, 0.5, True),
        ("(0.3 - 0.1 - 0.2*format) * math", 0.0, 0.2, True),
    ],
)
def test_range(formula, low, high, exact):
    reward = Reward(formula)
    assert reward.range == (pytest.approx(low), pytest.approx(high))
    assert str(reward) == f"{formula}  (from {low:g} to {high:g}{'' if exact else ' at most'})"


def test_the_range_of_a_large_formula_is_found_once_and_cheaply(monkeypatch):
    formula = Formula("*".join(f"(a{i}+{i})" for i in range(12)))
    assert formula.range == (0.0, float(math.factorial(12)))
    monkeypatch.setattr(formula, "terms", None)
    assert formula.range == (0.0, float(math.factorial(12)))


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_every_value_lies_in_the_range(scores):
    formula = "a * (0.5 + 0.5*b) - 0.3*c*(1 - a)"
    low, high = Reward(formula, verifiers=dict.fromkeys("abc", fixed(0.0))).range
    assert low - 1e-9 <= value(formula, **dict(zip("abc", scores, strict=True))) <= high + 1e-9


@pytest.mark.parametrize(
    ("formula", "warned"),
    [
        ("math + format + language", True),
        ("language", True),
        ("math + format*language", True),
        ("math * (0.5 + 0.5*language) + 0.1*format", False),
        ("math + 0.1*format", False),
        ("math*language", False),
        ("math + length", True),
        ("math - overlong", False),
    ],
)
def test_an_ungated_bonus_is_warned_of(formula, warned):
    warnings = Reward(formula).warnings
    assert bool(warnings) == warned
    assert all("gate" in warning for warning in warnings)


def test_aliases():
    options = {
        "tags": {"use": "format", "prefilled_think": True},
        "calm": {"use": f"{__name__}:no_hedging", "words": ["perhaps"]},
    }
    score = Reward("tags + calm", options=options)(PROBLEM, Completion("a</think><answer>perhaps</answer>"))
    assert {name: verdict.score for name, verdict in score.verdicts.items()} == {"tags": 1.0, "calm": 0.0}
    with pytest.raises(ValueError, match="use must name"):
        Reward("tags", options={"tags": {"use": 4}})
    with pytest.raises(ValueError, match="unknown verifier 'tags'"):
        Reward("tags", options={"tags": {}})


def test_results_carry_versions():
    reward = Reward(f"math + {__name__}:no_hedging")
    score = reward(PROBLEM, COMPLETION)
    assert score.versions["math"] == resolve("math").version
    assert score.versions[f"{__name__}:no_hedging"].startswith("src-")


def test_a_verifier_that_raises_is_named_with_its_item():
    def broken(problem, completion):
        return completion.text.missing

    (score,) = score_many(Reward("b", verifiers={"b": broken}), [(Problem(id="p7"), COMPLETION)])
    assert score.reward is None
    line = broken.__code__.co_firstlineno + 1
    assert score.error.startswith("VerifierCrash: verifier 'b' raised AttributeError")
    assert f" in {__file__}, line {line} (on " in score.error
    assert "problem 'p7'" in score.error


def test_the_decorator_registers(monkeypatch):
    monkeypatch.setattr("verifiers.registry.REGISTERED", {})

    @verifier
    def calm(problem, completion):
        return "!" not in completion.text

    globals()["test_the_decorator_registers"].calm = calm
    calm.__qualname__ = "test_the_decorator_registers.calm"
    verifier(name="calm_too", version="3")(calm)
    assert Reward("calm_too")(PROBLEM, Completion("hm")).reward == 1.0
    assert Reward("calm_too").versions == {"calm_too": "3"}
    for taken in ("math", "calm"):
        with pytest.raises(ValueError, match=f"verifier '{taken}': the name is taken"):
            verifier(name=taken)(no_hedging)


def test_an_exception_without_a_text_costs_its_own_item_only():
    class Odd(VerifierError):
        def __str__(self):
            return self.args

    def breaks(problem, completion):
        raise Odd("x")

    reward = Reward("breaks", verifiers={"breaks": breaks})
    pairs = [(Problem(), Completion(""))] * 2
    scores = [*reward.batch(pairs), score_one(reward, *pairs[0])]
    assert [score.error for score in scores] == ["Odd: its text raised TypeError"] * 3
