"""Beside every checkpoint: a card, generation settings, and weights in the precision that was asked for."""

import json
import shutil
import sys
from pathlib import Path

import huggingface_hub
import pytest
import safetensors.torch
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.errors import RunError
from r1lite.hub.cards import block, code, front, plain, table
from r1lite.hub.upload import MODEL_FILES, push
from r1lite.run.model_card import model_card

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "x\n---\nlicense: mit\n# big | a `b` ```` <script>alert(1)</script> [l](http://x) ![i](y) \x1b[31m\u202e \\|"
MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(text):
    for one in MARKDOWN.parse(text):
        yield one
        yield from one.children or ()


def kinds(text):
    return {one.type for one in tokens(text)}


@pytest.mark.quick
@given(st.one_of(st.text(alphabet="`|\\\\<>[]()#*_-~!&\n a\x1b", max_size=30), st.text(max_size=30)))
def test_text_of_any_kind_stays_text(value):
    assert kinds(f"{code(value)} end") <= {"paragraph_open", "paragraph_close", "inline", "text", "code_inline"}
    inline = {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}
    assert kinds(f"so {plain(value)} end") <= inline
    assert kinds(block(value)) == {"fence"}
    found = list(tokens(table(("a", "b"), [(code(value), "1"), ("2", plain(value))])))
    assert [one.type for one in found].count("td_open") == 4
    assert not {one.type for one in found} & {"html_inline", "html_block", "link_open", "image", "heading_open"}


@pytest.mark.quick
def test_the_head_is_read_back_as_it_was_given():
    text = front({"license": None, "tags": ["a", HOSTILE], "base_model": "a/b: c", "datasets": []})
    assert text.startswith("---\n")
    assert text.count("\n---") == 1
    assert yaml.safe_load(text.strip("-\n")) == {"tags": ["a", HOSTILE], "base_model": "a/b: c"}


def of_a_run(path, **config):
    path.mkdir()
    (path / "reward.json").write_text(json.dumps({"formula": "math + 0.1*format", "versions": {"math": "3"}}))
    (path / "eval_before.json").write_text(
        json.dumps({"k": 8, "pass_at_1": 0.25, "pass_at_1_interval": [0.1, 0.4], "mean_tokens": 13.06})
    )
    hub = [{"kind": "dataset", "id": "openai/gsm8k", "commit": "abc"}, {"kind": "model", "id": "Qwen/Qwen2.5-0.5B"}]
    (path / "environment.json").write_text(json.dumps({"stage": "grpo", "python": "3.11", "hub": hub}))
    return GRPOConfig(model="Qwen/Qwen2.5-0.5B@main", device="cpu", **config)


@pytest.mark.quick
def test_what_a_card_says(tmp_path):
    config = of_a_run(tmp_path / "run", lr=3e-5, seed=7, source="/home/me/private/sums.jsonl", log_to=["wandb"])
    after = {"k": 8, "pass_at_1": 0.96, "pass_at_1_interval": [0.9, 0.98], "mean_tokens": 30.0}
    card = huggingface_hub.ModelCard(model_card(tmp_path / "run", config, 150, 150, after=after))
    assert card.data.to_dict() == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "base_model": "Qwen/Qwen2.5-0.5B",
        "datasets": ["openai/gsm8k"],
        "tags": ["r1lite", "grpo", "reinforcement-learning", "reasoning"],
    }
    for said in (
        "step 150 of 150",
        "| accuracy, greedy | 25.0% (10.0% to 40.0%) | 96.0% (90.0% to 98.0%) |",
        "run in this folder, with the path to `sums.jsonl`:",
        "r1lite eval --model . --task gsm8k --source sums.jsonl",
        "`math + 0.1*format`",
        "`math` version 3",
        "| `lr` | `3e-05` |",
        "Seed 7",
        "this card does not know them",
    ):
        assert said in card.text
    assert not any(private in card.text for private in ("/home/me", "private", "wandb"))


