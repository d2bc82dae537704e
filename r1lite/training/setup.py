"""Opens a run: run directory, scorer, model, problems and engine of a resolved configuration."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from r1lite.config import (
    OnRayConfig,
    ProblemsConfig,
    RLConfig,
    RunConfig,
    TrainConfig,
    WatchdogConfig,
    dump,
)
from r1lite.config.engines import find_engine
from r1lite.distributed.together import from_main, together
from r1lite.distributed.world import ALONE, World
from r1lite.errors import UserError
from r1lite.model.lora import adapter_of, add_adapter, merged_weights
from r1lite.model.policy import Policy
from r1lite.model.sharding import whole_weights
from r1lite.rollout import RolloutEngine
from r1lite.rollout.build import Request, Started, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.hf import pad_id
from r1lite.rollout.layout import file_layout
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.relay import RelayedEngine
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.display import Display
from r1lite.run.ending import ending
from r1lite.run.environment import read_environment
from r1lite.run.model_digests import changed_model, model_digests
from r1lite.run.places import claim_path
from r1lite.run.run_dir import RunDir, Unwritten
from r1lite.run.watchdog import Watchdog
from r1lite.scoring.problems import fingerprint, load_problems, make_prompts, told_apart, try_scorer, without_long
from r1lite.scoring.scorer import Scorer, describe, make_scorer
from r1lite.tasks import Problems, Task, find
from r1lite.training.early import RESTARTED
from r1lite.training.heap import keep_freed_memory
from r1lite.training.loading import forward_dtype, load_empty, load_model
from r1lite.training.machine import model_path
from r1lite.training.on_nodes import start_on_nodes
from r1lite.training.resolve import fixed_settings
from r1lite.training.settings_shown import show_settings
from r1lite.training.several import refuse_differences
from r1lite.types import Prompt

C = TypeVar("C", bound=ProblemsConfig)

_CANARY_TOKENS = 16  # for stages without a setting


@dataclass(slots=True)
class Setup:
    """A run that is ready to start."""

    run_dir: RunDir
    display: Display
    model: Any
    tokenizer: Any
    engine: TrustedEngine
    started: Started  # information about the engine
    scorer: Scorer
    train: list[Prompt]
    test: list[Prompt]
    training_data: Any = None  # `Loaded.value`
    watchdog: Watchdog = field(default_factory=lambda: Watchdog(WatchdogConfig()))  # replaced by the run's own
    world: World = ALONE

    def close(self) -> None:
        """Closes the engine, the scorer's processes and, last, the run directory."""
        with contextlib.ExitStack() as closing:
            for close in (self.run_dir.close, self.scorer.close, self.engine.close):
                closing.callback(close)  # the last callback is called first


@dataclass(frozen=True, slots=True)
class Loaded:
    """Data that a stage learns from in addition to its task's problems."""

    value: Any
    fingerprint: str  # digest of the data, so that a resumed run notices a change
    lines: list[tuple[str, str]] = field(default_factory=list)  # for the header: (label, text)
    results: dict[str, Any] = field(default_factory=dict)  # stored in the run directory as NAME.json


# (configuration, problems, test prompts, model, tokenizer) -> data to learn from. Raises UserError.
LoadTrainingData = Callable[[C, Problems, list[Prompt], Any, Any], Loaded]


def open_run(
    config: C,
    notes: dict[str, str],
    training_data: LoadTrainingData[C] | None = None,
    load: Callable[[C], tuple[Any, Any]] = load_model,
    world: World = ALONE,
) -> Setup:
    """Loads everything and prints the choices. Nothing is written before every rank has loaded everything.

    Args:
        training_data: loads data that the stage learns from in addition to its task's problems.
        load: loads the model and its tokenizer.

    Raises:
        UserError: a requested resource is unavailable, or a setting is refused.
    """
    set_up_libraries(config)
    display = Display(loudness=config.verbose - config.quiet, silent=not world.is_main)
    task = find(config.task)
    scorer = together(world, lambda: make_scorer(task, config))
    try:
        return _open_run(config, notes, display, task, scorer, training_data, load, world)
    except BaseException:
        scorer.close()
        raise


