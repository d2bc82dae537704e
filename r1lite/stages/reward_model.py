"""`r1lite reward-model`: learn from pairs which answer is preferred, and keep it as a model that scores."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from r1lite.config import RewardModelConfig, dump, validated
from r1lite.errors import Interrupted, UserError
from r1lite.nano import nano_path
from r1lite.preference.pairs import load_pairs
from r1lite.preference.reward_model import load_classifier, text_of
from r1lite.preference.training import Example, PreferenceTraining, examples, fingerprint
from r1lite.report import report_at_end
from r1lite.rl.passk import wilson_interval
from r1lite.run.display import Display
from r1lite.run.ending import ending
from r1lite.run.environment import read_environment
from r1lite.run.resume import resume_point
from r1lite.run.run_dir import RunDir, claim_path
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.trackers import check
from r1lite.trackers.sender import Senders
from r1lite.training.machine import NANO, choose_device, default_threads
from r1lite.training.setup import fixed_settings, resumed, with_absolute_paths

_NANO_LR = 5e-4  # so small a model wants a large one
_MEASURED = ("accuracy", "accuracy_interval", "pairs", "loss", "ece", "brier")  # keys of an evaluation
_FEW_PAIRS = 30  # held out; with fewer, an accuracy's 95 % interval spans more than a third of the scale


def run(config: RewardModelConfig) -> dict[str, Any]:
    """Trains, and measures on the held-out pairs before and after; everything lies in the run directory.

    Returns: the summary, as in summary.json.

    Raises:
        UserError: a requested resource is unavailable, or a choice is refused.
        RunError: the run can't go on; its checkpoints stand.
        Interrupted: a signal asked it to stop; a checkpoint was written.
    """
    with contextlib.ExitStack() as guards:
        stop = guards.enter_context(StopSignal())
        with stop.interruptible():
            config, notes = _settle(config)
            check(config.log_to)
            watchdog = guards.enter_context(Watchdog(config))
            with watchdog.during("load"):
                training, display = _begin(config, notes, watchdog)
        watchdog.folder = training.run_dir.path
        guards.callback(training.run_dir.close)
        senders = Senders(config.log_to, training.run_dir.path, config.log_project, display.say)
        guards.callback(senders.close)
        with ending(training.run_dir, display):
            return _train(training, display, stop, senders)


def _settle(config: RewardModelConfig) -> tuple[RewardModelConfig, dict[str, str]]:
    given = config.model_dump(include=set(config.model_fields_set))
    if config.resume:
        return resumed(config, given), {}
    device, notes = choose_device(config.device)
    values = {**given, "device": device}
    if config.model is None:
        values["model"], notes["model"] = NANO, "the bundled model; give yours with --model"
    if values["model"] == NANO and "lr" not in given:
        values["lr"], notes["settings"] = _NANO_LR, f"lr {_NANO_LR:g}, which suits nano"
    values.setdefault("threads", default_threads())
    return validated(type(config), with_absolute_paths(values)), notes


def _begin(config: RewardModelConfig, notes: dict[str, str], watchdog: Watchdog) -> tuple[PreferenceTraining, Display]:
    """Loads everything. Nothing is written until all of it could be loaded."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    assert config.threads is not None  # settled
    torch.set_num_threads(config.threads)
    display = Display(loudness=config.verbose - config.quiet)
    assert config.source is not None
    assert config.model is not None
    base = config.model
    pairs = load_pairs(
        config.source,
        test_source=config.test_source,
        hold_out=config.hold_out,
        margin_column=config.margin_column,
        splits=(config.train_split, config.test_split),
    )
    model, tokenizer = load_classifier(str(nano_path()) if base == NANO else base, seed=config.seed)
    if config.template is None:
        template = "chat" if getattr(tokenizer, "chat_template", None) else "short"
        config = config.model_copy(update={"template": template})
    text_of("a", "b", str(config.template), tokenizer)
    train, test, dropped = _encoded(config, pairs.train, pairs.test, model, tokenizer)
    try:
        model.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {config.device}: {error}") from error
    place = Path(config.out).expanduser() if config.out else claim_path(config.stage, "pairs", base)
    run_dir = RunDir(place, resume=config.resume)
    try:
        seen = fingerprint(train, test)
        if config.resume and read_environment(run_dir.path)["problems"] not in (None, seen):
            raise UserError(
                f"--resume: the pairs of {config.source} are no longer those that {run_dir.path} began with"
            )
        run_dir.settings = fixed_settings(config)
        if config.resume:
            said = run_dir.go_on(dump(config), stage=config.stage, problems=seen, results={})
        else:
            said = []
            run_dir.write_config(dump(config), stage=config.stage, problems=seen)
        training = PreferenceTraining(config, run_dir, model, tokenizer, train, test, watchdog)
    except BaseException:
        run_dir.discard_if_empty()
        raise
    size = sum(p.numel() for p in model.parameters())
    for label, text in [
        ("device", f"{config.device}, {config.threads} threads" + _note(notes, "device")),
        ("model", f"{config.model}, {size / 1e6:.2f} M parameters" + _note(notes, "model")),
        ("pairs", f"{pairs.origin}: {len(train):,} to train on, {len(test):,} to measure by"),
        *([("warning", few)] if (few := _few(len(test))) is not None else []),
        *([("dropped", f"{dropped} pairs longer than --max-tokens {config.max_tokens}")] if dropped else []),
        ("template", f"{config.template}"),
        *([("settings", notes["settings"])] if "settings" in notes else []),
        ("run", f"{run_dir.path}{' (resumed)' if config.resume else ''}"),
        *(("warning", line) for line in said),
    ]:
        display.line(label, text)
    return training, display


