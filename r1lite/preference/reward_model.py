"""A learned reward: a sequence-classification model with one output, its text layout, and the verifier `rm:PATH`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import UserError
from r1lite.hub.loading import load_shape, load_tokenizer, why_not
from r1lite.hub.revisions import pinned
from r1lite.model.mapped import read_model
from r1lite.preference.pairs import Messages
from r1lite.rl.passk import wilson_interval
from r1lite.run import checkpoint
from r1lite.tasks import prompts as templates
from verifiers import Completion, Problem, Verdict, VerifierError

KEY = "r1lite_reward"  # key in the model's config.json for the layout, the scale and the accuracy of training
_CHANCE = 0.5  # accuracy of random guessing


def text_of(prompt: str | Messages, completion: str, template: str, tokenizer: Any) -> str:
    """The model's input as text: the rendered prompt, the completion, the end token.

    Args:
        template: a template of `r1lite.tasks.prompts`; "chat" uses the tokenizer's own template with the completion as
            the assistant's message, and is required for prompts that are messages.

    Raises:
        UserError: the template can't be rendered.
    """
    if template == "chat":
        before = prompt if isinstance(prompt, tuple) else (("user", prompt),)
        messages = [{"role": role, "content": content} for role, content in (*before, ("assistant", completion))]
        return templates.render_messages(messages, tokenizer, answered=True)
    if isinstance(prompt, tuple):
        raise UserError("prompts that are chat messages need --template chat and a tokenizer that has a chat template")
    end = tokenizer.eos_token or ""  # some sets of pairs hold it already
    return templates.render(template, prompt, tokenizer) + completion.removesuffix(end) + end


def encode(prompt: str | Messages, completion: str, template: str, tokenizer: Any) -> tuple[int, ...]:
    """The model's input as token ids."""
    text = text_of(prompt, completion, template, tokenizer)
    return tuple(tokenizer(text, add_special_tokens=template != "chat")["input_ids"])


def padded(rows: Sequence[Sequence[int]], pad_id: int, device: Any) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, [N, L], padded on the right."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad_id)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for n, row in enumerate(rows):
        ids[n, : len(row)] = torch.tensor(row)
        mask[n, : len(row)] = 1
    return ids.to(device), mask.to(device)


def load_classifier(path: str, *, seed: int | None = None, mapped: bool = False) -> tuple[Any, Any]:
    """(model with one output, tokenizer), float32, on the CPU.

    Args:
        seed: seed of the new head for a model without one (a language model); None: such a model raises UserError.
        mapped: weights stay in the files, in the dtype of the files; see `r1lite.model.mapped`.

    Raises:
        UserError: the model can't be loaded, or isn't a reward model.
    """
    from transformers import AutoModelForSequenceClassification

    try:
        tokenizer = load_tokenizer(path)
        config = load_shape(path)
        if seed is not None:
            config.num_labels = 1
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        config.get_text_config().pad_token_id = pad  # the model finds the end of a row by its padding
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed or 0)
            model, loaded = read_model(
                pinned(path), mapped=mapped, architecture=AutoModelForSequenceClassification, config=config
            )
            torch.manual_seed(seed or 0)
            _draw(model, loaded["missing_keys"])
    except UserError:
        raise
    except Exception as error:  # the library passes on any exception of its transport and its models
        raise UserError(f"{path}: can't be loaded as a reward model: {why_not(path, error)}") from error
    lacking = [key for key in loaded["missing_keys"] if seed is None or not key.startswith(("score.", "classifier."))]
    if lacking or model.config.num_labels != 1:
        why = f"it lacks {lacking[0]}" if lacking else f"it has {model.config.num_labels} outputs"
        raise UserError(f"{path} is not a reward model: {why}; r1lite reward-model trains one")
    if pad is None:
        raise UserError(f"{path}: the tokenizer has neither a padding nor an end token")
    return model.eval(), tokenizer


def _draw(model: Any, missing: Collection[str]) -> None:
    """Draws new weights again in float32, since the library drew them in the dtype of the files."""
    for name, module in model.named_modules():
        if any(f"{name}.{own}" in missing for own, _ in module.named_parameters(recurse=False)):
            model._init_weights(module.float())


