"""A*-PO's first stage: values of the reference, estimated before training, kept, the same whenever they are made."""

import json
import math

import pytest
import torch

from r1lite.cli import main
from r1lite.config import GRPOConfig, load
from r1lite.errors import RunError, UserError
from r1lite.grpo import optimal_values
from r1lite.grpo.estimators import EstimatorInputs, estimator
from verifiers.rows import rows

FLAGS = (
    "--model nano --device cpu --threads 1 --quiet --no-report --advantage a_star --loss a_star "
    "--aggregation sequence_mean --value-samples 3 --group-size 1 --prompts-per-step 5 --lr 1e-3 "
    "--max-completion-tokens 40 --value-beta 0.5 "
    "--eval-problems 2 --eval-sample-problems 1 --eval-samples 1 --save-every 1"
).split()


def kept(out):
    return json.loads((out / "optimal_values.json").read_text())["rewards"]


def rollouts_of(out):
    files = sorted((out / "rollouts").iterdir())
    return [row for path in files for _, row in rows(path)]


def test_a_single_completion_is_compared_with_the_value():
    rewards = torch.tensor([[1.0], [0.0], [math.nan]])
    inputs = EstimatorInputs(rewards, torch.ones(3, 1), torch.zeros(0, 3, 1), [], torch.tensor([0.25, 0.5, 0.75]))
    config = GRPOConfig(loss="a_star", advantage="a_star", aggregation="sequence_mean", value_samples=8, group_size=1)
    assert estimator("a_star")(config, inputs).tolist() == [[0.75], [-0.5], [0.0]]


@pytest.fixture(scope="module")
def one_id(tmp_path_factory, few_problems):
    """Different problems with one id, as in a set that was joined from several."""
    folder = tmp_path_factory.mktemp("one_id")
    for path in few_problems.iterdir():
        made = [json.dumps({**row, "id": "7"}) + "\n" for _, row in rows(path)]
        (folder / path.name).write_text("".join(made), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory, one_id):
    out = tmp_path_factory.mktemp("values") / "whole"
    assert main(["grpo", *FLAGS, "--source", str(one_id), "--steps", "2", "--out", str(out)]) == 0
    return out


def test_values_are_of_the_problems_that_are_asked(whole):
    """A = r - V*, V* = b log mean e^(r/b) of the reference's samples."""
    rewards, rollouts = kept(whole), rollouts_of(whole)
    assert sorted(rewards) == sorted({row["problem_id"] for row in rollouts})
    assert len(rollouts) == len(rewards) == len({row["question"] for row in rollouts}) == 10
    for row in rollouts:
        samples = rewards[row["problem_id"]]
        assert len(samples) == 3
        value = 0.5 * math.log(math.fsum(math.exp(r / 0.5) for r in samples) / 3)
        assert row["advantage"] == pytest.approx(row["reward"] - value, abs=1e-6)
    assert len({r for samples in rewards.values() for r in samples}) > 1


def test_a_run_that_goes_on_estimates_by_the_weights_it_began_with(whole, one_id, tmp_path):
    out = tmp_path / "part"
    assert main(["grpo", *FLAGS, "--source", str(one_id), "--steps", "1", "--out", str(out)]) == 0
    begun = kept(out)
    assert len(begun) == 5
    assert begun.items() <= kept(whole).items()
    begun.popitem()  # as if it had been stopped between two savings
    (out / "optimal_values.json").write_text(json.dumps({"samples": 3, "rewards": begun}))
    assert main(["grpo", "--resume", "--quiet", "--steps", "2", "--out", str(out)]) == 0
    assert kept(out) == kept(whole)
    assert rollouts_of(out) == rollouts_of(whole)


REFUSED = [
    ("--value-samples 8", "no effect without --loss a_star"),
    ("--group-size 1", "GRPO compares the completions"),
    ("--preset a_star_po --value-samples 0", "GRPO compares the completions"),
    ("--preset a_star_po --reference-refresh-steps 1", "are sampled from the initial reference"),
]


@pytest.mark.parametrize(("flags", "reason"), REFUSED)
def test_refused(flags, reason):
    with pytest.raises(UserError) as caught:
        load(GRPOConfig, flags.split())
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [
        ({"a": [1.0, None], "b": [None, 0.0]}, "2 of 4 samples of the reference could not be scored"),
        ({"a": [None, None], **{f"b{n}": [0.0] * 9 for n in range(9)}}, "problem 'a': none of its 2 samples"),
    ],
)
def test_what_could_not_be_scored_ends_the_run(rewards, reason):
    with pytest.raises(RunError, match=reason):
        optimal_values._check(GRPOConfig(), rewards)
