"""Checks that run before torch is imported, so that wrong usage is reported without delay."""

from __future__ import annotations

from pathlib import Path

from r1lite.config import CurationConfig, EvalConfig, ProblemsConfig, RunConfig, Section
from r1lite.errors import UserError
from r1lite.run.records import ROLLOUTS
from r1lite.run.run_dir import check_place
from r1lite.scoring.scorer import rewards_of
from r1lite.tasks import Source, Task, find
from verifiers.formula import Formula
from verifiers.registry import LEARNED

RESTARTED = ("eval",)  # stages that can't be resumed


def check_early(config: Section) -> None:
    """Checks run directory, task, source and formulas; the stage itself makes all other checks. Raises UserError.

    The settings of a resumed run are read and checked by the stage.
    """
    if not isinstance(config, RunConfig) or config.resume:
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


def _check_source(task: Task, config: ProblemsConfig, source: str) -> None:
    check = getattr(task.load, "check", None)  # a user's loader may have none
    if check is not None:
        check(Source(source, config.test_source, config.test_split))


def _check_formulas(task: Task, config: ProblemsConfig) -> None:
    """Checks the formulas, except for reward models, which need torch."""
    texts = [getattr(config, "reward", None) or task.reward, getattr(config, "verifier", None) or task.correct]
    uses = [str(options.get("use", "")) for options in getattr(config, "verifiers", {}).values()]
    try:
        names = [name for text in texts for name in Formula(text).names]
    except ValueError:  # reported below, with its flag
        names = []
    if not any(name.startswith(LEARNED) for name in (*names, *uses)):
        rewards_of(task, config)
