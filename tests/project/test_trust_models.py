"""Models bring no code, and revisions are pinned."""

import ast
import json
import shutil
import sys
from pathlib import Path

from r1lite.cli import main

ROOT = Path(__file__).resolve().parents[2]


def test_no_model_s_code_is_asked_for():
    """Every call says `trust_remote_code=False`, by itself or by `pinned`."""
    calls = 0
    for path in ROOT.glob("r1lite/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in ("from_pretrained", "from_config", "LLM"):
                words = {key.arg or ast.unparse(key.value).partition("(")[0] for key in node.keywords}
                assert words & {"pinned", "trust_remote_code"}, f"{path}:{node.lineno}"
                calls += 1
            if name in ("load_dataset", "get_dataset_split_names"):
                assert path.name == "revisions.py", f"{path}:{node.lineno}"
    assert calls >= 10


def test_a_model_that_brings_code_is_refused_whatever_stands_on_standard_input(tmp_path, capsys, monkeypatch):
    import io

    model = tmp_path / "model"
    model.mkdir()
    (model / "evil_model.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')\nclass Config: pass\n")
    code = {"AutoConfig": "evil_model.Config", "AutoModelForCausalLM": "evil_model.Config"}
    (model / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": code}))
    (model / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["evil_model.Config", None]}})
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 20))
    for argv in (
        ["eval", "--model", str(model)],
        ["grpo", "--model", str(model)],
        ["distill", "--teacher", str(model), "--model", "nano"],
        ["reward-model", "--model", str(model), "--source", str(tmp_path / "none.jsonl")],
    ):
        assert main([*argv, "--out", str(tmp_path / argv[0]), "--device", "cpu"]) == 2
    assert not (tmp_path / "marker").exists()


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_revisions_are_pinned_and_commits_recorded(tmp_path, monkeypatch, tiny_model, tiny_tokenizer):
    """A cache as huggingface_hub lays it out; nothing is fetched."""
    from huggingface_hub import constants

    from r1lite.hub import revisions as hub

    folder = tmp_path / "models--somebody--tiny"
    snapshot = folder / "snapshots" / COMMIT
    tiny_model.save_pretrained(snapshot)
    tiny_tokenizer.save_pretrained(snapshot)
    (folder / "refs").mkdir()
    for name in ("v1", "main"):
        (folder / "refs" / name).write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "_loaded", {})
    assert hub.split("somebody/tiny@v1") == ("somebody/tiny", "v1")
    assert hub.split("somebody/tiny") == ("somebody/tiny", None)
    assert hub.split(f"{tmp_path}/x@y") == (f"{tmp_path}/x@y", None)
    found = hub.pinned("somebody/tiny@v1")
    assert found == {
        "pretrained_model_name_or_path": "somebody/tiny", "revision": "v1", "trust_remote_code": False
    }  # fmt: skip
    from transformers import AutoConfig

    assert AutoConfig.from_pretrained(**found, cache_dir=tmp_path).hidden_size == tiny_model.config.hidden_size
    assert hub.commits() == [{"kind": "model", "id": "somebody/tiny", "revision": "v1", "commit": COMMIT}]
    assert hub.cached_commit("model", "somebody/tiny", COMMIT) == COMMIT
    assert hub.cached_commit("model", "somebody/other") is None


def test_a_data_set_s_revision_reaches_the_library(monkeypatch):
    import types

    from r1lite.hub import revisions as hub
    from r1lite.tasks import Source, find

    asked = []

    def load_dataset(*names, **more):
        asked.append((*names, more))
        info = types.SimpleNamespace(download_checksums={f"hf://datasets/openai/gsm8k@{COMMIT}/main/train.parquet": {}})
        rows = [{"question": f"{len(asked)} + {i}?", "answer": f"#### {len(asked) + i}"} for i in range(3)]
        return type("Rows", (list,), {"info": info})(rows)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr(hub, "_loaded", {})
    find("gsm8k").load(Source("hub@v2"))
    assert {more["revision"] for *_, more in asked} == {"v2"}
    assert hub.commits() == [{"kind": "dataset", "id": "openai/gsm8k", "revision": "v2", "commit": COMMIT}]


def test_a_folder_with_an_adapter_of_peft_is_refused(tmp_path, tiny_path, sums_path, capsys):
    """With peft installed, transformers would add the adapter by itself, and match its patterns without a limit."""
    model = Path(shutil.copytree(tiny_path, tmp_path / "model"))
    (model / "adapter_config.json").write_text('{"peft_type": "LORA", "target_modules": "(([a-z._0-9]+)+)+$!"}')
    for command in (["eval"], ["grpo", "--template", "short"], ["grpo", "--estimate"]):
        words = [*command, "--model", str(model), "--source", str(sums_path), "--out", str(tmp_path / "out")]
        assert main(words) == 2
        assert f"{model} has an adapter of peft" in capsys.readouterr().err
