"""The bundled model nano: its files, its tokenizer, the text it learns from, and how it is made."""

import collections
import copy
import itertools
import json
import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers.processors import TemplateProcessing  # noqa: E402

from r1lite.config import read_recipe  # noqa: E402
from r1lite.errors import UserError  # noqa: E402
from r1lite.nano import nano_path  # noqa: E402
from r1lite.nano.batches import batches, examples  # noqa: E402
from r1lite.nano.config import SEARCH_HABITS, PretrainConfig  # noqa: E402
from r1lite.nano.habits import HABITS, example  # noqa: E402
from r1lite.nano.search_habits import search_habits  # noqa: E402
from r1lite.stages import pretrain  # noqa: E402
from r1lite.tasks.word_problems import generate, in_test, sample  # noqa: E402
from verifiers import Completion, Problem  # noqa: E402
from verifiers.format import ThinkAnswer  # noqa: E402

TINY = {
    "habits": {"guess": 0.5, "chain": 0.5},
    "short_habits": {"guess": 0.5, "chain": 0.5},
    "tokenizer_problems": 200,
    "vocab_size": 500,
    "hidden_size": 32,
    "intermediate_size": 64,
    "layers": 1,
    "heads": 2,
    "kv_heads": 1,
    "chain_steps": 15,
    "habit_steps": 5,
    "warmup_steps": 2,
    "batch_size": 16,
    "autocast": False,
    "threads": 1,
    "log_every": 1,
}


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(nano_path())


@pytest.fixture(scope="module")
def recipe(pytestconfig):
    return PretrainConfig(out="unused", **read_recipe(pytestconfig.rootpath / "recipes" / "nano.yaml", PretrainConfig))


def test_shipped_folder_is_small():
    assert sum(file.stat().st_size for file in nano_path().rglob("*")) <= 8_000_000


def test_shipped_model_loads_and_answers(tokenizer):
    model = transformers.AutoModelForCausalLM.from_pretrained(nano_path())
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert sum(parameter.numel() for parameter in model.parameters()) <= 3_000_000
    assert model.config.tie_word_embeddings
    assert model.config.max_position_embeddings >= 1024
    assert model.config.vocab_size == len(tokenizer)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    problems = generate("test", 20, seed=7)
    formed = 0
    for problem in problems:
        inputs = tokenizer(problem.question + "\n", return_tensors="pt")
        out = model.generate(**inputs, max_new_tokens=96)
        text = tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        formed += ThinkAnswer()(Problem(), Completion(text=text)).score == 1.0
    assert formed >= 15


def test_shipped_config_matches_the_recipe(recipe):
    config = json.loads((nano_path() / "config.json").read_text())
    assert config["hidden_size"] == recipe.hidden_size
    assert config["intermediate_size"] == recipe.intermediate_size
    assert config["num_hidden_layers"] == recipe.layers
    assert config["num_attention_heads"] == recipe.heads
    assert config["num_key_value_heads"] == recipe.kv_heads


