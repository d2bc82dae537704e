"""Every preset trains what it names: on a recorded rollout, with its own number of updates, its mechanism acts.

A mechanism acts if what it bounds or gates is hit, if the weights differ from those that plain REINFORCE reaches on the
same minibatches, and if they differ from those without the mechanism. Presets that are on policy by their papers have
one update, whose gradient is REINFORCE's: there the estimator of the advantages is the mechanism.
"""

from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.config import GRPOConfig, PPOConfig
from r1lite.config.presets import PRESETS
from r1lite.grpo.critic import LearningCritic, make_value_model
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Problem, Score, Verdict

SIZES = {"prompts_per_step": 16, "group_size": 4, "max_completion_tokens": 9, "steps": 100, "warmup_steps": 0}
UNBOUNDED = {"clip_low": 1.0, "clip_high": 1e6}
SURROGATE = "losses_for_tests:surrogate"
# preset: (what leaves out its mechanism, whether ratios or gates are what it is about)
MECHANISMS = {
    "grpo": ({"advantage": "reinforce"}, False),
    "dr_grpo": (UNBOUNDED, True),
    "dapo": (UNBOUNDED, True),
    "gspo": ({"ratio_level": "token"}, True),
    "cispo": ({"cispo_cap": 1e6}, True),
    "sapo": ({"loss": SURROGATE}, True),
    "gmpo": ({"clip_low": 1e6, "clip_high": 1e6}, True),
    "dppo": ({"clip_low": 1.1, "clip_high": 1.1}, True),
    "vespo": ({"loss": SURROGATE}, True),
    "luspo": ({"clip_low": 1.0, "clip_high": 1e6}, True),
    "clip_cov": ({"loss": "clip"}, True),
    "kl_cov": ({"loss": SURROGATE}, True),
    "scalerl": ({"cispo_cap": 1e6}, True),
    "r1_zero": (UNBOUNDED, True),
    "reinforce_pp": (UNBOUNDED, True),
    "lite_ppo": (UNBOUNDED, True),
    "gdpo": (UNBOUNDED, True),
    "high_entropy": ({"top_entropy_share": 1.0}, True),
    "rloo": ({"advantage": "reinforce"}, False),
    "reinforce_pp_baseline": ({"advantage": "dr_grpo"}, False),
    "opo": ({"advantage": "dr_grpo"}, False),
    "maxrl": ({"advantage": "dr_grpo"}, False),
    "optimal_token": ({"advantage": "dr_grpo"}, False),
    "pass_at_k": ({"advantage": "grpo", "advantage_k": 4}, False),
    "a_star_po": ({"loss": "reinforce", "advantage": "reinforce", "minibatches": 1}, False),
    "ppo": (UNBOUNDED, True),
    "vapo": (UNBOUNDED, True),
}


@pytest.fixture(autouse=True)
def own_losses_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def groups():
    """16 prompts with 4 completions each; right is what has many even tokens, and the form is a coin's."""
    engine = HFEngine(make_tiny_model(num_hidden_layers=1), make_tiny_tokenizer())
    prompts = [(5 + p, 6, 7 + p % 5) for p in range(16)]
    seeds = [[4 * p + g for g in range(4)] for p in range(16)]
    made = []
    for p, row in enumerate(engine.generate(prompts, seeds, Sampling(1.0, 9))):
        rollouts = []
        for g, completion in enumerate(row):
            right = float(sum(token % 2 == 0 for token in completion.token_ids) > 3 + (p + g) % 2)
            verdicts = {"math": Verdict(right, "ok"), "format": Verdict(float((p + g) % 3 == 0), "ok")}
            rollouts.append(Rollout(completion, Score(right, verdicts), 0.0, right == 1, None))
        made.append(Group(Problem(id=str(p)), "", prompts[p], tuple(rollouts)))
    assert sum(group.has_signal for group in made) > 8
    return made


def learn(name, groups, *, step=60, **changed):
    """(metrics, the weights' change) of one step with a preset; sizes and learning rate are the test's."""
    preset = PRESETS[name]
    values = {"preset": name, **SIZES, "lr": 1e-2, "importance": "off", "lr_schedule": "constant", **changed}
    values["interrupt_thinking_after"] = None  # of sampling, and these completions are there already
    if preset.stage == "ppo":
        values["critic_lr"] = None
    config = (PPOConfig if preset.stage == "ppo" else GRPOConfig)(**values)
    policy = Policy(make_tiny_model(num_hidden_layers=1), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    bad = BadBatches(Path("unused"))
    critic = None
    if isinstance(config, PPOConfig):
        critic = LearningCritic(config, make_value_model(config, policy, None), bad)
    reference = policy.frozen_copy() if config.has_reference else None
    terms = {("math",): 1.0, ("format",): 0.1}
    learner = PolicyLearner(config, policy, optimizer, reference, critic=critic, reward_terms=terms, bad=bad)
    before = torch.cat([p.detach().flatten().clone() for p in policy.model.parameters()])
    taught, metrics = learner.learn(groups, step)
    change = torch.cat([p.detach().flatten() for p in policy.model.parameters()]) - before
    return taught, metrics, change


def differ(one, other):
    """Not by rounding: by more than a thousandth of the change itself."""
    return float((one - other).norm()) > 1e-3 * float(one.norm())


def test_every_preset_is_tested():
    assert set(MECHANISMS) == set(PRESETS)


@pytest.mark.parametrize("name", [name for name, (_, by_ratio) in MECHANISMS.items() if by_ratio])
def test_bounds_and_gates_act(name, groups):
    off, _ = MECHANISMS[name]
    lr = {"r1_zero": 5e-2, "cispo": 5e-2, "scalerl": 5e-2}.get(name, 1e-2)  # bounds of 11 and 5
    _, metrics, change = learn(name, groups, lr=lr)
    assert metrics["updates"] > 1
    assert metrics["clipped_low"] + metrics["clipped_high"] > 0
    _, _, without = learn(name, groups, lr=lr, **off)
    assert differ(change, without)
    _, _, reinforce = learn(name, groups, lr=lr, loss="losses_for_tests:reinforce")
    assert differ(change, reinforce)


@pytest.mark.parametrize(("name", "off"), [("vapo", {"positive_nll_coef": 0.0})])
def test_further_terms_act(name, off, groups):
    _, _, change = learn(name, groups)
    _, _, without = learn(name, groups, **off)
    assert differ(change, without)


@pytest.mark.parametrize("name", [name for name, (_, by_ratio) in MECHANISMS.items() if not by_ratio])
def test_estimators_act(name, groups):
    off, _ = MECHANISMS[name]
    taught, _, change = learn(name, groups)
    others, _, without = learn(name, groups, **off)
    assert differ(change, without)
    mine, theirs = ([r.advantage for g in made for r in g.rollouts] for made in (taught, others))
    assert mine != pytest.approx(theirs, abs=1e-3)
