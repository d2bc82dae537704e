"""Preference optimization: tokenized pairs, and their loss under policy and reference.

Shapes: N pairs; rows 2n and 2n + 1 of a set are the chosen and the rejected completion of pair n.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r1lite.config.supervised import DPOConfig
from r1lite.curation.emit import PAIRS
from r1lite.errors import UserError
from r1lite.model.batch import MicroBatch, Row, cost
from r1lite.model.policy import Policy
from r1lite.rl.preference import dpo, ipo
from r1lite.rollout.trust import TrustedEngine
from r1lite.supervised.loop import Piece, RowOrder, SupervisedLearner, SupervisedLoop
from r1lite.supervised.sft.encode import Encoder, Overlap, Refused
from r1lite.supervised.sft.formats import RowError
from r1lite.supervised.sft.reading import rows
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.tasks import Problems
from r1lite.training.setup import Loaded
from r1lite.types import Group, Prompt

_WHOLE = 1 << 60  # tokens: all rows in one micro-batch


def load_pairs(config: DPOConfig, problems: Problems, test: Sequence[Prompt], model: Any, tokenizer: Any) -> Loaded:
    """Loads and tokenizes the pairs of `--data`.

    Raises:
        UserError: there is no set, pairs are unusable or too long, or test problems are among them.
    """
    if config.data is None:
        raise UserError("--data is missing: the pairs to learn from (a file, a folder, or OWNER/NAME)")
    pairs = Path(config.data).expanduser() / PAIRS
    data = str(pairs) if pairs.is_file() else config.data  # in a folder of `r1lite reject`
    encoder, kept = Encoder(config, model, tokenizer, pairs=True), TokenRows()
    overlap, bad = Overlap(problems.test, config, tokenizer), Refused()
    for place, row in rows(data, config.data_split):
        try:
            both = [encoder.read(_side(row, name)) for name in ("chosen", "rejected")]
        except RowError as error:
            bad.add(place, str(error))
            continue
        overlap.see(both[0])
        before, long = len(encoder.rows), len(encoder.long)
        for where, problem in encoder.add([(place, one) for one in both]):
            bad.add(where, problem)
        del encoder.long[long + 1 :]  # a pair counts once
        if len(encoder.rows) == before + 2:
            chosen, rejected = encoder.rows[before], encoder.rows[before + 1]
            if chosen.token_ids == rejected.token_ids:
                bad.add(place, "a pair without a difference: both completions have the same tokens")
            for one in (chosen, rejected):
                kept.add(one.prompt_ids, one.token_ids)
    bad.complain(data)
    if not config.allow_test_overlap:
        overlap.complain(config)
    encoder.rows = kept
    return encoder.loaded(data, overlap.count)


def _side(row: Any, name: str) -> Any:
    """Converts a row to an example with the chosen or the rejected completion."""
    if not isinstance(row, dict) or not isinstance(row.get(name), str | list | int | float | Decimal):
        raise RowError(f"no text in the column '{name}': a pair needs chosen, rejected, and prompt or question")
    prompt = row.get("prompt", row.get("question"))
    kept = {key: value for key, value in row.items() if key in ("question", "prefill")}
    return kept | {"prompt": prompt, "completion": row[name]}


class PreferenceTuning(SupervisedLoop):
    """The steps of `r1lite dpo`."""

    def __init__(
        self, config: DPOConfig, pairs: TokenRows, learner: SupervisedLearner, order: RowOrder, engine: TrustedEngine
    ) -> None:
        self.config, self.pairs, self.learner, self.order, self.engine = config, pairs, learner, order, engine

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Trains on the pairs of the step; returns no samples."""
        started = time.perf_counter()
        numbers = self.order(step)
        made = [self.pairs[2 * number + side] for number in numbers for side in (0, 1)]
        margins: dict[int, list[float]] = {}  # piece -> margins; a repeated piece counts once
        assert self.learner.reference is not None
        cut = functools.partial(pair_pieces, self.config, self.learner.policy, self.learner.reference, made, margins)
        self.engine.sleep()
        metrics = self.learner.update(cut, made, step, count=len(numbers))
        self.engine.offer(self.learner.policy.named_weights, version=step + 1)
        for part in self.learner.world.all_gather_object(margins):
            margins |= part
        found = [margin for piece in sorted(margins) for margin in margins[piece]]
        return [], {
            **{("loss" if name == "token_loss" else name): value for name, value in metrics.items()},
            "accuracy": statistics.fmean((margin > 0) + 0.5 * (margin == 0) for margin in found),
            "margin": self.config.beta * statistics.fmean(found),
            "epoch": self.order.epochs_after(step),
            "rows": len(numbers),
            "tokens": sum(len(row.token_ids) for row in made),
            "step_s": time.perf_counter() - started,
        }


def pair_pieces(
    config: DPOConfig,
    policy: Policy,
    reference: Policy,
    made: Sequence[Row],
    margins: dict[int, list[float]],
    max_tokens: int,
) -> list[Piece]:
    """Splits the pairs into micro-batches of whole pairs, with at most `max_tokens` unless a single pair is longer.

    Args:
        made: chosen, rejected, chosen, rejected, ...
        margins: receives the differences of log-ratios of each piece, by its number.
    """
    order = sorted(range(len(made) // 2), key=lambda n: max(len(row.token_ids) for row in made[2 * n : 2 * n + 2]))
    parts: list[list[int]] = []
    for n in order:
        grown = [*parts[-1], n] if parts else [n]
        if parts and cost(_together(made, grown, policy)) <= max_tokens:
            parts[-1] = grown
        else:
            parts.append([n])
    margins.clear()
    pieces = []
    for number, part in enumerate(parts):
        batch = _together(made, part, policy)
        loss = functools.partial(_loss, config, policy, reference, batch, margins, number)
        pieces.append(Piece(loss, len(part), cost(batch)))
    return pieces


def _together(made: Sequence[Row], pairs: Sequence[int], policy: Policy) -> MicroBatch:
    rows_of_pairs = [made[2 * n + side] for n in pairs for side in (0, 1)]
    (batch,) = policy.micro_batches(rows_of_pairs, _WHOLE)
    return batch


def _loss(
    config: DPOConfig,
    policy: Policy,
    reference: Policy,
    batch: MicroBatch,
    margins: dict[int, list[float]],
    number: int,
) -> Tensor:
    """Returns the loss, summed over the pairs."""
    with torch.no_grad():
        theirs = reference.logprobs(batch)
    gains = torch.where(batch.loss_mask, policy.logprobs(batch) - theirs, 0.0).sum(dim=1)  # [2N]
    if config.loss == "ipo":
        gains = gains / batch.loss_mask.sum(dim=1)
    in_order = torch.empty_like(gains).index_copy(0, torch.tensor(batch.rows, device=gains.device), gains)
    chosen, rejected = in_order.view(-1, 2).unbind(dim=1)
    margins[number] = (chosen - rejected).tolist()
    if config.loss == "ipo":
        return ipo(chosen, rejected, beta=config.beta).sum()
    return dpo(chosen, rejected, beta=config.beta, smoothing=config.label_smoothing).sum()
