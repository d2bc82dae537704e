"""The lifecycle of a training run: start, evaluation, steps, evaluation; and how it is resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from r1lite.config import RewardModelConfig, TrainConfig
from r1lite.distributed.joining import joined
from r1lite.distributed.together import from_main
from r1lite.distributed.world import World
from r1lite.doctor import Finding, diagnose
from r1lite.errors import Interrupted, RunError, UnscoredError, UserError
from r1lite.hub.upload import MODEL_FILES, push
from r1lite.report import report_at_end
from r1lite.rollout import EngineError
from r1lite.run import checkpoint, records
from r1lite.run.display import Display
from r1lite.run.ending import ending, resumption_of
from r1lite.run.files import write_text
from r1lite.run.model_card import CARD, model_card
from r1lite.run.resume import resume_point
from r1lite.run.run_dir import RunDir
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.trackers import check
from r1lite.trackers.sender import Senders
from r1lite.training.memory import forget_peak, peak_rss
from r1lite.training.several import longest_wait_s, refuse
from r1lite.types import Group

C = TypeVar("C", bound=TrainConfig | RewardModelConfig)
S = TypeVar("S", bound="Opened")

# Required keys of a results file; without them the file is damaged.
_SUMMARY = ("eval_before", "eval_after", "steps", "checkpoint")


class Opened(Protocol):
    """An opened run: its directory and everything loaded for it."""

    run_dir: RunDir
    display: Display
    watchdog: Watchdog  # set by the lifecycle

    def close(self) -> None:
        """Releases all resources, the run directory last."""


class Training(Protocol):
    """The training of a stage. A step depends only on its number, the weights and the state."""

    what: ClassVar[str]  # what is trained, for messages: "model", "reward model"
    evaluation_keys: ClassVar[tuple[str, ...]]  # required keys of the result of `measure`

    @property
    def tokens_are(self) -> str:
        """Meaning of `tokens` in the metrics of a step: "generated" or "trained_on"."""

    @property
    def steps(self) -> int:
        """Number of training steps."""

    @property
    def measured_on(self) -> dict[str, int]:
        """Settings of `measure` that may change on resume; its result has them under this name."""

    @property
    def is_measured(self) -> bool:
        """False if the weights are never evaluated."""

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint, at least."""

    def measure(self, step: int, progress: Callable[[float], None]) -> dict[str, Any]:
        """Evaluates the weights after `step` steps. Calls `progress` with the finished share. Raises RunError."""

    def begin(self, before: dict[str, Any] | None) -> None:
        """Prepares for the first step; the weights are loaded. Raises UserError if the run does not fit into memory.

        Args:
            before: the evaluation of the initial weights; None without evaluations.
        """

    def step(self, step: int) -> tuple[Sequence[Group], dict[str, Any]]:
        """Runs a step. Returns the sampled groups, if any, and its metrics, which include `tokens`."""

    def checkpoint(self) -> dict[str, Any]:
        """Returns arguments for `checkpoint.save`: model, tokenizer, state, and optional ones."""

    def restore(self, step: int, path: Path, state: dict[str, Any]) -> None:
        """Restores weights and state from the checkpoint `path` of step `step`."""

    def summary(self) -> dict[str, Any]:
        """Returns the entries of summary.json that are specific to this training."""

    def show(self, summary: dict[str, Any]) -> None:
        """Prints a summary, of this process or of an earlier one."""


