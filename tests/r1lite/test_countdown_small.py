"""The task countdown_small, the text its bundled base is made of, and the base: it tries rightly, and gives up."""

import itertools
import json
import random
import re
import statistics
import unicodedata

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from r1lite.cli import main  # noqa: E402
from r1lite.config import read_recipe  # noqa: E402
from r1lite.nano import MODELS, model_place, nano_path  # noqa: E402
from r1lite.nano.batches import batches, searches  # noqa: E402
from r1lite.nano.config import PretrainConfig  # noqa: E402
from r1lite.nano.search_habits import search, search_habits, words  # noqa: E402
from r1lite.nano.tokenizer import word_tokenizer  # noqa: E402
from r1lite.rollout import Sampling  # noqa: E402
from r1lite.rollout.hf import HFEngine  # noqa: E402
from r1lite.stages import pretrain  # noqa: E402
from r1lite.tasks import Source, find  # noqa: E402
from r1lite.tasks.countdown import gold  # noqa: E402
from r1lite.tasks.countdown_small import attempts, draw, make  # noqa: E402
from verifiers import Completion, Problem  # noqa: E402
from verifiers.countdown import Countdown  # noqa: E402
from verifiers.format import ThinkAnswer  # noqa: E402

ATTEMPT = re.compile(r"\((\d+)([+*-])(\d+)\)([+*-])(\d+)=(\d+)( no; | yes)")


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(model_place("nano-countdown"))


@pytest.mark.quick
def test_problems_are_solvable_the_same_everywhere_and_apart():
    task = find("countdown_small")
    assert (task.example.prompt, task.example.meta["solution"]) == EXAMPLE
    problems = task.load(Source("generated"))
    keys = [{(tuple(sorted(p.meta["numbers"])), p.answer) for p in split} for split in (problems.train, problems.test)]
    assert not keys[0] & keys[1]
    assert [len(one) for one in keys] == [len(problems.train), len(problems.test)] == [1400, 175]
    verifier = Countdown()
    for problem in problems.test:
        assert verifier(problem, Completion(gold(problem))).score == 1.0


@pytest.mark.quick
def test_the_first_attempt_is_seldom_right():
    rng = random.Random(0)
    found = [draw("train", rng) for _ in range(2000)]
    assert {len(one.solutions) for one in found} == {1, 2}
    assert max(len(one.attempts) for one in found) == 25
    assert 0.04 < statistics.fmean(len(one.solutions) / len(one.attempts) for one in found) < 0.07
    assert make("train", random.Random(1)).meta["difficulty"] in ("one solution", "two solutions")
    assert [f"{one.expression}={one.value}" for one in attempts((1, 2, 3))[:3]] == [
        "(2+1)+3=6",
        "(2+1)*3=9",
        "(2-1)+3=4",
    ]


@pytest.mark.quick
def test_a_search_tells_the_truth_and_tries_nothing_twice():
    rng = random.Random(1)
    for give_up in (0.0, 0.3, 1.0):
        lengths = []
        for _ in range(200):
            problem = draw("train", rng)
            thought, answer = search(problem, rng, give_up)
            tried = ATTEMPT.findall(thought)
            assert "".join(f"({a}{s}{b}){t}{c}={v}{w}" for a, s, b, t, c, v, w in tried) == thought
            for a, sign, b, then, c, value, word in tried:
                assert eval(f"({a}{sign}{b}){then}{c}") == int(value)
                assert (word == " yes") == (int(value) == problem.target)
            assert len({one[:5] for one in tried}) == len(tried)
            assert thought.split("=")[-2].split("; ")[-1] == answer
            assert thought.endswith(" yes") or give_up > 0
            lengths.append(len(tried))
        assert (max(lengths) == 1) == (give_up == 1)
        assert max(lengths) > 15 or give_up > 0


@pytest.mark.quick
def test_broken_chains_have_a_broken_form():
    habits, rng = search_habits([0.5]), random.Random(2)
    for name, formed in (("chain", 1.0), ("guess", 1.0), ("broken_chain", 0.0)):
        texts = [habits[name](draw("train", rng), rng) for _ in range(50)]
        assert {ThinkAnswer()(Problem(), Completion(text)).score for text in texts} == {formed}


@pytest.mark.quick
def test_an_attempt_is_five_tokens(tokenizer):
    made = word_tokenizer(words(), max_tokens=256)
    assert made.get_vocab() == tokenizer.get_vocab()
    text = "Use 10, 3 and 2 to make 14.\n<think>(10-3)*2=14 yes</think><answer>(10-3)*2</answer>"
    pieces = [tokenizer.decode([token]) for token in tokenizer.encode(text)]
    assert pieces[9:17] == ["<think>", "(10", "-3", ")*2", "=14", " yes", "</think>", "<answer>"]
    assert "".join(pieces) == text


