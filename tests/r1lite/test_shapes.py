"""Every shape of model: sampling, log-probabilities, an update, saving."""

import json

import pytest
import torch
from shapes_for_tests import HYBRIDS, SHAPES, make_model, save
from templates_for_tests import make_tokenizer

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.model.attention import register
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.model.prefix import cache_error
from r1lite.rollout import Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.hf import HFEngine
from r1lite.training.loading import attention_of

pytestmark = pytest.mark.filterwarnings("default")  # the library's own about kernels that are not installed
PROMPTS = [tuple(range(20, 32)), (40,), (50, 51, 52)]  # longer than the sliding windows, one token, short
SAMPLING = Sampling(0.8, 14)


def plain(model, prompt, ids, temperature, dtype=torch.float32):
    """Log-probabilities of a completion by a forward pass without a cache."""
    whole = torch.tensor([[*prompt, *ids]])
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != torch.float32):
        logits = model(whole, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    return (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).squeeze(-1)


def sampled(model, dtype=torch.float32):
    engine = HFEngine(model, make_tokenizer(), max_rows=4, dtype=dtype)
    return engine.generate(PROMPTS, [[7 * p + g for g in range(3)] for p in range(len(PROMPTS))], SAMPLING)


@pytest.mark.parametrize("name", [*SHAPES, *HYBRIDS])
def test_a_completion_has_the_models_own_probabilities(name):
    """As sampled (one cache for a group, rows that leave it), and as learnt, with and without the shared prompt."""
    model = make_model(name, attn_implementation="eager" if name == "gemma2" else register())
    groups = sampled(model)
    rows = [Row(p, c.token_ids) for p, group in zip(PROMPTS, groups, strict=True) for c in group]
    assert max(len(row.token_ids) for row in rows) > 8  # the sliding windows are left
    expected = [plain(model, row.prompt_ids, row.token_ids, 0.8) for row in rows]
    for found, wanted in zip([c.logprobs for group in groups for c in group], expected, strict=True):
        assert torch.allclose(torch.tensor(found), wanted, atol=2e-2 if name == "zamba2" else 1e-4)
    policy = Policy(model, pad_id=0, temperature=0.8)
    for shares in {policy.shares_prompts, False}:
        policy.shares_prompts = shares
        for batch in micro_batches(rows, 120, 0, "cpu"):
            logprobs = policy.logprobs(batch)
            for b, i in enumerate(batch.rows):
                assert torch.allclose(logprobs[b, : len(rows[i].token_ids)], expected[i], atol=1e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_in_bfloat16_too(name):
    model = make_model(name, attn_implementation="eager" if name == "gemma2" else register())
    groups = sampled(model, torch.bfloat16)
    for prompt, group in zip(PROMPTS, groups, strict=True):
        for completion in group:
            wanted = plain(model, prompt, completion.token_ids, 0.8, torch.bfloat16)
            assert torch.allclose(torch.tensor(completion.logprobs), wanted, atol=0.3)


@pytest.mark.parametrize("name", [*SHAPES, *HYBRIDS])
def test_a_step_changes_it_and_its_checkpoint_is_the_same_model(name, sums_path, tmp_path):
    from transformers import AutoModelForCausalLM

    path = save(name, tmp_path / "model")
    argv = ["grpo", "--model", str(path), "--task", "gsm8k", "--source", str(sums_path), "--template", "short"]
    argv += [
        "--reward",
        "shapes_for_tests:spread",
        "--score-workers",
        "0",
        "--steps",
        "1",
        "--prompts-per-step",
        "2",
        "--group-size",
        "3",
        "--lr",
        "1e-3",
    ]
    argv += ["--max-completion-tokens", "8", "--eval-problems", "1", "--eval-sample-problems", "1"]
    argv += ["--eval-samples", "1", "--no-report", "--quiet", "--threads", "1", "--device", "cpu"]
    assert main([*argv, "--out", str(tmp_path / "run")]) == 0
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert row["grad_norm"] > 0
    assert row["mismatch_logprob_max"] < 0.02
    (folder,) = (tmp_path / "run" / "checkpoints").iterdir()
    before, after = (AutoModelForCausalLM.from_pretrained(p, dtype=torch.float32).eval() for p in (path, folder))
    assert (after.lm_head.weight is after.get_input_embeddings().weight) == before.config.tie_word_embeddings
    ids = torch.arange(20, 40)[None]
    with torch.no_grad():
        assert not torch.equal(before(ids).logits, after(ids).logits)
    pairs = zip(before.state_dict().items(), after.state_dict().items(), strict=True)
    assert all(a == b and x.shape == y.shape for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("name", ["falcon-h1", "zamba2", "qwen3-next", "mistral-sliding"])
def test_what_a_shared_prompt_left_behind_is_selected_whole(name):
    """A layer with attention and a recurrent state keeps both for each row."""
    assert cache_error(make_model(name)) < 0.01


def test_a_model_that_keeps_its_state_elsewhere_is_refused():
    from transformers import RecurrentGemmaConfig, RecurrentGemmaForCausalLM

    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1}
    shape |= {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 32, "vocab_size": 288}
    model = RecurrentGemmaForCausalLM(RecurrentGemmaConfig(**shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    request = Request(GRPOConfig(engine="transformers"), "", model, make_tokenizer(), torch.float32, 64)
    with pytest.raises(UserError, match=r"other probabilities token by token .* Use --engine vllm"):
        start(request)


def test_the_soft_cap_of_an_attention_is_not_left_out():
    """transformers' sdpa leaves Gemma 2's out without a word."""
    capped, plain_shape = make_model("gemma2").config, make_model("qwen2").config
    assert attention_of(GRPOConfig(device="cpu"), capped) == "eager"
    assert attention_of(GRPOConfig(device="cuda"), capped) == "eager"
    assert attention_of(GRPOConfig(device="cuda"), plain_shape) == "sdpa"
    with pytest.raises(UserError, match="ignores the soft cap"):
        attention_of(GRPOConfig(attn_implementation="sdpa"), capped)
    ids = torch.arange(20, 40)[None]
    with torch.no_grad():  # that there is a difference
        eager, sdpa = (make_model("gemma2", attn_implementation=name)(ids).logits for name in ("eager", "sdpa"))
    assert not torch.allclose(eager, sdpa, atol=1e-2)
