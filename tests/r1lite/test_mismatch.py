"""What is done about an engine whose probabilities aren't the trainer's."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.config import GRPOConfig, load
from r1lite.errors import RunError, UserError
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Problem, Score

PROMPTS = [[3, 4, 5], [6, 7, 8, 9]]


def learn(shift, **settings):
    """One update on groups whose engine log-probabilities are off by `shift`: (metrics, change of every weight)."""
    model = make_tiny_model()
    engine = HFEngine(model, make_tiny_tokenizer())
    groups = []
    seeds = [[10 * p + g for g in range(3)] for p in range(2)]
    for prompt, row in zip(PROMPTS, engine.generate(PROMPTS, seeds, Sampling(1.0, 10)), strict=True):
        rollouts = tuple(
            Rollout(
                dataclasses.replace(c, logprobs=tuple(logprob + shift for logprob in c.logprobs)),
                Score(float(g)),
                g - 1.0,
                None,
                None,
            )
            for g, c in enumerate(row)
        )
        groups.append(Group(Problem(), "", tuple(prompt), rollouts))
    policy = Policy(model, pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.0, 0.0), weight_decay=0.0, max_grad_norm=1e9)
    learner = PolicyLearner(GRPOConfig(**settings), policy, optimizer, None, bad=BadBatches(Path("unused")))
    return learner.learn(groups, 0)[1]


def test_a_perfect_match_is_weighted_1():
    plain, weighted = learn(0.0, importance="off"), learn(0.0, importance="token")
    assert plain["mismatch_logprob_max"] < 1e-4
    assert plain["mismatch_kl"] < 1e-8
    assert [plain[f"mismatch_ratio_{of}"] for of in ("min", "mean", "max")] == pytest.approx([1, 1, 1], abs=1e-4)
    assert weighted["grad_norm"] == pytest.approx(plain["grad_norm"], rel=1e-4)
    assert plain["importance_bounded"] == 0


@pytest.mark.parametrize(
    ("settings", "ratio", "weight"),
    [
        ({"importance": "off"}, 1.5, 1.0),
        ({"importance": "token"}, 1.5, 1.5),
        ({"importance": "token"}, 3.0, 2.0),
        ({"importance": "token", "importance_high": 5.0}, 3.0, 3.0),
        ({"importance": "token", "importance_mode": "mask"}, 3.0, 0.0),
        ({"importance": "token", "importance_low": 0.5}, 0.1, 0.5),
        ({"importance": "geometric"}, 1.5, 1.5),
        ({"importance": "sequence"}, 1.5, 2.0),  # the product over every completion of 3 tokens and more is above 2
    ],
)
def test_the_policy_loss_is_weighted_by_trainer_over_engine(settings, ratio, weight):
    # The check of exact engines is for those; an engine that may be off is corrected.
    metrics = learn(-math.log(ratio), biased_sampling=True, **settings)
    plain = learn(0.0, importance="off")
    assert metrics["grad_norm"] == pytest.approx(weight * plain["grad_norm"], rel=1e-3, abs=1e-9)
    assert metrics["mismatch_ratio_mean"] == pytest.approx(ratio, rel=1e-3)
    assert metrics["mismatch_kl"] == pytest.approx(ratio - 1 - math.log(ratio), rel=1e-2)
    assert metrics["mismatch_logprob_max"] == pytest.approx(abs(math.log(ratio)), abs=1e-4)
    if settings["importance"] == "token":
        assert metrics["importance_bounded"] == float(weight != ratio)


def test_an_engine_with_other_weights_stops_the_run():
    with pytest.raises(RunError, match="does not sample from the trainer's weights"):
        learn(0.5)


def test_an_engine_without_logprobs_counts_as_a_match():
    metrics = learn(math.nan, importance="token")
    assert metrics["mismatch_logprob_max"] is None
    assert metrics["grad_norm"] == pytest.approx(learn(0.0, importance="off")["grad_norm"], rel=1e-4)


@pytest.mark.parametrize("flags", [["--top-p", "0.9"], ["--top-k", "20"], ["--min-p", "0.1"]])
def test_cut_distributions_are_refused_in_training(flags):
    with pytest.raises(UserError, match=f"{flags[0]} .*--biased-sampling"):
        load(GRPOConfig, flags)
    load(GRPOConfig, [*flags, "--biased-sampling"])


def test_gradients_are_finite_whatever_the_engine_said():
    assert torch.isfinite(torch.tensor(learn(1e4, importance="token", biased_sampling=True)["grad_norm"]))