@pytest.mark.quick
def test_a_card_of_hostile_files(tmp_path):
    config = of_a_run(tmp_path / "run").model_copy(update={"model": HOSTILE, "template": HOSTILE, "task": HOSTILE})
    (tmp_path / "run" / "reward.json").write_text(json.dumps({"formula": HOSTILE, "versions": {HOSTILE: HOSTILE}}))
    hub = [{"kind": "dataset", "id": HOSTILE, "commit": HOSTILE}, 3]
    (tmp_path / "run" / "environment.json").write_text(json.dumps({"hub": hub, "versions": {HOSTILE: HOSTILE}}))
    (tmp_path / "run" / "eval_before.json").write_text(json.dumps({"k": HOSTILE, "pass_at_1": HOSTILE}))
    text = model_card(tmp_path / "run", config, 1, 2)
    assert "license" not in huggingface_hub.ModelCard(text).data.to_dict()
    assert "base_model" not in huggingface_hub.ModelCard(text).data.to_dict()
    body = huggingface_hub.ModelCard(text).text
    assert not kinds(body) & {"html_inline", "html_block", "link_open", "image"}
    assert [one.tag for one in tokens(body) if one.type == "heading_open"].count("h1") == 1


@pytest.mark.quick
def test_base_and_licence_are_those_of_the_card_that_lies_beside(tmp_path):
    config = of_a_run(tmp_path / "run")
    base = tmp_path / "earlier" / "checkpoints" / "step-000009"
    base.mkdir(parents=True)
    said = {"base_model": "Qwen/Qwen2.5-0.5B", "license": "apache-2.0"}
    for text, expected in (
        (front(said), said),
        (front({"base_model": HOSTILE, "license": [HOSTILE]}), {}),
        ("---\n- [\n---\n", {}),
        ("---\n", {}),
    ):
        (base / "README.md").write_text(text)
        found = model_card(tmp_path / "run", config.model_copy(update={"model": str(base)}), 1, 2)
        data = huggingface_hub.ModelCard(found).data.to_dict()
        assert {key: data[key] for key in ("base_model", "license") if key in data} == expected
        assert "`earlier, step-000009`" in found
    found = model_card(tmp_path / "run", config.model_copy(update={"model": "student"}), 1, 2)
    assert "Made from `a new model with random weights`" in found
    assert huggingface_hub.ModelCard(found).data.to_dict().get("base_model") is None


class FakeApi:
    """The boundary: what would go over the wire."""

    calls: list = []  # noqa: RUF012

    def create_repo(self, name, **options):
        self.calls.append((name, options))

    def upload_folder(self, **options):
        folder = Path(options["folder_path"])
        options["sent"] = sorted({file.name for glob in options["allow_patterns"] for file in folder.glob(glob)})
        self.calls.append((options["repo_id"], options))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_path, sums_path):
    """A run of two steps whose model's files are in bfloat16."""
    from transformers import AutoModelForCausalLM

    sys.path.insert(0, str(ROOT / "tests"))
    place = tmp_path_factory.mktemp("own")
    shutil.copytree(tiny_path, place / "base")
    AutoModelForCausalLM.from_pretrained(tiny_path, dtype=torch.bfloat16).save_pretrained(place / "base")
    flags = ["--model", str(place / "base"), "--source", str(sums_path), "--template", "short", "--steps", "2"]
    flags += ["--max-completion-tokens", "5", "--lr", "3e-3", "--prompts-per-step", "1", "--group-size", "2"]
    flags += ["--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--score-workers", "0"]
    flags += ["--reward", "reward_for_tests:digits", "--threads", "1", "--save-every", "1", "--temperature", "0.7"]
    assert main(["grpo", *flags, "--out", str(place / "run"), "--quiet", "--checkpoint-dtype", "own"]) == 0
    return place / "run"


