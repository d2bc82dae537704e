"""Resolves a stage's configuration: fills in open settings, and keeps a resumed run to its own settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from r1lite import __version__
from r1lite.config import (
    OF_ONE_ENGINE,
    OF_THE_COMMAND,
    EngineConfig,
    EvalConfig,
    ProblemsConfig,
    RunConfig,
    WatchdogConfig,
    read_saved,
    refuse_changes,
    trust,
    validated,
    without_open,
)
from r1lite.config.distill import SHAPED
from r1lite.config.engines import find_engine
from r1lite.config.presets import preset_values
from r1lite.errors import UserError
from r1lite.nano import MODELS
from r1lite.run.environment import SCHEMA, read_environment
from r1lite.run.places import path_to_resume
from r1lite.scoring.scorer import penalized
from r1lite.tasks import find
from r1lite.training.machine import (
    check_step,
    choose,
    default_threads,
    environment_threads,
    fitted_length,
    located,
    recipe_for,
)

C = TypeVar("C", bound=ProblemsConfig)
R = TypeVar("R", bound=RunConfig)

# Settings that may change on resume: the length of the run, and what is evaluated or stored during it.
_MAY_CHANGE = {
    *("steps", "epochs", "save_every", "keep_checkpoints", "keep_rollouts", "checkpoint_dtype", "record_tokens"),
    *("eval_every", "eval_problems", "eval_samples", "eval_sample_problems"),
    # To get past an out-of-memory error; sums are then rounded in another order, so bits may differ.
    *("max_unscored_rate", "micro_batch_tokens", "rollout_rows", "gradient_checkpointing", "threads", "shard"),
    *("shard_copies", "offload_optimizer", "offload_reference"),
    *("scoring", "score_workers", "on", "engine_actors"),
    *(EngineConfig.model_fields.keys() - RunConfig.model_fields.keys()),
    *WatchdogConfig.model_fields,
    *("workers", "push_to_hub"),  # of a curated set; its content does not depend on them
}
_ADDED = frozenset({"bad_problems"})  # settings that runs of this version may lack, as it is not released yet
_MODELS = ("model", "teacher")  # fields that name a model
# Fields that may hold a path.
_PATH_FIELDS = ("model", "source", "test_source", "data", "teacher", "engine_weights_dir", "replay_order")


def resolve_config(config: C) -> tuple[C, dict[str, str]]:
    """Fills in settings that the user left open. Returns (configuration, notes by field).

    A resumed run keeps its own configuration. Otherwise device, model and source depend on the machine, and the recipe
    of the model replaces other defaults.

    Raises:
        UserError: a setting that can't be used here, or that a resumed run can't change.
    """
    named = {key: name for key in _MODELS if isinstance(name := getattr(config, key, None), str)}
    config = config.model_copy(update={key: located(name) for key, name in named.items()})
    given = config.model_dump(include=set(config.model_fields_set))
    if config.resume:
        return resumed(config, given), {}
    choice = choose(config)
    if (threads := environment_threads()) is not None:
        given.setdefault("threads", threads)
    values = {**given, **choice.values}
    notes = dict(choice.notes)
    preset = preset_values(str(values["preset"]), config.stage) if values.get("preset") else {}
    recipe = recipe_for(values["model"], type(config), config.task, preset)
    if recipe is not None:
        where, keys = recipe
        if "source" in keys and config.source is None:
            values["source"] = keys["source"]
            notes.pop("source", None)
        recipe_lr, (keys, updates) = keys.get("lr"), _suited_to_preset(keys, values, config)
        replaces = {"epochs"} if given.get("steps") else set()  # settings that a given one takes the place of
        taken = {k: value for k, value in keys.items() if value is not None and k not in given.keys() | replaces}
        if taken:
            notes["settings"] = f"{where}: {_listed(taken)}"
        if "lr" in taken and updates > 1:
            notes["settings"] += f"; lr is the recipe's {recipe_lr:g} / sqrt({updates} updates per rollout)"
        if replaced := {key: preset[key] for key, value in taken.items() if preset.get(key, value) != value}:
            notes["settings"] += f"; they override the preset's {_listed(replaced)}"
        values = {**keys, **values}
    if isinstance(config, EvalConfig) and "max_completion_tokens" not in values:
        fitted = fitted_length(config, values["model"])
        if fitted is not None:
            values["max_completion_tokens"], why = fitted
            notes["model"] = f"{notes['model']}; {why}" if "model" in notes else why
    values.setdefault("threads", default_threads())
    if (stop_text := find(config.task).stop_text) is not None:
        values.setdefault("stop_text", stop_text)
    if "importance" in type(config).model_fields:
        values |= _resolved_rollout({**preset, **values})
    settled = validated(type(config), with_absolute_paths(values))
    check_step(settled)
    return settled, notes


def _suited_to_preset(keys: dict[str, Any], values: dict[str, Any], config: Any) -> tuple[dict[str, Any], int]:
    """Adapts a bundled model's recipe to a preset. Returns (settings, number of updates per rollout).

    The recipe's learning rate, for one update per rollout, is divided by the square root of the number of updates. The
    critic's rate keeps the preset's ratio to it. Thinking is interrupted at half of the maximum completion length.
    """
    if not values.get("preset") or "lr" not in keys:
        return keys, 1
    preset = preset_values(str(values["preset"]), config.stage)
    known = {**preset, **keys, **values}
    updates = int(known.get("minibatches", 1)) * int(known.get("updates_per_rollout", 1))
    suited = {**keys, "lr": float(f"{keys['lr'] / math.sqrt(updates):.3g}")}
    if "interrupt_thinking_after" in preset:  # the paper's phrase alone takes 40 tokens of nano
        suited["interrupt_thinking_after"] = known["max_completion_tokens"] // 2
    if "critic_lr" in preset and "lr" in preset:
        suited["critic_lr"] = float(f"{suited['lr'] * preset['critic_lr'] / preset['lr']:.3g}")
    return suited, updates


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _resolved_rollout(values: dict[str, Any]) -> dict[str, Any]:
    """Returns settings that follow from the engine. Raises UserError for settings that it does not support."""
    engine = values["engine"]
    if values.get("max_staleness") and not find_engine(engine).runs_aside:
        raise UserError(
            f"--max-staleness {values['max_staleness']}: {engine} samples in the trainer's process, on its device, so "
            "sampling ahead gains nothing; use --engine vllm-server"
        )
    if values.get("importance", "auto") != "auto":
        return {}
    if values.get("ratio_to") == "engine":
        return {"importance": "off"}
    # An engine that truncates its distribution renormalizes the rest: pi/mu is the probability mass that it kept.
    cut = values.get("top_p", 1.0) < 1 or values.get("top_k", 0) > 0 or values.get("min_p", 0.0) > 0
    return {"importance": "off" if find_engine(engine).shares_weights and not cut else "token"}


def resumed(config: R, given: dict[str, Any]) -> R:
    """Returns the configuration of the run in `out` with the permitted changes of `given`. Raises UserError."""
    path = path_to_resume(config.out, config.stage)
    saved = read_saved(path / "config.yaml", type(config))
    if missing := {"device", "threads", "model", "source"} - {key for key, value in saved.items() if value is not None}:
        raise UserError(f"--resume: {path}/config.yaml is damaged: it lacks {', '.join(sorted(missing))}")
    check_whole(path, type(config), saved)
    given = without_open(given)
    if "engine" in given and given["engine"] != saved.get("engine"):
        saved = {key: value for key, value in saved.items() if key not in OF_ONE_ENGINE}
    trust.check(saved, path / "config.yaml", said=given, trust=config.trust)
    given = with_absolute_paths(given)
    penalty = saved.get("overlong_penalty")
    if "reward" in given and isinstance(penalty, int | float):
        given["reward"] = penalized(given["reward"], penalty)  # as it is stored
    refuse_changes(path, saved, given, _MAY_CHANGE)
    values = {**saved, **given, "out": str(path)}
    if "importance" in saved and values.get("engine") != saved.get("engine"):
        chosen = _resolved_rollout({**saved, "importance": "auto"})["importance"]
        if saved["importance"] == chosen:  # another engine may need another correction, unless one was named
            values |= _resolved_rollout({**values, "importance": "auto"})
    return validated(type(config), values, recipe=f"{path}/config.yaml")


def check_whole(path: Path, config_class: type[RunConfig], saved: dict[str, Any]) -> None:
    """Raises UserError if keys are missing from a config.yaml that this version of r1lite wrote."""
    about = read_environment(path)
    if about.get("r1lite") != __version__ or about.get("schema") != SCHEMA:
        return  # another version may have had fewer settings
    if missing := sorted(set(config_class.model_fields) - OF_THE_COMMAND - _ADDED - set(saved)):
        raise UserError(
            f"--resume: {path}/config.yaml is damaged: it lacks {', '.join(missing)}; restore it from a "
            "copy, or start a new run"
        )


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the settings that can't change during a run. Paths are not included, since files may be moved."""
    follows = {"importance"}  # depends on the engine, which may change
    settings = config.model_dump(mode="json", exclude={*OF_THE_COMMAND, *_MAY_CHANGE, *_PATH_FIELDS, *follows})
    # JSON has no infinity.
    return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in settings.items()}


def with_absolute_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Makes paths absolute, so that a run can be resumed from another folder. Built-in names are not paths."""
    places = {key: values[key] for key in _PATH_FIELDS if values.get(key) is not None}
    files = {
        key: place for key, place in places.items() if place not in (*MODELS, SHAPED, "hub", "bundled", "generated")
    }
    return values | {key: str(Path(place).resolve()) for key, place in files.items() if Path(place).exists()}
