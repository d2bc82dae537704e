"""What --estimate says, held against the tensors of real runs; and that it reads no weights."""

import functools
import json
import shutil

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from memory_for_tests import kept_by
from world_cases import SIZES

from r1lite.cli import main
from r1lite.config import GRPOConfig, PPOConfig, load
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.training.estimate import suggestion
from r1lite.training.loading import load_model
from r1lite.training.memory import Layout
from r1lite.training.planning import BatchShape, Plan
from r1lite.training.resolve import resolve_config

WIDER = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3}
_GRPO = ["grpo", *SIZES, "--group-size", "3", "--steps", "2", "--max-prompt-tokens", "8"]
CASES = {
    "none": [*_GRPO],
    "reference": [*_GRPO, "--kl-coef", "0.1", "--gradient-checkpointing"],
    "bfloat16": [*_GRPO, "--dtype", "bfloat16", "--shard", "full"],
    "full": [*_GRPO, "--kl-coef", "0.1", "--shard", "full"],
    "grad": [*_GRPO, "--shard", "grad", "--gradient-checkpointing"],
    "critic": ["ppo", *SIZES, "--steps", "2", "--max-prompt-tokens", "8", "--shard", "full"],
    "adapter": [*_GRPO, "--lora-rank", "4", "--kl-coef", "0.1"],
}
FEW = ("full", "critic")  # of those, what every test run tries


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wider")
    make_tiny_model(**WIDER).save_pretrained(folder)
    make_tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def held(tmp_path_factory, model, sums_path, forks):
    """A function: what each rank held in runs of so many ranks, by their names."""
    made = {}

    def on(size, names):
        if (size, names) not in made:
            folder = tmp_path_factory.mktemp(f"held-{size}")
            inputs = ["--model", str(model), "--source", str(sums_path)]
            jobs = [
                {"argv": [*CASES[name], *inputs, "--out", str(folder / name)], "held": str(folder / f"{name}.json")}
                for name in names
            ]
            process = forks.start_ranks(folder, jobs, size, module="memory_for_tests")
            printed = "".join(process.communicate(timeout=1800))
            assert process.returncode == 0, printed
            made[size, names] = {
                name: [json.loads((folder / f"{name}.json.{rank}").read_text()) for rank in range(size)]
                for name in names
            }
        return made[size, names]

    return on


def planned(words, *more, on_gpu=False):
    config_class = PPOConfig if words[0] == "ppo" else GRPOConfig
    config, _ = resolve_config(load(config_class, [*words[1:], *more, "--estimate"], prog="r1lite"))
    return Plan(config, torch.bfloat16 if "bfloat16" in words else torch.float32, on_gpu=on_gpu)


def compare(name, size, ranks, model, sums_path):
    plan = planned(CASES[name], "--model", str(model), "--source", str(sums_path))
    found = plan.rank(Layout(size, plan.config.shard), samples_here=True)
    for rank in ranks:
        assert rank["alive"] == pytest.approx(found.always, rel=0.1)
        assert rank["gradients"] == pytest.approx(found.gradients, rel=0.1)
    kept = [one for rank in ranks for one in rank["kept"]]
    assert kept
    for shape, measured in kept:
        expected = plan.kept(BatchShape(*shape), checkpointing=plan.config.gradient_checkpointing)
        assert expected == pytest.approx(measured, rel=0.1), shape


