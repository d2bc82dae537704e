"""Where fine-tuning, distillation and reward models run out of memory, the step is made of smaller micro-batches."""

import functools
from types import SimpleNamespace

import pytest
import torch
from conftest import make_tiny_model

from r1lite.config import DistillConfig, RewardModelConfig, SFTConfig
from r1lite.errors import RunError
from r1lite.model.batch import Row
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.preference.reward_model import load_classifier
from r1lite.preference.training import Example, PreferenceTraining
from r1lite.run.bad_batches import BadBatches
from r1lite.run.display import Display
from r1lite.supervised.distillation import Distilling
from r1lite.supervised.loop import RowOrder, SupervisedLearner, nll_pieces

GPU = torch.OutOfMemoryError("CUDA out of memory")
CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:119] . DefaultCPUAllocator: can't allocate memory")
SIZES = [(5, 9), (2, 4), (9, 1), (7, 12), (3, 3), (4, 11), (6, 6), (2, 8)]


def rows_of(sizes):
    return [
        Row(tuple(2 + (n * 7 + i) % 40 for i in range(p)), tuple(3 + (n * 5 + i) % 40 for i in range(c)))
        for n, (p, c) in enumerate(sizes)
    ]


def failing(model, where, call, error):
    """Raises `error` the `call`-th time that a place of a model with two layers is reached; 0 = each time."""
    seen = [0]

    def fail(*given):
        seen[0] += 1
        if call in (0, seen[0]):
            raise error

    layers = model.model.layers
    if where == "forward":
        layers[1].register_forward_pre_hook(fail)
    else:  # of the first layer: the gradient of all that comes after it is added already
        layers[0].self_attn.q_proj.weight.register_post_accumulate_grad_hook(fail)
    return seen


def supervised(kind, tmp_path, **settings):
    """(model, a function that makes step 0 and returns its metrics, list of gradients, the learner)."""
    rows = rows_of(SIZES)
    common = {"lr": 1e-3, "max_grad_norm": 1e9, "micro_batch_tokens": 60, **settings}
    if kind == "distill":
        config = DistillConfig(teacher="t", model="s", method="on-policy", on_policy_share=1, chunk_tokens=7, **common)
    else:
        config = SFTConfig(packing="on" if kind == "packed" else "off", packed_tokens=40, **common)
    policy = Policy(make_tiny_model(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1e9)
    gradients = recorded(optimizer)
    learner = SupervisedLearner(config, policy, optimizer, 10, BadBatches(tmp_path / "bad"))
    if kind == "distill":
        course = Distilling(
            config=config,
            setup=SimpleNamespace(tokenizer=range(48)),
            learner=learner,
            teacher=Policy(make_tiny_model(hidden_size=16, num_hidden_layers=1), pad_id=0),
            prompts=[],
            rows=None,
            order=RowOrder(8, 8, 8, 0),
            stop=None,
        )
        cut = functools.partial(course._pieces, rows)
    else:
        cut = functools.partial(nll_pieces, config, policy, rows, kind == "packed")
    return policy.model, lambda: learner.update(cut, rows, 0), gradients, learner


def preference(kind, tmp_path, tiny_path, **settings):
    """The same for a reward model."""
    assert kind == "pairs"
    common = {"source": "pairs", "lr": 1e-3, "max_grad_norm": 1e9, "micro_batch_tokens": 90}
    config = RewardModelConfig(**{**common, "batch_pairs": 8, "centre_coef": 0.01, **settings})
    model, tokenizer = load_classifier(str(tiny_path), seed=0)
    pairs = [
        Example(row.prompt_ids + row.token_ids, (*row.prompt_ids, 2), n / 10, str(n))
        for n, row in enumerate(rows_of(SIZES))
    ]
    training = PreferenceTraining(
        config,
        SimpleNamespace(bad_batches=tmp_path / "bad"),
        model,
        tokenizer,
        pairs,
        pairs[:2],
        Display(loudness=-1),
    )
    gradients = recorded(training.optimizer)
    return model, lambda: training.step(0)[1], gradients, training


def recorded(optimizer):
    gradients = []
    step = optimizer.step

    def recording(lr):
        gradients.append(torch.cat([p.grad.flatten().clone() for p in optimizer.parameters if p.grad is not None]))
        return step(lr)

    optimizer.step = recording
    return gradients


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory, tiny_path):
    """A function: (gradient, metrics) of a step where memory suffices."""

    @functools.cache
    def learnt(kind):
        place = tmp_path_factory.mktemp(kind)
        _, step, gradients, _ = preference(kind, place, tiny_path) if kind == "pairs" else supervised(kind, place)
        metrics = step()
        (gradient,) = gradients
        return gradient, metrics

    return learnt


@pytest.fixture
def made(tmp_path, tiny_path):
    def make(kind, **settings):
        if kind == "pairs":
            return preference(kind, tmp_path, tiny_path, **settings)
        return supervised(kind, tmp_path, **settings)

    return make


KINDS = ["padded", "packed", "distill", "pairs"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("where", "call", "error"), [("forward", 1, CPU), ("forward", 2, GPU), ("backward", 2, CPU)])
def test_the_gradient_is_that_of_the_whole_step(kind, where, call, error, made, unbroken):
    right, expected = unbroken(kind)
    model, broken, gradients, _ = made(kind)
    seen = failing(model, where, call, error)
    metrics = broken()
    assert seen[0] > call
    assert (expected["out_of_memory"], metrics["out_of_memory"]) == (0, 1)
    assert metrics["micro_batch_tokens"] <= expected["micro_batch_tokens"] // 2
    (gradient,) = gradients
    assert float((gradient - right).abs().max()) <= 1e-5 * float(right.abs().max())
    for key in ("token_loss", "loss", "grad_norm", "accuracy", "margin"):
        if key in expected:
            assert metrics[key] == pytest.approx(expected[key], rel=1e-4), key


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_smaller_is_left(kind, made):
    model, step, gradients, _ = made(kind)
    failing(model, "forward", 0, GPU)
    with pytest.raises(RunError, match=r"step 1: out of memory with a single (row|pair).*--gradient-checkpointing"):
        step()
    assert not gradients


def test_other_errors_are_not_taken_for_it(made):
    model, step, _, _ = made("padded")
    failing(model, "backward", 1, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        step()


def test_it_is_remembered_and_kept(made):
    model, step, _, learner = made("padded", lr=1e-12)
    failing(model, "forward", 1, GPU)
    first, second = step(), step()
    assert (second["out_of_memory"], second["micro_batch_tokens"]) == (0, first["micro_batch_tokens"])
    _, _, _, again = made("padded")
    again.load_state_dict(learner.state_dict())
    assert again.budget.tokens == first["micro_batch_tokens"]