class RewardModel:
    """Scores completions with a learned reward model: `rm:PATH` in a reward formula.

    The score is sigmoid((reward - centre) / scale). For a Bradley-Terry model and scale 1, this is the probability that
    the completion is preferred to an answer with the reward `centre`. The model gets every completion alone, so a score
    doesn't depend on other completions (bit for bit, for the same number of threads).

    Args:
        path: a folder with a sequence-classification model of one output and its tokenizer, a run directory of
            `r1lite reward-model` (its newest checkpoint), or an id on the Hub.
        scale: > 0, in units of the reward; by default the value saved with the model, else 1.
        centre: reward that scores 0.5; by default the value saved with the model (`reward-model` saves the mean over
            the held-out answers), else 0.
        template: layout of prompt and completion; by default that of training, else "chat" if the tokenizer has a chat
            template, and otherwise "{question}", which joins both texts directly, as TRL's RewardTrainer does.
        max_tokens: longer texts score 0; by default the model's context.
        device: auto, cpu, cuda or cuda:N.

    Reasons: `scored`; `too_long` (score 0).

    `doubt` says that its accuracy, saved by `reward-model`, may be chance; it is "" otherwise.

    Raises (when made): ValueError if the model can't be used.
    """

    kind = "correctness"

    def __init__(
        self,
        path: str,
        *,
        scale: float | None = None,
        centre: float | None = None,
        template: str | None = None,
        max_tokens: int | None = None,
        device: str = "auto",
    ) -> None:
        place = model_folder(path)
        self.model, self.tokenizer = load_classifier(place)
        kept: dict[str, Any] = getattr(self.model.config, KEY, None) or {}
        self.scale = float(kept.get("scale", 1.0) if scale is None else scale)
        self.centre = float(kept.get("centre", 0.0) if centre is None else centre)
        self.template = str(kept.get("template", _layout(self.tokenizer)) if template is None else template)
        if not (self.scale > 0 and math.isfinite(self.scale) and math.isfinite(self.centre)):
            raise ValueError(f"rm:{path}: scale must be > 0 and centre finite, got {self.scale} and {self.centre}")
        try:
            templates.check(self.template)
            text_of("a", "b", self.template, self.tokenizer)  # raises early if the template doesn't work
        except UserError as error:
            why = str(error).removeprefix("--template ").rpartition("; try")[0] or str(error)
            other = "set the option template to text that contains {question}" if template is None else "leave it out"
            raise ValueError(f"rm:{path}: template {why}; {other}") from error
        self.max_tokens = max_tokens or getattr(self.model.config, "max_position_embeddings", None)
        chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        try:
            self.model.to(chosen)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"rm:{path}: device {device}: {error}") from error
        self.doubt = doubt(kept["accuracy"], kept["pairs"]) if {"accuracy", "pairs"} <= kept.keys() else ""
        self.version = f"{_fingerprint(self.model)}-{self.template}-{self.scale:g}-{self.centre:g}"

    @torch.inference_mode()
    def reward(self, prompt: str, completion: str) -> float | None:
        """The raw reward of one completion, or None if it is too long."""
        ids = encode(prompt, completion, self.template, self.tokenizer)
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            return None
        inputs = torch.tensor([ids], device=self.model.device)
        return float(self.model(input_ids=inputs, attention_mask=torch.ones_like(inputs), use_cache=False).logits[0, 0])

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        """The verdict on one completion. Raises VerifierError if there is no prompt or the reward is not finite."""
        if not problem.prompt:
            raise VerifierError(f"a reward model needs the prompt; problem '{problem.id}' has none")
        reward = self.reward(problem.prompt, completion.text)
        if reward is None:
            return Verdict(0.0, "too_long", f"more than {self.max_tokens} tokens")
        if not math.isfinite(reward):
            raise VerifierError(f"the reward model returned {reward} (on problem '{problem.id}')")
        return Verdict(squashed(reward, self.centre, self.scale), "scored", f"reward {reward:.6g}")


def _layout(tokenizer: Any) -> str:
    return "chat" if getattr(tokenizer, "chat_template", None) else "{question}"


def doubt(accuracy: float, pairs: int) -> str:
    """Why a model with this accuracy on so many held-out pairs is no reward; "" if it is better than chance."""
    low, high = wilson_interval(accuracy * pairs, pairs)
    if low > _CHANCE:
        return ""
    return (
        f"no reward to train on: an accuracy of {accuracy:.1%} ({100 * low:.1f}-{100 * high:.1f}) on "
        f"{pairs} held-out pairs may be chance (50 %)"
    )


def squashed(reward: float, centre: float, scale: float) -> float:
    """sigmoid((reward - centre) / scale), without overflow."""
    x = (reward - centre) / scale
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def model_folder(path: str) -> str:
    """The folder to load: for a run directory, its newest intact checkpoint. Raises UserError."""
    run = Path(path).expanduser()
    if not run.exists() and (path.startswith((".", "/", "~", "runs/")) or path.count("/") > 1):
        raise UserError(f"{path}: no such folder")
    if not run.exists() or not (run / "checkpoints").is_dir():
        return str(run) if run.exists() else path
    found, _ = checkpoint.latest(run / "checkpoints")
    if found is None:
        raise UserError(f"{path}: this run has no intact checkpoint")
    return str(found[1])


def _fingerprint(model: Any) -> str:
    """A hash of the weights."""
    digest = hashlib.blake2b(digest_size=5)
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()
