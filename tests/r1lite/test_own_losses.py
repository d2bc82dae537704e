"""Losses and estimators by name: ours, a user's `module:function`, and what is refused."""

from pathlib import Path

import pytest
import torch

from r1lite.config import GRPOConfig, ObjectiveConfig
from r1lite.config.objective import LOSS_NAMES
from r1lite.config.rl import ESTIMATOR_NAMES
from r1lite.config.trust import foreign
from r1lite.errors import UserError
from r1lite.grpo.estimators import ESTIMATORS, EstimatorInputs, estimator
from r1lite.grpo.losses import LOSSES, LossInputs, loss_function, policy_loss

NAN = float("nan")


@pytest.fixture(autouse=True)
def own_losses_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))


def inputs():
    lp = torch.tensor([[-1.0, -2.0], [-0.5, -3.0]], requires_grad=True)
    old, mask = torch.tensor([[-1.2, -2.0], [-0.5, -2.5]]), torch.tensor([[True, True], [True, False]])
    return LossInputs(lp, old, torch.tensor([1.0, -1.0]), mask)


def test_the_configuration_knows_the_names():
    """It can't import them: no torch for --help."""
    assert set(LOSS_NAMES) == set(LOSSES)
    assert set(ESTIMATOR_NAMES) == {*ESTIMATORS, "reinforce_pp", "optimal_token"}  # which are by token, in credit.py


def test_a_loss_needs_only_the_objective():
    made = policy_loss(ObjectiveConfig(loss="clip", clip_high=0.1), inputs())
    assert made.values[0, 0].item() == pytest.approx(-1.1)
    assert made.held_high.tolist() == [[True, False], [False, False]]
    assert made.held_low.tolist() == [[False, False], [False, True]]  # at padding too: the mask is the caller's


def test_own_functions():
    made = policy_loss(ObjectiveConfig(loss="losses_for_tests:reinforce"), inputs())
    assert made.values.tolist() == [[1.0, 2.0], [-0.5, -3.0]]
    assert not (made.held_low | made.held_high).any()
    given = EstimatorInputs(torch.tensor([[1.0, 0.0, NAN]]), torch.ones(1, 3), torch.zeros(0, 1, 3), [])
    own = estimator("losses_for_tests:doubled")(GRPOConfig(), given)
    assert own.tolist() == [[1.0, -1.0, 0.0]]  # what is unscored gets none, whatever the function says


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:loss", "--loss no_such_module:loss: can't import 'no_such_module': ModuleNotFoundError"),
        ("losses_for_tests:sqared", "has no function 'sqared'; did you mean 'squared'"),
        ("losses_for_tests:scalar", r"must return a loss per token, \[2, 2\], not shape \[\]"),
    ],
)
def test_what_is_refused(name, message):
    with pytest.raises(UserError, match=message):
        loss_function(name)(ObjectiveConfig(), inputs())


def test_data_names_no_code():
    assert foreign({"loss": "evil:loss", "advantage": "evil:advantage"}) == ["evil:loss", "evil:advantage"]
    assert foreign({"loss": "clip", "advantage": "grpo"}) == []


def test_soft_gates_hold_back_what_they_take_a_tenth_of():
    """SAPO: the derivative of 4/tau sigmoid(tau (s - 1)) is 0.9 at the bound."""
    tau = 1.0
    bound = 1 + 2 * torch.acosh(torch.tensor(0.9).rsqrt()).item() / tau
    s = torch.tensor(bound, requires_grad=True)
    (slope,) = torch.autograd.grad(4 / tau * torch.sigmoid(tau * (s - 1)), s)
    assert slope.item() == pytest.approx(0.9, abs=1e-5)
    lp = torch.tensor([[bound + 0.01, bound - 0.01]]).log()
    found = policy_loss(
        ObjectiveConfig(loss="sapo"), LossInputs(lp, torch.zeros_like(lp), torch.ones(1), torch.ones(1, 2) > 0)
    )
    assert found.held_high.tolist() == [[True, False]]


def test_an_estimator_of_your_own_is_not_whitened_for_its_name():
    assert not GRPOConfig(advantage="reinforce_pp_mine:centred").has_token_advantages
    assert GRPOConfig(advantage="reinforce_pp_baseline").has_token_advantages
