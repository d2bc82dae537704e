"""A run from its first evaluation to its last: what every stage that trains shares."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from r1lite.config import RLConfig, TrainConfig
from r1lite.config.engines import find_engine
from r1lite.doctor import Finding, diagnose
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.evaluation.comparison import learnt, rows_of
from r1lite.evaluation.measure import measure, summarize
from r1lite.hub.revisions import pinned
from r1lite.model.lora import adapter_state
from r1lite.model.policy import Policy
from r1lite.report import report_at_end
from r1lite.rollout import EngineError
from r1lite.run import checkpoint
from r1lite.run.ending import ending
from r1lite.run.resume import resume_point
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.trackers import check
from r1lite.trackers.sender import Senders
from r1lite.training import memory
from r1lite.training.machine import load_model
from r1lite.training.setup import LoadTrainingData, Setup, open_run, resolve_config
from r1lite.types import Group

_HOPELESS = 20  # times the memory there is: the estimate is of the longest texts, which few runs have

C = TypeVar("C", bound=TrainConfig)
R = TypeVar("R", bound=RLConfig)

# Keys without which a file of results is damaged.
_EVALUATION = ("pass_at_1", "pass_at_1_interval", "k", "pass_at_k", "format_rate", "mean_tokens", "examples")
_SUMMARY = ("eval_before", "eval_after", "steps", "checkpoint")


class Trained(Protocol):
    """What a checkpoint keeps: the policy's weights, and a state beside them."""

    policy: Policy

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class TrainingLoop(Protocol):
    """The steps of a run. A step depends on its number, the weights and the states of loop and learner alone."""

    tokens_are: ClassVar[str]  # what became of the `tokens` of a step's metrics: "generated", "trained_on"

    @property
    def steps(self) -> int:
        """How many there are."""

    @property
    def learner(self) -> Trained:
        """What they change."""

    def step(self, step: int) -> tuple[Sequence[Group], dict[str, Any]]:
        """Does one: the completions it sampled, if any, and its metrics; `tokens` among them."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the learner's state."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""


def run_training(
    config: C,
    make_loop: Callable[[C, Setup, StopSignal], TrainingLoop],
    training_data: LoadTrainingData[C] | None = None,
    load: Callable[[C], tuple[Any, Any]] = load_model,
) -> dict[str, Any]:
    """Trains, and measures before and after; everything lies in the run directory.

    Args:
        training_data: what the stage learns from beside its task's problems; it is loaded, and may be refused, before
            anything is written.
        load: the model to be trained, and its tokenizer.

    Returns: the summary, as in summary.json.

    Raises:
        UserError: a requested resource is unavailable, or a choice is refused.
        RunError: the run can't go on; its checkpoints stand.
        Interrupted: a signal asked it to stop; a checkpoint was written.
    """
    with contextlib.ExitStack() as guards:
        stop = guards.enter_context(StopSignal())
        with stop.interruptible():
            config, notes = resolve_config(config)
            check(config.log_to)
            watchdog = guards.enter_context(Watchdog(config))
            with watchdog.during("load"):
                setup = open_run(config, notes, training_data, load)
        setup.watchdog, watchdog.folder = watchdog, setup.run_dir.path
        for close in (setup.run_dir.close, setup.scorer.close, setup.engine.close):
            guards.callback(close)  # the last one is called first
        senders = Senders(config.log_to, setup.run_dir.path, config.log_project, setup.display.say)
        guards.callback(senders.close)
        with ending(setup.run_dir, setup.display):
            try:
                try:
                    with watchdog.during("load"):
                        loop = make_loop(config, setup, stop)
                except UserError:
                    if not config.resume:
                        setup.run_dir.discard()  # nothing may stand in the way of the next try
                    raise
                return _train(config, setup, stop, loop, senders)
            except RunError:
                setup.display.finish()
                _diagnose(setup, set(), functools.partial(print, file=sys.stderr))
                raise


def _train(config: C, setup: Setup, stop: StopSignal, loop: TrainingLoop, senders: Senders) -> dict[str, Any]:
    run_dir, display, steps = setup.run_dir, setup.display, loop.steps
    progress = Progress(config, setup, loop)
    first, saved = resume_point(config, run_dir, steps, display.say) if config.resume else (0, None)

    finished = run_dir.read_result("summary", _SUMMARY, display.say) if config.resume and first == steps else None
    if finished is not None and finished["steps"] == steps:
        display.say("this run is finished already; --steps with a larger number goes on from here")
        display.summary(finished, [("run", f"{run_dir.path}")])
        if config.report:
            report_at_end(run_dir.path, display.say, if_missing=True)
        return finished  # type: ignore[no-any-return]

    # Before the checkpoint's weights take their place: what was lost is measured again with those the run began with.
    before = run_dir.read_result("eval_before", _EVALUATION, display.say)
    if before is None:
        if saved is not None:
            display.say("eval_before.json was lost: measuring the first weights once more")
        before = _evaluate("measuring the model before", config, setup, stop, 0)
        run_dir.write_result("eval_before", before)
    progress.restore(first, saved)
    expected = _memory(config, setup, loop.learner)
    display.say(
        f"before    accuracy {before['pass_at_1']:.1%} greedy, pass@{before['k']} {before['pass_at_k']:.1%}, "
        f"format {before['format_rate']:.1%}, {before['mean_tokens']:.1f} tokens"
    )

    senders.begin(steps)
    display.start("training", steps, first)
    evaluated = {record["step"] for record in run_dir.evaluations()}
    done = first
    told: set[str] = set()
    try:
        for step in range(first, steps):
            if config.eval_every and step and step % config.eval_every == 0 and step not in evaluated:
                # Before the next step begins, so that a signal may come at any moment of it.
                measured = _measure(config, setup, stop, lambda done: None, step)
                run_dir.append_evaluation({"step": step, **measured})
            started = time.perf_counter()
            with setup.watchdog.during("train", f"step {step + 1}"):
                groups, metrics = loop.step(step)
            with setup.watchdog.during("save", f"records of step {step + 1}"):
                if groups:
                    run_dir.write_rollouts(step + 1, groups)
                run_dir.append_metrics({"step": step + 1, **metrics})
            done = step + 1
            progress.add(metrics["tokens"], time.perf_counter() - started)
            display.step(step + 1, steps, metrics)
            if metrics.get("out_of_memory"):
                display.say(
                    f"step {step + 1}: out of memory; from here on a micro-batch is at most "
                    f"{metrics['micro_batch_tokens']} tokens (--micro-batch-tokens)"
                )
            if (step + 1) % config.save_every == 0 or step + 1 == steps:
                progress.save(step + 1)
                if step + 1 < steps:  # at the end all of it is said once more
                    _diagnose(setup, told, display.say)
            stop.check()
    except (Interrupted, BrokenPipeError, SystemExit, EngineError):  # a closed pipe comes as one of the middle two
        if done > first or progress.saved is None:
            progress.save(done)
        raise
    display.finish()

    after = _evaluate("measuring the model after", config, setup, stop, steps)
    run_dir.write_result("eval_after", after)
    pairs = learnt(run_dir.answers(0), run_dir.answers(steps))
    used = memory.peak(loop.learner.policy.model.device)
    summary = {
        "eval_before": before,
        "eval_after": after,
        "learnt": pairs,
        "steps": steps,
        f"tokens_{loop.tokens_are}": progress.tokens,
        "train_s": progress.train_s,
        "wall_s": progress.wall_s(),
        "peak_rss_mib": _peak_rss_mib(),
        "memory": {name: round(size / 2**20, 1) for name, size in dataclasses.asdict(expected).items()}
        | {"estimated_peak": round(expected.peak / 2**20, 1), "peak": round(used / 2**20, 1)},
        "device": config.device,
        "engine": setup.started.name,
        "engine_version": setup.started.version,
        "engine_start_s": setup.started.start_s,
        "reproducible": setup.started.reproducible,
        "model": config.model,
        "source": config.source,
        "reward": setup.scorer.reward.formula,
        "checkpoint": str(progress.saved),
    }
    findings = diagnose(run_dir.path)
    run_dir.write_result("findings", [dataclasses.asdict(finding) for finding in findings])
    run_dir.write_result("summary", summary)  # last: a run that has one is finished
    what = loop.tokens_are.replace("_", " ")
    kept = "rollouts/, " if run_dir.rollouts.exists() else ""
    display.summary(
        summary,
        [
            ("trained", f"{steps} steps, {progress.tokens:,} tokens {what}, {progress.train_s:.0f} s"),
            ("memory", memory.compared(expected, used)),
            ("model", f"{progress.saved}"),
            ("run", f"{run_dir.path}: summary.json, metrics.jsonl, {kept}config.yaml"),
        ],
    )
    _say(findings, set(), display.say)
    if config.report:
        report_at_end(run_dir.path, display.say)
    return summary


def _diagnose(setup: Setup, told: set[str], say: Callable[[str], object]) -> None:
    """Says what is wrong with the run so far, as `r1lite doctor` would; what was told before is not said again."""
    _say(diagnose(setup.run_dir.path), told, say)


def _say(findings: Sequence[Finding], told: set[str], say: Callable[[str], object]) -> None:
    for finding in findings:
        if finding.name not in told:
            for line in f"doctor    {finding}".splitlines():
                say(line)
    told.update(finding.name for finding in findings)


def _memory(config: TrainConfig, setup: Setup, learner: Trained) -> memory.Estimate:
    """What the run will hold, said before it starts."""
    policy = learner.policy
    reference, critic = getattr(learner, "reference", None), getattr(learner, "critic", None)
    others = [reference.model] if reference is not None else []
    others += [critic.model.model] if critic is not None else []
    samples_here = find_engine(config.engine).shares_weights
    expected = memory.estimate(config, policy, setup.train, others, samples_here=samples_here)
    setup.display.line("memory", str(expected))
    room = memory.available(policy.model.device)
    if (text := memory.warning(expected, room)) is not None:
        if expected.peak > _HOPELESS * room:
            raise UserError(f"this run can't fit: {text}")
        setup.display.line("warning", text)
    return expected


class Progress:
    """How far a run has come, across interruptions."""

    def __init__(self, config: TrainConfig, setup: Setup, loop: TrainingLoop) -> None:
        self.config, self.setup, self.loop = config, setup, loop
        self.tokens, self.train_s, self._wall_before, self._began = 0, 0.0, 0.0, time.perf_counter()
        self.saved: Any = None  # path of the newest checkpoint

    def restore(self, step: int, saved: Path | None) -> None:
        """Puts a checkpoint's state in place, and forgets what was recorded after it. Raises UserError."""
        if not self.config.resume:
            return
        if saved is not None:
            self.saved = saved
            state = checkpoint.load_state(saved)
            with checkpoint.restoring(saved):
                self._load_weights(saved, state["adapter"])
                self.loop.learner.load_state_dict(state["learner"])
                self.loop.load_state_dict(state["course"])
                self.tokens, self.train_s, self._wall_before = state["tokens"], state["train_s"], state["wall_s"]
            self.setup.engine.offer(self.loop.learner.policy.named_weights, version=step)
            self.setup.display.say(f"going on after step {step} of {self.loop.steps}")
        self.setup.run_dir.rewind(step)

    def _load_weights(self, path: Path, adapter: dict[str, Any]) -> None:
        """Into the model that optimizer and engine hold already."""
        from transformers import AutoModelForCausalLM

        if adapter:  # the weights below it are those that the run began with
            self.setup.model.load_state_dict(adapter, strict=False)
            return
        saved = AutoModelForCausalLM.from_pretrained(**pinned(path), dtype="auto")
        self.setup.model.load_state_dict(saved.state_dict())

    def add(self, tokens: int, seconds: float) -> None:
        """Counts a step."""
        self.tokens += tokens
        self.train_s += seconds

    def wall_s(self) -> float:
        """Seconds since the start, those of interrupted parts included up to their last checkpoint."""
        return self._wall_before + time.perf_counter() - self._began

    def save(self, step: int) -> None:
        """Writes a checkpoint."""
        started = time.perf_counter()
        with self.setup.watchdog.during("save", f"checkpoint of step {step}"):
            self.saved = checkpoint.save(
                self.setup.run_dir.checkpoints,
                step,
                model=self.setup.model,
                tokenizer=self.setup.tokenizer,
                state={
                    "learner": self.loop.learner.state_dict(),
                    "course": self.loop.state_dict(),
                    "adapter": adapter_state(self.setup.model),
                    "tokens": self.tokens,
                    "train_s": self.train_s,
                    "wall_s": self.wall_s(),
                },
                keep=self.config.keep_checkpoints,
                records=self.setup.run_dir.recorded(),
            )
        self.train_s += time.perf_counter() - started


def _evaluate(what: str, config: TrainConfig, setup: Setup, stop: StopSignal, step: int) -> dict[str, Any]:
    setup.display.start(what, 1)
    try:
        return _measure(config, setup, stop, setup.display.progress, step)
    finally:
        setup.display.finish()


def _measure(
    config: TrainConfig, setup: Setup, stop: StopSignal, progress: Callable[[float], None], step: int
) -> dict[str, Any]:
    """Evaluates the weights after `step` steps; the answers are kept in evaluations/."""

    def report(share: float) -> None:
        setup.watchdog.beat()
        progress(share)

    try:
        with stop.interruptible(), setup.watchdog.during("rollout", "evaluation"):
            solved = measure(setup.engine, setup.test, setup.scorer, config, report)
        setup.run_dir.write_answers(step, rows_of(config.task, solved))
        return summarize(solved, setup.scorer, k=config.eval_samples)
    except ValueError as error:
        raise RunError(str(error)) from error


def _peak_rss_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)
