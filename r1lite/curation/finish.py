"""A complete curation run, shared by `reject` and `cold-start`. Without sampling it doesn't load torch."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from r1lite.config import (
    OF_THE_COMMAND,
    CurationConfig,
    dump,
    read_saved,
    refuse_changes,
    trust,
    validated,
    without_open,
)
from r1lite.curation.curate import CARD, MANIFEST, WORK, curate
from r1lite.curation.emit import PAIRS
from r1lite.curation.on_ray import open_nodes
from r1lite.curation.opening import open_source
from r1lite.curation.passes import Open
from r1lite.curation.planning import evaluation_sets, make_plan, task_of, version_warnings
from r1lite.curation.rewrite import FOLDER as REWRITTEN
from r1lite.curation.rewrite import Rewrite, Rewriter, rewrite_all
from r1lite.curation.scan import Plan
from r1lite.curation.workers import open_workers
from r1lite.errors import UserError
from r1lite.hub.upload import SET_FILES, push
from r1lite.report import report_at_end
from r1lite.run.display import Display
from r1lite.run.ending import ending
from r1lite.run.places import claim_path, path_to_resume
from r1lite.run.run_dir import RunDir
from r1lite.run.signals import StopSignal
from verifiers.commands.storage import is_remote
from verifiers.cores import available
from verifiers.on_ray import Resources

C = TypeVar("C", bound=CurationConfig)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewrites right completions before they are curated."""

    name: str  # for the rows' provenance
    # May load a model, so it is only entered if there is work to do; sent to the nodes of a cluster.
    make: Callable[[], AbstractContextManager[Rewrite]]
    by_model: bool


_FINISHED = ("data", "steps", "stage", "name")  # keys of a complete manifest
_MAY_CHANGE = {"workers", "on", "engine_actors", "push_to_hub", "threads", "rollout_rows"}


def finish(
    config: CurationConfig, run_dir: RunDir, display: Display, plan: Plan, rewriting: Rewriting | None
) -> dict[str, Any]:
    """Runs a plan in the run directory, uploads the set if requested, and prints a report. Returns the manifest."""
    for warning in version_warnings(plan):
        display.line("warning", warning)
    display.line("filters", ", ".join(link.spec for link in plan.chain()))
    sets = [f"{name} ({len(problems):,} problems)" for name, problems in plan.evaluation.items()]
    display.line("decontaminated", ", ".join(sets) or "no: no evaluation set is given (--decontaminate)")

    def start(what: str, total: int) -> None:
        display.finish()
        display.start(what, total)

    if rewriting is not None:
        start(f"rewriting by {rewriting.name}", len(plan.source.blocks))
        folder = run_dir.path / REWRITTEN
        make = functools.partial(Rewriter, plan, folder, rewriting.name, rewriting.make)
        workers = _rewriters(config, display, plan, by_model=rewriting.by_model)
        source = rewrite_all(plan, folder, rewriting.name, functools.partial(workers, make), display.progress)
        plan = dataclasses.replace(plan, source=source)
    manifest = curate(
        plan, config, run_dir.path, workers=_workers(config, display, plan), start=start, progress=display.progress
    )
    display.finish()
    report(config, run_dir.path, manifest, display)
    if config.report:
        report_at_end(run_dir.path, display.say)
    return manifest


def _workers(config: CurationConfig, display: Display, plan: Plan) -> Open:
    """Opens the workers that verify and compare blocks."""
    if config.on == "local":
        return functools.partial(open_workers, workers=config.workers or available())
    return functools.partial(open_nodes, plan=plan, on=config.on, resources=Resources(config.workers), say=display.say)


def _rewriters(config: CurationConfig, display: Display, plan: Plan, *, by_model: bool) -> Open:
    """Opens the workers that rewrite blocks."""
    if not (config.engines_on_ray if by_model else config.on != "local"):
        return functools.partial(open_workers, workers=1)
    resources = config.engines if by_model else Resources(config.workers)
    return functools.partial(open_nodes, plan=plan, on=config.on, resources=resources, say=display.say)


