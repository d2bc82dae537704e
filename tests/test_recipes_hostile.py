"""Recipes that would mislead, or never end."""

import pytest

from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr: 1.0e-3\nsteps: 2\nlr: 1.0e-5\n", "'lr' stands there twice"),
        ("verifiers: {math: {a: 1, a: 2}}\n", "'a' stands there twice"),
        (f"lr:\n  - {BOMB.replace(chr(10), chr(10) + '    ')}", "more than 100,000 values"),
        ("lr: &x [*x]\n", "more than 100,000 values"),
        ("base: 5\n", "base must be the path of a recipe"),
    ],
)
def test_refused(text, said, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        load(GRPOConfig, [str(path)])


def test_what_has_no_effect_is_refused():
    with pytest.raises(UserError, match="--cispo-cap has no effect without --loss cispo"):
        load(GRPOConfig, ["--cispo-cap", "9"])
    with pytest.raises(UserError, match="--kl-estimator has no effect without --kl-coef above 0"):
        load(GRPOConfig, ["--kl-estimator", "k1"])
    assert load(GRPOConfig, ["--loss", "cispo", "--cispo-cap", "9"]).cispo_cap == 9