@given(st.text())
def test_any_text_survives_the_tokenizer(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "text",
    [
        "Janet’s ducks lay 16 eggs per day. She sells the remainder for $2 per fresh duck egg.\n#### 18",
        r"Find $\frac{1}{2}x^{2} = \sqrt{3}$, and \boxed{\dfrac{4\pi}{7}}",
        "小明有12个苹果，他给了小红5个。",
        "👩‍👩‍👧 ½ ٣ e\u0301 \u200b\ufeff\x00 \r\n\t  three   spaces ",
        "<think>4 * 6 = 24</think><answer>24</answer><|endoftext|>",
        "1,000 , 2 ,3, 4.5 -6+7 8 - 9",
    ],
)
def test_odd_text_survives_the_tokenizer(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


def test_digits_are_single_tokens_wherever_they_stand(tokenizer):
    for token in tokenizer.get_vocab():
        assert len(token) == 1 or not re.search(r"\d", token)
    assert tokenizer.tokenize("4 * 6 = 24; 24 - 6 = 18") == [
        *("4", " * ", "6", " = ", "2", "4", "; ", "2", "4", " - ", "6", " = ", "1", "8")
    ]
    assert tokenizer.tokenize(" 24 $24")[-5:] == ["2", "4", "Ġ$", "2", "4"]


def test_tags_are_single_tokens_that_decoding_keeps(tokenizer):
    text = "<think>4</think><answer>4</answer>"
    ids = tokenizer.encode(text)
    assert len(ids) == 6
    assert tokenizer.decode([*ids, tokenizer.eos_token_id], skip_special_tokens=True) == text
    assert tokenizer.eos_token_id != tokenizer.pad_token_id


def test_training_text_never_has_a_form_of_the_test_side():
    texts = itertools.islice(examples({"chain": 1.0}, random.Random(3)), 500)
    assert not any(in_test(text.question) for text in texts)


def test_habits_have_their_shares(recipe):
    rng = random.Random(4)
    problem = sample("train", rng)
    for shares in (recipe.habits, recipe.short_habits):
        counts = collections.Counter(example(problem, shares, rng, HABITS).habit for _ in range(5000))
        assert {habit: count / 5000 for habit, count in counts.items()} == pytest.approx(shares, abs=0.03)


def test_problems_of_two_steps_have_habits_of_their_own():
    texts = itertools.islice(examples({"guess": 1.0}, random.Random(9), short_shares={"chain": 1.0}), 300)
    equations = [text.completion.count(" = ") for text in texts]
    assert set(equations) == {0, 2}


@pytest.mark.parametrize(
    ("habit", "right", "formed"),
    [
        ("chain", (1.0, 1.0), (1.0, 1.0)),
        ("slipped_chain", (0.0, 0.15), (1.0, 1.0)),
        ("guess", (0.4, 0.6), (1.0, 1.0)),
        ("bare_guess", (0.0, 0.0), (0.0, 0.0)),
        ("broken_chain", (0.1, 0.9), (0.0, 0.0)),
    ],
)
def test_what_a_habit_writes(habit, right, formed):
    """Shares of completions whose answer is right, and whose format is."""
    rng = random.Random(5)
    problems = [sample("train", rng) for _ in range(400)]
    texts = [HABITS[habit](problem, rng) for problem in problems]
    answers = [f"<answer>{p.answer}</answer>" in text for p, text in zip(problems, texts, strict=True)]
    formats = [ThinkAnswer()(Problem(), Completion(text=text)).score for text in texts]
    assert right[0] <= sum(answers) / 400 <= right[1]
    assert formed[0] <= sum(formats) / 400 <= formed[1]


def test_slips_carry_on_from_the_wrong_value():
    """Only one equation of a slipped chain is false or uses another operation; the rest is consistent with it."""
    rng = random.Random(6)
    for _ in range(300):
        problem = sample("train", rng)
        text = HABITS["slipped_chain"](problem, rng)
        equations = re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)", text)
        assert len(equations) == len(problem.steps)
        changed = [
            sign != step.expression.split()[1] or int(value) != max(eval(f"{a}{sign}{b}".replace("/", "//")), 0)
            for (a, sign, b, value), step in zip(equations, problem.steps, strict=True)
        ]
        assert sum(changed) == 1


def test_example_draws_only_the_habits_it_may():
    rng = random.Random(7)
    problem = sample("train", rng)
    assert {example(problem, {"chain": 0.0, "guess": 2.0}, rng, HABITS).habit for _ in range(50)} == {"guess"}


def test_batches_label_the_completion_and_its_end(tokenizer):
    batch = next(batches(examples({"chain": 1.0}, random.Random(8)), tokenizer, batch_size=4, template="short"))
    for row, labels in zip(batch.input_ids, batch.labels, strict=True):
        completion = labels[labels != -100]
        assert completion[-1] == tokenizer.eos_token_id
        text = tokenizer.decode(completion, skip_special_tokens=True)
        assert ThinkAnswer()(Problem(), Completion(text=text)).score == 1.0
        start = int((labels != -100).nonzero()[0])
        assert tokenizer.decode(row[: start + 1]).endswith("?\n")
        assert torch.equal(row[start + 1 : start + len(completion)], completion[:-1])


