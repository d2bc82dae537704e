"""The critic: estimates the reward of a completion before each of its tokens.

Shapes: B rows, T completion tokens, N tokens of a micro-batch without its padding, H width of the model.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from r1lite.config import PPOConfig
from r1lite.distributed.world import ALONE, World
from r1lite.errors import UserError
from r1lite.grpo.minibatch import RolloutBatch
from r1lite.hub.loading import load_shape, load_tokenizer, why_not
from r1lite.hub.revisions import pinned
from r1lite.model import varlen, vocabulary_size
from r1lite.model.batch import MicroBatch
from r1lite.model.mapped import read_model, sharing_copy, wide
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.model.sharding import put_into
from r1lite.rl.aggregate import masked_sum
from r1lite.rl.gae import explained_variance, value_loss
from r1lite.run.bad_batches import BadBatches


class ValueModel:
    """A linear head on the hidden states of its own backbone, or of the policy's.

    Args:
        backbone: the policy whose hidden states are read.
        shared: the backbone is the trained policy; the model then trains and saves only its head.
        head: [1, H] initial weights; None = 0, so that every value is 0 at first.
    """

    def __init__(self, backbone: Policy, *, shared: bool, head: Tensor | None = None) -> None:
        if isinstance(backbone.parts, str):
            raise UserError(f"a critic needs the model's hidden states, but {backbone.parts}")
        self.backbone, self.shared = backbone, shared
        device = backbone.model.device
        dtype = torch.float64 if backbone.parts.head.weight.dtype == torch.float64 else torch.float32
        self.head = nn.Linear(backbone.parts.head.weight.shape[1], 1, device=device, dtype=dtype)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            self.head.weight.copy_(torch.zeros_like(self.head.weight) if head is None else head.to(device))
        # The part that the critic trains itself and that a checkpoint has to save.
        parts = {"head": self.head} if shared else {"head": self.head, "backbone": backbone.model}
        self.model = nn.ModuleDict(parts)

    def values(self, batch: MicroBatch, *, into_backbone: bool = True) -> Tensor:
        """[B, T] float32 or better, 0 at padding; with `into_backbone` the gradient also flows into the backbone."""

        def of_hidden(hidden: Tensor) -> Tensor:  # [N, H] -> [N]
            known = hidden if into_backbone else hidden.detach()
            return self.head(known.to(self.head.weight.dtype)).squeeze(-1)  # type: ignore[no-any-return]

        return self.backbone.per_token(batch, of_hidden)


class LearningCritic:
    """A value model that is trained beside the policy (PPO, arXiv:1707.06347 sec. 5).

    With its own backbone it has its own optimizer. With the policy's backbone only the head has an optimizer, and the
    value loss joins the policy's gradient with weight `value_coef`.
    """

    def __init__(self, config: PPOConfig, value_model: ValueModel, bad: BadBatches, world: World = ALONE) -> None:
        self.config, self.model, self.bad, self.world = config, value_model, bad, world
        self.optimizer = Optimizer.configured(value_model.model, config, world, offload=config.offload_optimizer)
        self._alone = False  # the policy is frozen: the value loss must not reach a shared backbone
        self._waiting: list[RolloutBatch] = []  # of the update in preparation
        self._losses: list[float] = []
        self._passes = 0  # over a minibatch, whether or not the critic was then updated
        self._norms: list[float] = []
        self._skipped = 0
        self._seen: dict[int, RolloutBatch] = {}  # by identity: each micro-batch of the step once

    def begin(self, step: int) -> bool:
        """Starts a step. Returns True while only the critic learns (`critic_warmup_steps`)."""
        self._alone = step < self.config.critic_warmup_steps
        return self._alone

    @torch.no_grad()
    def values(self, batch: MicroBatch) -> Tensor:
        """[B, T], before each token is chosen."""
        return self.model.values(batch)

    def accumulate(self, micro_batch: RolloutBatch, num_tokens: int, *, counts: bool = True) -> None:
        """Adds the gradient of the micro-batch's value loss, divided by num_tokens; 0 times it if not `counts`."""
        assert micro_batch.old_values is not None
        assert micro_batch.returns is not None
        shared = self.model.shared
        values = self.model.values(micro_batch.inputs, into_backbone=not (shared and self._alone))
        per_token = value_loss(
            values,
            micro_batch.old_values,
            micro_batch.returns,
            clip=self.config.value_clip,
            huber=self.config.value_huber,
        )
        loss = masked_sum(per_token, micro_batch.inputs.loss_mask) / num_tokens
        if not counts:
            (0.0 * loss).backward()
            return
        (loss * self.config.value_coef if shared else loss).backward()
        self._losses.append(float(loss.detach()))
        self._waiting.append(micro_batch)

    def saw(self, micro_batches: Sequence[RolloutBatch]) -> None:
        """Records all micro-batches that the ranks have accumulated for the update in preparation."""
        self._seen |= {id(micro_batch): micro_batch for micro_batch in micro_batches}
        self._passes += 1

    def update(self, step: int) -> None:
        """Applies the accumulated gradient. Raises RunError after three non-finite gradients in a row."""
        config = self.config
        norm = self.optimizer.step(config.lr_at(step, config.steps, peak=config.critic_lr))
        if norm is None:
            self._skipped += 1
            batches = [micro_batch.as_dict() for micro_batch in self._waiting]
            loss = self.world.sum(sum(self._losses[len(self._losses) - len(self._waiting) :]))
            self.bad.skipped(step + 1, batches, loss=loss, parameters=self.optimizer.nonfinite)
        else:
            self._norms.append(norm)
            self.bad.fine()
        self._waiting = []

    def discard(self) -> None:
        """Discards the accumulated gradient."""
        self.optimizer.discard()
        self._waiting = []

    def restart(self) -> None:
        """Discards the update in preparation, as if it had not begun."""
        del self._losses[len(self._losses) - len(self._waiting) :]
        self.discard()

    def metrics(self) -> dict[str, Any]:
        """Metrics of the updates since the last call; the values are those before the first of these updates."""
        micro_batches = list(self._seen.values())
        metrics: dict[str, Any] = {
            "value_loss": _finite(self.world.sum(sum(self._losses)) / max(1, self._passes)),
            "critic_grad_norm": statistics.fmean(self._norms) if self._norms else None,
            "critic_skipped_updates": self._skipped,
        }
        if micro_batches:
            values, returns = (_tokens(micro_batches, name) for name in ("old_values", "returns"))  # [N]
            metrics |= {
                "value_mean": _finite(float(values.mean())),
                "return_mean": _finite(float(returns.mean())),
                "explained_variance": explained_variance(values, returns, torch.ones_like(values, dtype=torch.bool)),
            }
        self._losses, self._passes, self._norms, self._skipped, self._seen = [], 0, [], 0, {}
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """The critic's own weights, optimizer moments, and the count of bad updates."""
        return {
            "weights": self.model.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "bad_in_a_row": self.bad.in_a_row,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        put_into(self.model.model, state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.bad.in_a_row = state["bad_in_a_row"]


def make_value_model(config: PPOConfig, policy: Policy, tokenizer: Any, *, sharing: bool = False) -> ValueModel:
    """The configured critic: on the policy's backbone, on a copy of it, or on another model.

    Args:
        sharing: both models will be sharded, and share the memory of their weights until then.

    Raises:
        UserError: another model that can't be loaded, or whose tokens differ from the policy's.
    """
    if config.critic == "shared":
        return ValueModel(policy, shared=True)
    if config.critic_model is None:
        model, head = (sharing_copy if sharing else copy.deepcopy)(policy.model), None
    else:
        model, head = _loaded(config, tokenizer, sharing=sharing)
    model.requires_grad_(True)
    if not getattr(model.config, "tie_word_embeddings", False):
        model.get_output_embeddings().requires_grad_(False)  # values don't depend on it: no gradient, no moments
    backbone = Policy(
        model,
        pad_id=policy.pad_id,
        dtype=policy.dtype,
        gradient_checkpointing=config.gradient_checkpointing,
        padding_free=config.padding_free,
    )
    return ValueModel(backbone, shared=False, head=head)


def _loaded(config: PPOConfig, tokenizer: Any, *, sharing: bool) -> tuple[Any, Tensor | None]:
    """(causal model, the head of a reward model or None)."""
    from r1lite.preference.reward_model import load_classifier, model_folder

    assert config.critic_model is not None
    folder = model_folder(config.critic_model)
    try:
        theirs = load_tokenizer(folder)
        shape = load_shape(folder)
        rewards = any("SequenceClassification" in name for name in shape.architectures or [])
        attention = varlen.register() if config.padding_free else config.attn_implementation.replace("auto", "sdpa")
        model, _ = read_model(pinned(folder), mapped=sharing, config=shape, attn_implementation=attention)
    except Exception as error:  # the library raises any error of its transport and its models
        raise UserError(f"--critic-model {config.critic_model}: can't be loaded: {why_not(folder, error)}") from error
    if (differs := _difference(tokenizer.get_vocab(), theirs.get_vocab())) is not None:
        raise UserError(
            f"--critic-model {config.critic_model} has another tokenizer than the policy {config.model}: {differs}. "
            "A critic reads the policy's tokens; use a model of the same family, or omit --critic-model"
        )
    rows = vocabulary_size(model)
    if rows <= max(tokenizer.get_vocab().values()):
        raise UserError(
            f"--critic-model {config.critic_model} has {rows} token embeddings, but the policy's tokenizer has "
            f"{len(tokenizer.get_vocab())} tokens"
        )
    head = wide(load_classifier(folder, mapped=sharing)[0].score.weight.detach()) if rewards else None
    return model if sharing else model.to(config.device), head


def _difference(ours: dict[str, int], theirs: dict[str, int]) -> str | None:
    """Describes the first of our tokens with another number in `theirs`; additional tokens there are harmless."""
    for token, number in sorted(ours.items(), key=lambda item: item[1]):
        if theirs.get(token) != number:
            there = f"is {theirs[token]} there" if token in theirs else "does not exist there"
            return f"token {number} ({token!r}) {there}"
    return None


def _tokens(micro_batches: Sequence[RolloutBatch], name: str) -> Tensor:
    return torch.cat(
        [getattr(micro_batch, name)[micro_batch.inputs.loss_mask].double().cpu() for micro_batch in micro_batches]
    )


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
