"""The steps of `r1lite reward-model`: batches of pairs, updates, measurement on held-out pairs.

A step depends only on its number, the weights and the optimizer's state, so a resumed run is bit-identical.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from r1lite.config import RewardModelConfig
from r1lite.distributed.together import shared_out
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError, UserError
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.model.policy import enable_checkpointing
from r1lite.model.sharding import layers_of, put_into, shard_module
from r1lite.preference.pairs import Pair
from r1lite.preference.reward_model import KEY, doubt, encode, load_classifier, padded
from r1lite.rl.passk import wilson_interval
from r1lite.rl.preference import bradley_terry, calibration
from r1lite.run.bad_batches import BadBatches
from r1lite.run.checkpoint import least_size
from r1lite.run.display import Display
from r1lite.run.run_dir import RunDir
from r1lite.run.watchdog import Watchdog
from r1lite.types import Group

_SMALLER = (
    "--gradient-checkpointing, a smaller --max-tokens (--overlong drop leaves longer pairs out) or a smaller model"
)
_MAX_CENTRED = 1000  # largest number of held-out pairs whose mean reward and accuracy are saved with the model


@dataclass(frozen=True, slots=True)
class Example:
    """A tokenized pair."""

    chosen: tuple[int, ...]
    rejected: tuple[int, ...]
    margin: float
    where: str


@dataclass(frozen=True, slots=True)
class _MicroBatch:
    pairs: list[Example]  # the longest last

    @property
    def num_rows(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def cost(self) -> int:
        """Number of tokens, padding included."""
        return 2 * len(self.pairs) * _length(self.pairs[-1])


def examples(pairs: Sequence[Pair], template: str, tokenizer: Any) -> list[Example]:
    """Tokenizes the pairs. Raises UserError for pairs whose answers have the same tokens."""
    made = []
    for pair in pairs:
        chosen, rejected = (encode(pair.prompt, text, template, tokenizer) for text in (pair.chosen, pair.rejected))
        if chosen == rejected:
            raise UserError(f"{pair.where}: a pair without a difference: both answers become the same tokens")
        made.append(Example(chosen, rejected, pair.margin, pair.where))
    return made


def fingerprint(*sets: Sequence[Example]) -> str:
    """A hash of the examples."""
    digest = hashlib.blake2b(digest_size=16)
    for examples in sets:
        for example in examples:
            digest.update(repr((example.chosen, example.rejected, example.margin)).encode())
        digest.update(b"\x1e")
    return digest.hexdigest()


class PreferenceTraining:
    """A reward model in training, with its optimizer and its data.

    Args:
        model: a sequence-classification model with one output.
        world: the ranks that share the work; each holds the whole model or its part of it.
    """

    what: ClassVar[str] = "reward model"
    evaluation_keys: ClassVar[tuple[str, ...]] = ("accuracy", "accuracy_interval", "pairs", "loss", "ece", "brier")
    is_measured: ClassVar[bool] = True
    measured_on: ClassVar[dict[str, int]] = {}  # the held-out pairs can't change

    def __init__(
        self,
        config: RewardModelConfig,
        run_dir: RunDir,
        model: Any,
        tokenizer: Any,
        train: Sequence[Example],
        test: Sequence[Example],
        display: Display,
        world: World = ALONE,
    ) -> None:
        self.world = world
        self.config, self.run_dir, self.display = config, run_dir, display
        self.model, self.tokenizer = model.eval(), tokenizer
        self.train, self.test = train, test
        self.tokens_are = "trained_on"
        self.watchdog = Watchdog(config)  # the run replaces it with its own
        self.bad = BadBatches(run_dir.bad_batches)
        self._in_parts = config.in_parts(world.size)
        self.budget = MicroBatchBudget(
            config.micro_batch_tokens, row="pair", advice=_SMALLER, world=world, in_step=self._in_parts
        )
        self._per_epoch = math.ceil(len(train) / config.batch_pairs)
        self.steps = config.steps or max(1, round(config.epochs * self._per_epoch))
        dtype = config.dtype
        if dtype == "auto":
            dtype = "bfloat16" if config.device.startswith("cuda") else "float32"
        self.dtype = getattr(torch, dtype)
        self.pad_id = model.config.get_text_config().pad_token_id
        if config.gradient_checkpointing:
            enable_checkpointing(model)
        if self._in_parts:
            whole_in_between = config.shard == "grad"
            options: Any = {"copies": config.shard_copies, "whole_in_between": whole_in_between}
            shard_module(model, layers_of(model), world, device=config.device, **options)
        else:
            world.copy_from_main(list(model.parameters()))  # each rank has read its own files
        self.optimizer = Optimizer.configured(model, config, world)

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """One update on `batch_pairs` pairs, without sampling. Raises RunError after three bad updates in a row."""
        started = time.perf_counter()
        config = self.config
        batch = [self.train[i] for i in self._order(step)]
        lr = config.lr_at(step, self.steps)
        found: dict[int, tuple[float, Tensor, Tensor]] = {}  # by micro-batch: loss, rewards of chosen and rejected

        def add(number: int, micro: _MicroBatch) -> None:
            rewards = self.rewards_of(micro)
            better, worse = rewards.chunk(2)
            margins = torch.tensor([e.margin + config.margin for e in micro.pairs], device=rewards.device)
            loss = bradley_terry(better, worse, margins=margins, centre_coef=config.centre_coef).sum() / len(batch)
            loss.backward()
            found[number] = float(loss.detach()), better.detach().cpu(), worse.detach().cpu()

        def idle(micro: _MicroBatch) -> None:
            (0.0 * self.rewards_of(micro)).sum().backward()

        def restart() -> None:
            self.optimizer.discard()
            found.clear()

        cut = functools.partial(_micro_batches, batch)
        ran_out = self.budget.go_through(cut, add, restart, step=step, idle=idle)
        norm = self.optimizer.step(lr)
        every = {number: one for part in self.world.all_gather_object(found) for number, one in part.items()}
        losses, chosen, rejected = zip(*(every[number] for number in sorted(every)), strict=True)
        total = sum(losses)
        if norm is None:
            kept = [dataclasses.asdict(example) for example in batch]
            self.bad.skipped(step + 1, kept, loss=total, parameters=self.optimizer.nonfinite)
        else:
            self.bad.fine()
        difference = torch.cat(chosen) - torch.cat(rejected)
        tokens = sum(len(e.chosen) + len(e.rejected) for e in batch)
        return [], {
            "loss": total if math.isfinite(total) else None,
            "accuracy": _accuracy(difference),
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
        """Raw rewards, [N] float32, or float64 for a float64 model."""
        ids, mask = padded(rows, self.pad_id, self.model.device)
        # Each weight is used once, and a cache would keep a copy of every one until the pass ends.
        options: Any = {"enabled": self.dtype != torch.float32, "cache_enabled": False}
        with torch.autocast(self.model.device.type, dtype=self.dtype, **options):
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        return logits[:, 0].to(torch.promote_types(logits.dtype, torch.float32))  # type: ignore[no-any-return]

    def rewards_of(self, micro: _MicroBatch) -> Tensor:
        """Raw rewards of the chosen answers, followed by those of the rejected ones."""
        return self.rewards([e.chosen for e in micro.pairs] + [e.rejected for e in micro.pairs])

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint, at least."""
        return least_size(self.model)

    @torch.no_grad()
    def measure(self, step: int, progress: Callable[[float], None]) -> dict[str, Any]:
        """Accuracy and calibration on the held-out pairs. Raises RunError if a reward is not finite."""
        chosen, rejected = self._held_out(self.test, progress)
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
            # A model that only counts words would be right only on the other pairs.
            "accuracy_shorter_chosen": float(right[shorter].double().mean()) if bool(shorter.any()) else None,
            "pairs_shorter_chosen": int(shorter.sum()),
            "reward_mean": float(torch.cat([chosen, rejected]).mean()),
            "reward_std": float(torch.cat([chosen, rejected]).std()),
        }

    @torch.no_grad()
    def checkpoint(self) -> dict[str, Any]:
        """The state to save: the model, whose configuration has the layout of texts, the reward of an average answer
        and the accuracy; the tokenizer; the optimizer's moments; the count of bad updates; and the micro-batch size
        that fits."""
        measured = self.test[:_MAX_CENTRED]
        chosen, rejected = self._held_out(measured, lambda share: self.watchdog.beat())
        kept = {
            "template": self.config.template,
            "centre": float(torch.cat([chosen, rejected]).mean()),
            "scale": 1.0,
            "accuracy": _accuracy(chosen - rejected),
            "pairs": len(measured),
        }
        setattr(self.model.config, KEY, kept)
        state = {
            "optimizer": self.optimizer.state_dict(),
            "bad_in_a_row": self.bad.in_a_row,
            **self.budget.state_dict(),
        }
        return {"model": self.model, "tokenizer": self.tokenizer, "state": state}

    def restore(self, step: int, path: Path, state: dict[str, Any]) -> None:
        """Loads a checkpoint's weights and state."""
        put_into(self.model, load_classifier(str(path), mapped=self._in_parts)[0].state_dict())
        self.optimizer.load_state_dict(state["optimizer"])
        self.bad.in_a_row = state["bad_in_a_row"]
        self.budget.load_state_dict(state)

    @property
    def epochs(self) -> float:
        """Number of passes over the pairs."""
        return self.steps / self._per_epoch

    def close(self) -> None:
        """Unlocks the run directory."""
        self.run_dir.close()

    def begin(self, before: dict[str, Any] | None) -> None:
        """Reports the measurement before training."""
        assert before is not None
        self.display.say(f"before    {_brief(before)}")

    def summary(self) -> dict[str, Any]:
        """The numbers of pairs, and the layout of texts."""
        return {"pairs": len(self.train), "held_out_pairs": len(self.test), "template": self.config.template}

    def show(self, summary: dict[str, Any]) -> None:
        """Reports the measurement after training, and how to use the model."""
        self.display.say(f"after     {_brief(summary['eval_after'])}")
        self.display.line("model", summary["checkpoint"])
        after = summary["eval_after"]
        doubted = doubt(after["accuracy"], after["pairs"])
        advice = f"{doubted}; use more pairs or a larger --steps" if doubted else f'--reward "rm:{self.run_dir.path}"'
        self.display.line("warning" if doubted else "use", advice)

    def _held_out(self, test: Sequence[Example], progress: Callable[[float], None]) -> tuple[Tensor, Tensor]:
        """Rewards of the chosen and of the rejected answers, [len(test)] each."""
        row_of = {id(example): n for n, example in enumerate(test)}
        micros = _micro_batches(test, self.budget.tokens)
        most = math.ceil(len(micros) / self.world.size)  # largest number per rank

        def share(mine: range) -> list[Tensor]:
            found = []
            for done, place in enumerate(mine, 1):
                found.append(self.rewards_of(micros[place]).cpu())
                progress(done / len(mine))
            if self._in_parts and len(mine) < most:  # with a model in parts, each pass needs all ranks
                self.rewards_of(micros[0])
            return found

        every = shared_out(self.world, len(micros), share)
        chosen, rejected = (every[0].new_empty(len(test)) for _ in range(2))
        for micro, rewards in zip(micros, every, strict=True):
            rows = [row_of[id(example)] for example in micro.pairs]
            chosen[rows], rejected[rows] = rewards.chunk(2)
        return chosen, rejected

    def _order(self, step: int) -> list[int]:
        """Indexes of a step's pairs; each epoch goes through all pairs in a new order."""
        epoch, place = divmod(step, self._per_epoch)
        order = list(range(len(self.train)))
        random.Random(f"{self.config.seed}-{epoch}").shuffle(order)
        return order[place * self.config.batch_pairs : (place + 1) * self.config.batch_pairs]