def _open_run(
    config: Any,
    notes: dict[str, str],
    display: Display,
    task: Task,
    scorer: Scorer,
    training_data: LoadTrainingData[Any] | None,
    load: Callable[[Any], tuple[Any, Any]],
    world: World,
) -> Setup:
    run_dir = open_dir(config, world, config.task)
    started: list[Started] = []

    def loaded_here() -> Any:
        problems = load_problems(task, config, scorer)
        doubts = try_scorer(task, config, scorer, problems)
        elsewhere = isinstance(config, OnRayConfig) and config.engines_on_ray
        model, tokenizer = load_empty(config) if elsewhere else load(config)
        problems = without_long(problems, config, model, tokenizer)
        tested = problems.test[: config.tested_problems or 1]  # one shows what prompts look like without evaluations
        trained_on = told_apart(problems.train) if isinstance(config, RLConfig) else []
        prompts = make_prompts([*tested, *trained_on], config, model, tokenizer)
        test, train = prompts[: len(tested)], prompts[len(tested) :]
        loaded = None if training_data is None else training_data(config, problems, test, model, tokenizer)
        sharded = isinstance(config, TrainConfig) and config.in_parts(world.size)
        engine, known = open_engine(config, model, tokenizer, display.say, in_parts=sharded, world=world)
        started.append(known)
        return model, tokenizer, problems, doubts, test, train, loaded, engine

    try:
        model, tokenizer, problems, doubts, test, train, loaded, engine = together(world, loaded_here)
        seen = fingerprint(problems) + (f"+{loaded.fingerprint}" if loaded else "")
        refuse_differences(world, config, {"problems": seen}, scorer.reward.versions)
        results = {"reward": describe(scorer.reward), **(loaded.results if loaded else {})}
        if problems.dropped:
            results["dropped"] = {"problems": list(problems.dropped)}
        data = f" or the rows of {config.data}" if getattr(config, "data", None) else ""
        # Stored as a formula, since a task's default may change.
        formula = {"reward": scorer.reward.formula} if isinstance(config, RLConfig) and not config.resume else {}
        kept = config.model_copy(update=formula)
        learns_from = f"the problems of {config.source}{data}"
        said = from_main(world, lambda: begin_run(run_dir, kept, seen, learns_from, results))
    except BaseException:
        for known in started:
            known.engine.close()
        run_dir.discard_if_empty()
        raise
    value = loaded.value if loaded else None
    setup = Setup(run_dir, display, model, tokenizer, engine, started[0], scorer, train, test, value, world=world)
    try:
        with ending(run_dir, display, speaks=world.is_main and config.stage not in RESTARTED):
            lines = loaded.lines if loaded else []
            show_settings(setup, config, notes, problems, lines, [*scorer.reward.warnings, *doubts], said)
    except BaseException:
        setup.close()
        raise
    return setup


def open_dir(config: Any, world: World, learns_from: str) -> RunDir:
    """Opens the run directory, which only the main rank writes to. Raises UserError.

    Args:
        learns_from: a part of the folder's name if there is no --out.
    """
    opened: list[RunDir] = []

    def opened_here() -> Path:
        place = Path(config.out).expanduser() if config.out else claim_path(config.stage, learns_from, config.model)
        restarts = config.stage if config.stage in RESTARTED else None
        opened.append(RunDir(place, resume=config.resume, restarts=restarts))
        opened[0].ranks = world.size
        if isinstance(config, TrainConfig) and config.keep_rollouts != "all":
            opened[0].keep_rollouts = config.keep_rollouts
        return place

    place = from_main(world, opened_here)
    return opened[0] if opened else Unwritten(place)


def set_up_libraries(config: RunConfig) -> None:
    """Silences the libraries' progress bars and warnings; sets torch's number of threads and, for a CPU, its memory."""
    import huggingface_hub
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    huggingface_hub.utils.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()
    assert config.threads is not None  # set by resolve_config
    torch.set_num_threads(config.threads)
    if config.device == "cpu":
        keep_freed_memory()


