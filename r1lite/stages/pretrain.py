"""`r1lite pretrain`: make a small model from nothing but text that the project generates."""

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import (
    AttentionInterface,
    AutoTokenizer,
    GenerationConfig,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from r1lite.errors import RunError, UserError
from r1lite.machine import NANO
from r1lite.nano import nano_path
from r1lite.nano.batches import TextBatch, batches, examples, sums
from r1lite.nano.config import PretrainConfig
from r1lite.nano.habits import Example
from r1lite.nano.tokenizer import train_tokenizer
from r1lite.run.files import new_folder

TEMPLATE = "short"
_HEAD_ROWS = 512


def run(config: PretrainConfig) -> Path:
    """Train a tokenizer and a model and save both to `config.out`, which must not exist or be empty.

    Raises:
        UserError: the folder has something in it, or there is no model in `config.start`, or no tokenizer of use in
            `config.tokenizer`.
        RunError: the loss is no longer finite.
    """
    out = Path(config.out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} already exists: name a new folder")
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    started = time.monotonic()

    tokenizer, model = _begun(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count:,} parameters, {len(tokenizer)} tokens, {config.threads} threads", flush=True)
    optimizers = _optimizers(model, config)
    steps = config.chain_steps + config.habit_steps
    for step, batch in enumerate(_text(config, tokenizer)):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * _rate(step, steps, config.warmup_steps)
        loss = loss_of(model, batch, autocast=config.autocast)
        loss.backward()
        if not torch.isfinite(loss):
            raise RunError(f"the loss is {loss.item()} at step {step}: try a lower --lr and --muon-lr")
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if step % config.log_every == 0 or step == steps - 1:
            print(f"step {step}/{steps}  loss {loss.item():.4f}  {time.monotonic() - started:.0f} s", flush=True)
    save(model, tokenizer, out)
    return out


def make_tokenizer(config: PretrainConfig) -> Qwen2Tokenizer:
    """The tokenizer of the configured habits' text."""
    texts = itertools.islice(_habits(config, "tokenizer"), config.tokenizer_problems)
    lines = (line for text in texts for line in (text.question + "\n", text.completion))
    return train_tokenizer(lines, vocab_size=config.vocab_size, max_tokens=config.context)


def make_model(config: PretrainConfig, tokenizer: Qwen2Tokenizer) -> Qwen2ForCausalLM:
    """A Qwen2 with random weights, float32, input and output embeddings tied."""
    AttentionInterface.register("sdpa_float32", _attention)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            max_position_embeddings=config.context,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    )
    model.set_attn_implementation("sdpa_float32")
    return model.train()


def _begun(config: PretrainConfig) -> tuple[Qwen2Tokenizer, Qwen2ForCausalLM]:
    if config.start is None:
        tokenizer = make_tokenizer(config) if config.tokenizer is None else _given_tokenizer(config.tokenizer)
        return tokenizer, make_model(config, tokenizer)
    AttentionInterface.register("sdpa_float32", _attention)
    try:
        tokenizer = Qwen2Tokenizer.from_pretrained(config.start)
        model = Qwen2ForCausalLM.from_pretrained(config.start, dtype=torch.float32, attn_implementation="sdpa_float32")
    except (OSError, ValueError) as error:
        raise UserError(f"--start {config.start}: no model of pretrain's can be loaded from there: {error}") from error
    return tokenizer, model.train()


def _given_tokenizer(name: str) -> Qwen2Tokenizer:
    """The tokenizer of a model that is there already. Raises UserError."""
    place = nano_path() if name == NANO else Path(name).expanduser()
    if not place.is_dir():
        raise UserError(f"--tokenizer {name}: no such folder")
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
    except Exception as error:  # the library raises whatever the files make it
        raise UserError(f"--tokenizer {name}: can't be loaded: {type(error).__name__}: {error}") from error
    if not tokenizer.is_fast or tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise UserError(f"--tokenizer {name}: it has to be a fast one, with a token to end and one to pad a text")
    return tokenizer


def loss_of(model: Qwen2ForCausalLM, batch: TextBatch, *, autocast: bool) -> Tensor:
    """Mean cross-entropy of the labelled tokens; the head runs on their positions only."""
    labels = batch.labels.flatten()
    chosen = (labels != -100).nonzero().squeeze(-1)
    # Position 0 is a prompt's, without a label. A few sizes only: each new one costs a compiled bfloat16 kernel, kept.
    chosen = F.pad(chosen, (0, -len(chosen) % _HEAD_ROWS), value=0)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        hidden = model.model(input_ids=batch.input_ids, use_cache=False).last_hidden_state.flatten(0, 1)
        logits = model.lm_head(hidden[chosen])
    return F.cross_entropy(logits.float(), labels[chosen])


def save(model: Qwen2ForCausalLM, tokenizer: Qwen2Tokenizer, out: Path) -> None:
    """Write what `from_pretrained` needs, all of it or nothing."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=False
    )
    with new_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _text(config: PretrainConfig, tokenizer: Qwen2Tokenizer) -> Iterator[TextBatch]:
    rng = random.Random(f"{config.seed}/chains")
    if config.text == "add_carry":
        chains = sums({"chain": 1.0}, rng, other_language=config.other_language)
    else:
        chains = examples({"chain": 1.0}, rng)
    for texts, steps in ((chains, config.chain_steps), (_habits(config, "habits"), config.habit_steps)):
        yield from itertools.islice(batches(texts, tokenizer, batch_size=config.batch_size, template=TEMPLATE), steps)


def _habits(config: PretrainConfig, use: str) -> Iterator[Example]:
    rng = random.Random(f"{config.seed}/{use}")
    if config.text == "add_carry":
        return sums(config.habits, rng, other_language=config.other_language)
    return examples(config.habits, rng, short_shares=config.short_habits)


def _optimizers(model: Qwen2ForCausalLM, config: PretrainConfig) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices (arXiv:2502.16982), AdamW for embeddings, norms and biases."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    muon = torch.optim.Muon(
        [{"params": matrices, "peak_lr": config.muon_lr}], lr=config.muon_lr, weight_decay=config.weight_decay
    )
    adamw = torch.optim.AdamW(
        [{"params": others, "peak_lr": config.lr}], lr=config.lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )
    return [muon, adamw]


def _rate(step: int, steps: int, warmup: int) -> float:
    return min((step + 1) / max(warmup, 1), (steps - step) / steps)


def _attention(module, query, key, value, mask, **kwargs):  # type: ignore[no-untyped-def]
    """PyTorch's attention in float32: on CPUs its backward pass is several times slower in bfloat16."""
    with torch.autocast("cpu", enabled=False):
        return sdpa_attention_forward(module, query.float(), key.float(), value.float(), mask, **kwargs)
