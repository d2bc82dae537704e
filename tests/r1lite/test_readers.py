"""What other trainers read out of a curated set: TRL itself, others by the rules that their readers document."""

import functools
import json
import re
from pathlib import Path

import pytest
import torch
from curation_for_tests import lines, write
from templates_for_tests import CHATML, make_tokenizer, save_model

from r1lite.cli import main
from r1lite.config import DPOConfig, SFTConfig
from r1lite.curation.rows import FORMATS
from r1lite.preference.pairs import load_pairs
from r1lite.preference.reward_model import encode
from r1lite.supervised.preferences import load_pairs as pairs_as_tokens
from r1lite.supervised.sft.encode import load_set
from r1lite.tasks import Problems
from r1lite.tasks.prompts import render
from verifiers import Completion, Problem, resolve

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # TRL's and datasets' own
README = Path(__file__).resolve().parents[2] / "r1lite" / "curation" / "README.md"


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    """A tiny model whose chat template ends a turn by what the tokenizer says ends a text."""
    tokenizer = make_tokenizer(CHATML)
    tokenizer.eos_token = "<|im_end|>"
    end = tokenizer.eos_token_id
    return save_model(tmp_path_factory.mktemp("model") / "m", tokenizer, eos_token_id=end)


@pytest.fixture(scope="module")
def loaded(model_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path)
    return AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32), tokenizer


@pytest.fixture(scope="module")
def sets(loaded, tmp_path_factory):
    """A set a format, of the same completions, each with pairs."""
    folder = tmp_path_factory.mktemp("sets")
    rows = []
    for n in range(6):
        question = f"What is {n} + {n + 1}?"
        for sample, said in enumerate((2 * n + 1, 2 * n + 2)):
            completion = f"<think>{n} and {n + 1}</think> <answer>{said}</answer>"
            prompt = render("chat", question, loaded[1])
            rows.append({"id": f"p{n}", "question": question, "prompt": prompt, "completion": completion})
            rows[-1] |= {"answer": str(2 * n + 1), "sample": sample}
    source = write(folder / "rows.jsonl", rows)
    argv = ["reject", "--rollouts", str(source), "--filters", "correct", "format", "--pairs", "1", "--quiet"]
    argv += ["--dedup", "none", "--workers", "1", "--no-report"]
    for name in FORMATS:
        assert main([*argv, "--format", name, "--out", str(folder / name)]) == 0
        assert len(lines(folder / name / "train.jsonl")) == len(lines(folder / name / "pairs.jsonl")) == 6
    return folder


def as_data_set(folder, name, tmp_path):
    from datasets import load_dataset

    return load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path / "cache"))


def common(tmp_path):
    settings = {
        "output_dir": str(tmp_path / "out"),
        "max_steps": 1,
        "use_cpu": True,
        "report_to": "none",
        "bf16": False,
    }
    return {**settings, "save_strategy": "no", "per_device_train_batch_size": 2, "max_length": None}


def ours(folder, loaded, **settings):
    config = SFTConfig(data=str(folder), **settings)
    found = load_set(config, Problems([], [], ""), [], *loaded).value
    return [found[n] for n in range(len(found))]


