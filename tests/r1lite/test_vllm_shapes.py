"""Engines sample from every shape of model with the trainer's probabilities, before and after a change of weights."""

import warnings

import pytest
import torch
from servers_for_tests import Running, free_port
from shapes_for_tests import SHAPES, save

from r1lite.config import GRPOConfig
from r1lite.model.attention import register
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.layout import file_layout
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_support import installed

pytestmark = [
    pytest.mark.filterwarnings("default"),  # vLLM's own
    pytest.mark.slow,
]
needs_vllm = pytest.mark.skipif(installed() is None, reason="vLLM is not installed")
PROMPTS = [tuple(range(20, 32)), (50, 51, 52)]
# The rest takes minutes, since vLLM starts once for each; test_shapes.py tests every shape with transformers.
OFTEN = ("qwen3-moe", "gemma2")
DTYPES = {"float32": (torch.float32, 2e-3, 1e-4), "bfloat16": (torch.bfloat16, 0.4, 0.03)}


def logprobs(model, prompt, ids):
    whole = torch.tensor([[*prompt, *ids]])
    with torch.no_grad():
        logits = model(whole, use_cache=False).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).squeeze(-1)


def cases():
    for engine in ("transformers", "vllm"):
        for name in SHAPES:
            for dtype in DTYPES:
                marks = [needs_vllm] if engine == "vllm" else []
                if name not in OFTEN or dtype != "float32":
                    marks.append(pytest.mark.exhaustive)
                yield pytest.param(engine, name, dtype, marks=marks, id=f"{engine}-{name}-{dtype}")


def loaded(path, name):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    attention = "eager" if name == "gemma2" else register()
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation=attention).eval()
    return model, AutoTokenizer.from_pretrained(path)


def check(engine, model, dtype, tolerance, mean):
    """Trusted samples are those of the model's probabilities, twice; returns how many tensors were proven."""
    trusted = TrustedEngine(
        engine,
        Canary(Policy(model, pad_id=0, dtype=dtype), tokens=12, seed=0, stop_text=None, tolerance=None),
        lambda: model.state_dict().items(),
        pad_id=0,
        proof=WeightProof(dtype, file_layout(model)),
    )
    torch.manual_seed(1)
    for version in (1, 2):
        groups = trusted.generate(PROMPTS, [[3, 4], [5, 6]], Sampling(1.0, 14))
        for prompt, group in zip(PROMPTS, groups, strict=True):
            for completion in group:
                apart = (torch.tensor(completion.logprobs) - logprobs(model, prompt, completion.token_ids)).abs()
                assert apart.max() < tolerance
                assert apart.mean() < mean
        proven = trusted.take_metrics().get("proven_weights")
        with torch.no_grad():  # a step of the trainer's
            for parameter in model.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
        trusted.offer(lambda: model.state_dict().items(), version=version)
    return proven


@pytest.mark.parametrize(("engine", "name", "dtype"), list(cases()))
def test_it_samples_from_the_trainers_weights(engine, name, dtype, tmp_path):
    path = save(name, tmp_path / "model", wide=True)
    model, tokenizer = loaded(path, name)
    precision, tolerance, mean = DTYPES[dtype]
    if dtype == "bfloat16" and name in ("qwen3-moe", "mixtral"):
        tolerance, mean = 1.5, 0.2  # rounding chooses another expert now and then
    config = GRPOConfig(engine=engine, device="cpu", threads=1, rollout_rows=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = start(Request(config, str(path), model, tokenizer, precision, 128))
    try:
        proven = check(started.engine, model, precision, tolerance, mean)
    finally:
        started.engine.close()
    if engine == "vllm" and installed().stamps_completions:
        assert proven >= 2 * model.config.num_hidden_layers  # the norms at least; a CPU packs the rest


@needs_vllm
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["qwen3-moe", "mixtral", "gemma2"])
def test_servers_take_experts_and_tied_heads_too(name, tmp_path, forks):
    path = save(name, tmp_path / "model", wide=True)
    model, tokenizer = loaded(path, name)
    server = Running(forks, tmp_path, free_port(), "--model", str(path), "--context", "128", "--dtype", "float32")
    try:
        config = GRPOConfig(engine="vllm-server", engine_url=(server.url,), device="cpu", threads=1)
        engine = start(Request(config, str(path), model, tokenizer, torch.float32, 128)).engine
        proven = check(engine, model, *DTYPES["float32"])
        engine.close()
        assert not installed().stamps_completions or proven
    finally:
        server.kill()