def begin_run(
    run_dir: RunDir, config: RunConfig, digest: str, learns_from: str, results: Mapping[str, Any] | None = None
) -> list[str]:
    """Writes the files that describe a run, or continues a run. Returns remarks for the user.

    Args:
        digest: digest of all data that the run learns from; `learns_from` names the data in messages.
        results: values that are stored as NAME.json.

    Raises:
        UserError: the data or a model of a resumed run has changed.
    """
    run_dir.settings = fixed_settings(config)
    models = model_digests(config)
    learned = {"problems": digest, "models": models}
    if not config.resume:
        run_dir.write_config(dump(config), stage=config.stage, learned=learned, results=results)
        return []
    kept = read_environment(run_dir.path)
    # Earlier versions stored the first part of the problems' digest only.
    if kept["problems"] not in (None, digest, re.sub(r"\.\w+", "", digest)):
        raise UserError(
            f"--resume: {learns_from} are no longer those that {run_dir.path} began with: restore them, or start a new "
            "run"
        )
    if changed := changed_model(kept["models"], models):
        raise UserError(f"--resume: {changed} changed after {run_dir.path} began: restore it, or start a new run")
    return run_dir.go_on(dump(config), stage=config.stage, learned=learned, results=results or {})


def open_engine(
    config: ProblemsConfig,
    model: Any,
    tokenizer: Any,
    say: Callable[[str], None] = lambda text: None,
    *,
    in_parts: bool = False,
    world: World = ALONE,
) -> tuple[TrustedEngine, Started]:
    """Starts the configured engine, checks it against the model, and returns it with its information.

    Args:
        in_parts: the model will be sharded, so it can't sample itself.
        world: with several ranks, only the main rank talks to servers.

    Raises:
        UserError: the engine can't be started.
    """
    if isinstance(config, OnRayConfig) and config.engines_on_ray:
        started = start_on_nodes(config)
        return TrustedEngine(started.engine, None, lambda: (), pad_id=pad_id(tokenizer)), started
    context = config.max_prompt_tokens + config.max_completion_tokens
    longest = getattr(model.config, "max_position_embeddings", None)
    request = Request(
        config,
        model_path=model_path(config),
        model=model,
        tokenizer=tokenizer,
        dtype=forward_dtype(config),
        context=context if longest is None else min(context, longest),
        say=say,
        in_parts=in_parts,
    )
    if world.size == 1 or not find_engine(config.engine).runs_aside:
        started = start(request)
    elif world.is_main:
        known = start(request)
        assert isinstance(known.engine, ServerEngine)  # all that runs aside
        started = dataclasses.replace(known, engine=RelayedEngine(known.engine, world))
    else:
        started = Started(RelayedEngine(None, world), config.engine, "", name=config.engine)
    return _trusted(config, started.engine, model, tokenizer, say), started


def _trusted(
    config: ProblemsConfig, engine: RolloutEngine, model: Any, tokenizer: Any, say: Callable[[str], None]
) -> TrustedEngine:
    """Returns the engine with a check against the trainer's model after each weight update."""
    canary = None
    tokens = min(config.max_completion_tokens, getattr(config, "canary_tokens", _CANARY_TOKENS))
    if not engine.shares_weights and tokens:
        policy = Policy(
            model,
            pad_id=pad_id(tokenizer),
            temperature=getattr(config, "temperature", 1.0),
            dtype=forward_dtype(config),
        )
        canary = Canary(
            policy,
            tokens=tokens,
            seed=config.seed,
            stop_text=config.stop_text,
            tolerance=getattr(config, "canary_tolerance", None),
            world=engine.world if isinstance(engine, RelayedEngine) else ALONE,
        )
    every = getattr(config, "prove_weights_every", 1)
    return TrustedEngine(
        engine,
        canary,
        lambda: whole_weights(merged_weights(model)),
        pad_id=pad_id(tokenizer),
        proof=WeightProof(forward_dtype(config), file_layout(model)) if every else None,
        prove_every=max(1, every),
        adapter=lambda: adapter_of(model),
        say=lambda text: say(f"lora      {text}"),
    )


def adapt(setup: Setup, config: TrainConfig) -> None:
    """Adds the adapter of `--lora-rank` to the model. Raises UserError."""
    if config.lora_rank:
        setup.display.line("lora", add_adapter(setup.model, config))
