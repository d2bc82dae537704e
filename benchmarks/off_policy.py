"""Stability of losses off policy: nano on GSM8K-style problems, by number of minibatches and by staleness.

    python benchmarks/off_policy.py                                  # 7 losses x 12 settings x 3 seeds: hours
    python benchmarks/off_policy.py --cross --seeds 1 --steps 30     # varies minibatches or staleness alone, one seed
    python benchmarks/off_policy.py --losses clip vespo --minibatches 1 16 --staleness 0 --plot off_policy.png

With n minibatches a rollout has n updates, and the last one learns from samples of weights that are n - 1 updates
older. With staleness k the sampling weights are k steps older than the learning ones, and the ratio of the loss is
relative to the policy that sampled (`--ratio-to engine`), so that the loss's clip or gate must handle the distance.
Sizes and learning rate are nano's own, the same for all. A row has means over the seeds for the last fifth of the
steps: share of right completions at temperature 1, entropy, tokens held back by the loss (for soft gates: tokens that
lose more than a tenth), KL of a step; `greedy`: accuracy on test problems after the run. Collapsed: number of seeds
whose last fifth solves less than 0.8 of their best fifth, or whose gradient was not finite. Results are appended to
`--out` as JSON lines, and existing results are not measured again.
"""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LOSSES = {
    "clip": ["--loss", "clip"],
    "cispo": ["--loss", "cispo"],
    "sapo": ["--loss", "sapo"],
    "gspo": [
        *("--loss", "clip", "--ratio-level", "sequence", "--aggregation", "sequence_mean"),
        *("--clip-low", "3e-4", "--clip-high", "4e-4"),
    ],
    "gmpo": ["--loss", "gmpo", "--aggregation", "sequence_mean", "--clip-low", "0.4", "--clip-high", "0.4"],
    "dppo": ["--loss", "dppo", "--clip-low", "0.15", "--clip-high", "0.15"],
    "vespo": ["--loss", "vespo"],
}
COLUMNS = ("accuracy", "greedy", "entropy", "held", "policy_kl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", nargs="+", choices=list(LOSSES), default=list(LOSSES))
    parser.add_argument("--minibatches", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--staleness", nargs="+", type=int, default=[0, 1, 4, 8])
    parser.add_argument("--cross", action="store_true", help="vary only one of the two at a time")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--problems", type=int, default=100, help="test problems that accuracy is measured on")
    parser.add_argument("--out", type=Path, default=Path("off_policy.jsonl"))
    parser.add_argument("--plot", type=Path, help="PNG with the curves (needs matplotlib)")
    arguments = parser.parse_args()
    done = {_key(run): run for run in _read(arguments.out)}
    wanted = [
        {"loss": loss, "minibatches": minibatches, "staleness": staleness, "seed": seed, "steps": arguments.steps}
        for seed in range(arguments.seeds)
        for minibatches, staleness in _settings(arguments)
        for loss in arguments.losses
    ]
    for setting in wanted:
        if _key(setting) not in done:
            run = {**setting, **_run(setting, arguments.problems)}
            with arguments.out.open("a") as file:
                file.write(json.dumps(run) + "\n")
            done[_key(run)] = run
    runs = [done[_key(setting)] for setting in wanted]
    print(f"nano, {arguments.steps} steps, {arguments.seeds} seed(s), {arguments.problems} test problems, greedy")
    print("| minibatches | staleness | loss | accuracy | greedy | entropy | held | KL of a step | collapsed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (minibatches, staleness, loss), same in _grouped(runs):
        mean = {name: statistics.fmean(run[name] for run in same) for name in COLUMNS}
        shown = [f"{mean[name]:.1%}" for name in ("accuracy", "greedy")] + [f"{mean['entropy']:.3f}"]
        shown += [f"{mean['held']:.2%}", f"{mean['policy_kl']:.1e}"]
        collapsed = f"{sum(run['collapsed'] for run in same)} of {len(same)}"
        print("| " + " | ".join([str(minibatches), str(staleness), loss, *shown, collapsed]) + " |")
    if arguments.plot is not None:
        _plot(runs, arguments.plot)


def _settings(arguments: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """(minibatches, staleness)."""
    for minibatches in arguments.minibatches:
        for staleness in arguments.staleness:
            if not arguments.cross or minibatches == 1 or staleness == 0:
                yield minibatches, staleness


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("loss", "minibatches", "staleness", "seed", "steps"))


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _grouped(runs: Sequence[dict[str, Any]]) -> list[tuple[tuple[int, int, str], list[dict[str, Any]]]]:
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["minibatches"], run["staleness"], run["loss"]), []).append(run)
    return list(groups.items())


