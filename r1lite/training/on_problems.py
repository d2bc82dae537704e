"""Training on a task's problems, with evaluations on the test problems (greedy and pass@k)."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import torch

from r1lite.config import RLConfig, TrainConfig
from r1lite.config.distill import SHAPED
from r1lite.config.engines import find_engine
from r1lite.distributed.together import from_main
from r1lite.errors import RunError, UserError
from r1lite.evaluation.comparison import learnt, rows_of
from r1lite.evaluation.measure import measure, summarize
from r1lite.hub.loading import load_shape
from r1lite.hub.revisions import hub_id, pinned
from r1lite.model.lora import adapter_state, has_adapter
from r1lite.model.policy import Policy
from r1lite.model.sharding import put_into
from r1lite.nano import MODELS
from r1lite.run.checkpoint import least_size
from r1lite.run.display import percent
from r1lite.run.signals import StopSignal
from r1lite.training import memory
from r1lite.training.lifecycle import run_life
from r1lite.training.loading import generation_settings, load_model, own_dtype
from r1lite.training.machine import NANO
from r1lite.training.resolve import resolve_config
from r1lite.training.setup import LoadTrainingData, Setup, open_run
from r1lite.types import Group

_HOPELESS = 20  # times the available memory; the estimate assumes the longest texts, which few runs have

_WITH_ADAPTER = " (the adapter is merged into its weights; adapter/ holds it alone, for peft)"
# Share of problems solved in k samples; for nano, share of right answers (0.30 on its own word problems).
_HARDLY_EVER = 0.05

C = TypeVar("C", bound=TrainConfig)


class Trained(Protocol):
    """An object with state that is saved in checkpoints."""

    policy: Policy

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class TrainingLoop(Protocol):
    """The steps of a run. A step depends only on its number, the weights and the states of loop and learner."""

    tokens_are: ClassVar[str]  # meaning of `tokens` in the metrics of a step: "generated" or "trained_on"

    @property
    def steps(self) -> int:
        """Number of training steps."""

    @property
    def learner(self) -> Trained:
        """The learner, whose weights the steps update."""

    def step(self, step: int) -> tuple[Sequence[Group], dict[str, Any]]:
        """Runs a step. Returns the sampled groups, if any, and its metrics, which include `tokens`."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the loop's own state for checkpoints."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""


