"""vLLM in this process takes the adapter of models of several shapes alone, and one over a base in 4 bits."""

import json
import warnings

import pytest
import torch
from shapes_for_tests import save

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.model.attention import register
from r1lite.model.lora import adapter_of, adapter_state, add_adapter, merged_weights, without_adapter
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary, trainer_logprobs
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_support import installed, no_adapters

pytest.importorskip("peft")
pytestmark = [
    pytest.mark.skipif(installed() is None or bool(no_adapters(installed(), 4)), reason="no vLLM with adapters"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
    pytest.mark.slow,
]
PROMPTS = [list(range(20, 32)), [50, 51, 52]]


def furthest(policy, groups):
    """The greatest difference of a completion's log-probabilities to the trainer's, in nats."""
    rows = [(prompt, c) for prompt, group in zip(PROMPTS, groups, strict=True) for c in group]
    expected = trainer_logprobs(policy, [prompt for prompt, _ in rows], [c for _, c in rows])
    return max(
        abs(a - b) for own, (_, c) in zip(expected, rows, strict=True) for a, b in zip(own, c.logprobs, strict=True)
    )


@pytest.mark.exhaustive  # the run below has fused layers too
@pytest.mark.parametrize("name", ["phi3", "llama-without-pad", "qwen3"])
def test_it_samples_with_each_adapter(name, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = save(name, tmp_path / "model", wide=True)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation=register()).eval()
    config = GRPOConfig(engine="vllm", device="cpu", threads=1, rollout_rows=8, lora_rank=4)
    add_adapter(model, config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = AutoTokenizer.from_pretrained(path)
        started = start(Request(config, str(path), model, tokenizer, torch.float32, 128))
    policy = Policy(model, pad_id=0)
    engine = TrustedEngine(
        *(started.engine, Canary(policy, tokens=12, seed=0, stop_text=None, tolerance=None)),
        lambda: merged_weights(model),
        pad_id=0,
        proof=WeightProof(torch.float32),
        adapter=lambda: adapter_of(model),
        say=pytest.fail,  # no merged weights
    )
    tensors = adapter_state(model)
    try:
        for version in range(3):
            with torch.no_grad():
                for value in tensors.values():
                    value.add_(0.1 * torch.randn(value.shape))
            engine.offer(lambda: merged_weights(model), version=version)
            groups = engine.generate(PROMPTS, [[3, 4], [5, 6]], Sampling(1.0, 14))
            assert furthest(policy, groups) < 1e-3
            with without_adapter(model):
                assert furthest(policy, groups) > 0.1
            metrics = engine.take_metrics()
            assert metrics["proven_weights"] > len(tensors)  # each of the adapter's, and some below it
        assert metrics["sync_mb"] == pytest.approx(sum(value.nbytes for value in tensors.values()) / 1e6)
    finally:
        engine.close()


def test_a_run_over_a_base_in_4_bits(sums_path, tmp_path):
    pytest.importorskip("bitsandbytes")
    path = save("phi3", tmp_path / "model", wide=True)  # queries, keys and values are one layer, gate and up another
    flags = [
        *("grpo", "--engine", "vllm", "--model", str(path), "--source", str(sums_path), "--template", "short"),
        *("--lora-rank", "4", "--base-quantization", "nf4", "--reward", "shapes_for_tests:spread", "--lr", "1e-2"),
        *("--steps", "2", "--prompts-per-step", "2", "--group-size", "4", "--max-completion-tokens", "8"),
        *("--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--score-workers", "0"),
        *("--rollout-rows", "8", "--device", "cpu", "--threads", "1", "--no-report", "--quiet"),
    ]
    assert main([*flags, "--out", str(tmp_path / "run")]) == 0
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(record["grad_norm"] > 0 for record in records)
    assert all(record["mismatch_logprob_max"] < 1e-3 for record in records)
    assert all(record["canary_logprob_max"] < 1e-3 for record in records)
    first, second = (record["sync_mb"] for record in records)
    assert second < first / 10, "the weights below the adapter went over again"
