"""Checks that run before torch is imported, so that wrong usage is reported without delay."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from r1lite.config import CurationConfig, EvalConfig, ProblemsConfig, RunConfig, Section, TrainConfig
from r1lite.config.distill import SHAPED
from r1lite.errors import UserError
from r1lite.hub.revisions import is_cached, is_path
from r1lite.nano import MODELS
from r1lite.run.places import check_place
from r1lite.run.records import ROLLOUTS
from r1lite.scoring.scorer import rewards_of
from r1lite.tasks import Source, Task, find
from r1lite.tasks.rows import hub_reachable
from verifiers.core import did_you_mean
from verifiers.formula import Formula
from verifiers.registry import LEARNED

_MODELS = ("model", "teacher", "against", "critic_model", "rewrite_model", "tokenizer", "start")  # options
RESTARTED = ("eval",)  # stages that can't be resumed


def check_early(config: Section) -> None:
    """Checks models' names, run directory, task, source and formulas. Raises UserError.

    The stage itself makes all other checks. The settings of a resumed run are read and checked by the stage.
    """
    if getattr(config, "resume", False):
        return
    for key in _MODELS:
        unused = key == "model" and getattr(config, "rollouts", None) is not None
        if isinstance(name := getattr(config, key, None), str) and name != SHAPED and not unused:
            refuse_missing(f"--{key.replace('_', '-')} {name}", name)
    if isinstance(config, TrainConfig) and config.lora_rank and importlib.util.find_spec("peft") is None:
        raise UserError(f"--lora-rank {config.lora_rank} needs peft: pip install 'r1lite[lora]'")
    if not isinstance(config, RunConfig):
        return
    if config.out is not None:
        check_place(Path(config.out).expanduser(), config.stage if config.stage in RESTARTED else None)
    replayed = getattr(config, "replay_order", None)
    if replayed is not None and not (Path(replayed) / ROLLOUTS).is_dir():
        raise UserError(f"--replay-order {replayed}: there is no run with {ROLLOUTS}/")
    if not isinstance(config, ProblemsConfig) or (isinstance(config, CurationConfig) and config.rollouts is not None):
        return
    tasks = [find(name) for name in (config.tasks if isinstance(config, EvalConfig) else [config.task])]
    if len(tasks) == 1 and config.source is not None:  # with several tasks, the stage parses the source of each
        _check_source(tasks[0], config, config.source)
    for task in tasks:
        _check_formulas(task, config)


def refuse_missing(said: str, name: str) -> None:
    """Raises UserError if there is no model of this name or path here and none can be fetched; reads no model.

    Args:
        said: the option with its value, for the message.
    """
    if name in MODELS or Path(name).expanduser().exists():
        return
    if is_path(name):
        raise UserError(f"{said}: no such folder here")
    if not is_cached(name) and not hub_reachable():
        hint = did_you_mean(name, MODELS)
        raise UserError(
            f"{said}: no such folder here, no such model in the cache, and the Hugging Face Hub is unreachable"
            + (f"; {hint}" if hint else "")
        )


def _check_source(task: Task, config: ProblemsConfig, source: str) -> None:
    check = getattr(task.load, "check", None)  # a user's loader may have none
    if check is not None:
        check(Source(source, config.test_source, config.test_split))


def _check_formulas(task: Task, config: ProblemsConfig) -> None:
    """Checks the formulas; of reward models, which need torch, only that they exist."""
    texts = {
        "--reward": getattr(config, "reward", None) or task.reward,
        "--verifier": getattr(config, "verifier", None) or task.correct,
    }
    uses = [("verifiers:", str(options.get("use", ""))) for options in getattr(config, "verifiers", {}).values()]
    try:
        named = [(option, name) for option, text in texts.items() for name in Formula(text).names]
    except ValueError:  # reported below, with its flag
        named = []
    learned = [(option, name) for option, name in (*named, *uses) if name.startswith(LEARNED)]
    for option, name in learned:
        refuse_missing(f"{option} {name}", name.removeprefix(LEARNED))
    if not learned:
        rewards_of(task, config)