def _micro_batches(batch: Sequence[Example], max_tokens: int) -> list[_MicroBatch]:
    """Groups pairs of similar length, with at most `max_tokens` tokens per micro-batch, padding included."""
    micros: list[list[Example]] = []
    for example in sorted(batch, key=_length):  # stable, so equal lengths keep the batch's order
        if micros and (len(micros[-1]) + 1) * 2 * _length(example) <= max_tokens:
            micros[-1].append(example)
        else:
            micros.append([example])
    return [_MicroBatch(micro) for micro in micros]


def _accuracy(difference: Tensor) -> float:
    """Share of the pairs whose chosen answer has the higher reward; a tie counts half."""
    return float((difference > 0).double().mean() + 0.5 * (difference == 0).double().mean())


def _brief(measured: dict[str, Any]) -> str:
    low, high = measured["accuracy_interval"]
    return (
        f"accuracy {measured['accuracy']:.1%} (95 % interval {100 * low:.1f}-{100 * high:.1f}) on "
        f"{measured['pairs']} held-out pairs, loss {measured['loss']:.3f}, calibration error {measured['ece']:.3f}, "
        f"Brier {measured['brier']:.3f}"
    )


def _length(example: Example) -> int:
    return max(len(example.chosen), len(example.rejected))


def _finite(value: Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None
