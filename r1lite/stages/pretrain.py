"""`r1lite pretrain`: trains a small model from scratch on text that r1lite generates."""

import contextlib
import itertools
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from torch import Tensor
from transformers import (
    AttentionInterface,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from r1lite.errors import Interrupted, RunError, UserError
from r1lite.hub.loading import load_shape, load_tokenizer, why_not
from r1lite.hub.revisions import pinned
from r1lite.hub.upload import MODEL_FILES, push
from r1lite.nano import model_place
from r1lite.nano.batches import TextBatch, batches, examples, searches, sums, worked
from r1lite.nano.config import TEXTS, PretrainConfig
from r1lite.nano.habits import Example
from r1lite.nano.search_habits import words
from r1lite.nano.tokenizer import train_tokenizer, word_tokenizer
from r1lite.run.display import duration
from r1lite.run.files import (
    LOCK,
    check_contents,
    clear_parts,
    lock_folder,
    new_folder,
    read_json,
    replaced_file,
    write_json,
    write_text,
)
from r1lite.run.model_card import CARD, model_card
from r1lite.run.progress import REPORTER
from r1lite.run.signals import StopSignal
from r1lite.tasks import find
from r1lite.tasks.worked import WorkedProblems
from r1lite.training.machine import check_room

TEMPLATE = "short"
_HEAD_ROWS = 512
_SETTINGS, _STATE = "pretrain.json", "state.pt"


def run(config: PretrainConfig) -> Path:
    """Trains a tokenizer and a model and saves both to `config.out`; continues an interrupted call.

    Raises:
        UserError: the folder is not empty or holds the start of another model, `config.start` holds no model, or
            `config.tokenizer` no suitable tokenizer.
        RunError: the loss is not finite, the disk is full, or the Hub refuses the upload.
    """
    out = _made(config)
    if config.push_to_hub is not None:
        print(f"uploaded  {push(out, config.push_to_hub, kind='model', files=MODEL_FILES, what='model')}", flush=True)
    return out


def _made(config: PretrainConfig) -> Path:
    """Trains the model and returns its folder."""
    out = Path(config.out).expanduser()
    if config.text not in TEXTS:
        worked_problems(config.text)  # raises errors before anything is written
    begun = out.with_name(f".{out.name}.begun")
    if _made_by(out) == _kept_settings(config):
        print(f"{out} is finished already, with the same settings", flush=True)
        shutil.rmtree(begun, ignore_errors=True)
        return out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} already exists: name a new folder")
    check_room(
        f"a model of {config.num_parameters:,} parameters, its gradients and the optimizer's moments",
        4 * 4 * config.num_parameters,
        "--layers, --hidden-size, --intermediate-size or --vocab-size",
    )
    with StopSignal() as stop, _locked(begun):
        check_contents(begun)
        clear_parts(begun)
        try:
            _train(config, begun / _STATE, out, stop)
        except (OSError, SafetensorError) as error:
            raise RunError(
                f"{getattr(error, 'filename', None) or out}: {getattr(error, 'strerror', None) or error}. Once this is "
                "fixed, the same command continues"
            ) from error
        (begun / _STATE).unlink(missing_ok=True)
    return out


def _train(config: PretrainConfig, kept: Path, out: Path, stop: StopSignal) -> None:
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    started = time.monotonic()

    tokenizer, model = _begun(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count:,} parameters, {len(tokenizer)} tokens, {config.threads} threads", flush=True)
    optimizers = _optimizers(model, config)
    steps = config.chain_steps + config.habit_steps
    done = _restored(kept, config, model, optimizers)
    if done:
        print(f"continuing after step {done} of {steps}", flush=True)
    # The text only depends on the seed: the part that was already used is skipped.
    for step, batch in itertools.islice(enumerate(_text(config, tokenizer)), done, None):
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
        REPORTER.note("training", step + 1, steps)
        if step % config.log_every == 0 or step == steps - 1:
            passed = time.monotonic() - started
            left = duration(passed / (step + 1 - done) * (steps - step - 1))
            print(f"step {step + 1}/{steps}  loss {loss.item():.4f}  {passed:.0f} s, {left} left", flush=True)
        if (step + 1) % config.save_every == 0 and step + 1 < steps:
            _keep(kept, config, step + 1, model, optimizers)
        try:
            stop.check()
        except Interrupted:
            _keep(kept, config, step + 1, model, optimizers)
            print("stopped; the same command continues", file=sys.stderr)
            raise
    save(model, tokenizer, out, config)