def _few(held_out: int) -> str | None:
    """A warning if so many held-out pairs tell little of the model."""
    if held_out >= _FEW_PAIRS:
        return None
    low, high = wilson_interval(held_out / 2, held_out)
    return (
        f"only {held_out} held-out pairs: an accuracy of 50 % on them has a 95 % interval of {100 * low:.0f}-"
        f"{100 * high:.0f} %; give more by --test-source or a larger --hold-out"
    )


def _encoded(
    config: RewardModelConfig, train: Any, test: Any, model: Any, tokenizer: Any
) -> tuple[list[Example], list[Example], int]:
    context = getattr(model.config, "max_position_embeddings", None)
    longest = config.max_tokens if context is None else min(config.max_tokens, context)
    made, dropped = [], 0
    for rows in (train, test):
        found = examples(rows, str(config.template), tokenizer)
        kept = [e for e in found if max(len(e.chosen), len(e.rejected)) <= longest]
        if len(kept) < len(found) and config.overlong == "error":
            worst = max(found, key=lambda e: max(len(e.chosen), len(e.rejected)))
            raise UserError(
                f"{len(found) - len(kept)} of {len(found)} pairs are longer than {longest} tokens (--max-tokens, and "
                f"the model's context); the longest, {worst.place}, has {max(len(worst.chosen), len(worst.rejected))}. "
                "--overlong drop leaves them out"
            )
        dropped += len(found) - len(kept)
        if not kept:
            raise UserError(f"--source {config.source}: no pair is at most {longest} tokens long")
        made.append(kept)
    return made[0], made[1], dropped


def _train(training: PreferenceTraining, display: Display, stop: StopSignal, senders: Senders) -> dict[str, Any]:
    config, run_dir, steps = training.config, training.run_dir, training.steps
    first, saved = resume_point(config, run_dir, steps, display.say) if config.resume else (0, None)
    finished = run_dir.read_result("summary", ("steps",), display.say) if config.resume and first == steps else None
    if finished is not None and finished["steps"] == steps:
        display.say("this run is finished already")
        if config.report:
            report_at_end(run_dir.path, display.say, if_missing=True)
        return finished  # type: ignore[no-any-return]
    # Before the checkpoint's weights take their place: what was lost is measured again with those the run began with.
    before = run_dir.read_result("eval_before", _MEASURED, display.say)
    if before is None:
        if saved is not None:
            display.say("eval_before.json was lost: measuring the first weights once more")
        with stop.interruptible():
            before = training.measure()
        run_dir.write_result("eval_before", before)
    if config.resume:
        training.restore(first, saved, display.say)
    display.say(f"before    {_told(before)}")
    senders.begin(steps)
    display.start("training", steps, first)
    evaluated = {record["step"] for record in run_dir.evaluations()}
    done = first
    try:
        for step in range(first, steps):
            if config.eval_every and step and step % config.eval_every == 0 and step not in evaluated:
                with stop.interruptible():
                    measured = training.measure()
                run_dir.append_evaluation({"step": step, **measured})
            metrics = training.step(step)
            run_dir.append_metrics({"step": step + 1, **metrics})
            done = step + 1
            display.step(done, steps, metrics)
            if metrics["out_of_memory"]:
                display.say(
                    f"step {done}: out of memory; from here on a micro-batch is at most "
                    f"{metrics['micro_batch_tokens']} tokens (--micro-batch-tokens)"
                )
            if done % config.save_every == 0 or done == steps:
                training.save(done)
            stop.check()
    except (Interrupted, BrokenPipeError, SystemExit):
        if done > first or training.saved is None:
            training.save(done)
        raise
    display.finish()
    with stop.interruptible():
        after = training.measure()
    run_dir.write_result("eval_after", after)
    summary = {
        "eval_before": before,
        "eval_after": after,
        "steps": steps,
        "pairs": len(training.train),
        "held_out_pairs": len(training.test),
        "device": config.device,
        "model": config.model,
        "source": config.source,
        "template": config.template,
        "checkpoint": str(training.saved),
    }
    run_dir.write_result("summary", summary)
    display.say(f"after     {_told(after)}")
    display.line("model", f"{training.saved}")
    display.line("use", f'--reward "rm:{run_dir.path}"')
    if config.report:
        report_at_end(run_dir.path, display.say)
    return summary


def _told(measured: dict[str, Any]) -> str:
    low, high = measured["accuracy_interval"]
    return (
        f"accuracy {measured['accuracy']:.1%} (95 % interval {100 * low:.1f}-{100 * high:.1f}) on "
        f"{measured['pairs']} held-out pairs, loss {measured['loss']:.3f}, calibration error {measured['ece']:.3f}, "
        f"Brier {measured['brier']:.3f}"
    )


def _note(notes: dict[str, str], key: str) -> str:
    return f" ({notes[key]})" if key in notes else ""