@given(st.text())
def test_any_text_survives_the_tokenizer(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


@pytest.mark.quick
@pytest.mark.parametrize("size", [1, 2])
def test_batches_of_few_texts_are_never_empty(size, tokenizer):
    texts = searches({"chain": 1.0}, random.Random(0), give_up=[0.0, 0.5])
    made = batches(texts, tokenizer, batch_size=size, template="short", even_tokens=True)
    assert all(len(batch.input_ids) for batch in itertools.islice(made, 64))


def test_batches_have_equally_many_tokens(tokenizer):
    texts = searches({"chain": 1.0}, random.Random(3), give_up=[0.0, 0.5])
    found = list(itertools.islice(batches(texts, tokenizer, batch_size=16, template="short", even_tokens=True), 64))
    sizes = [int((batch.labels != -100).sum()) for batch in found]
    assert max(sizes[:32]) < 1.4 * min(sizes[:32])  # a text is up to 140
    assert sum(len(batch.input_ids) for batch in found) == 64 * 16  # no text is lost
    assert max(len(batch.input_ids) for batch in found) > 3 * min(len(batch.input_ids) for batch in found)


def test_the_recipe_is_the_shipped_models(pytestconfig, tmp_path):
    values = read_recipe(pytestconfig.rootpath / "recipes" / "nano-countdown.yaml", PretrainConfig)
    made = json.loads((nano_path("nano-countdown") / "config.json").read_text())
    assert made["hidden_size"] == values["hidden_size"]
    assert made["num_hidden_layers"] == values["layers"]
    assert sum(file.stat().st_size for file in nano_path("nano-countdown").iterdir()) < 2_100_000
    short = {**values, "chain_steps": 2, "habit_steps": 1, "batch_size": 8, "hidden_size": 32, "intermediate_size": 32}
    pretrain.run(PretrainConfig(out=str(tmp_path / "base"), **short))
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base").config.vocab_size == made["vocab_size"]


def test_the_base_tries_rightly_and_gives_up(tokenizer):
    model = transformers.AutoModelForCausalLM.from_pretrained(model_place("nano-countdown"))
    problems = find("countdown_small").load(Source("generated")).test[:64]
    prompts = [tokenizer.encode(problem.prompt + "\n") for problem in problems]
    seeds = [[4 * p + n for n in range(4)] for p in range(len(problems))]
    groups = HFEngine(model, tokenizer, max_rows=256).generate(prompts, seeds, Sampling(1.0, 144))
    texts = [(problem, one.text) for problem, group in zip(problems, groups, strict=True) for one in group]
    verifier = Countdown()
    right = statistics.fmean(verifier(problem, Completion(text)).score for problem, text in texts)
    assert 0.03 < right < 0.17
    found = [(problem, ATTEMPT.findall(text)) for problem, text in texts]
    tried = [(problem, one) for problem, every in found for one in every]
    assert 1.2 < len(tried) / len(texts) < 2.5
    true = [eval(f"({a}{sign}{b}){then}{c}") == int(value) for _, (a, sign, b, then, c, value, _) in tried]
    assert statistics.fmean(true) > 0.97
    honest = [(word == " yes") == (value == problem.answer) for problem, (*_, value, word) in tried]
    assert statistics.fmean(honest) > 0.97
    own = [sorted(map(int, (a, b, c))) == sorted(problem.meta["numbers"]) for problem, (a, _, b, _, c, *_) in tried]
    assert statistics.fmean(own) > 0.97


@pytest.mark.slow
def test_accuracy_and_length_rise_together(tmp_path):
    """An eighth of the recipe's steps at three times its rate."""
    given = ("--task", "countdown_small", "--steps", "15", "--lr", "4e-4", "--eval-every", "0", "--quiet")
    small = ("--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2", "--no-report")
    assert main(["grpo", "--model", "nano-countdown", *given, *small, "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    first, last = lines[:3], lines[-3:]
    mean = {
        key: [statistics.fmean(one[key] for one in part) for part in (first, last)] for key in lines[0] if key in KEYS
    }
    assert mean["accuracy"][1] > mean["accuracy"][0] + 0.15, mean
    assert mean["completion_tokens"][1] > 1.6 * mean["completion_tokens"][0], mean


KEYS = ("accuracy", "completion_tokens")
EXAMPLE = ("Use 9, 4 and 11 to make 55.", "(9-4)*11")


@pytest.mark.quick
def test_bundled_models_by_name(tmp_path, monkeypatch):
    assert set(MODELS) == {"nano", "nano-countdown"}
    assert model_place("nano") == str(nano_path())
    assert model_place("Qwen/Qwen2.5-0.5B") == "Qwen/Qwen2.5-0.5B"