def report(config: CurationConfig, folder: Path, manifest: dict[str, Any], display: Display) -> None:
    """Prints the steps as a table, and the set's path; uploads the set on request."""
    from rich.table import Table

    table = Table(title="Rows", title_justify="left", title_style="bold")
    for heading in ("step", "entered", "left"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    table.add_column("rejected because")
    for step in manifest["steps"]:
        why = ", ".join(f"{reason} {count:,}" for reason, count in step["reasons"].items())
        table.add_row(step["step"], f"{step['entered']:,}", f"{step['left']:,}", why)
    display.console.print(table)
    data = manifest["data"]
    display.console.print(f"{data['rows']:,} rows of {data['problems']:,} problems in {folder / data['file']}")
    pairs = [f"{PAIRS} ({manifest['pairs']:,} pairs)"] if "pairs" in manifest else []
    display.line("set", f"{folder}: {', '.join([data['file'], *pairs, MANIFEST, CARD])}")
    if config.push_to_hub is not None:
        where = push(folder, config.push_to_hub, kind="dataset", files=SET_FILES, what="set")
        display.line("uploaded", where)


def run_on_rollouts(config: C, rewriting: Rewriting | None = None) -> dict[str, Any]:
    """Curates existing completions. Returns the manifest.

    Raises:
        UserError: a requested resource is unavailable, or a setting is invalid.
        RunError: no rows are left.
        Interrupted: a signal stopped the run; --resume continues it.
    """
    config = resumed(config) if config.resume else config
    assert config.rollouts is not None
    config = with_absolute_paths(config)
    source = open_source(str(config.rollouts))
    display = Display(loudness=config.verbose - config.quiet)
    task = task_of(config, source)
    place = Path(config.out).expanduser() if config.out else claim_path(config.stage, task.name, source.path.stem)
    if not source.url and place.resolve() == source.path.resolve():
        raise UserError(f"--out {place} is the same as --rollouts; choose another folder")
    run_dir = RunDir(place, resume=config.resume)
    try:
        with StopSignal() as stop, stop.interruptible():
            if (finished := done_already(config, run_dir, display)) is not None:
                return finished
            # All invalid settings are reported before anything is written to the folder.
            plan = make_plan(config, task, source, evaluation_sets(config, task, None, source))
            if not config.resume:
                run_dir.write_config(dump(config), stage=config.stage, learned={"problems": ""})
            display.line("source", f"{source.location}: {len(source.files):,} file{'s' * (len(source.files) > 1)}")
            display.line("run", f"{run_dir.path}{' (resumed)' if config.resume else ''}")
            with ending(run_dir, display):
                return finish(config, run_dir, display, plan, rewriting)
    finally:
        display.finish()
        run_dir.discard_if_empty()


def done_already(config: CurationConfig, run_dir: RunDir, display: Display) -> dict[str, Any] | None:
    """Prints a message and returns the manifest if the run is already finished; otherwise returns None."""
    manifest: dict[str, Any] | None = None
    if config.resume:
        manifest = run_dir.read_result(MANIFEST.removesuffix(".json"), _FINISHED, display.say)
    if manifest is not None:
        shutil.rmtree(run_dir.path / WORK, ignore_errors=True)  # left over if the run was killed at its end
        display.say("this set is already finished")
        report(config, run_dir.path, manifest, display)
        if config.report:
            report_at_end(run_dir.path, display.say, if_missing=True)
    return manifest


def with_absolute_paths(config: C) -> C:
    """The configuration with absolute paths, so that the run can be continued from another folder."""
    update: dict[str, Any] = {}
    if config.rollouts is not None and not is_remote(config.rollouts):
        update["rollouts"] = str(Path(config.rollouts).expanduser().resolve())
    if config.decontaminate is not None:
        files = {name: Path(name).expanduser() for name in config.decontaminate if name not in ("test", "none")}
        update["decontaminate"] = [
            str(files[name].resolve()) if name in files else name for name in config.decontaminate
        ]
    return config.model_copy(update=update)


def resumed(config: C) -> C:
    """The configuration that a run began with. Raises UserError if a setting was changed that can't change."""
    path = path_to_resume(config.out, config.stage)
    saved = read_saved(path / "config.yaml", type(config))
    given = without_open(with_absolute_paths(config).model_dump(include=set(config.model_fields_set)))
    trust.check(saved, path / "config.yaml", said=given, trust=config.trust)
    refuse_changes(path, saved, given, _MAY_CHANGE)
    kept = {key: value for key, value in given.items() if key in OF_THE_COMMAND | _MAY_CHANGE}
    return validated(type(config), {**saved, **kept, "out": str(path)}, recipe=f"{path}/config.yaml")
