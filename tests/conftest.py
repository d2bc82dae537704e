"""A tiny random model with its tokenizer, as folders that `from_pretrained` opens."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from trust_for_tests import EVIL

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # there are as many processes as cores, and more
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread that waits must not keep a core from other processes

# Hundreds of processes import the project: where bytecode isn't kept, each of them would compile it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Shells ignore Ctrl-C for background jobs and nohup ignores SIGHUP, and so would all processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A loaded machine is slow, not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Without collections of garbage: nearly all that is made stays. Nor do later collections walk through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_auto_num_workers():
    """Two more than there are cores, as many tests wait for processes; at most four, to bound their memory."""
    return min(4, len(os.sched_getaffinity(0)) + 2)


def pytest_ignore_collect(collection_path, config):
    """With `-m quick` other files are not even imported, which would take as long as the quick tests."""
    if config.option.markexpr == "quick" and collection_path.name.startswith("test_"):
        return "mark.quick" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(items):
    """Files with slow tests first, and last those whose tests are all quick, so that none is left over at the end."""
    slow, other = ({_scope(item.nodeid): 0 for item in items} for _ in range(2))
    for item in items:
        slow[_scope(item.nodeid)] += "slow" in item.keywords
        other[_scope(item.nodeid)] += "quick" not in item.keywords
    items.sort(key=lambda item: (slow[_scope(item.nodeid)], other[_scope(item.nodeid)]), reverse=True)


def _scope(nodeid):
    """What is run by one worker: a file, or all files that share a Ray cluster."""
    path = nodeid.partition("::")[0]
    return "on_ray" if path.endswith("_on_ray.py") else path


def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return _scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture
def cluster(forks):
    """A Ray cluster of three nodes, which all tests in files `*_on_ray.py` share."""
    pytest.importorskip("ray")
    from on_ray_for_tests import shared_cluster

    return shared_cluster(forks)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    if nextitem is None or _scope(nextitem.nodeid) != "on_ray":
        shared = sys.modules.get("on_ray_for_tests")
        if shared is not None:
            shared.end_cluster()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public data sets, which are not part of the project."""
    if not SHARED_DATA.exists():
        pytest.skip("the public data sets are not here")
    return SHARED_DATA


def make_tiny_model(**changes):
    """A randomly initialised Qwen2 with 48 tokens, in evaluation mode."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 48,
        "max_position_embeddings": 160,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    return Qwen2ForCausalLM(Qwen2Config(**{**settings, **changes})).eval()


def make_tiny_tokenizer():
    """One token a character: digits, lower-case letters and a little more."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<eos>", *"0123456789", *"abcdefghijklmnopqrstuvwxyz", *" ?.+-*/=\n"]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", model_max_length=160
    )


@pytest.fixture(scope="session")
def tiny_tokenizer():
    return make_tiny_tokenizer()


@pytest.fixture
def tiny_model():
    return make_tiny_model()


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory) -> Path:
    """The tiny model and tokenizer in a folder."""
    path = tmp_path_factory.mktemp("tiny")
    make_tiny_model(initializer_range=0.02).save_pretrained(path)
    make_tiny_tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Starts commands as processes of their own that need not import torch again."""
    from forks_for_tests import Forks

    place = tmp_path_factory.getbasetemp()
    made = Forks(tmp_path_factory.mktemp("forks"), place.parent if "PYTEST_XDIST_WORKER" in os.environ else place)
    yield made
    made.close()


@pytest.fixture(scope="session")
def sums_path(tmp_path_factory) -> Path:
    """A folder with train.jsonl and test.jsonl of small sums."""
    path = tmp_path_factory.mktemp("sums")
    for split, start, count in (("train", 0, 40), ("test", 40, 8)):
        rows = [{"question": f"{i}+{i % 7}?", "answer": f"so\n#### {i + i % 7}"} for i in range(start, start + count)]
        (path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def few_problems(tmp_path_factory) -> Path:
    """A folder with 64 of the bundled training problems and 16 of the bundled test problems."""
    from r1lite.bundled import bundled

    path = tmp_path_factory.mktemp("few")
    for split, count in (("train", 64), ("test", 16)):
        lines = (bundled("datasets/gsm8k_style") / f"{split}.jsonl").read_text(encoding="utf-8").splitlines(True)
        (path / f"{split}.jsonl").write_text("".join(lines[:count]), encoding="utf-8")
    return path


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """What is made when the module `evil_for_tests`, which can be imported, is imported."""
    folder = tmp_path / "importable"
    folder.mkdir()
    (folder / "evil_for_tests.py").write_text(EVIL)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    yield folder / "marker"
    sys.modules.pop("evil_for_tests", None)
