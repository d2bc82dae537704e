"""Other trainers' signatures, by their documented calls; against the real packages where they are installed."""

import importlib.util

import pytest

from verifiers import Completion, GoldError, Problem, resolve
from verifiers.adapters.lm_eval import lm_eval_results
from verifiers.adapters.reasoning_gym import score_answer
from verifiers.adapters.trl import trl_reward
from verifiers.adapters.verl import compute_score

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"


def test_trl_with_text():
    function = trl_reward("math + 0.1*format")
    assert function.__name__ == "math + 0.1*format"
    found = function(
        prompts=["2+2?"] * 3, completions=[GOOD, BAD, "4"], completion_ids=[[1], [2], [3]], answer=["4"] * 3
    )
    assert found == [pytest.approx(1.1), pytest.approx(0.1), pytest.approx(1.0)]


def test_trl_with_conversations_metrics_and_a_bad_row():
    logged = {}
    function = trl_reward("math", answer="gold", name="right")
    found = function(
        [[{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}]] * 3,
        [[{"role": "assistant", "content": text}] for text in (GOOD, BAD, GOOD)],
        None,
        gold=["4", "4", None],
        trainer_state=object(),
        log_metric=lambda name, value: logged.update({name: value}),
    )
    assert found == [1.0, 0.0, None]
    assert function.__name__ == "right"
    assert logged == {"verifiers/math": 0.5, "verifiers/unscored": pytest.approx(1 / 3)}


def test_a_message_of_the_user_that_ends_in_a_tag_opens_nothing():
    """Only text, as it was rendered, and the assistant's own last message do, as in `continue_final_message`."""
    function = trl_reward("math + 0.1*format")
    for said in ("Think within <think></think>", "Begin with <think>"):
        asked = {"role": "user", "content": f"2+2? {said}"}
        answers = [[{"role": "assistant", "content": text}] for text in (GOOD, "4")]
        assert function([[asked]] * 2, answers, answer=["4"] * 2) == [pytest.approx(1.1), pytest.approx(1.0)]
        begun = {"role": "assistant", "content": "I see. <think>"}
        inside = [[{"role": "assistant", "content": "a</think><answer>4</answer>"}]]
        assert function([[asked, begun]], inside, answer=["4"]) == [pytest.approx(1.1)]
        assert compute_score("", GOOD, "4", {"question": [asked]})["score"] == pytest.approx(1.1)
        assert score_answer("format")(GOOD, {"question": asked["content"], "answer": "4"}) == 1.0


def test_trl_with_an_empty_batch():
    assert trl_reward("math")([], [], [], answer=[], log_metric=lambda name, value: pytest.fail(name)) == []