@pytest.mark.parametrize("name", ["prompt_completion", "messages"])
def test_trl_fine_tunes_on_our_tokens(name, sets, model_path, loaded, tmp_path):
    from trl import SFTConfig as Config
    from trl import SFTTrainer

    tokenizer = loaded[1]
    trainer = SFTTrainer(
        str(model_path),
        Config(**common(tmp_path), shuffle_dataset=False),
        train_dataset=as_data_set(sets / name, "default", tmp_path),
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0
    settings = {"template": "r1_zero" if name == "prompt_completion" else "chat", "prompts": "verbatim"}
    rows = ours(sets / name, loaded, **settings)
    after = tuple(tokenizer("\n")["input_ids"]) if name != "prompt_completion" else ()  # the template's, after the turn
    assert [tuple(ids) for ids in trainer.train_dataset["input_ids"]] == [
        (*row.prompt_ids, *row.token_ids, *after) for row in rows
    ]
    assert all(row.token_ids[-1] == tokenizer.eos_token_id for row in rows)
    if name == "prompt_completion":  # the loss is the completion's alone
        learnt = [[token for token in labels if token != -100] for labels in trainer.train_dataset["labels"]]
        assert learnt == [list(row.token_ids) for row in rows]
    else:
        assert (
            tokenizer.decode(rows[0].prompt_ids)
            == "<|im_start|>user\nWhat is 0 + 1?<|im_end|>\n<|im_start|>assistant\n"
        )


@pytest.mark.parametrize("name", ["prompt_completion", "messages"])
def test_trl_learns_our_pairs(name, sets, model_path, loaded, tmp_path):
    from trl import DPOConfig as Config
    from trl import DPOTrainer

    tokenizer = loaded[1]
    trainer = DPOTrainer(
        str(model_path),
        args=Config(**common(tmp_path)),
        train_dataset=as_data_set(sets / name, "pairs", tmp_path),
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0
    found = trainer.train_dataset
    settings = {"template": "r1_zero" if name == "prompt_completion" else "chat", "prompts": "verbatim"}
    config = DPOConfig(data=str(sets / name / "pairs.jsonl"), **settings)
    rows = pairs_as_tokens(config, Problems([], [], ""), [], *loaded).value
    after = tokenizer("\n")["input_ids"] if name == "messages" else []
    assert len(rows) == 2 * len(found)
    for n, row in enumerate(found):
        assert row["prompt_ids"] == list(rows[2 * n].prompt_ids)
        assert row["chosen_ids"] == [*rows[2 * n].token_ids, *after]
        assert row["rejected_ids"] == [*rows[2 * n + 1].token_ids, *after]


@pytest.mark.parametrize("name", ["prompt_completion", "messages"])
def test_trl_trains_a_reward_model_on_our_pairs_that_we_load(name, sets, model_path, loaded, tmp_path):
    from transformers import AutoModelForSequenceClassification
    from trl import RewardConfig, RewardTrainer

    tokenizer = loaded[1]
    model = AutoModelForSequenceClassification.from_pretrained(model_path, num_labels=1, dtype=torch.float32)
    trainer = RewardTrainer(
        model,
        RewardConfig(**common(tmp_path)),
        train_dataset=as_data_set(sets / name, "pairs", tmp_path),
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0
    template = "{question}" if name == "prompt_completion" else "chat"
    rows = lines(sets / name / "pairs.jsonl")  # without the question, which takes precedence over a text as prompt
    source = write(tmp_path / "pairs.jsonl", [{**row, "question": None} for row in rows])
    held = {"test_source": str(source), "hold_out": 0.1, "margin_column": None}
    pairs = load_pairs(str(source), **held, splits=("train", "test")).train
    # One special token a turn, so nothing is added before a text.
    wanted = [[list(encode(p.prompt, said, template, tokenizer)) for said in (p.chosen, p.rejected)] for p in pairs]
    assert [[row["chosen_ids"], row["rejected_ids"]] for row in trainer.train_dataset] == wanted
    place = tmp_path / "judge"
    trainer.save_model(str(place))
    judge = resolve(f"rm:{place}")  # by itself: chat, for its tokenizer has a template
    assert judge.template == "chat"
    question, said = Problem("What is 0 + 1?"), Completion("<think>0 and 1</think> <answer>1</answer>")
    ids = torch.tensor([encode(question.prompt, said.text, "chat", tokenizer)])
    with torch.no_grad():
        expected = torch.sigmoid(trainer.model(input_ids=ids).logits[0, 0])
    assert judge(question, said).score == pytest.approx(float(expected), abs=1e-5)
    tokenizer.chat_template, kept = None, tokenizer.chat_template
    try:
        trainer.save_model(str(tmp_path / "plain"))
        (tmp_path / "plain" / "chat_template.jinja").unlink(missing_ok=True)
    finally:
        tokenizer.chat_template = kept
    assert resolve(f"rm:{tmp_path / 'plain'}").template == "{question}"  # as TRL joins two texts
    with pytest.raises(ValueError, match=r"template chat: this model's tokenizer has no chat template; leave it out"):
        resolve(f"rm:{tmp_path / 'plain'}", template="chat")


# --- LLaMA-Factory: dataset_info.json, by its data/README.md and its converter


def llama_factory(row, info):
    """(prompt messages, answers) as its converters align a row. An entry with `columns` has no others."""
    form = info.get("formatting", "alpaca")
    default = {"prompt": "instruction", "query": "input", "response": "output", "messages": "conversations"}
    columns = info.get("columns", default)
    answers = [row[columns[name]] for name in ("chosen", "rejected")] if info.get("ranking") else None
    if form == "alpaca":
        asked = "\n".join(
            row[columns[name]] for name in ("prompt", "query") if columns.get(name) and row[columns[name]]
        )
        return [("user", asked)], answers or [row[columns["response"]]]
    assert form == "sharegpt"
    roles = {"human": "user", "gpt": "assistant"}
    turns = [(roles[turn["from"]], turn["value"]) for turn in row[columns["messages"]]]
    assert [role for role, _ in turns] == ["user", "assistant"] * (len(turns) // 2) + ["user"] * (len(turns) % 2)
    if not answers:
        assert len(turns) % 2 == 0  # "invalid message count" otherwise: the row is skipped
        return turns[:-1], [turns[-1][1]]
    assert len(turns) % 2 == 1
    assert all(roles[answer["from"]] == "assistant" for answer in answers)
    return turns, [answer["value"] for answer in answers]


def question_and_answer(sets):
    return [(row["question"], row["completion"]) for row in lines(sets / "prompt_completion" / "train.jsonl")]


def test_llama_factory_reads_the_entries_of_the_readme(sets):
    (text,) = re.findall(r"```json\n(\{.*?\n\})\n```", README.read_text(encoding="utf-8"), re.DOTALL)
    known = question_and_answer(sets)
    entries = json.loads(text)
    assert len(entries) == 4
    for name, info in entries.items():
        rows = lines(sets / name.split("_")[1] / info["file_name"])
        assert len(rows) == len(known)
        for row, (question, answer) in zip(rows, known, strict=True):
            prompt, answers = llama_factory(row, info)
            assert prompt == [("user", question)]
            assert answers[0] == answer
            assert len(answers) == 1 + bool(info.get("ranking"))
            assert len(set(answers)) == len(answers)


# --- Axolotl: by its docs/dataset-formats


def axolotl_messages(row, *, field_messages="messages", role="role", content="content"):
    """`type: chat_template`: message_property_mappings, then its default `roles` (human is user, gpt is assistant)."""
    roles = {"human": "user", "user": "user", "assistant": "assistant", "gpt": "assistant", "system": "system"}
    return [{"role": roles[turn[role]], "content": turn[content]} for turn in row[field_messages]]


def test_axolotl_puts_messages_into_the_tokenizers_template(sets, loaded):
    """Its tokens are those of the tokenizer's chat template, which are TRL's and ours."""
    tokenizer = loaded[1]
    readers = {
        "messages": axolotl_messages,
        "sharegpt": functools.partial(axolotl_messages, field_messages="conversations", role="from", content="value"),
    }
    for name, read in readers.items():
        expected = ours(sets / name, loaded, template="chat", prompts="verbatim")
        for row, tokens in zip(lines(sets / name / "train.jsonl"), expected, strict=True):
            text = tokenizer.apply_chat_template(read(row), tokenize=False).removesuffix("\n")
            assert tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) == tokens.prompt_ids + tokens.token_ids


def test_axolotl_reads_alpaca(sets):
    """`type: alpaca`: without an input its shorter instruction; the output is learnt, the end token after it."""
    for row, (question, answer) in zip(lines(sets / "alpaca" / "train.jsonl"), question_and_answer(sets), strict=True):
        assert (row["instruction"], row["input"], row["output"]) == (question, "", answer)
