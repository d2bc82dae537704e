"""The judge of a run: options out of the recipe, and worker processes for verifiers that are not ours."""

import json
import os

import pytest
from batch_verifiers_for_tests import InBatches

from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError
from r1lite.scoring.scorer import Scorer, describe, make_scorer
from r1lite.tasks import find
from verifiers import Completion, Problem, Reward
from verifiers.scoring import workers_for

TASK = find("gsm8k")


def test_options_and_aliases_of_a_recipe(tmp_path):
    recipe = tmp_path / "run.yaml"
    recipe.write_text(
        "reward: math + 0.1*tags - overlong\n"
        "max_completion_tokens: 100\n"
        "verifiers:\n  tags: {use: format, prefilled_think: true}\n"
    )
    scorer = make_scorer(TASK, load(GRPOConfig, [str(recipe)]))
    assert workers_for(scorer.reward) == 0
    completion = Completion("a</think><answer>4</answer>", token_ids=tuple(range(90)))
    (score,) = scorer.score([(Problem(answer="4"), completion)])
    assert score.reward == pytest.approx(1.1 - 0.5)  # 90 of 100 tokens: in the middle of the buffer
    assert json.loads(json.dumps(describe(scorer.reward)))["range"] == [-1.0, 1.1]
    scorer.close()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reward": "mth"}, "did you mean 'math'"),
        ({"reward": ""}, "can't read the reward formula"),
        ({"reward": "math + 0*format"}, "'format' can't change the reward"),
        ({"verifiers": {"language": {}}}, "does not use"),
        ({"verifiers": {"format": {"strikt": True}}}, "has no option 'strikt'"),
    ],
)
def test_mistakes(values, message):
    with pytest.raises(UserError, match=message):
        make_scorer(TASK, GRPOConfig(**values))


def test_a_verifier_of_yours_that_hangs_costs_one_completion(monkeypatch):
    monkeypatch.syspath_prepend(str(__import__("pathlib").Path(__file__).resolve().parents[1]))
    scorer = make_scorer(TASK, GRPOConfig(reward="pool_trouble_for_tests:trouble", score_timeout_s=1.0))
    try:
        scores = scorer.score([(Problem(), Completion(text)) for text in ("1", "spin", "x")])
    finally:
        scorer.close()
    assert [score.reward for score in scores] == [1.0, None, 0.0]
    assert "no verdict within 1 s" in scores[1].error


@pytest.mark.parametrize(("workers", "same"), [(None, False), (0, True), (1, False)])
def test_where_verifiers_of_yours_run(workers, same):
    name = "batch_verifiers_for_tests:here"
    scorer = make_scorer(TASK, GRPOConfig(reward=f"math + {name}", score_workers=workers))
    try:
        (score,) = scorer.score([(Problem(answer="4"), Completion("<answer>4</answer>"))])
    finally:
        scorer.close()
    assert (score.verdicts[name].detail == str(os.getpid())) == same


def test_every_verifier_is_asked_once_for_a_completion():
    def formula(text):
        return Reward(text, verifiers={name: InBatches("abc".index(name)) for name in text if name in "abc"})

    reward, correct, well_formed = formula("a + 0.5*b"), formula("a"), formula("c")
    scorer = Scorer(reward, correct, well_formed)
    texts = ["101", "0h0", "v11", "1k1", "a1a", "11v"]
    rollouts = scorer.rollouts([(Problem(), Completion(text)) for text in texts])
    assert [rollout.score.reward for rollout in rollouts] == [1.0, 0.25, None, None, 0.5, 1.5]
    assert [rollout.correct for rollout in rollouts] == [True, False, None, None, None, True]
    assert [rollout.well_formed for rollout in rollouts] == [True, False, True, True, None, None]
    assert reward.verifiers["a"].asked == well_formed.verifiers["c"].asked == texts
    assert reward.verifiers["b"].asked == [text for text in texts if text[0] != "v"]
    assert correct.verifiers["a"].asked == []
    marks = scorer.marks([(Problem(), Completion(text)) for text in texts])
    assert [mark.correct for mark in marks] == [True, False, None, True, None, True]
    assert marks[2].reason == "VerifierError: no sandbox"
    assert correct.verifiers["a"].asked == texts