@pytest.mark.parametrize("name", FEW)
def test_two_ranks_hold_what_was_said(name, held, model, sums_path):
    compare(name, 2, held(2, FEW)[name], model, sums_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_ranks_hold_what_was_said(name, size, held, model, sums_path):
    compare(name, size, held(size, tuple(CASES))[name], model, sums_path)


@pytest.fixture(scope="module")
def loaded(model, sums_path):
    """A function: (plan, policy) for products in a dtype."""

    @functools.cache
    def of(dtype):
        plan = Plan(planned(CASES["none"], "--model", str(model), "--source", str(sums_path)).config, dtype)
        return plan, Policy(load_model(plan.config)[0], pad_id=0, dtype=dtype)

    return of


def test_a_plan_for_a_gpu_counts_the_backward_pass(model, sums_path):
    config = planned(CASES["none"], "--model", str(model), "--source", str(sums_path)).config
    plan = Plan(config, torch.bfloat16, on_gpu=True)
    kept = plan.activations(plan.tokens(Layout(), checkpointing=False), checkpointing=False)
    assert plan.rank(Layout(), samples_here=False).activations == round(kept * 7 / 6)


@pytest.mark.parametrize("shares", [True, False], ids=["shared prompts", "whole rows"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("lengths", "turns"),
    [((40, 40, 40, 40), 2), ((40, 25, 40, 13), 2), ((33,), 2), ((6, 5, 6, 4, 6), 5)],
    ids=["even", "padded", "one", "alone"],
)
def test_what_a_forward_pass_keeps(lengths, turns, dtype, shares, loaded):
    plan, policy = loaded(dtype)
    policy.shares_prompts = shares
    size = 24 if turns == 2 else 5  # of a prompt: two of several completions, or five of one each
    prompts = [tuple(range(3 + n, 3 + n + size)) for n in range(turns)]
    rows = [Row(prompts[n * turns // max(4, len(lengths))], tuple(range(k))) for n, k in enumerate(lengths)]
    (batch,) = micro_batches(rows, 1 << 20, 0, "cpu", policy.layout)
    shape, measured = kept_by(policy, batch)
    assert plan.kept(BatchShape(*shape), checkpointing=False) == pytest.approx(measured, rel=0.1), shape


_LARGE = {
    "architectures": ["Qwen2ForCausalLM"],
    **{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 6},
    **{"num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768},
    "tie_word_embeddings": False,
}
_GIB = 1 << 30


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A plan of a model of 2.5 B parameters, of which there is a configuration and nothing else.

    Attention is that of a CPU without AMX, on each machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("r1lite.training.planning.prefers_float32", lambda: True)
        return plan_of(tmp_path_factory.mktemp("large"), _LARGE)


def plan_of(folder, shape):
    (folder / "config.json").write_text(json.dumps(shape))
    words = ["grpo", "--model", str(folder), "--source", "bundled", "--kl-coef", "0.01", "--dtype", "bfloat16"]
    # On GPUs: what a CPU keeps of attention depends on its instructions.
    return planned([*words, "--max-prompt-tokens", "512", "--max-completion-tokens", "1536"], on_gpu=True)


def test_parts_and_engine_of_a_model_that_is_not_there(large):
    alone, eight = (large.rank(Layout(ranks, "full"), samples_here=False) for ranks in (1, 8))
    assert large.parameters == 2_488_345_088
    assert alone.weights == alone.reference == alone.gradients == alone.optimizer // 2 == 4 * large.parameters
    assert (
        alone.of_other_ranks
        == 0
        < eight.of_other_ranks
        < large.rank(Layout(8, "grad"), samples_here=False).of_other_ranks
    )
    assert eight.always == pytest.approx(alone.always / 8, rel=1e-3)
    assert large.engine(1, rows=10).weights == 2 * large.parameters
    # 6 layers, keys and values of 4 heads of 128, in bfloat16
    assert large.engine(1, rows=10).cache == 10 * 2048 * 6 * 2 * 4 * 128 * 2
    less = large.rank(Layout(8, "full"), samples_here=False, checkpointing=True)
    assert less.activations < eight.activations / 3


@pytest.mark.parametrize(
    ("gpus", "gib", "says"),
    [
        (8, 40, ("3 train (--shard full)", "--nproc-per-node 3", "5 sample", "--engine-url http://127.0.0.1:8104")),
        (8, 30, ("4 train (--shard full)", "--gradient-checkpointing --micro-batch-tokens 4096", "4 sample")),
        (8, 12, ("none was found", "a training rank needs at least")),
        (8, 5, ("none was found", "--tensor-parallel")),
        (1, 40, ("none was found", "36.0 GiB are usable")),
        (1, 80, ("one process", "--engine vllm", "--gradient-checkpointing")),
        (64, 40, ("16 train", "48 sample", "--nnodes", "--engine-url http://HOST:PORT")),
    ],
)
def test_layouts(gpus, gib, says, large):
    text = "\n".join(suggestion(large, gpus, gib * _GIB))
    for words in says:
        assert words in text, text


def test_what_a_run_refuses_is_not_proposed(tmp_path, capsys):
    large = plan_of(tmp_path, {**_LARGE, "num_hidden_layers": 1})
    config = large.config.model_copy(update={"lora_rank": 8, "base_quantization": "nf4"})
    text = "\n".join(suggestion(Plan(config, torch.bfloat16), 8, 80 * _GIB))
    assert "train, " in text
    assert "--shard" not in text
    alone = Plan(large.config.model_copy(update={"scoring": "ray"}), torch.bfloat16)
    assert "none was found: a training rank needs" in "\n".join(suggestion(alone, 8, 24 * _GIB))
    assert ": 1 train, " in "\n".join(suggestion(alone, 8, 80 * _GIB))
    refused = ["--estimate-ranks", "4", "--shard", "full", "--lora-rank", "4", "--base-quantization", "nf4"]
    assert main(["grpo", "--model", "nano", "--estimate", *refused]) == 2
    assert "4-bit weights can't be sharded" in capsys.readouterr().err


def test_the_command_says_it_and_reads_no_weights(model, sums_path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    place = tmp_path.parent / f"{tmp_path.name}-model"
    shutil.copytree(model, place)
    for file in place.glob("*.safetensors"):
        file.write_bytes(b"no weights")
    words = ["grpo", "--model", str(place), "--source", str(sums_path), "--estimate", "--lora-rank", "4"]
    more = ["--estimate-ranks", "4", "--estimate-gpus", "2", "--estimate-gib", "24"]
    assert main([*words, *more]) == 0
    said = capsys.readouterr().out
    for line in ("4 ranks, --shard none", "adapters of rank 4", "optimizer", "at most", "1 train", "1 sample"):
        assert line in said
    assert not list(tmp_path.iterdir())
    assert main([*words[:5], "--estimate-gpus", "2", "--estimate-gib", "24"]) == 2
    assert main([*words, "--estimate-gpus", "2"]) == 2


def test_the_probe_of_a_run_leaves_nothing_behind():
    import gc

    from r1lite.training import memory

    def graphs():
        gc.collect()
        return sum(issubclass(type(one), torch.Tensor) and one.grad_fn is not None for one in gc.get_objects())

    policy, before = Policy(make_tiny_model(), pad_id=0), graphs()
    memory.estimate(GRPOConfig(), policy, [], [], samples_here=True)
    assert graphs() == before
