"""The steps of `r1lite reward-model`: batches of pairs, updates, measurement on held-out pairs, checkpoints.

Everything a step does follows from its number, the weights and the optimizer's state: a resumed run is bit-identical.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from r1lite.config import RewardModelConfig
from r1lite.errors import RunError, UserError
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.preference.pairs import Pair
from r1lite.preference.reward_model import KEY, encode, load_classifier, padded
from r1lite.rl.passk import wilson_interval
from r1lite.rl.preference import bradley_terry, calibration
from r1lite.run import checkpoint
from r1lite.run.bad_batches import BadBatches
from r1lite.run.run_dir import RunDir
from r1lite.run.watchdog import Watchdog

_SMALLER = (
    "--gradient-checkpointing, a smaller --max-tokens (--overlong drop leaves longer pairs out) or a smaller model"
)
_MAX_CENTRED = 1000  # held-out pairs whose mean reward is kept as the centre


@dataclass(frozen=True, slots=True)
class Example:
    """A pair as the model reads it."""

    chosen: tuple[int, ...]
    rejected: tuple[int, ...]
    margin: float
    place: str


@dataclass(frozen=True, slots=True)
class _MicroBatch:
    pairs: list[Example]  # the longest last

    @property
    def num_rows(self) -> int:
        """Pairs."""
        return len(self.pairs)

    @property
    def cost(self) -> int:
        """Tokens, padding included."""
        return 2 * len(self.pairs) * _length(self.pairs[-1])


def examples(pairs: Sequence[Pair], template: str, tokenizer: Any) -> list[Example]:
    """Tokenizes. Raises UserError for pairs that are the same to this tokenizer."""
    made = []
    for pair in pairs:
        chosen, rejected = (encode(pair.prompt, text, template, tokenizer) for text in (pair.chosen, pair.rejected))
        if chosen == rejected:
            raise UserError(f"{pair.place}: a pair without a difference: both answers become the same tokens")
        made.append(Example(chosen, rejected, pair.margin, pair.place))
    return made


def fingerprint(*sets: Sequence[Example]) -> str:
    """Changes when any example does."""
    digest = hashlib.blake2b(digest_size=16)
    for examples in sets:
        for example in examples:
            digest.update(repr((example.chosen, example.rejected, example.margin)).encode())
        digest.update(b"\x1e")
    return digest.hexdigest()


class PreferenceTraining:
    """A reward model that is trained, with all that belongs to it.

    Args:
        model: a sequence-classification model of one output, on its device.
    """

    def __init__(
        self,
        config: RewardModelConfig,
        run_dir: RunDir,
        model: Any,
        tokenizer: Any,
        train: Sequence[Example],
        test: Sequence[Example],
        watchdog: Watchdog,
    ) -> None:
        self.config, self.run_dir, self.model, self.tokenizer = config, run_dir, model.eval(), tokenizer
        self.train, self.test, self.watchdog = train, test, watchdog
        self.saved: Any = None  # path of the newest checkpoint
        self.bad = BadBatches(run_dir.bad_batches)
        self.budget = MicroBatchBudget(config.micro_batch_tokens, row="pair", advice=_SMALLER)
        self.steps = config.epochs * math.ceil(len(train) / config.batch_pairs)
        dtype = config.dtype
        if dtype == "auto":
            dtype = "bfloat16" if model.device.type == "cuda" else "float32"
        self.dtype = getattr(torch, dtype)
        self.pad_id = model.config.get_text_config().pad_token_id
        if config.gradient_checkpointing:
            if not getattr(model, "supports_gradient_checkpointing", False):
                raise UserError(f"--gradient-checkpointing: {type(model).__name__} does not support it")
            model.gradient_checkpointing_enable({"use_reentrant": False})
            for module in model.modules():  # only they: the rest stays in evaluation mode, without dropout
                if isinstance(module, GradientCheckpointingLayer):
                    module.training = True
        self.optimizer = Optimizer.configured(model, config)

    def step(self, step: int) -> dict[str, Any]:
        """One update on `batch_pairs` pairs. Returns its metrics. Raises RunError after three bad ones in a row."""
        started = time.perf_counter()
        config = self.config
        batch = [self.train[i] for i in self._order(step)]
        lr = config.lr_at(step, self.steps)
        losses: list[float] = []
        chosen: list[Tensor] = []
        rejected: list[Tensor] = []

        def add(micro: _MicroBatch) -> None:
            rewards = self.rewards([e.chosen for e in micro.pairs] + [e.rejected for e in micro.pairs])
            better, worse = rewards.chunk(2)
            margins = torch.tensor([e.margin + config.margin for e in micro.pairs], device=rewards.device)
            loss = bradley_terry(better, worse, margins=margins, centre_coef=config.centre_coef).sum() / len(batch)
            loss.backward()
            losses.append(float(loss.detach()))
            chosen.append(better.detach().cpu())
            rejected.append(worse.detach().cpu())

        def restart() -> None:
            self.optimizer.discard()
            for kept in (losses, chosen, rejected):
                kept.clear()

        with self.watchdog.during("train", f"step {step + 1}"):
            ran_out = self.budget.go_through(functools.partial(_micro_batches, batch), add, restart, step=step)
            norm = self.optimizer.step(lr)
        total = sum(losses)
        if norm is None:
            kept = [dataclasses.asdict(example) for example in batch]
            self.bad.skipped(step + 1, kept, loss=total, parameters=self.optimizer.nonfinite)
        else:
            self.bad.fine()
        difference = torch.cat(chosen) - torch.cat(rejected)
        tokens = sum(len(e.chosen) + len(e.rejected) for e in batch)
        return {
            "loss": total if math.isfinite(total) else None,
            "accuracy": float((difference > 0).double().mean() + 0.5 * (difference == 0).double().mean()),
            "margin": _finite(difference.mean()),
            "reward_chosen": _finite(torch.cat(chosen).mean()),
            "reward_rejected": _finite(torch.cat(rejected).mean()),
            "grad_norm": norm,
            "skipped_updates": int(norm is None),
            "out_of_memory": ran_out,
            "micro_batch_tokens": self.budget.tokens,
            "lr": lr,
            "tokens": tokens,
            "step_s": time.perf_counter() - started,
        }

    def rewards(self, rows: Sequence[tuple[int, ...]]) -> Tensor:
        """Raw rewards, [N] float32."""
        ids, mask = padded(rows, self.pad_id, self.model.device)
        with self._autocast():
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        return logits[:, 0].float()  # type: ignore[no-any-return]

    @torch.no_grad()
    def measure(self) -> dict[str, Any]:
        """Accuracy and calibration on the held-out pairs. Raises RunError if a reward is not finite."""
        chosen, rejected = self._held_out(self.test)
        try:
            found = calibration(chosen, rejected)
        except ValueError as error:
            raise RunError(f"the held-out rewards are not finite ({error}); try a lower --lr") from error
        shorter = torch.tensor([len(e.chosen) < len(e.rejected) for e in self.test])
        right = chosen > rejected
        return {
            **dataclasses.asdict(found),
            "accuracy_interval": wilson_interval(found.accuracy * len(self.test), len(self.test)),
            "pairs": len(self.test),
            # A model that only counts words is right on the others alone.
            "accuracy_shorter_chosen": float(right[shorter].double().mean()) if bool(shorter.any()) else None,
            "pairs_shorter_chosen": int(shorter.sum()),
            "reward_mean": float(torch.cat([chosen, rejected]).mean()),
            "reward_std": float(torch.cat([chosen, rejected]).std()),
        }

    def save(self, step: int) -> None:
        """Writes a checkpoint, whose config.json says how to lay out texts and where an average answer stands."""
        with self.watchdog.during("save", f"checkpoint of step {step}"), torch.no_grad():
            centre = float(torch.cat(self._held_out(self.test[:_MAX_CENTRED])).mean())
            kept = {"template": self.config.template, "centre": centre, "scale": 1.0}
            setattr(self.model.config, KEY, kept)
            self.saved = checkpoint.save(
                self.run_dir.checkpoints,
                step,
                model=self.model,
                tokenizer=self.tokenizer,
                state={
                    "optimizer": self.optimizer.state_dict(),
                    "bad_in_a_row": self.bad.in_a_row,
                    "micro_batch_tokens": self.budget.tokens,
                },
                keep=self.config.keep_checkpoints,
                records=self.run_dir.recorded(),
            )

    def restore(self, step: int, saved: Path | None, say: Callable[[str], object]) -> None:
        """Puts a checkpoint's state in place, and forgets what was recorded after it. Raises UserError."""
        if saved is not None:
            self.saved = saved
            state = checkpoint.load_state(saved)
            with checkpoint.restoring(saved):
                self.model.load_state_dict(load_classifier(str(saved))[0].state_dict())
                self.optimizer.load_state_dict(state["optimizer"])
                self.bad.in_a_row = state["bad_in_a_row"]
                self.budget.tokens = min(state["micro_batch_tokens"], self.budget.asked)
            say(f"going on after step {step} of {self.steps}")
        self.run_dir.rewind(step)

    def _held_out(self, test: Sequence[Example]) -> tuple[Tensor, Tensor]:
        chosen, rejected = torch.empty(len(test)), torch.empty(len(test))
        places = {id(example): n for n, example in enumerate(test)}
        for micro in _micro_batches(test, self.budget.tokens):
            self.watchdog.beat()
            found = self.rewards([e.chosen for e in micro.pairs] + [e.rejected for e in micro.pairs]).cpu()
            where = [places[id(example)] for example in micro.pairs]
            chosen[where], rejected[where] = found.chunk(2)
        return chosen, rejected

    def _order(self, step: int) -> list[int]:
        """The pairs of a step: each epoch goes through all of them in an order of its own."""
        per_epoch = math.ceil(len(self.train) / self.config.batch_pairs)
        epoch, place = divmod(step, per_epoch)
        order = list(range(len(self.train)))
        random.Random(f"{self.config.seed}-{epoch}").shuffle(order)
        return order[place * self.config.batch_pairs : (place + 1) * self.config.batch_pairs]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.model.device.type, dtype=self.dtype)


def _micro_batches(batch: Sequence[Example], max_tokens: int) -> list[_MicroBatch]:
    """Pairs of similar length together, at most so many tokens with their padding."""
    micros: list[list[Example]] = []
    for example in sorted(batch, key=_length):  # stable, so equal lengths keep the batch's order
        if micros and (len(micros[-1]) + 1) * 2 * _length(example) <= max_tokens:
            micros[-1].append(example)
        else:
            micros.append([example])
    return [_MicroBatch(micro) for micro in micros]


def _length(example: Example) -> int:
    return max(len(example.chosen), len(example.rejected))


def _finite(value: Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None
