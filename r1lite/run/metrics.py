"""Table of the metrics in metrics.jsonl, used by the display, the doctor, the report, the trackers and the docs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Unit = Literal["", "share", "count", "tokens", "nats", "s", "MB", "steps"]
Better = Literal["", "higher", "lower"]

_FORMS: dict[str, str] = {
    "": "{:.3g}",
    "share": "{:.1%}",
    "count": "{:,.0f}",
    "tokens": "{:,.1f}",
    "nats": "{:.3g}",
    "s": "{:.2f} s",
    "MB": "{:,.1f} MB",
    "steps": "{:.2g}",
}
STAGES = ("rl", "ppo", "supervised", "reward-model")


@dataclass(frozen=True, slots=True)
class Metric:
    """A numeric metric of a step."""

    name: str  # key in metrics.jsonl, unless `derived`
    label: str  # display name
    unit: Unit
    means: str  # definition in one clause, as printed in the docs
    panel: str = ""  # the chart of the report that shows it; "" = none
    better: Better = ""  # "" = neither
    smooth: bool = False  # noisy: the report draws a moving average over the raw values
    column: str = ""  # heading in the table of the display; "" = not shown
    brief: str = ""  # meaning of the column in a few words
    brief_of_pairs: str = ""  # ... where steps learn from pairs of answers
    last: bool = False  # a row of the table shows the value after its last step instead of the mean over its steps
    stages: tuple[str, ...] = ("rl", "ppo")  # stages that write it; see STAGES
    derived: bool = False  # not in the file: computed from other metrics
    scale: Literal["linear", "log"] = "linear"  # axis of the chart

    def charted(
        self, panel: str, better: Better = "", *, smooth: bool = True, scale: Literal["linear", "log"] = "linear"
    ) -> Metric:
        """Returns the metric with its place in the report."""
        return replace(self, panel=panel, better=better, smooth=smooth, scale=scale)

    def shown(self, column: str, brief: str, *, of_pairs: str = "", last: bool = False) -> Metric:
        """Returns the metric with its column in the display."""
        return replace(self, column=column, brief=brief, brief_of_pairs=of_pairs, last=last)

    def text(self, value: float) -> str:
        """Formats a value with its unit."""
        return _FORMS[self.unit].format(value)

    def explained(self, pairs: bool) -> str:
        """Returns the meaning of the column, for steps that learn from pairs or for others."""
        return (pairs and self.brief_of_pairs) or self.brief


_LEARNT = ("rl", "ppo", "supervised")

METRICS: tuple[Metric, ...] = (
    Metric("reward", "reward", "", "mean of all scored completions of the step")
    .charted("Reward", "higher")
    .shown("reward", "value of the reward formula"),
    Metric("reward_std", "reward, deviation", "", "standard deviation over these completions"),
    Metric(
        "accuracy",
        "accuracy",
        "share",
        "completions that are right by the task's own verdict, independent of the reward formula; of `dpo` and "
        "`reward-model`: pairs in the right order, the chosen answer before the rejected one",
        stages=("rl", "ppo", "reward-model"),
    )
    .charted("Accuracy", "higher")
    .shown("accuracy", "right answers", of_pairs="pairs in the right order"),
    Metric("format_rate", "format", "share", "completions with the requested format, by the task's own verdict")
    .charted("Format", "higher")
    .shown("format", "requested format"),
    Metric("completion_tokens", "mean length", "tokens", "mean length of a completion")
    .charted("Length")
    .shown("tokens", "mean length"),
    Metric("completion_tokens_max", "longest", "tokens", "length of the longest completion").charted(
        "Length", smooth=False
    ),
    Metric("truncated", "truncated", "share", "completions that reached `--max-completion-tokens`").charted(
        "Truncated", "lower"
    ),
    Metric(
        "interrupted", "interrupted", "share", "completions whose thinking was ended by `--interrupt-thinking-after`"
    ).charted("Interrupted", smooth=False),
    Metric("entropy", "entropy", "nats", "mean -log p of the sampled tokens, an unbiased estimate")
    .charted("Entropy")
    .shown("entropy", "nats per token; 0 = deterministic"),
    Metric(
        "groups_without_signal",
        "groups without signal",
        "share",
        "groups whose scored rewards are all equal, so that they give no gradient",
        stages=("rl",),
    )
    .charted("Groups without signal")
    .shown("no signal", "groups whose rewards are all equal"),
    Metric("unscored", "unscored", "share", "completions whose check failed").charted(
        "Unscored", "lower", smooth=False
    ),
    Metric("refills", "refills", "count", "`--dynamic-sampling`: number of additional sampling rounds"),
    Metric(
        "groups_missing",
        "groups missing",
        "count",
        "`--dynamic-sampling`: number of groups missing from `--prompts-per-step`",
    ),
    Metric("token_loss", "loss", "nats", "mean loss of the step's completion tokens", stages=("supervised",))
    .charted("Loss", "lower")
    .shown("loss", "nats per token"),
    Metric("epoch", "epoch", "", "passes over the rows so far", stages=("supervised",)).shown(
        "epoch", "passes over the rows, after the last of these steps", last=True
    ),
    Metric("rows", "rows", "count", "rows of the step", stages=("supervised",)),
    Metric(
        "rows_of_the_student",
        "rows of the student",
        "count",
        "`r1lite distill`, on-policy: rows that the student sampled",
        stages=("supervised",),
    ),
    Metric(
        "loss",
        "loss",
        "",
        "mean over the step's updates; the loss of a policy is near 0 by construction",
        stages=("rl", "ppo", "reward-model"),
    ).charted("Loss"),
    Metric(
        "margin",
        "margin",
        "",
        "mean reward of the chosen answer minus that of the rejected answer",
        stages=("reward-model",),
    )
    .charted("Margin", "higher")
    .shown("margin", "chosen minus rejected"),
    Metric("reward_chosen", "chosen", "", "mean reward of chosen answers", stages=("reward-model",)).charted("Rewards"),
    Metric("reward_rejected", "rejected", "", "mean reward of rejected answers", stages=("reward-model",)).charted(
        "Rewards"
    ),
    Metric(
        "grad_norm", "gradient norm", "", "norm of the gradient before clipping, mean over the updates", stages=STAGES
    ).charted("Gradient norm", scale="log"),
    Metric("lr", "learning rate", "", "learning rate of the step", stages=STAGES).charted(
        "Learning rate", smooth=False
    ),
    Metric("updates", "updates", "count", "optimizer steps made"),
    Metric(
        "skipped_updates",
        "skipped updates",
        "count",
        "optimizer steps skipped because a gradient was not finite",
        stages=STAGES,
    ),
    Metric("stopped_updates", "stopped updates", "count", "optimizer steps not made because of `--stop-kl`"),
    Metric("kl", "KL to the reference", "nats", "mean estimate of KL(policy, reference) per token").charted(
        "KL to the reference"
    ),
    Metric("kl_coef", "KL coefficient", "", "coefficient of this KL in the step"),
    Metric(
        "policy_kl",
        "KL of the step",
        "nats",
        "how far the step moved the policy: mean k3 of KL(old, new) per token, at its last update",
    ).charted("KL of a step"),
    Metric("entropy_coef", "entropy coefficient", "", "weight of the entropy bonus in the step"),
    Metric(
        "clipped_low", "clipped below", "share", "tokens with a negative advantage that the loss's lower bound clips"
    ).charted("Clipped tokens"),
    Metric(
        "clipped_high", "clipped above", "share", "tokens with a positive advantage that the loss's upper bound clips"
    ).charted("Clipped tokens"),
    Metric(
        "importance_bounded",
        "corrections at a bound",
        "share",
        "tokens whose `--importance` correction reached a bound",
    ),
    Metric(
        "mismatch_logprob_max",
        "largest difference",
        "nats",
        "engine compared with trainer before the first update: largest difference of a token's log-probability",
    ).charted("Engine against trainer", "lower", smooth=False, scale="log"),
    Metric(
        "mismatch_kl",
        "KL engine, trainer",
        "nats",
        "engine compared with trainer before the first update: mean k3 per token",
        better="lower",
    ),
    Metric(
        "mismatch_ratio_min",
        "smallest ratio",
        "",
        "smallest ratio of a token's probabilities, trainer to engine, before any bound",
    ),
    Metric("mismatch_ratio_mean", "mean ratio", "", "mean of this ratio"),
    Metric("mismatch_ratio_max", "largest ratio", "", "largest of these ratios"),
    Metric(
        "micro_batch_tokens",
        "micro-batch",
        "count",
        "tokens per micro-batch, after reductions for lack of memory",
        stages=STAGES,
    ),
    Metric(
        "out_of_memory", "out of memory", "count", "how often the micro-batches were halved in the step", stages=STAGES
    ),
    Metric("value_loss", "value loss", "", "loss of the critic's updates", stages=("ppo",)).charted(
        "Value loss", "lower"
    ),
    Metric("critic_grad_norm", "critic's gradient norm", "", "norm of the critic's gradient", stages=("ppo",)),
    Metric(
        "critic_skipped_updates",
        "critic's skipped updates",
        "count",
        "the critic's optimizer steps skipped because a gradient was not finite",
        stages=("ppo",),
    ),
    Metric("value_mean", "value", "", "mean of the critic's estimates", stages=("ppo",)).charted("Values"),
    Metric("return_mean", "return", "", "mean of the critic's targets", stages=("ppo",)).charted("Values"),
    Metric(
        "explained_variance",
        "explained variance",
        "",
        "1 - Var(error)/Var(returns); null if the returns hardly vary",
        stages=("ppo",),
    )
    .charted("Explained variance", "higher")
    .shown("explained", "1 = the critic predicts every return"),
    Metric("sync_s", "weight sync", "s", "seconds to send new weights to an engine that has its own copy"),
    Metric("sync_mb", "weights sent", "MB", "size of the weights sent; small if only an adapter is sent"),
    Metric(
        "proof_s", "proving weights", "s", "seconds to compare the bytes of the engine's weights with the trainer's"
    ),
    Metric("proven_weights", "proven weights", "count", "tensors that equal the trainer's, byte for byte"),
    Metric("canary_s", "canary time", "s", "seconds for the canary"),
    Metric("canary_logprob_max", "canary", "nats", "largest difference of a log-probability in the canary"),
    Metric(
        "staleness",
        "staleness",
        "steps",
        "age of the sampling weights relative to the learning weights; the oldest token counts for a completion",
    ).charted("Staleness", "lower", smooth=False),
    Metric(
        "tokens",
        "tokens",
        "count",
        "tokens sampled in the step, refills included; of other stages: tokens learnt from",
        stages=STAGES,
    ),
    Metric("generate_s", "generate", "s", "seconds of sampling", stages=_LEARNT).charted("Seconds", "lower"),
    Metric("score_s", "score", "s", "seconds of scoring that did not overlap with sampling").charted(
        "Seconds", "lower"
    ),
    Metric("train_s", "train", "s", "seconds of learning", stages=_LEARNT).charted("Seconds", "lower"),
    Metric(
        "ahead_wait_s", "wait", "s", "with `--max-staleness`: seconds of waiting for completions that are sampled ahead"
    ).charted("Seconds", smooth=False),
    Metric(
        "ahead_groups",
        "groups ahead",
        "count",
        "with `--max-staleness`: groups requested for later steps, finished or not",
    ),
    Metric(
        "dropped_groups",
        "too old",
        "count",
        "finished groups dropped because a token's weights are more than `--max-staleness` steps old; sampled again",
    ),
    Metric(
        "across_weights",
        "across weights",
        "share",
        "completions whose tokens come from several versions of the weights",
    ),
    Metric("step_s", "whole step", "s", "seconds of the step", stages=STAGES)
    .charted("Seconds", "lower")
    .shown("time", "of a step"),
    Metric("tokens_per_s", "tokens per second", "", "`tokens` / `step_s`", stages=STAGES, derived=True).charted(
        "Tokens per second", "higher"
    ),
)
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
# Other keys of a line: the step, and maps by verifier.
OTHER_KEYS = {
    "step": "counted from 1",
    "parts": "by verifier: mean score",
    "reasons": "by verifier: number of each reason",
}
# Reasons of the built-in verifiers that go with a full score.
RIGHT = {"ok", "equal", "match", "valid", "right", "AC"}


def columns() -> list[Metric]:
    """Returns the metrics with a column in the display, in display order."""
    first = ("token_loss", "epoch", "reward", "accuracy")
    shown = [metric for metric in METRICS if metric.column]
    return sorted(shown, key=lambda metric: first.index(metric.name) if metric.name in first else len(first))


def docs_table() -> str:
    """Returns the table of metrics in r1lite/rl/README.md."""
    rows = [f"| `{name}` | | {means} |" for name, means in OTHER_KEYS.items()]
    units = {one.name: "" if one.unit == "count" else one.unit for one in METRICS}
    rows += [f"| `{one.name}` | {units[one.name]} | {one.means} |" for one in METRICS if not one.derived]
    return "\n".join(["| name | unit | meaning |", "| --- | --- | --- |", *rows])
