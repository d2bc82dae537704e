"""vLLM in this process samples from every shape of model with the trainer's probabilities, before and after a sync."""

import warnings

import pytest
import torch
from shapes_for_tests import SHAPES, save

from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.model.attention import register
from r1lite.model.policy import Policy
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_support import installed

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="vLLM is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
    pytest.mark.slow,
]
PROMPTS = [tuple(range(20, 32)), (50, 51, 52)]


def logprobs(model, prompt, ids):
    whole = torch.tensor([[*prompt, *ids]])
    with torch.no_grad():
        logits = model(whole, use_cache=False).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).squeeze(-1)


# vLLM wants each expert's weights by name, transformers holds them in one tensor: the update fails, aloud.
FUSED = pytest.mark.xfail(raises=EngineError, strict=True, reason="experts in one tensor")
CASES = [pytest.param(name, marks=[FUSED] if name == "qwen3-moe" else []) for name in SHAPES]


@pytest.mark.parametrize("name", CASES)
def test_it_samples_from_the_trainers_weights(name, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = save(name, tmp_path / "model", wide=True)
    attention = "eager" if name == "gemma2" else register()
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation=attention).eval()
    tokenizer = AutoTokenizer.from_pretrained(path)
    config = GRPOConfig(engine="vllm", device="cpu", threads=1, rollout_rows=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            started = start(Request(config, str(path), model, tokenizer, torch.float32, 128))
        except UserError as error:
            pytest.skip(f"vLLM's CPU backend refuses it: {error}")
    engine = TrustedEngine(
        started.engine,
        Canary(Policy(model, pad_id=0), tokens=12, seed=0, stop_text=None, tolerance=None),
        lambda: model.state_dict().items(),
        pad_id=0,
    )
    try:
        for version in (1, 2):
            groups = engine.generate(PROMPTS, [[3, 4], [5, 6]], Sampling(1.0, 14))
            for prompt, group in zip(PROMPTS, groups, strict=True):
                for completion in group:
                    found = torch.tensor(completion.logprobs)
                    assert torch.allclose(found, logprobs(model, prompt, completion.token_ids), atol=2e-3)
            with torch.no_grad():  # a step of the trainer's
                for parameter in model.parameters():
                    parameter.add_(0.02 * torch.randn_like(parameter))
            engine.offer(lambda: model.state_dict().items(), version=version)
    finally:
        engine.close()