def _keep(
    path: Path, config: PretrainConfig, done: int, model: Qwen2ForCausalLM, optimizers: Sequence[torch.optim.Optimizer]
) -> None:
    state = {
        "settings": _kept_settings(config),
        "steps": done,
        "model": model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
    }
    with replaced_file(path) as aside:
        try:
            torch.save(state, aside)
        except RuntimeError as error:  # torch reports a full disk this way
            raise OSError(str(error)) from error


def _restored(
    path: Path, config: PretrainConfig, model: Qwen2ForCausalLM, optimizers: Sequence[torch.optim.Optimizer]
) -> int:
    """Restores the saved state and returns the number of finished steps.

    Raises:
        UserError: the state can't be read, or belongs to other settings.
    """
    if not path.exists():
        return 0
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["settings"] != _kept_settings(config):
            raise UserError(
                f"--out {config.out} was started with other settings; use the same settings, or remove {path}"
            )
        model.load_state_dict(state["model"])
        for optimizer, kept in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        return int(state["steps"])
    except UserError:
        raise
    except Exception as error:  # damaged bytes can make torch raise anything
        raise UserError(f"{path}: damaged ({type(error).__name__}); remove it to start from step 0") from error


def _kept_settings(config: PretrainConfig) -> dict[str, Any]:
    """Returns all settings that determine the model."""
    return config.model_dump(mode="json", exclude={"out", "log_every", "save_every", "push_to_hub"})


def _made_by(out: Path) -> dict[str, Any] | None:
    """Returns the settings of the model in a folder; None if there is no model or no settings."""
    found: dict[str, Any] | None = read_json(out / _SETTINGS) if (out / _SETTINGS).exists() else None
    return found


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Creates the folder and locks it for this process; removes it at the end if it is empty."""
    try:
        lock = lock_folder(folder)
    except BlockingIOError:
        raise UserError(f"{folder} is in use by another r1lite process") from None
    except OSError as error:
        raise UserError(f"--out {folder.parent}: can't be written: {error.strerror}") from error
    with lock:
        try:
            yield
        finally:
            if [file.name for file in folder.iterdir()] == [LOCK]:
                shutil.rmtree(folder)


def make_tokenizer(config: PretrainConfig) -> Qwen2Tokenizer:
    """Trains a tokenizer on the text of the configured habits."""
    if config.text == "countdown_small":
        return word_tokenizer(words(), max_tokens=config.context)
    texts = itertools.islice(_habits(config, "tokenizer"), config.tokenizer_problems)
    lines = (line for text in texts for line in (text.question + "\n", text.completion))
    return train_tokenizer(lines, vocab_size=config.vocab_size, max_tokens=config.context)


def make_model(config: PretrainConfig, tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """Returns a float32 Qwen2 with random weights and tied input and output embeddings."""
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
    model.train()
    return model


def _begun(config: PretrainConfig) -> tuple[PreTrainedTokenizerFast, Qwen2ForCausalLM]:
    if config.start is None:
        tokenizer = make_tokenizer(config) if config.tokenizer is None else _given_tokenizer(config.tokenizer)
        return tokenizer, make_model(config, tokenizer)
    AttentionInterface.register("sdpa_float32", _attention)
    try:
        tokenizer = Qwen2Tokenizer.from_pretrained(**pinned(config.start))
        model = Qwen2ForCausalLM.from_pretrained(
            **pinned(config.start),
            config=load_shape(config.start),
            dtype=torch.float32,
            attn_implementation="sdpa_float32",
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"--start {config.start}: no model of r1lite pretrain can be loaded from it: {error}"
        ) from error
    return tokenizer, model.train()


def _given_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Loads the tokenizer of an existing model. Raises UserError."""
    place = Path(model_place(name)).expanduser()
    if not place.is_dir():
        raise UserError(f"--tokenizer {name}: no such folder")
    try:
        tokenizer = load_tokenizer(place)
    except Exception as error:  # damaged files can make the library raise anything
        raise UserError(f"--tokenizer {name}: can't be loaded: {why_not(place, error)}") from error
    if (
        not isinstance(tokenizer, PreTrainedTokenizerFast)
        or tokenizer.eos_token_id is None
        or tokenizer.pad_token_id is None
    ):
        raise UserError(f"--tokenizer {name}: it must be a fast tokenizer with an end token and a padding token")
    return tokenizer