def _run(setting: dict[str, Any], problems: int) -> dict[str, Any]:
    from r1lite.config import GRPOConfig, load
    from r1lite.errors import RunError
    from r1lite.grpo.assembly import make_learner, train

    flags = [
        *("--model", "nano", "--steps", str(setting["steps"]), "--seed", str(setting["seed"]), "--device", "cpu"),
        *("--minibatches", str(setting["minibatches"]), "--threads", "1", "--quiet", "--lr-schedule", "constant"),
        *(
            "--ratio-to",
            "engine",
            "--biased-sampling",
        ),  # the latter, since the sampling weights differ from the learning ones
        *("--eval-problems", str(problems), "--eval-sample-problems", "1", "--eval-samples", "1"),
        *LOSSES[setting["loss"]],
    ]

    def stale(config: Any, setup: Any) -> _Stale:
        """A learner with its own model; the engine and the evaluation keep the loaded one."""
        own = dataclasses.replace(setup, model=copy.deepcopy(setup.model))
        return _Stale(make_learner(config, own), setup.model, setting["staleness"], config.steps)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        try:
            summary = train(load(GRPOConfig, [*flags, "--out", str(out)]), stale)
            greedy = summary["eval_after"]["pass_at_1"]
        except RunError as error:  # a failed run is a result too
            print(f"{setting}: {error}", file=sys.stderr)
            greedy = 0.0
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    accuracies = [line["accuracy"] for line in lines]
    fifth = max(1, setting["steps"] // 5)
    best = max(statistics.fmean(accuracies[n : n + fifth]) for n in range(len(accuracies) - fifth + 1))
    last = lines[-fifth:]
    mean = {name: statistics.fmean(line[name] or 0.0 for line in last) for name in ("accuracy", "entropy", "policy_kl")}
    unfinished = len(lines) < setting["steps"] or any(line["skipped_updates"] for line in lines)
    return {
        **mean,
        "greedy": greedy,
        "held": statistics.fmean(line["clipped_low"] + line["clipped_high"] for line in last),
        "collapsed": unfinished or mean["accuracy"] < 0.8 * best,
        "accuracies": accuracies,
    }


class _Stale:
    """A learner whose weights reach the engine's model after a delay of `staleness` steps."""

    def __init__(self, learner: Any, sampled_from: Any, staleness: int, steps: int) -> None:
        self.learner, self.sampled_from, self.steps = learner, sampled_from, steps
        self.policy: Any = learner.policy
        self.history: collections.deque[dict[str, Any]] = collections.deque(maxlen=staleness + 1)
        self._remember()

    def learn(self, groups: Sequence[Any], step: int) -> tuple[list[Any], dict[str, Any]]:
        learnt: tuple[list[Any], dict[str, Any]] = self.learner.learn(groups, step)
        self._remember()
        # The evaluation measures the last weights.
        self.sampled_from.load_state_dict(self.history[-1] if step + 1 == self.steps else self.history[0])
        return learnt

    def _remember(self) -> None:
        state = self.learner.policy.model.state_dict()
        self.history.append({name: value.clone() for name, value in state.items()})

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.learner.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state)


def _plot(runs: Sequence[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    settings = list(dict.fromkeys((run["minibatches"], run["staleness"]) for run in runs))
    columns = min(3, len(settings))
    rows = -(-len(settings) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(4.2 * columns, 2.8 * rows), sharex=True, sharey=True, squeeze=False
    )
    for axis, (minibatches, staleness) in zip(axes.flat, settings, strict=False):
        for loss in dict.fromkeys(run["loss"] for run in runs):
            curves = [
                run["accuracies"]
                for run in runs
                if (run["minibatches"], run["staleness"], run["loss"]) == (minibatches, staleness, loss)
            ]
            length = min(map(len, curves), default=0)
            axis.plot([statistics.fmean(curve[n] for curve in curves) for n in range(length)], label=loss, linewidth=1)
        axis.set_title(f"{minibatches} minibatch{'es' if minibatches > 1 else ''}, staleness {staleness}", fontsize=9)
        axis.set_ylim(0, 1)
    axes[0][0].legend(fontsize=7)
    figure.supxlabel("step")
    figure.supylabel("right completions, T = 1")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