def test_a_token_that_begins_a_text_is_not_put_before_the_completion(tokenizer):
    """The tokenizers of Llama and Gemma begin each text with one."""
    begins = copy.deepcopy(tokenizer)
    begins.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", begins.eos_token_id)]
    )
    plain, other = (
        next(batches(examples({"chain": 1.0}, random.Random(8)), one, batch_size=4, template="short"))
        for one in (tokenizer, begins)
    )
    assert other.input_ids[:, 0].tolist() == [begins.eos_token_id] * 4
    assert torch.equal(other.labels[other.labels != -100], plain.labels[plain.labels != -100])


def test_a_short_run_learns_and_can_be_loaded(tmp_path, capsys):
    out = pretrain.run(PretrainConfig(out=str(tmp_path / "model"), **TINY))
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", capsys.readouterr().out)]
    assert len(losses) == 20
    assert sum(losses[-3:]) / 3 < losses[0] - 0.5
    model = transformers.AutoModelForCausalLM.from_pretrained(out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    assert model.config.vocab_size == len(tokenizer)
    again = pretrain.run(PretrainConfig(out=str(tmp_path / "again"), **TINY))
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
    assert (again / "tokenizer.json").read_bytes() == (out / "tokenizer.json").read_bytes()


def test_a_student_can_have_its_teachers_tokenizer(tmp_path, tokenizer):
    settings = {**TINY, "chain_steps": 0, "habit_steps": 1}
    pretrain.run(PretrainConfig(out=str(tmp_path / "student"), tokenizer="nano", **settings))
    found = transformers.AutoTokenizer.from_pretrained(tmp_path / "student")
    text = "Tom has 12 apples.\n<think>12 + 3 = 15</think>"
    assert found.get_vocab() == tokenizer.get_vocab()
    assert found(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert (found.eos_token_id, found.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/nowhere", "--tokenizer /nowhere: no such folder"),
        ("empty", "can't be loaded"),
        ("endless", "with an end token and a padding token"),
    ],
)
def test_tokenizers_that_are_refused(given, message, tmp_path, tiny_tokenizer):
    (tmp_path / "empty").mkdir()
    endless = copy.deepcopy(tiny_tokenizer)
    endless.eos_token = None
    endless.save_pretrained(tmp_path / "endless")
    place = tmp_path / given
    config = PretrainConfig(out=str(tmp_path / "out"), tokenizer=str(place), habit_steps=1)
    with pytest.raises(UserError, match=message):
        pretrain.run(config)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"give_up": 0.3}, "--give-up has no effect without --text countdown_small"),
        ({"text": "add_carry", "give_up_first": [0.5]}, "--give-up-first has no effect"),
        ({"text": "countdown_small", "other_language": 0.1}, "--other-language has no effect without --text add_carry"),
        ({"text": "countdown_small", "short_habits": {"chain": 1.0}}, "--short-habits has no effect"),
        ({"text": "countdown_small", "habits": {"slipped_chain": 1.0}}, "countdown_small has no slipped_chain"),
    ],
)
def test_settings_of_another_text_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        PretrainConfig(**values)
    assert set(SEARCH_HABITS) == set(search_habits([0.5]))


def test_one_tokenizer_only():
    with pytest.raises(ValueError, match="--start has its own tokenizer"):
        PretrainConfig(start="a", tokenizer="nano")


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(UserError, match="already exists"):
        pretrain.run(PretrainConfig(out=str(tmp_path), **TINY))


@pytest.mark.parametrize("habits", [{"chain": 0.5}, {"chains": 1.0}, {}, {"chain": 1.5, "guess": -0.5}])
def test_habits_are_checked(habits):
    with pytest.raises(ValueError, match="habits"):
        PretrainConfig(out="unused", habits=habits)