def loss_of(model: Qwen2ForCausalLM, batch: TextBatch, *, autocast: bool) -> Tensor:
    """Returns the mean cross-entropy of the labelled tokens; the head only runs at their positions."""
    labels = batch.labels.flatten()
    chosen = (labels != -100).nonzero().squeeze(-1)
    # Position 0 has no label. Only a few sizes: each new size compiles a bfloat16 kernel that stays in memory.
    chosen = F.pad(chosen, (0, -len(chosen) % _HEAD_ROWS), value=0)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        hidden = model.model(input_ids=batch.input_ids, use_cache=False).last_hidden_state.flatten(0, 1)
        logits = model.lm_head(hidden[chosen])
    return F.cross_entropy(logits.float(), labels[chosen])


def save(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path, config: PretrainConfig | None = None
) -> None:
    """Writes the model as `from_pretrained` loads it, and its settings, atomically."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=False
    )
    with new_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if config is not None:
            write_json(folder / _SETTINGS, _kept_settings(config))
            steps = config.chain_steps + config.habit_steps
            write_text(folder / CARD, model_card(out, config, steps, steps))


def _text(config: PretrainConfig, tokenizer: PreTrainedTokenizerFast) -> Iterator[TextBatch]:
    chains = _examples(config, {"chain": 1.0}, "chains")
    for texts, steps in ((chains, config.chain_steps), (_habits(config, "habits"), config.habit_steps)):
        made = batches(
            texts,
            tokenizer,
            batch_size=config.batch_size,
            template=TEMPLATE,
            even_tokens=config.text == "countdown_small",
        )
        yield from itertools.islice(made, steps)


def _habits(config: PretrainConfig, use: str) -> Iterator[Example]:
    return _examples(config, config.habits, use, short_shares=config.short_habits)


def _examples(
    config: PretrainConfig, shares: Mapping[str, float], use: str, *, short_shares: Mapping[str, float] | None = None
) -> Iterator[Example]:
    rng = random.Random(f"{config.seed}/{use}")
    if config.text == "add_carry":
        return sums(shares, rng, other_language=config.other_language)
    if config.text == "countdown_small":
        return searches(shares, rng, give_up=config.give_up_first if use == "chains" else [config.give_up])
    if config.text == "word_problems":
        return examples(shares, rng, short_shares=short_shares)
    return worked(shares, rng, worked_problems(config.text))


def worked_problems(text: str) -> WorkedProblems:
    """Returns the generator of worked problems of a user's task. Raises UserError."""
    load = find(text).load
    if not isinstance(load, WorkedProblems):
        raise UserError(
            f"--text {text}: this task has no worked chains; create it with worked_task of r1lite.tasks.worked, as "
            "shown in r1lite/nano/README.md"
        )
    return load


def _optimizers(model: Qwen2ForCausalLM, config: PretrainConfig) -> list[torch.optim.Optimizer]:
    """Returns Muon for the matrices of the layers (arXiv:2502.16982), AdamW for embeddings, norms and biases."""
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


def _attention(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """PyTorch's attention, in float32: on CPUs its backward pass is several times slower in bfloat16."""
    with torch.autocast("cpu", enabled=False):
        return sdpa_attention_forward(module, query.float(), key.float(), value.float(), mask, **kwargs)
