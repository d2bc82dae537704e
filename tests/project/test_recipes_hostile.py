"""Recipes that would mislead, or never end."""

import copy
import datetime
import functools
import math
import operator
import random
import typing
from pathlib import Path

import pytest
import yaml

from r1lite.config import (
    ColdStartConfig,
    DistillConfig,
    EvalConfig,
    GRPOConfig,
    PPOConfig,
    RejectConfig,
    RewardModelConfig,
    SFTConfig,
    load,
    validated,
)
from r1lite.config.pipeline import PipelineConfig
from r1lite.errors import UserError
from r1lite.nano.config import PretrainConfig
from r1lite.pipeline.graph import build
from r1lite.stages import pretrain
from r1lite.training.machine import check_step

SEED, COUNT = 5, 500
ROOT = Path(__file__).resolve().parents[2]

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr: 1.0e-3\nsteps: 2\nlr: 1.0e-5\n", "'lr' occurs twice"),
        ("verifiers: {math: {a: 1, a: 2}}\n", "'a' occurs twice"),
        (f"lr:\n  - {BOMB.replace(chr(10), chr(10) + '    ')}", "more than 100,000 values"),
        ("lr: &x [*x]\n", "more than 100,000 values"),
        (f"steps: 0x{'f' * 5000}\n", "an integer of 5002 characters"),
        ("steps: 010\n", r"010 is another number in YAML 1\.1 than in 1\.2 \(line 1\): write it in decimal"),
        ("lr: 1.0\nsteps: 1:30\n", r"1:30 is another number in YAML 1\.1 than in 1\.2 \(line 2\)"),
        (f"verifiers:\n{'  a: 1' * 400_000}", "it is longer than 2 MiB"),
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


# Every stage's configuration, with a recipe of ours to begin with.
RECIPES = {
    "add_carry": GRPOConfig,
    "add_carry_base": PretrainConfig,
    "cold-start-nano": ColdStartConfig,
    "gsm8k-nano": GRPOConfig,
    "nano": PretrainConfig,
    "r1_nano": PipelineConfig,
    "r1_students": PipelineConfig,
    "sft-nano": SFTConfig,
    "": PPOConfig,
    " ": DistillConfig,
    "  ": RejectConfig,
    "   ": EvalConfig,
    "    ": RewardModelConfig,
}
HUGE = int("f" * 5000, 16)  # which Python does not print
ABSURD = [10**12, 10**18, 10**30, HUGE, 1e12, 1e308, math.inf, -math.inf, math.nan, -1, -1e12, True]
STRANGE = [0, 0.5, 1e-300, None, "", "x", "\x1b[31m", "../../x", "9" * 5000, [], [[]], {}, {"a": {"b": 1}}, {1: 2}]
STRANGE += ["nan", "1e999", datetime.date(2026, 1, 1), b"\xff", ["x", None], {"use": "os:system"}]
IN_YAML = [*STRANGE, *(value for value in ABSURD if value != HUGE)]


@functools.cache
def text_of(name):
    return (ROOT / "recipes" / f"{name}.yaml").read_text() if name.strip() else "{}"


@functools.cache
def parsed(name):
    return yaml.safe_load(text_of(name))


def checked(config_class, keys):
    config = validated(config_class, keys)
    if config_class is PipelineConfig:
        build(config)


def places(value, at=()):
    """Of all parts of it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*at, key)
        yield from places(part, (*at, key))


def test_mutated_recipes_end_in_an_error_or_a_configuration():
    """500 of them, anywhere in the recipe: never a traceback."""
    rng = random.Random(SEED)
    refused = longest = 0
    for _ in range(COUNT):
        name = rng.choice(list(RECIPES))
        keys = copy.deepcopy(parsed(name))
        if name.strip() and rng.random() < 0.6:
            *at, last = rng.choice(list(places(keys)))
            functools.reduce(operator.getitem, at, keys)[last] = copy.deepcopy(rng.choice(IN_YAML))
        else:
            keys[rng.choice(list(RECIPES[name].model_fields))] = copy.deepcopy(rng.choice(IN_YAML))
        try:
            checked(RECIPES[name], keys)
        except UserError as error:
            refused += 1
            longest = max(longest, len(str(error)))
    assert refused > 350
    assert longest < 10_000


NUMBERS = sorted(
    {
        (config_class, name)
        for config_class in set(RECIPES.values())
        for name, field in config_class.model_fields.items()
        if {int, float} & {field.annotation, *typing.get_args(field.annotation)}
        and typing.get_origin(field.annotation) is not typing.Literal
    },
    key=str,
)


@pytest.mark.parametrize("value", ABSURD, ids=[f"{i}" for i in range(len(ABSURD))])
def test_no_number_may_be_absurd(value):
    """Each numeric setting of each stage."""
    for config_class, name in NUMBERS:
        if name == "seed" and value in (10**12, 10**18, 1e12):
            continue
        with pytest.raises(UserError, match=name.replace("_", "[-_]")):
            validated(config_class, {name: value})


def test_what_exceeds_the_memory_is_refused_with_the_estimate():
    config = load(GRPOConfig, ["--prompts-per-step", "100000", "--group-size", "10000"])
    with pytest.raises(UserError, match=r"needs about [\d,.]+ GiB of memory, but this machine has [\d,.]+ GiB: lower"):
        check_step(config)
    check_step(load(GRPOConfig, []))
    config = load(PretrainConfig, ["--layers", "5000", "--hidden-size", "80000", "--out", "never/made"])
    with pytest.raises(UserError, match="parameters, its gradients and the optimizer's moments needs about"):
        pretrain.run(config)


def test_the_shape_of_a_model_is_checked():
    for words in (["--hidden-size", "100", "--heads", "3"], ["--heads", "4", "--kv-heads", "3"]):
        with pytest.raises(UserError, match="heads"):
            load(PretrainConfig, words)
    tokenizer = pretrain._given_tokenizer("nano")
    config = PretrainConfig(vocab_size=len(tokenizer))
    counted = sum(parameter.numel() for parameter in pretrain.make_model(config, tokenizer).parameters())
    assert config.num_parameters == pytest.approx(counted, rel=0.01)
