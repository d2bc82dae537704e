"""r1lite/rl/README.md names every option and every metric, and its example is right."""

import re
import typing
from pathlib import Path

import pytest
import torch
from test_learner import learn

from r1lite.config import GRPOConfig, PPOConfig
from r1lite.config.objective import ObjectiveConfig

TEXT = (Path(__file__).resolve().parents[2] / "r1lite" / "rl" / "README.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)))
# But for those of the benchmarks' own commands.
FLAGS = set(re.findall(r"--([a-z][a-z0-9-]*)", re.sub(r"`python benchmarks/[^`]*`", "", TEXT)))


def test_every_option_is_named():
    assert {name.replace("_", "-") for name in ObjectiveConfig.model_fields} <= FLAGS
    for config in (GRPOConfig, PPOConfig):
        for field in ("advantage", "loss", "aggregation", "kl_estimator"):
            assert set(typing.get_args(config.model_fields[field].annotation)) <= NAMED, field


def test_every_flag_exists():
    fields = {name.replace("_", "-") for config in (GRPOConfig, PPOConfig) for name in config.model_fields}
    assert fields >= FLAGS


def test_every_metric_of_an_update_is_named():
    _, metrics, _ = learn({"kl_coef": 0.1, "entropy_coef": 0.1})
    assert set(metrics) <= NAMED


def test_every_metric_of_a_step_is_named(tiny_path, sums_path, tmp_path, monkeypatch):
    from test_shaping import arguments, metrics_of

    from r1lite.cli import main

    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1])
    for stage, flags in (("grpo", ["--dynamic-sampling"]), ("ppo", ["--minibatches", "1"])):
        argv = arguments(
            tiny_path, sums_path, tmp_path / stage, "--reward", "reward_for_tests:digits", "--quiet", *flags
        )
        assert main([stage, *argv[1:], "--steps", "1"]) == 0
        (metrics,) = metrics_of(tmp_path / stage)
        assert set(metrics) <= NAMED


def test_the_example():
    source = re.search(r"<!-- run by tests/r1lite/test_rl_readme.py -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]
    names: dict = {}
    exec(source, names)
    for function in ("group_relative", "leave_one_out"):
        printed = re.search(rf"{function}\(rewards\)\s+# (.*)", source)[1]
        found = names[function](names["rewards"])
        assert torch.stack([torch.tensor(row) for row in eval(printed)]).flatten().tolist() == pytest.approx(
            found.flatten().tolist(), abs=5e-5
        )
