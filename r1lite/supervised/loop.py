"""Steps of fine-tuning: the rows of each step, and a loss that is the exact mean over their tokens.

The loss of a step consists of pieces, one per micro-batch, each a sum over tokens. The stage decides what a piece
computes, so fine-tuning and distillation share all other code.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from r1lite.config.supervised import SupervisedConfig
from r1lite.distributed.world import ALONE, World
from r1lite.errors import UserError
from r1lite.grpo.choice import epoch_order
from r1lite.model.batch import Row, cost
from r1lite.model.offload import check_offload, stream_layers
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.model.packing import keeps_rows_apart, packed_batches
from r1lite.model.policy import Policy
from r1lite.model.sharding import shard
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.training.loading import forward_dtype
from r1lite.training.setup import Setup, adapt
from r1lite.types import Group

_SMALLER = "--gradient-checkpointing, --lora-rank 16, a smaller --max-completion-tokens or a smaller model"


@dataclass(frozen=True, slots=True)
class Piece:
    """A micro-batch with its loss."""

    loss: Callable[[], Tensor]  # summed over its completion tokens
    num_rows: int
    cost: int  # number of tokens, padding included


Cut = Callable[[int], Sequence[Piece]]  # splits a step's rows into pieces of at most so many tokens


@dataclass(slots=True)
class SupervisedLearner:
    """Makes one optimizer step on the mean loss of the given tokens."""

    config: SupervisedConfig
    policy: Policy
    optimizer: Optimizer
    total_steps: int
    bad: BadBatches
    reference: Policy | None = None  # for preferences
    world: World = ALONE
    budget: MicroBatchBudget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = MicroBatchBudget(
            self.config.micro_batch_tokens,
            row="row",
            advice=_SMALLER,
            world=self.world,
            in_step=self.policy.is_sharded,
        )

    def update(self, cut: Cut, rows: Sequence[Row], step: int, *, count: int | None = None) -> dict[str, Any]:
        """Makes one update. The loss is the sum of all pieces divided by the number of the rows' completion tokens.

        The result does not depend on the split into pieces and their distribution to ranks.

        Args:
            cut, rows: the same on every rank.
            count: divisor of the sum, instead of the number of completion tokens.

        Raises:
            RunError: the gradient was not finite three times in a row, or a single row does not fit into memory.
        """
        config, count = self.config, count or sum(row.num_learnt for row in rows)
        lr = config.lr_at(step, self.total_steps)
        losses: dict[int, float] = {}  # piece -> loss

        def add(number: int, piece: Piece) -> None:
            loss = piece.loss() / count
            loss.backward()
            losses[number] = float(loss.detach())

        def idle(piece: Piece) -> None:
            (0.0 * piece.loss()).backward()

        def restart() -> None:
            self.optimizer.discard()
            losses.clear()

        ran_out = self.budget.go_through(cut, add, restart, step=step, idle=idle)
        every = {number: loss for part in self.world.all_gather_object(losses) for number, loss in part.items()}
        total = sum(every[number] for number in sorted(every))  # in this order, whichever ranks computed them
        norm = self.optimizer.step(lr)
        if norm is not None:
            self.bad.fine()
        else:
            batches = [{"prompt_ids": list(row.prompt_ids), "token_ids": list(row.token_ids)} for row in rows]
            self.bad.skipped(step + 1, batches, loss=total, parameters=self.optimizer.nonfinite)
        return {
            "lr": lr,
            "token_loss": total if math.isfinite(total) else None,
            "grad_norm": norm,
            "skipped_updates": int(norm is None),
            "out_of_memory": ran_out,
            "micro_batch_tokens": self.budget.tokens,
        }

    def state_dict(self) -> dict[str, Any]:
        """Returns optimizer moments, the count of bad updates, and the micro-batch size that fits into memory."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "bad_in_a_row": self.bad.in_a_row,
            **self.budget.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.bad.in_a_row = state["bad_in_a_row"]
        self.budget.load_state_dict(state)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Assigns rows to steps: each epoch uses every row once, in its own random order."""

    num_rows: int
    rows_per_step: int
    total_rows: int  # over all epochs
    seed: int

    @classmethod
    def of(cls, config: SupervisedConfig, num_rows: int) -> RowOrder:
        """Returns the order for --epochs or --steps."""
        total = config.steps * config.rows_per_step if config.steps else max(1, round(config.epochs * num_rows))
        return cls(num_rows, config.rows_per_step, total, config.seed)

    @property
    def steps(self) -> int:
        """Number of steps; the last step may have fewer rows."""
        return math.ceil(self.total_rows / self.rows_per_step)

    def epochs_after(self, step: int) -> float:
        """Returns the passes over the rows after step `step`."""
        return round(min(self.total_rows, (step + 1) * self.rows_per_step) / self.num_rows, 4)

    def __call__(self, step: int) -> list[int]:
        """Returns the indices of the rows of step `step`, which counts from 0."""
        start = step * self.rows_per_step
        places = range(start, min(start + self.rows_per_step, self.total_rows))
        count = self.num_rows
        return [epoch_order(f"rows-{self.seed}-{at // count}", count)[at % count] for at in places]


class SupervisedLoop:
    """What supervised stages share: a step follows from its number, so beside the learner there is no state to save."""

    tokens_are: ClassVar[str] = "trained_on"
    order: RowOrder

    @property
    def steps(self) -> int:
        """Number of training steps."""
        return self.order.steps

    def state_dict(self) -> dict[str, Any]:
        """Returns nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""