def run_training(
    config: C,
    make_loop: Callable[[C, Setup, StopSignal], TrainingLoop],
    training_data: LoadTrainingData[C] | None = None,
    load: Callable[[C], tuple[Any, Any]] = load_model,
) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; see `run_life`.

    Args:
        training_data: loads data that the stage learns from in addition to its task's problems. It is called, and may
            raise UserError, before anything is written.
        load: loads the model to be trained and its tokenizer.
    """
    return run_life(
        config,
        resolve_config,
        lambda config, notes, world: open_run(config, notes, training_data, load, world),
        lambda config, setup, stop: OnProblems(config, setup, make_loop(config, setup, stop), stop),
    )


class OnProblems:
    """A training loop on a task's problems, with evaluation, checkpoints and summary."""

    what: ClassVar[str] = "model"
    evaluation_keys: ClassVar[tuple[str, ...]] = (
        *("pass_at_1", "pass_at_1_interval", "k", "pass_at_k", "pass_at_k_interval", "sampled_accuracy"),
        *("sampled_accuracy_interval", "format_rate", "mean_tokens", "examples"),
    )

    def __init__(self, config: TrainConfig, setup: Setup, loop: TrainingLoop, stop: StopSignal) -> None:
        self.config, self.setup, self.loop = config, setup, loop
        # With several ranks, a signal may interrupt each rank's own share of an evaluation, and nothing else.
        alone = setup.world.size > 1 and not setup.engine.together
        self._around = stop.interruptible if alone else contextlib.nullcontext
        setup.engine.interruptible(stop.interruptible)
        self.tokens_are, self.step, self.steps = loop.tokens_are, loop.step, loop.steps
        own = config.checkpoint_dtype == "own" and config.model != SHAPED
        self.dtype = own_dtype(config) if own else torch.float32
        self.expected: memory.Estimate | None = None  # None if the run is finished already

    def begin(self, before: dict[str, Any] | None) -> None:
        """Prints the memory estimate and the initial accuracy. Raises UserError if the run can't fit into memory."""
        setup, learner = self.setup, self.loop.learner
        policy = learner.policy
        reference, critic = getattr(learner, "reference", None), getattr(learner, "critic", None)
        others = [reference.model] if reference is not None else []
        others += [critic.model.model] if critic is not None else []
        samples_here = find_engine(self.config.engine).shares_weights
        layout = memory.Layout(setup.world.size, self.config.shard, self.config.shard_copies)
        expected = memory.estimate(
            *(self.config, policy, setup.train, others), samples_here=samples_here, layout=layout
        )
        held = setup.started.held
        beside = f"; beside it the engine holds {held / 2**20:,.0f} MiB" if held else ""
        setup.display.line("memory", f"{expected}{beside}")
        room = memory.available(policy.model.device) - (0 if setup.started.sleeps else held)
        if (text := memory.warning(expected, room)) is not None:
            if expected.peak > _HOPELESS * room:
                raise UserError(f"this run can't fit: {text}")
            setup.display.line("warning", text)
        self.expected = expected
        if before is None:
            return
        setup.display.say(
            f"before    accuracy {before['pass_at_1']:.1%} greedy, pass@{before['k']} {before['pass_at_k']:.1%}, "
            f"format {percent(before['format_rate'])}, {before['mean_tokens']:.1f} tokens"
        )
        if isinstance(self.config, RLConfig) and (text := beyond_it(self.config, before)) is not None:
            setup.display.line("warning", text)

    @property
    def is_measured(self) -> bool:
        """False with --eval-problems 0."""
        return self.config.eval_problems > 0

    @property
    def measured_on(self) -> dict[str, int]:
        """Number of problems and samples of an evaluation, which may change on resume."""
        config, there = self.config, len(self.setup.test)
        return {
            "eval_problems": min(config.eval_problems, there),
            "eval_sample_problems": min(config.sampled_problems, there),
            "eval_samples": config.eval_samples,
        }

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint, at least."""
        critic = getattr(self.loop.learner, "critic", None)
        others = [] if critic is None else [critic.model.model]
        return least_size(self.setup.model, others, dtype=self.dtype, rounded=self._rounds)

    @property
    def _rounds(self) -> bool:
        """True if a model's files hold rounded weights, and the trainer's state the exact ones."""
        return self.dtype != torch.float32 and not has_adapter(self.setup.model)

    def measure(self, step: int, progress: Callable[[float], None]) -> dict[str, Any]:
        """Evaluates the weights after `step` steps and stores the answers in evaluations/."""
        try:
            setup = self.setup
            setup.engine.push([prompt.token_ids for prompt in setup.test])
            solved = measure(
                *(setup.engine, setup.test, setup.scorer, self.config, progress),
                world=setup.world,
                around=self._around,
                scored=self._scored,
            )
            self.setup.run_dir.write_answers(step, rows_of(self.config.task, solved))
            found = summarize(solved, self.setup.scorer, k=self.config.eval_samples)
            return {**found, "measured_on": self.measured_on}
        except ValueError as error:
            raise RunError(str(error)) from error

    def _scored(self, done: int, total: int) -> None:
        self.setup.watchdog.beat()
        self.setup.display.scored(done, total)

    def checkpoint(self) -> dict[str, Any]:
        """Returns model, tokenizer, generation settings, and the states of learner and loop."""
        model, tokenizer = self.setup.model, self.setup.tokenizer
        state = {
            "learner": self.loop.learner.state_dict(),
            "course": self.loop.state_dict(),
            "adapter": adapter_state(model),
            **({"weights": model.state_dict()} if self._rounds else {}),
        }
        return {
            "model": model,
            "tokenizer": tokenizer,
            "state": state,
            "generation": generation_settings(self.config, model, tokenizer),
            "dtype": self.dtype,
            "base": None if self.config.model in (*MODELS, SHAPED) else hub_id(str(self.config.model)),
        }

    def restore(self, step: int, path: Path, state: dict[str, Any]) -> None:
        """Restores a checkpoint into the model that optimizer and engine already hold."""
        from transformers import AutoModelForCausalLM

        if state["adapter"]:  # the weights below the adapter never change
            put_into(self.setup.model, state["adapter"], some=True)
        elif state.get("weights"):  # the model's files hold rounded weights
            put_into(self.setup.model, state["weights"])
        else:
            saved = AutoModelForCausalLM.from_pretrained(**pinned(path), config=load_shape(path), dtype="auto")
            put_into(self.setup.model, saved.state_dict())
        self.loop.learner.load_state_dict(state["learner"])
        self.loop.load_state_dict(state["course"])
        self.setup.engine.offer(self.loop.learner.policy.named_weights, version=step)

    def summary(self) -> dict[str, Any]:
        """Returns memory, engine, reward, and problems whose answers changed."""
        run_dir, started = self.setup.run_dir, self.setup.started
        assert self.expected is not None  # since `begin`
        world, device = self.setup.world, self.loop.learner.policy.model.device
        # Torch counts what an engine in this process holds, even while the engine sleeps.
        self.used = max(world.all_gather_object(memory.peak(device) - started.held))
        return {
            "learnt": from_main(world, lambda: learnt(run_dir.answers(0), run_dir.answers(self.steps))),
            "memory": {name: _mib(size) for name, size in dataclasses.asdict(self.expected).items()}
            | {"estimated_peak": _mib(self.expected.peak), "peak": _mib(self.used)},
            "engine": started.name,
            "engine_version": started.version,
            "engine_start_s": started.start_s,
            "reproducible": started.reproducible,
            "reward": self.setup.scorer.reward.formula,
        }

    def show(self, summary: dict[str, Any]) -> None:
        """Prints results before and after, examples and file locations."""
        run_dir, steps = self.setup.run_dir, summary["steps"]
        if self.expected is None:  # an earlier process finished the run
            self.setup.display.summary(summary, [("run", f"{run_dir.path}")])
            return
        tokens, what = summary[f"tokens_{self.tokens_are}"], self.tokens_are.replace("_", " ")
        kept = "rollouts/, " if run_dir.rollouts.exists() else ""
        self.setup.display.summary(
            summary,
            [
                ("trained", f"{steps} steps, {tokens:,} tokens {what}, {summary['train_s']:.0f} s"),
                ("memory", memory.compared(self.expected, self.used)),
                ("model", summary["checkpoint"] + _WITH_ADAPTER * bool(self.config.lora_rank)),
                ("run", f"{run_dir.path}: summary.json, metrics.jsonl, {kept}config.yaml"),
            ],
        )


def _mib(size: float) -> float:
    return round(size / 2**20, 1)


def beyond_it(config: RLConfig, before: dict[str, Any]) -> str | None:
    """Returns a warning if the model hardly ever solves this task before training, otherwise None."""
    # nano guesses numbers, and one of several guesses may be right; tasks that it can solve, it solves more often.
    rate = before["sampled_accuracy" if config.model == NANO else "pass_at_k"]
    if rate is None or rate > _HARDLY_EVER:
        return None
    known = (
        "; nano only knows problems like the bundled word problems (--task gsm8k) and learns little from others. "
        "r1lite/nano/README.md shows how to make a small base model for your own task in minutes"
        if config.model == NANO
        else "; try an easier task, a larger model, or r1lite sft on worked answers first"
    )
    return (
        f"with {before['k']} samples each, {before['pass_at_k']:.1%} of {before['sampled_problems']} test problems "
        f"were solved: RL can only reinforce what the model does sometimes{known}"
    )