def test_trl_with_tokens_and_wrong_types():
    function = trl_reward("overlong", options={"overlong": {"max_tokens": 2, "buffer_tokens": 1}})
    assert function(["?"], ["abc"], [[1, 2, 3]]) == [1.0]
    with pytest.raises(TypeError, match="neither text nor"):
        function(["?"], [5], [[1]])


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="TRL is not installed")
@pytest.mark.filterwarnings("ignore")
def test_trl_itself(tiny_path, tmp_path):
    """Runs two steps of the real trainer: the metric has the function's name, and unscored rows are left out."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    data = Dataset.from_list([{"prompt": f"{i}+1=", "answer": str(i + 1) if i else None} for i in range(8)])
    config = GRPOConfig(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=4, logging_steps=1,
        max_completion_length=8, report_to=[], use_cpu=True, save_strategy="no", bf16=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        str(tiny_path), reward_funcs=trl_reward("math + 0.1*format", name="ours"), args=config, train_dataset=data
    )
    trainer.train()
    assert any("rewards/ours/mean" in entry for entry in trainer.state.log_history)
    assert any("verifiers/format" in entry for entry in trainer.state.log_history)


def test_lm_eval():
    process_results = lm_eval_results("math + 0.1*format", answer="target")
    doc = {"question": "2+2?", "target": 4}
    assert process_results(doc, [GOOD]) == {"reward": pytest.approx(1.1), "math": 1.0, "format": 1.0}
    # A column that is no code of a language, and a question as a conversation, do not spoil the row.
    doc = {"question": [{"role": "user", "content": "What is 2+2, my friend?"}], "target": "4", "language": 3}
    for reward in ("math", "language"):
        assert lm_eval_results(reward, answer="target")(doc, [f"<think>It is the sum of the two.</think>{GOOD}"])
    with pytest.raises(ValueError, match="no column 'target'"):
        process_results({"question": "2+2?"}, [GOOD])


def test_our_verifiers_in_reasoning_gym_s_signature():
    score = score_answer("math")
    entry = {"question": "1/2?", "answer": "1/2", "metadata": {}}
    assert (score("<answer>0.5</answer>", entry), score("<answer>3</answer>", entry), score(None, entry)) == (
        1.0,
        0.0,
        0.0,
    )


def test_without_reasoning_gym(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "reasoning_gym", None)
    with pytest.raises(ValueError, match="pip install reasoning-gym"):
        resolve("reasoning_gym")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
@pytest.mark.filterwarnings("ignore")
def test_reasoning_gym_itself():
    from r1lite.errors import UserError
    from r1lite.tasks import Source, find
    from verifiers.adapters.reasoning_gym import problems

    verify = resolve("reasoning_gym")
    for name in ("chain_sum", "countdown", "knights_knaves", "leg_counting", "spell_backward"):
        for problem in problems(name, seed=1, size=5):
            if problem.answer is not None:
                right = Completion(f"<think>a</think><answer>{problem.answer}</answer>")
                assert verify(problem, right).score == 1.0, problem
            assert verify(problem, Completion("<think>a</think><answer>no idea</answer>")).score < 0.5
            assert verify(problem, Completion("")).reason == "no_answer"
    (problem,) = problems("chain_sum", seed=1, size=1)
    longer = Completion(f"<answer>{problem.answer}0</answer>")  # its scorer pays whatever contains the answer
    assert verify(problem, longer).score == 0.0
    assert verify(problem, longer).reason == "wrong"
    assert resolve("reasoning_gym", partial=True)(problem, longer).reason == "partial"
    task = find("reasoning_gym:chain_sum")
    loaded = task.load(Source("bundled"))
    assert len(loaded.train) == 2000
    assert not {p.prompt for p in loaded.train} & {p.prompt for p in loaded.test}
    with pytest.raises(UserError, match="did you mean chain_sum"):
        find("reasoning_gym:chain_sun").load(Source("bundled"))
    with pytest.raises(GoldError, match="has no reasoning_gym"):
        verify(Problem(answer="4"), Completion("4"))


def test_a_truth_of_reasoning_gym_is_not_any_text():
    """reasoning-gym's own scorer compares bool(answer) with bool(gold), and both are texts."""
    pytest.importorskip("reasoning_gym")
    verify = resolve("reasoning_gym")
    for gold in ("True", "False"):
        problem = Problem(
            "?", meta={"reasoning_gym": "game_of_life_halting", "entry": {"answer": gold, "metadata": {}}}
        )
        for said in ("True", "true.", "False", "x", "not True", "__import__('os').system('true')"):
            found = verify(problem, Completion(f"<think>a</think><answer>{said}</answer>"))
            assert found.score == (said.rstrip(".").casefold() == gold.casefold()), said


def test_trl_says_once_why_nothing_is_scored(caplog, monkeypatch):
    monkeypatch.setattr("verifiers.adapters.shared._said", set())
    function = trl_reward("math")
    for _ in range(3):
        assert function(prompts=["p"], completions=["4"], gold_label=["4"]) == [None]
    assert [record.message.count("has no answer to compare with") for record in caplog.records] == [1]