class FineTuning(SupervisedLoop):
    """The steps of `r1lite sft`: cross-entropy of the completions' tokens."""

    def __init__(
        self,
        config: SupervisedConfig,
        rows: TokenRows,
        learner: SupervisedLearner,
        order: RowOrder,
        engine: TrustedEngine,
    ) -> None:
        self.config, self.rows, self.learner, self.order, self.engine = config, rows, learner, order, engine
        self._packs = wants_packing(config, learner.policy.model)

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Trains on the rows of the step; returns no samples."""
        started = time.perf_counter()
        rows = [self.rows[number] for number in self.order(step)]
        tokens = sum(len(row.token_ids) for row in rows)
        cut = functools.partial(nll_pieces, self.config, self.learner.policy, rows, self._packs)
        self.engine.sleep()
        metrics = self.learner.update(cut, rows, step)
        self.engine.offer(self.learner.policy.named_weights, version=step + 1)
        return [], {
            **metrics,
            "epoch": self.order.epochs_after(step),
            "rows": len(rows),
            "tokens": tokens,
            "step_s": time.perf_counter() - started,
        }


def nll_pieces(
    config: SupervisedConfig, policy: Policy, rows: Sequence[Row], packs: bool, max_tokens: int
) -> list[Piece]:
    """Returns the negative log-likelihood of the rows' completions, in micro-batches of at most `max_tokens`."""
    if packs:
        packed = packed_batches(
            rows,
            width=min(config.packed_tokens, max_tokens),
            max_tokens=max_tokens,
            pad_id=policy.pad_id,
            device=policy.model.device,
        )
        return [
            Piece(
                functools.partial(lambda batch: -policy.packed_logprobs(batch).sum(), batch),
                batch.num_rows,
                batch.input_ids.numel(),
            )
            for batch in packed
        ]
    return [
        Piece(
            functools.partial(lambda batch: -policy.logprobs(batch).where(batch.loss_mask, 0.0).sum(), batch),
            len(batch.rows),
            cost(batch),
        )
        for batch in policy.micro_batches(rows, max_tokens)
    ]


def wants_packing(config: SupervisedConfig, model: Any) -> bool:
    """Returns True if rows are packed: on request, or if it is faster. Raises UserError if it is not supported."""
    if config.packing == "off" or (config.packing == "auto" and not config.device.startswith("cuda")):
        return False
    apart = keeps_rows_apart(model)
    if not apart and config.packing == "on":
        raise UserError(f"--packing on: in {type(model).__name__}, packed rows affect each other; use --packing off")
    return apart


def make_learner(
    config: SupervisedConfig,
    setup: Setup,
    order: RowOrder,
    *,
    teacher: Policy | None = None,
    keeps_reference: bool = False,
) -> SupervisedLearner:
    """Returns the learner of the loaded model, and prints how many epochs its steps are.

    Args:
        teacher: a second model; it is sharded too if the learner's model is sharded.
        keeps_reference: the learner also gets the initial model: the weights below the adapter, or a copy.
    """
    setup.display.line(
        "epochs", f"{order.total_rows / order.num_rows:.3g}, in {order.steps:,} step{'s' * (order.steps > 1)}"
    )
    adapt(setup, config)
    policy = Policy(
        setup.model,
        pad_id=setup.engine.pad_id,
        dtype=forward_dtype(config),
        gradient_checkpointing=config.gradient_checkpointing,
    )
    world, reference, parts = setup.world, None, config.in_parts(setup.world.size)
    if not parts:
        world.copy_from_main(list(policy.model.parameters()))  # each rank has read its own files
    if keeps_reference:
        reference = policy.before_adapter() if config.lora_rank else policy.frozen_copy(sharing=parts)
    frozen = [other for other in (reference, teacher) if other is not None]
    check_offload(config, next(iter(frozen), None))
    if parts:
        held: Any = {"device": config.device, "copies": config.shard_copies}
        shard(policy, world, whole_in_between=config.shard == "grad", **held)
        setup.engine.measured_by(policy)
        for other in frozen:
            shard(other, world, learns=False, offload=config.offload_reference, **held)
    elif config.offload_reference:
        for other in frozen:
            stream_layers(other.model)
    optimizer = Optimizer.configured(policy.model, config, world, offload=config.offload_optimizer)
    bad = BadBatches(setup.run_dir.bad_batches)
    return SupervisedLearner(config, policy, optimizer, order.steps, bad, reference, world)