def test_checkpoints_in_the_models_own_precision_resume_exactly(whole, tmp_path):
    from transformers import AutoModelForCausalLM

    last = whole / "checkpoints" / "step-000002"
    weights = safetensors.torch.load_file(last / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    base = safetensors.torch.load_file(whole.parent / "base" / "model.safetensors")
    assert weights.keys() == base.keys()  # tied weights once
    assert AutoModelForCausalLM.from_pretrained(last).dtype == torch.bfloat16
    again = tmp_path / "again"
    shutil.copytree(whole, again)
    shutil.rmtree(again / "checkpoints" / "step-000002")
    (again / "summary.json").unlink()
    assert main(["grpo", "--resume", "--trust", "--out", str(again), "--quiet"]) == 0
    for name in ("model.safetensors", "README.md", "generation_config.json", "config.json"):
        assert (again / "checkpoints" / "step-000002" / name).read_bytes() == (last / name).read_bytes(), name
    name = "rollouts/step-000002.jsonl.gz"
    assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_a_card_and_generation_settings_lie_beside_each_checkpoint(whole):
    from transformers import GenerationConfig

    first, last = (whole / "checkpoints" / f"step-00000{step}" for step in (1, 2))
    assert "step 1 of 2" in (first / "README.md").read_text()
    text = (last / "README.md").read_text()
    assert "| before | after |" in text
    assert str(whole.parent) not in text
    told = GenerationConfig.from_pretrained(last)
    assert (told.do_sample, told.temperature, told.top_p, told.top_k, told.max_new_tokens) == (True, 0.7, 1.0, 0, 5)
    (last / "README.md").write_text(text + "More words.\n")  # a card may be changed
    assert main(["grpo", "--resume", "--trust", "--out", str(whole), "--quiet"]) == 0
    assert (last / "README.md").read_text().endswith("More words.\n")


def test_upload_of_a_finished_run(whole, monkeypatch, capsys):
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeApi)
    FakeApi.calls.clear()
    assert main(["grpo", "--resume", "--trust", "--out", str(whole), "--push-to-hub", "me/tiny"]) == 0
    (name, made), (_, sent) = FakeApi.calls
    assert name == "me/tiny"
    assert made == {"repo_type": "model", "private": True, "exist_ok": True}
    assert sent["folder_path"].endswith("step-000002")
    assert {"README.md", "config.json", "generation_config.json", "model.safetensors"} <= set(sent["sent"])
    assert not {"trainer.pt", "manifest.json"} & set(sent["sent"])
    assert "me/tiny" in capsys.readouterr().out


def test_upload_of_a_pretrained_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeApi)
    FakeApi.calls.clear()
    few = ["--chain-steps", "1", "--habit-steps", "1", "--batch-size", "2", "--tokenizer", "nano", "--layers", "1"]
    command = ["pretrain", "--out", str(tmp_path / "base"), *few]
    assert main(command) == 0
    assert FakeApi.calls == []
    assert main([*command, "--push-to-hub", "me/base"]) == 0  # made already
    (name, made), (_, sent) = FakeApi.calls
    assert (name, made["repo_type"]) == ("me/base", "model")
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= set(sent["sent"])
    assert "pretrain.json" not in sent["sent"]
    assert "uploaded" in capsys.readouterr().out


@pytest.mark.quick
def test_what_the_hub_refuses_is_said(tmp_path, monkeypatch, capsys):
    class Refusing(FakeApi):
        trouble = OSError

        def upload_folder(self, **options):
            raise self.trouble("no route\nmore")

    for trouble in (OSError, type("ConnectError", (Exception,), {})):  # that of the library's transport is its own
        monkeypatch.setattr(Refusing, "trouble", trouble)
        with pytest.raises(RunError, match=r"--push-to-hub me/x: no route\. The model itself is complete"):
            push(tmp_path, "me/x", kind="model", files=MODEL_FILES, what="model", api=Refusing())
    assert main(["grpo", "--model", "nano", "--push-to-hub", "a b/c", "--out", str(tmp_path / "run")]) == 2
    assert "OWNER/NAME" in capsys.readouterr().err


@pytest.mark.quick
def test_both_packages_say_that_they_have_types():
    for package in ("r1lite", "verifiers"):
        assert (ROOT / package / "py.typed").read_bytes() == b""
