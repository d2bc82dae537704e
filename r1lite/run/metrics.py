"""What metrics.jsonl holds: one table for the display, the doctor, the report, the trackers and the docs."""

from __future__ import annotations

from dataclasses import dataclass
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
    """One number of a step."""

    name: str  # in metrics.jsonl; what is derived from others is marked so
    label: str  # for the reader
    unit: Unit
    means: str  # one clause, as the docs print it
    panel: str = ""  # the report's diagram that shows it; "" = none
    better: Better = ""  # "" = neither: it depends
    smooth: bool = False  # noisy from step to step: the report draws a moving average over the raw values
    column: str = ""  # heading in the display's table; "" = not shown there
    brief: str = ""  # what the column means, in a few words
    stages: tuple[str, ...] = ("rl", "ppo")  # which write it; of STAGES
    derived: bool = False  # not in the file: made of other metrics
    scale: Literal["linear", "log"] = "linear"  # of the report's axis

    def text(self, value: float) -> str:
        """The value with its unit, for the reader."""
        return _FORMS[self.unit].format(value)


_ALL = STAGES
_LEARNT = ("rl", "ppo", "supervised")

METRICS: tuple[Metric, ...] = (
    Metric(
        "reward",
        "reward",
        "",
        "mean of all scored completions of the step",
        "Reward",
        "higher",
        True,
        "reward",
        "what the formula pays",
    ),
    Metric("reward_std", "reward, deviation", "", "standard deviation of the same", ""),
    Metric(
        "accuracy",
        "accuracy",
        "share",
        "completions that the task's own verdict calls right, whatever the reward formula says; of `reward-model`: "
        "pairs whose chosen answer gets more",
        "Accuracy",
        "higher",
        True,
        "accuracy",
        "right answers",
        ("rl", "ppo", "reward-model"),
    ),
    Metric(
        "format_rate",
        "format",
        "share",
        "completions laid out as asked, by the task's own verdict",
        "Format",
        "higher",
        True,
        "format",
        "laid out as asked",
    ),
    Metric(
        "completion_tokens",
        "mean length",
        "tokens",
        "mean length of a completion",
        "Length",
        "",
        True,
        "tokens",
        "mean length",
    ),
    Metric("completion_tokens_max", "longest", "tokens", "length of the longest one", "Length"),
    Metric(
        "truncated",
        "truncated",
        "share",
        "completions cut off at `--max-completion-tokens`",
        "Truncated",
        "lower",
        True,
    ),
    Metric(
        "interrupted",
        "interrupted",
        "share",
        "completions whose thinking was ended by `--interrupt-thinking-after`",
        "Interrupted",
    ),
    Metric(
        "entropy",
        "entropy",
        "nats",
        "mean -log p of the sampled tokens: an unbiased estimate",
        "Entropy",
        "",
        True,
        "entropy",
        "nats a token, 0 = always the same",
    ),
    Metric(
        "groups_without_signal",
        "groups without signal",
        "share",
        "groups whose scored rewards are all equal, so that they teach nothing",
        "Groups without signal",
        "",
        True,
        "no signal",
        "groups whose rewards are all equal",
        ("rl",),
    ),
    Metric(
        "unscored",
        "unscored",
        "share",
        "completions whose check could not be made",
        "Unscored",
        "lower",
    ),
    Metric("refills", "refills", "count", "`--dynamic-sampling`: how many times more was sampled"),
    Metric(
        "groups_missing",
        "groups missing",
        "count",
        "`--dynamic-sampling`: how many groups short of `--prompts-per-step` the step stayed",
    ),
    Metric(
        "token_loss",
        "loss",
        "nats",
        "mean loss of the step's completion tokens",
        "Loss",
        "lower",
        True,
        "loss",
        "nats a token",
        ("supervised",),
    ),
    Metric(
        "epoch",
        "epoch",
        "",
        "passes over the rows so far",
        column="epoch",
        brief="passes over the rows",
        stages=("supervised",),
    ),
    Metric("rows", "rows", "count", "rows learnt from in the step", stages=("supervised",)),
    Metric(
        "rows_of_the_student",
        "rows of the student",
        "count",
        "`r1lite distill`, on-policy: rows the student sampled for itself",
        stages=("supervised",),
    ),
    Metric(
        "loss",
        "loss",
        "",
        "mean over the step's updates; a policy's is near 0 by construction",
        "Loss",
        "",
        True,
        stages=("rl", "ppo", "reward-model"),
    ),
    Metric(
        "margin",
        "margin",
        "",
        "mean reward of the chosen answer less that of the rejected one",
        "Margin",
        "higher",
        True,
        "margin",
        "chosen less rejected",
        ("reward-model",),
    ),
    Metric(
        "reward_chosen", "chosen", "", "mean reward of chosen answers", "Rewards", "", True, stages=("reward-model",)
    ),
    Metric(
        "reward_rejected",
        "rejected",
        "",
        "mean reward of rejected answers",
        "Rewards",
        "",
        True,
        stages=("reward-model",),
    ),
    Metric(
        "grad_norm",
        "gradient norm",
        "",
        "norm of the gradient before it is bounded, mean over the updates",
        "Gradient norm",
        "",
        True,
        stages=_ALL,
        scale="log",
    ),
    Metric("lr", "learning rate", "", "learning rate of the step", "Learning rate", stages=_ALL),
    Metric("updates", "updates", "count", "optimizer steps made"),
    Metric(
        "skipped_updates",
        "skipped updates",
        "count",
        "optimizer steps skipped because a gradient was not finite",
        stages=_ALL,
    ),
    Metric("stopped_updates", "stopped updates", "count", "optimizer steps left out by `--stop-kl`"),
    Metric(
        "kl",
        "KL to the reference",
        "nats",
        "mean estimate of KL(policy, reference) of a token",
        "KL to the reference",
        "",
        True,
    ),
    Metric("kl_coef", "KL coefficient", "", "its coefficient in this step"),
    Metric(
        "policy_kl",
        "KL of the step",
        "nats",
        "how far the step moved the policy: mean k3 of KL(old, new) of a token, as its last update saw it",
        "KL of a step",
        "",
        True,
    ),
    Metric("entropy_coef", "entropy coefficient", "", "weight of the entropy bonus in this step"),
    Metric(
        "clipped_low",
        "clipped below",
        "share",
        "tokens with a negative advantage that the loss's lower bound holds back",
        "Clipped tokens",
        "",
        True,
    ),
    Metric(
        "clipped_high",
        "clipped above",
        "share",
        "tokens with a positive advantage that the loss's upper bound holds back",
        "Clipped tokens",
        "",
        True,
    ),
    Metric(
        "importance_bounded", "corrections at a bound", "share", "tokens whose `--importance` correction was at a bound"
    ),
    Metric(
        "mismatch_logprob_max",
        "largest difference",
        "nats",
        "engine against trainer before the first update: largest difference of a token's log-probability",
        "Engine against trainer",
        "lower",
        scale="log",
    ),
    Metric(
        "mismatch_kl",
        "KL engine, trainer",
        "nats",
        "engine against trainer before the first update: mean k3 of a token",
        "",
        "lower",
    ),
    Metric(
        "mismatch_ratio_min", "smallest ratio", "", "smallest trainer/engine probability of a token, before any bound"
    ),
    Metric("mismatch_ratio_mean", "mean ratio", "", "mean of the same"),
    Metric("mismatch_ratio_max", "largest ratio", "", "largest of the same"),
    Metric(
        "micro_batch_tokens",
        "micro-batch",
        "count",
        "tokens of a micro-batch as memory has allowed them so far",
        stages=_ALL,
    ),
    Metric("out_of_memory", "out of memory", "count", "how often this step's micro-batches were halved", stages=_ALL),
    Metric(
        "value_loss", "value loss", "", "loss of the critic's updates", "Value loss", "lower", True, stages=("ppo",)
    ),
    Metric("critic_grad_norm", "critic's gradient norm", "", "norm of the critic's gradient", stages=("ppo",)),
    Metric("critic_skipped_updates", "critic's skipped updates", "count", "likewise skipped", stages=("ppo",)),
    Metric("value_mean", "value", "", "mean of the critic's estimates", "Values", "", True, stages=("ppo",)),
    Metric("return_mean", "return", "", "mean of what the critic was to learn", "Values", "", True, stages=("ppo",)),
    Metric(
        "explained_variance",
        "explained variance",
        "",
        "1 - Var(error)/Var(returns), null where the returns hardly vary",
        "Explained variance",
        "higher",
        True,
        "explained",
        "1 = the critic foresees every return",
        ("ppo",),
    ),
    Metric("sync_s", "giving weights", "s", "an engine with weights of its own: seconds to give it the new ones"),
    Metric("sync_mb", "weights given", "MB", "how much that was: of an adapter alone, little"),
    Metric("proof_s", "proving weights", "s", "seconds to compare the bytes of its weights with the trainer's"),
    Metric("proven_weights", "proven weights", "count", "tensors that were found to be the trainer's, byte for byte"),
    Metric("canary_s", "checking weights", "s", "seconds to check that it has them"),
    Metric("canary_logprob_max", "canary", "nats", "the largest difference that check found"),
    Metric(
        "staleness",
        "staleness",
        "steps",
        "steps by which the weights that sampled are older than those that learn; of a completion, its oldest token's",
        "Staleness",
        "lower",
    ),
    Metric(
        "tokens",
        "tokens",
        "count",
        "sampled in the step, refills included; of the other stages: learnt from",
        stages=_ALL,
    ),
    Metric("generate_s", "generate", "s", "seconds of sampling", "Seconds", "lower", True, stages=_LEARNT),
    Metric("score_s", "score", "s", "seconds of scoring that sampling did not hide", "Seconds", "lower", True),
    Metric("train_s", "train", "s", "seconds of learning", "Seconds", "lower", True, stages=_LEARNT),
    Metric("ahead_wait_s", "wait", "s", "with `--max-staleness`: waited for completions sampled ahead", "Seconds"),
    Metric("ahead_groups", "groups ahead", "count", "then asked for, for later steps: on their way, or finished"),
    Metric(
        "dropped_groups",
        "too old",
        "count",
        "finished groups with a token from weights more than `--max-staleness` steps old: not learnt from, asked again",
    ),
    Metric("across_weights", "across weights", "share", "completions that several versions of the weights wrote"),
    Metric("step_s", "whole step", "s", "seconds of the step", "Seconds", "lower", True, "time", "of a step", _ALL),
    Metric(
        "tokens_per_s",
        "tokens per second",
        "",
        "`tokens` / `step_s`",
        "Tokens per second",
        "higher",
        True,
        stages=_ALL,
        derived=True,
    ),
)
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
# Of a line, beside the numbers: its number, and maps by verifier.
OTHER_KEYS = {
    "step": "counted from 1",
    "parts": "by verifier: mean score",
    "reasons": "by verifier: how often each reason",
}
# Reasons of the built-in verifiers that go with a full score.
RIGHT = {"ok", "equal", "match", "valid", "right", "AC"}
_UNITS = {
    "": "",
    "share": "share",
    "count": "",
    "tokens": "tokens",
    "nats": "nats",
    "s": "s",
    "MB": "MB",
    "steps": "steps",
}


def columns() -> list[Metric]:
    """Those that the display shows, in its order."""
    first = ("token_loss", "epoch", "reward", "accuracy")
    shown = [metric for metric in METRICS if metric.column]
    return sorted(shown, key=lambda metric: first.index(metric.name) if metric.name in first else len(first))


def docs_table() -> str:
    """The table of r1lite/rl/README.md."""
    rows = [f"| `{name}` | | {means} |" for name, means in OTHER_KEYS.items()]
    rows += [f"| `{one.name}` | {_UNITS[one.unit]} | {one.means} |" for one in METRICS if not one.derived]
    return "\n".join(["| name | unit | meaning |", "| --- | --- | --- |", *rows])