def run_life(
    config: C,
    resolve: Callable[[C], tuple[C, dict[str, str]]],
    open_run: Callable[[C, dict[str, str], World], S],
    make_training: Callable[[C, S, StopSignal], Training],
) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; all results are stored in the run directory.

    Args:
        resolve: fills in settings that the user left open; returns (configuration, notes by field).
        open_run: loads everything and writes the files that describe the run.

    Returns: the summary, as in summary.json.

    Raises:
        UserError: a requested resource is unavailable, or a setting is refused.
        RunError: the run can't continue; its checkpoints remain.
        Interrupted: a signal stopped the run; a checkpoint was written.
    """
    forget_peak()
    with contextlib.ExitStack() as guards:
        stop = guards.enter_context(StopSignal())
        ranks = guards.enter_context(
            joined(
                device=config.device,
                start_s=config.stall_load_s,
                limit_s=config.stall_rank_s,
                wait_s=longest_wait_s(config),
            )
        )
        stop.world = world = ranks.world
        with stop.interruptible():
            config, notes = from_main(world, lambda: resolve(config))
            refuse(config, world.size)
            check(config.log_to)
            watchdog = guards.enter_context(Watchdog(config))
            ranks.describe(watchdog.doing)
            watchdog.tell, watchdog.who = ranks.tell, ranks.who
            with watchdog.during("load"):
                opened = open_run(config, notes, world)
        guards.callback(opened.close)
        run_dir, display = opened.run_dir, opened.display
        opened.watchdog, watchdog.folder = watchdog, run_dir.path
        watchdog.resume = resumption_of(config, run_dir.path)
        ranks.keep(run_dir.path, watchdog.resume)
        senders = Senders(config.log_to if world.is_main else [], run_dir.path, config.log_project, display.say)
        guards.callback(senders.close)
        with ending(run_dir, display, speaks=world.is_main):
            try:
                try:
                    with watchdog.during("load"):
                        training = make_training(config, opened, stop)
                except UserError:
                    if not config.resume:
                        run_dir.discard()  # so that the same --out can be used again
                    raise
                return _Life(config, opened, training, stop, senders).run()
            except RunError:
                display.finish()
                if world.is_main:
                    _say(diagnose(run_dir.path), set(), functools.partial(print, file=sys.stderr))
                raise


class _Life:
    """A run from its first evaluation to its last, across interruptions."""

    def __init__(
        self,
        config: TrainConfig | RewardModelConfig,
        opened: Opened,
        training: Training,
        stop: StopSignal,
        senders: Senders,
    ) -> None:
        self.config, self.training, self.stop, self.senders = config, training, stop, senders
        self.world = stop.world
        self.run_dir, self.display, self.watchdog = opened.run_dir, opened.display, opened.watchdog
        self.tokens, self.train_s, self._wall_before, self._began = 0, 0.0, 0.0, time.perf_counter()
        self.saved: Path | None = None  # the newest checkpoint
        self.told: set[str] = set()  # names of findings that were reported

    def run(self) -> dict[str, Any]:
        config, run_dir, display, steps = self.config, self.run_dir, self.display, self.training.steps
        first, saved, finished, before = from_main(self.world, self._found)
        if finished is not None:
            display.say("this run is finished already; a larger --steps or --epochs continues it")
            try:
                self.training.show(finished)
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                raise UserError(
                    f"{run_dir.path}/summary.json: damaged ({type(error).__name__}: {error}); remove it, and --resume "
                    "makes it again"
                ) from error
            if config.report and self.world.is_main:
                report_at_end(run_dir.path, display.say, if_missing=True)
            self._upload(saved)
            return finished

        if first < steps:
            from_main(self.world, lambda: checkpoint.check_room(run_dir.checkpoints, self.training.checkpoint_bytes))
        if self.training.is_measured:
            before = self._before(before, saved)
        if config.resume:
            self._restore(first, saved)
        self.training.begin(before)
        self.senders.begin(steps)
        self._steps(first)
        display.finish()

        after = None
        if self.training.is_measured:
            after = self._shown_measure("evaluating the model after training", steps)
            run_dir.write_result("eval_after", after)
        assert self.saved is not None
        if self.world.is_main:
            write_text(self.saved / CARD, model_card(run_dir.path, config, steps, steps, after=after))
        summary = {
            "eval_before": before,
            "eval_after": after,
            "steps": steps,
            f"tokens_{self.training.tokens_are}": self.tokens,
            "train_s": self.train_s,
            "wall_s": self._wall_s(),
            "peak_rss_mib": round(peak_rss() / (1 << 20), 1),
            "device": config.device,
            "model": config.model,
            "source": config.source,
            "checkpoint": str(self.saved),
            **self.training.summary(),
        }
        findings = diagnose(run_dir.path) if self.world.is_main else []
        run_dir.write_result("findings", [dataclasses.asdict(finding) for finding in findings])
        run_dir.write_result("summary", summary)  # last, since it marks the run as finished
        self.training.show(summary)
        _say(findings, set(), display.say)
        if config.report and self.world.is_main:
            report_at_end(run_dir.path, display.say)
        self._upload(self.saved)
        return summary

    def _before(self, kept: dict[str, Any] | None, saved: Path | None) -> dict[str, Any]:
        """Returns the evaluation of the initial weights, which must still be loaded: the kept one, or a new one."""
        if kept is None and saved is not None:
            self.display.say("there is no eval_before.json: evaluating the initial weights again")
        elif kept is not None and kept.get("measured_on", asked := self.training.measured_on) != asked:
            self.display.say("the evaluation's settings have changed: evaluating the initial weights again")
            kept = None
        if kept is None:
            kept = self._shown_measure("evaluating the model before training", 0)
            self.run_dir.write_result("eval_before", kept)
        return kept

    def _found(self) -> tuple[int, Path | None, dict[str, Any] | None, dict[str, Any] | None]:
        """Returns (finished steps, their checkpoint, summary of a finished run, first evaluation) of a resumed run."""
        config, run_dir, say, steps = self.config, self.run_dir, self.display.say, self.training.steps
        first, saved = resume_point(config, run_dir, steps, say) if config.resume else (0, None)
        finished = run_dir.read_result("summary", _SUMMARY, say) if config.resume and first == steps else None
        if finished is not None and finished["steps"] == steps:
            return first, saved, finished, None
        before = run_dir.read_result("eval_before", self.training.evaluation_keys, say)
        kept = checkpoint.recorded(saved) if saved is not None and before is not None else None
        if records.changed(run_dir.path, kept, file := "eval_before.json"):
            say(f"{run_dir.path / file}: changed or damaged since step {first}: it is computed again")
            before = None
        return first, saved, None, before

    def _steps(self, first: int) -> None:
        config, run_dir, display, steps = self.config, self.run_dir, self.display, self.training.steps
        if first < steps:
            display.start("training", steps, first)
        evaluated = from_main(self.world, lambda: {record["step"] for record in run_dir.evaluations()})
        done = kept = first  # finished steps; those of the newest checkpoint
        every = config.eval_every if self.training.is_measured else 0
        saves: tuple[type[BaseException], ...] = (Interrupted, EngineError, UnscoredError)
        if self.world.size == 1:  # a closed pipe; with several ranks it ends only one rank, so the others can't save
            saves += BrokenPipeError, SystemExit
        try:
            for step in range(first, steps):
                if every and step and step % every == 0 and step not in evaluated:
                    # Before the next step starts, so that a signal may interrupt the evaluation at any moment.
                    run_dir.append_evaluation({"step": step, **self._measure(step, lambda share: None)})
                started = time.perf_counter()
                with self.watchdog.during("train", f"step {step + 1}"):
                    groups, metrics = self.training.step(step)
                with self.watchdog.during("save", f"records of step {step + 1}"):
                    if groups:
                        run_dir.write_rollouts(step + 1, groups)
                    run_dir.append_metrics({"step": step + 1, **metrics})
                done = step + 1
                self.tokens += metrics["tokens"]
                self.train_s += time.perf_counter() - started
                display.step(done, steps, metrics)
                if metrics.get("out_of_memory"):
                    display.say(
                        f"step {done}: out of memory; from here on a micro-batch has at most "
                        f"{metrics['micro_batch_tokens']} tokens (--micro-batch-tokens)"
                    )
                if done % config.save_every == 0 or done == steps:
                    self._save(done)
                    kept = done
                    if done < steps and self.world.is_main:  # at the end all findings are printed again
                        _say(diagnose(run_dir.path), self.told, display.say)
                self.stop.agree()
        except saves:
            if done > kept or self.saved is None:
                self._save(done)
            raise

    def _upload(self, saved: Path | None) -> None:
        if self.world.is_main and self.config.push_to_hub is not None and saved is not None:
            where = push(saved, self.config.push_to_hub, kind="model", files=MODEL_FILES, what=self.training.what)
            self.display.line("uploaded", where)

    def _shown_measure(self, what: str, step: int) -> dict[str, Any]:
        self.display.start(what, 1)
        try:
            return self._measure(step, self.display.progress)
        finally:
            self.display.finish()

    def _measure(self, step: int, progress: Callable[[float], None]) -> dict[str, Any]:
        def report(share: float) -> None:
            self.watchdog.beat()
            progress(share)

        with self.stop.interruptible(together=True), self.watchdog.during("rollout", "evaluation"):
            return self.training.measure(step, report)

    def _restore(self, step: int, saved: Path | None) -> None:
        """Restores a checkpoint, and removes the records of later steps. Raises UserError."""
        if saved is not None:
            self.saved = saved
            state = checkpoint.load_state(saved)
            with checkpoint.restoring(saved):
                self.training.restore(step, saved, state)
                # Reward models of version 0.2 kept none of these.
                self.tokens, self.train_s = state.get("tokens", 0), state.get("train_s", 0.0)
                self._wall_before = state.get("wall_s", 0.0)
            self.display.say(f"continuing after step {step} of {self.training.steps}")
        self.run_dir.rewind(step)

    def _save(self, step: int) -> None:
        started = time.perf_counter()
        with self.watchdog.during("save", f"checkpoint of step {step}"):
            content = self.training.checkpoint()
            content["state"] |= {"tokens": self.tokens, "train_s": self.train_s, "wall_s": self._wall_s()}
            if self.world.is_main:
                content |= self._described(step)
            self.saved = checkpoint.save(
                *(self.run_dir.checkpoints, step),
                **content,
                keep=self.config.keep_checkpoints,
                world=self.world,
            )
            self.world.barrier()  # all parts are written
        self.train_s += time.perf_counter() - started

    def _described(self, step: int) -> dict[str, Any]:
        """Returns what the main rank adds to a checkpoint: the description of the records, and the model card."""
        measured = next((line for line in self.run_dir.evaluations() if line["step"] == step), None)
        return {
            "records": self.run_dir.recorded(),
            "card": model_card(self.run_dir.path, self.config, step, self.training.steps, after=measured),
        }

    def _wall_s(self) -> float:
        """Seconds since the start, including interrupted parts up to their last checkpoint."""
        return self._wall_before + time.perf_counter() - self._began


def _say(findings: Sequence[Finding], told: set[str], say: Callable[[str], object]) -> None:
    """Prints findings as `r1lite doctor` does, except for those in `told`."""
    for finding in findings:
        if finding.name not in told:
            for line in f"doctor    {finding}".splitlines():
                say(line)
    told.update(finding.name for finding in findings)
