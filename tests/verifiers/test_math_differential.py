"""Random expressions, changed in one place: what the verifier calls equal has the same values in floating point."""

import itertools
import math
import random

import pytest

from verifiers import Completion, GoldError, Problem, resolve

NAMES = ("x", "y")
# name: (LaTeX, Python), with {0} and {1} for the parts
OPERATIONS = {
    "add": ("{0}+{1}", "{0}+{1}"),
    "sub": ("{0}-({1})", "{0}-({1})"),
    "mul": (r"({0})\cdot ({1})", "({0})*({1})"),
    "div": (r"\frac{{{0}}}{{{1}}}", "({0})/({1})"),
    "max": (r"\max({0},{1})", "max({0},{1})"),
    "min": (r"\min({0},{1})", "min({0},{1})"),
    "square": ("({0})^2", "({0})**2"),
    "abs": (r"\left|{0}\right|", "abs({0})"),
    "root": (r"\sqrt{{{0}}}", "math.sqrt({0})"),
    "floor": (r"\lfloor {0}\rfloor", "math.floor({0})"),
    "sin": (r"\sin({0})", "math.sin({0})"),
    "ln": (r"\ln({0})", "math.log({0})"),
    "exp": (r"e^{{{0}}}", "math.exp({0})"),
    "turn": (r"({0})\cdot (-1)^n", "({0})*(-1)**n"),
}
TWO = ("add", "sub", "mul", "div", "max", "min")
OTHER = {"add": "sub", "sub": "add", "max": "min", "min": "max", "abs": "root", "sin": "exp", "floor": "abs"}
# Points at and around the small numbers of the expressions, and far away.
SIZES = (-40.3, -7.7, -2.4, -1, -0.3, 0.4, 1.7, 3, 5.2, 31.6)
POINTS = [{"x": x, "y": y, "n": n} for x, y, n in itertools.product(SIZES, SIZES, (4, 7))]


def expression(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(NAMES) if rng.random() < 0.6 else rng.choice((1, 2, 3, 5))
    operation = rng.choice(list(OPERATIONS))
    return (operation, *(expression(rng, depth - 1) for _ in range(2 if operation in TWO else 1)))


def changed(rng, tree):
    """The tree with one part replaced by another, which often has the same value at most points."""
    if isinstance(tree, tuple) and rng.random() < 0.6:
        at = rng.randrange(1, len(tree))
        return (*tree[:at], changed(rng, tree[at]), *tree[at + 1 :])
    ways = [
        ("abs", tree),
        ("floor", tree),
        ("turn", tree),
        ("max", tree, rng.choice((1, 3))),
        ("root", ("square", tree)),
        ("add", tree, rng.choice((1, 2))),
    ]
    if isinstance(tree, tuple):
        ways += [(OTHER[tree[0]], *tree[1:])] if tree[0] in OTHER else [tree[1]]
    else:
        ways += [tree + 1 if isinstance(tree, int) else rng.choice(NAMES)]
    return rng.choice(ways)


def written(tree, language):
    if not isinstance(tree, tuple):
        return str(tree)
    return OPERATIONS[tree[0]][language].format(*(written(part, language) for part in tree[1:]))


def value(code, point):
    try:
        found = eval(code, {"math": math, "max": max, "min": min, "abs": abs}, point)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < 1e12 else None


def differ(one, other):
    """Returns how many points show a difference that is no matter of rounding, and how many can be compared."""
    pairs = [(a, b) for point in POINTS if None not in (a := value(one, point), b := value(other, point))]
    return sum(abs(a - b) > 1e-3 * max(1.0, abs(a), abs(b)) for a, b in pairs), len(pairs)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(2, 12))])
def test_equal_expressions_have_equal_values(seed):
    rng, verify, paid, wrong = random.Random(seed), resolve("math"), 0, []
    for _ in range(300):
        one = expression(rng, rng.choice((1, 2, 3)))
        other = changed(rng, one)
        gold, answer = written(one, 0), written(other, 0)
        try:
            score = verify(Problem(answer=gold), Completion(rf"\boxed{{{answer}}}")).score
        except GoldError:  # it divides by zero
            continue
        if score == 1.0:
            paid += 1
            different, compared = differ(written(one, 1), written(other, 1))
            # A few differing points are those where rounding decides: steps at integers.
            if different > compared / 10:
                wrong.append((gold, answer, different, compared))
    assert paid > 40
    assert not wrong
