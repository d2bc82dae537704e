"""Sums with carries: right by arithmetic, split so that no test sum is trained on, and the habits of answering them."""

import collections
import random
import re

import transformers

from r1lite.cli import main
from r1lite.nano.addition_habits import addition_habits
from r1lite.tasks.add_carry import Addition, sample
from verifiers import Completion, Problem, Reward, resolve
from verifiers.rows import rows


def test_columns_are_the_written_sum():
    found = Addition(487, 356)
    assert [(c.expression, c.total) for c in found.columns] == [("7 + 6", 13), ("8 + 5 + 1", 14), ("4 + 3 + 1", 8)]
    assert (found.answer, found.carries, found.question) == (843, 2, "What is 487 + 356?")


def test_sums_carry_and_splits_are_apart():
    rng = random.Random(0)
    train, test = [sample("train", rng) for _ in range(400)], [sample("test", rng) for _ in range(100)]
    assert all(one.carries and 100 <= one.a <= 999 and 100 <= one.b <= 999 for one in (*train, *test))
    assert not {one for one in train if one.is_test}
    assert all(one.is_test and Addition(one.b, one.a).is_test for one in test)


def test_habits_say_what_they_are():
    rng = random.Random(0)
    math, reward = resolve("math"), Reward("math + format")
    habits = addition_habits(0.4)
    problems = [sample("train", rng) for _ in range(200)]
    right = collections.Counter()
    for one in problems:
        problem = Problem(one.question, str(one.answer), language="en")
        for name, habit in habits.items():
            right[name] += math(problem, Completion(habit(one, rng))).score
        assert reward(problem, Completion(habits["chain"](one, rng))).reward == 2.0
        assert resolve("format")(problem, Completion(habits["broken_chain"](one, rng))).score == 0
        assert resolve("format")(problem, Completion(habits["slipped_chain"](one, rng))).score == 1
    assert right["chain"] == 200
    assert right["slipped_chain"] == 0
    assert right["guess"] < 10
    assert right["bare_guess"] < 10


def test_languages_of_a_chain():
    rng, language = random.Random(1), resolve("language")
    problems = [sample("train", rng) for _ in range(100)]
    shares = {}
    for other in (0.0, 0.4, 1.0):
        chain = addition_habits(other)["chain"]
        verdicts = [language(Problem(one.question, language="en"), Completion(chain(one, rng))) for one in problems]
        shares[other] = sum(v.score for v in verdicts) / len(verdicts)
    assert shares[0.0] == 1.0
    assert 0.5 < shares[0.4] < 0.65
    assert shares[1.0] == 0.0
    guess = addition_habits(0.4)["guess"](problems[0], rng)
    assert re.fullmatch(r"<think>[a-z ]+</think><answer>\d+</answer>", guess)
    assert language(Problem(language="en"), Completion(guess)).score == 1.0


def test_the_base_is_made_by_one_command(tmp_path, pytestconfig):
    """With a few steps and a smaller shape; then the recipe's GRPO takes it, on problems it never saw."""
    recipes = pytestconfig.rootpath / "recipes"
    small = ["--hidden-size", "16", "--intermediate-size", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1"]
    few = ["--chain-steps", "2", "--habit-steps", "2", "--batch-size", "2", "--tokenizer-problems", "200"]
    base = tmp_path / "base"
    assert main(["pretrain", str(recipes / "add_carry_base.yaml"), "--out", str(base), *small, *few]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    text = "<think>7 + 6 = 13 写下 3 进位 1</think><answer>843</answer>"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    short = ["--steps", "1", "--eval-problems", "2", "--eval-sample-problems", "2", "--prompts-per-step", "2"]
    argv = ["grpo", str(recipes / "add_carry.yaml"), "--model", str(base), "--out", str(tmp_path / "run"), "--quiet"]
    assert main([*argv, *short]) == 0
    _, row = next(rows(tmp_path / "run" / "rollouts" / "step-000001.jsonl.gz"))
    assert row["language"] == "en"
    assert {verdict["verifier"] for verdict in row["verdicts"]} == {"math", "language", "format"}


def test_the_weak_base_is_made_of_the_other(tmp_path, pytestconfig, capsys):
    recipe = str(pytestconfig.rootpath / "recipes" / "add_carry_weak_base.yaml")
    small = ["--hidden-size", "16", "--intermediate-size", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1"]
    few = ["--habit-steps", "1", "--batch-size", "2", "--tokenizer-problems", "200"]
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main(["pretrain", recipe, "--out", first, *small, *few]) == 0
    assert main(["pretrain", recipe, "--start", first, "--out", second, *few]) == 0
    assert transformers.AutoConfig.from_pretrained(second).hidden_size == 16
    assert main(["pretrain", recipe, "--start", str(tmp_path), "--out", str(tmp_path / "third")]) == 2
    assert "--start" in capsys.readouterr().err
