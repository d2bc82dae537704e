"""The judge of a run: options out of the recipe, and worker processes for verifiers that are not ours."""

import json

import pytest

from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError
from r1lite.scoring.scorer import describe, make_scorer
from r1lite.tasks import find
from verifiers import Completion, Problem

TASK = find("gsm8k")


def test_options_and_aliases_of_a_recipe(tmp_path):
    recipe = tmp_path / "run.yaml"
    recipe.write_text(
        "reward: math + 0.1*tags - overlong\n"
        "max_completion_tokens: 100\n"
        "verifiers:\n  tags: {use: format, prefilled_think: true}\n"
    )
    scorer = make_scorer(TASK, load(GRPOConfig, [str(recipe)]))
    assert scorer.pool is None
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
    assert scorer.pool is not None
    try:
        scores = scorer.score([(Problem(), Completion(text)) for text in ("1", "spin", "x")])
    finally:
        scorer.close()
    assert [score.reward for score in scores] == [1.0, None, 0.0]
    assert "no verdict within 1 s" in scores[1].error
    assert make_scorer(TASK, GRPOConfig(reward="pool_trouble_for_tests:trouble", score_workers=0)).pool is None
