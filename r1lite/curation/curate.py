"""Makes a finished set from a source of completions, in three passes that can each be killed and repeated."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r1lite import __version__
from r1lite.config import CurationConfig
from r1lite.curation import emit
from r1lite.curation.card import card
from r1lite.curation.index import DIFFICULTY, EXACT, MAX_ROWS, NEAR, PER_PROBLEM, STEPS, Index
from r1lite.curation.near import Comparing, Pairing, num_partitions
from r1lite.curation.passes import Job, Open, Passes
from r1lite.curation.scan import DECONTAMINATE, Plan, outcome, verifier_options
from r1lite.errors import RunError, UserError
from r1lite.run.ending import resumption
from r1lite.run.files import read_json, write_json, write_text
from r1lite.scoring.scorer import describe
from verifiers.rows import completion_of

WORK, MANIFEST, CARD = "work", "manifest.json", "README.md"
_EXAMPLES = 3  # rejected rows in the manifest for each reason
_SHOWN = 400  # characters of an example in the manifest


def curate(
    plan: Plan,
    config: CurationConfig,
    folder: Path,
    *,
    workers: Open,
    start: Callable[[str, int], None] = lambda what, total: None,
    progress: Callable[[float], None] = lambda done: None,
) -> dict[str, Any]:
    """Makes the set in `folder`, and reuses the finished work of an earlier, killed call. Returns the manifest.

    Args:
        plan: plan of the first pass; the other passes use the configuration.
        workers: runs the jobs that need the rows' texts, such as `workers.open_workers`.
        start: called with the name and the size of each phase.
        progress: called with the amount of finished work.

    Raises:
        UserError: the source's files have changed since an earlier call.
        RunError: no rows are left; the message names the step that rejected the last row.
    """
    work = folder / WORK
    work.mkdir(exist_ok=True)
    _same_source(plan, work)
    blocks = plan.source.blocks
    with workers(functools.partial(Passes, plan, work), work) as do:

        def finish(jobs: Sequence[tuple[Path, Job]]) -> None:
            """Runs the jobs whose output files are missing."""
            waiting = [(number, job) for number, (path, job) in enumerate(jobs) if not path.exists()]
            for done, _ in enumerate(do(waiting), len(jobs) - len(waiting) + 1):
                progress(done)

        start("verifying and filtering", len(blocks))
        finish([(outcome(work, number)[1], block) for number, block in enumerate(blocks)])
        if plan.near:
            count = num_partitions(work, len(blocks))
            start("pairing near duplicates", count)
            finish([(job.outcome(work), job) for job in (Pairing(i, count, len(blocks)) for i in range(count))])
            start("comparing near duplicates", len(blocks))
            compared = (Comparing(i, count, config.near_threshold) for i in range(len(blocks)))
            finish([(job.outcome(work), job) for job in compared])
    start("choosing", 1)
    try:
        index = Index(work, plan.steps())
    except sqlite3.Error as error:
        raise RunError(f"{work}: {error}; fix this, then continue with {resumption(folder)}") from error
    try:
        index.load(len(blocks))
        for choose in _choices(config, plan).values():
            choose(index)
        _refuse_empty(index, plan)
        data = emit.write_rows(index, folder, config.file_type, keep_rejects=plan.keep_rejects and config.keep_rejects)
        pairs = emit.write_pairs(index, folder, config.pairs, config.format) if config.pairs else None
        problems = emit.write_problems(index, folder)
        manifest = _manifest(index, plan, config, folder, data, problems, pairs)
    except sqlite3.Error as error:
        raise RunError(
            f"{work}: {error}. Finished work is kept; fix this, then continue with {resumption(folder)}"
        ) from error
    finally:
        index.close()
    write_json(folder / "reward.json", describe(plan.reward()))
    write_text(folder / CARD, card(manifest, folder))
    write_json(folder / MANIFEST, manifest)  # last, because the manifest marks a finished folder
    shutil.rmtree(work)
    progress(1)
    return manifest


def _same_source(plan: Plan, work: Path) -> None:
    path = work / "source.json"
    found = plan.source.fingerprint
    if not path.exists():
        write_json(path, found)
        return
    try:
        before = read_json(path, list)
    except UserError as error:
        raise UserError(f"--resume: {error}; remove {work} to repeat all of it") from error
    if before != found:
        raise UserError(f"--resume: the files of {plan.source.location} have changed since this set was begun")


def _choices(config: CurationConfig, plan: Plan) -> dict[str, Callable[[Index], None]]:
    """The steps of the second pass that are used, in order."""
    made: dict[str, Callable[[Index], None]] = {}
    if config.dedup != "none":
        made[EXACT] = Index.drop_exact
    if plan.near:
        made[NEAR] = lambda index: index.drop_near(config.near_threshold)
    if config.difficulty_window:
        made[DIFFICULTY] = lambda index: index.keep_difficulty(config.pass_rate_above, config.pass_rate_below)
    if (each := config.per_problem) is not None:
        made[PER_PROBLEM] = lambda index: index.keep_per_problem(each, config.choose)
    if (most := config.max_rows) is not None:
        made[MAX_ROWS] = lambda index: index.keep_rows(most, config.seed)
    return made


def _refuse_empty(index: Index, plan: Plan) -> None:
    if index.kept():
        return
    steps = _steps(index, plan, *STEPS)
    last = [step for step in steps if step["entered"]][-1]
    why = ", ".join(f"{reason} {count:,}" for reason, count in last["reasons"].items())
    hint = {
        "correct": f"none of the {last['entered']:,} completions is right by '{plan.correct}'",
        DECONTAMINATE: "every question is in an evaluation set: is one of them the training set?",
        DIFFICULTY: "no problem's pass rate is inside the window; use more samples or --no-difficulty-window",
    }.get(last["step"], f"'{last['step']}' rejected all remaining rows")
    raise RunError(f"{plan.source.location}: no rows are left: {hint} ({why})")


def _steps(index: Index, plan: Plan, *used: str) -> list[dict[str, Any]]:
    """The numbers of rows before and after each step."""
    counts = index.counts()
    remaining = sum(sum(reasons.values()) for reasons in counts.values())
    options = {link.name: dict(link.options) for link in plan.chain()}
    found = []
    for number, name in enumerate(index.steps, 1):
        if name in STEPS and name not in used:
            continue
        if name == DECONTAMINATE and not plan.evaluation:
            continue
        reasons = counts.get(number, {})
        lost = sum(reasons.values())
        found.append(
            {
                "step": name,
                **({"options": options[name]} if options.get(name) else {}),
                "entered": remaining,
                "left": remaining - lost,
                "reasons": reasons,
            }
        )
        remaining -= lost
    return found


def _manifest(
    index: Index,
    plan: Plan,
    config: CurationConfig,
    folder: Path,
    data: Mapping[str, Any],
    problems: Mapping[str, Any],
    pairs: int | None,
) -> dict[str, Any]:
    """The manifest's content. It contains no times, so that the same work gives the same bytes."""
    steps = _steps(index, plan, *_choices(config, plan))
    examples: dict[str, list[dict[str, Any]]] = {}
    for fate, reason, seq, problem_id, detail, written in index.examples(_EXAMPLES):
        text = completion_of(index.line(seq)) if written else None
        examples.setdefault(index.steps[fate - 1], []).append(
            {
                "reason": reason,
                "detail": detail,
                "row": seq,
                "problem_id": problem_id,
                **({} if text is None else {"completion": text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [...]"}),
            }
        )
    changed = index.db.execute("SELECT sum(changed) FROM rows").fetchone()[0]
    return {
        "name": folder.resolve().name,
        "stage": config.stage,
        "r1lite": __version__,
        "origin": {"kind": plan.source.kind, **asdict(plan.source.provenance)},
        "format": config.format,
        "data": {"file": f"train.{config.file_type}", **data},
        **({"pairs": pairs} if pairs is not None else {}),
        "steps": [{**step, "examples": examples.get(step["step"], [])} for step in steps],
        "judged_otherwise_before": changed or 0,
        "problems": problems["problems"],
        "problems_unscored": problems["problems_unscored"],
        "pass_rates": problems["pass_rates"],
        "choice": {"per_problem": config.per_problem, "choose": config.choose, "seed": config.seed},
        "dedup": {"kind": config.dedup, "near_threshold": config.near_threshold, **_sketch(plan)},
        "evaluation_sets": {name: len(found) for name, found in plan.evaluation.items()},
        "contamination": {"ngram": plan.ngram, "share": plan.share},
        "verifiers": _verifiers(plan),
    }


def _sketch(plan: Plan) -> dict[str, str]:
    if not plan.near:
        return {}
    import importlib.metadata

    return {"minhash": f"rensa {importlib.metadata.version('rensa')}"}


def _verifiers(plan: Plan) -> dict[str, Any]:
    links = plan.chain()
    options = verifier_options(links)
    return {
        name: {"version": version, "options": options[name]}
        for link in links
        if link.verifier is not None
        for name, version in link.verifier.versions.items()
    }
