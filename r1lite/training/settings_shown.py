"""The lines that a run prints when it opens: its settings, and what is doubtful about its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from r1lite.config import RLConfig
from r1lite.config.presets import PRESETS
from r1lite.errors import listing
from r1lite.evaluation.intervals import few
from r1lite.rollout.build import Started
from r1lite.run.display import Display
from r1lite.tasks import Problems
from r1lite.training.loading import forward_dtype

if TYPE_CHECKING:
    from r1lite.training.setup import Setup


def show_settings(
    setup: Setup,
    config: Any,
    notes: dict[str, str],
    problems: Problems,
    lines: Sequence[tuple[str, str]],
    doubts: Sequence[str],
    warnings: Sequence[str],
) -> None:
    """Prints the settings of a run: lines of its data set, doubts about its reward, warnings about its directory."""
    display, world, test = setup.display, setup.world, setup.test
    precision = forward_dtype(config)
    size = sum(p.numel() for p in setup.model.parameters())
    device = (
        f"{config.device}, {config.threads} thread{'s' * (config.threads > 1)}, {str(precision).removeprefix('torch.')}"
    )
    counts = f"{len(problems.train):,} to train on, {len(problems.test):,} to test"
    if world.size > 1:
        device += f", {world.size} ranks, --shard {getattr(config, 'shard', 'none')}"
    display.line("device", _noted(device, notes.get("device")))
    display.line("engine", _noted(_engine_line(setup.started), notes.get("engine")))
    display.line("model", _noted(f"{config.model}, {_millions(size)} parameters", notes.get("model")))
    display.line("problems", _noted(f"{problems.origin}: {counts}", notes.get("source")))
    if config.tested_problems:
        lines = [*few(len(problems.test), "test problem", "add problems, or set --test-source"), *lines]
    if test[0].prefill:
        display.line("prompt", _prefill_line(config.template, test[0].prefill))
    for label, text in lines:
        display.line(label, text)
    display.line("reward", str(setup.scorer.reward))
    for warning in doubts:
        display.line("warning", warning)
    show_dropped(display, problems)
    if conflicts := problems.conflicts():
        what = "a question occurs" if len(conflicts) == 1 else f"{len(conflicts):,} questions occur"
        display.line("warning", f"{what} with different golds, so right answers may be paid nothing: {conflicts[0]}")
    if isinstance(config, RLConfig) and (shared := problems.trained_on()):
        first = problems.location(shared[0]).removesuffix(": ") or shared[0].name
        display.line(
            "warning",
            f"{len(shared):,} of {len(problems.test):,} test problems are also trained on, so the test's accuracy is "
            f"too high; remove them from one side, the first is {first}",
        )
    if (preset := getattr(config, "preset", None)) is not None:
        display.line(
            "preset",
            f"{preset} ({PRESETS[preset].paper}), overridden by other settings; r1lite show-preset {preset} lists it",
        )
    if "settings" in notes:
        display.line("settings", notes["settings"])
    display.line("run", f"{setup.run_dir.path}{' (resumed)' if config.resume else ''}")
    for line in warnings:
        display.line("warning", line)


def show_dropped(display: Display, problems: Problems) -> None:
    """Prints how many problems can't be used and are left out, and the first of them."""
    if dropped := problems.dropped:
        total = len(dropped) + len(problems.train) + len(problems.test)
        display.line("warning", f"{len(dropped):,} of {total:,} problems can't be used and are left out:")
        for line in listing(dropped).splitlines():
            display.line("", line)


def _prefill_line(template: str, prefill: str) -> str:
    """Returns a line about the part of the reply that the prompt contains."""
    what = "the model's chat template" if template == "chat" else "the template"
    if "</" in prefill:
        return f"{what} closes the reasoning before the model writes, so the format only requires the answer block"
    return f"{what} opens {prefill} itself, so completions start inside this block and are verified accordingly"


def _engine_line(started: Started) -> str:
    return started.line if started.start_s < 1 else f"{started.line}, ready after {started.start_s:.1f} s"


def _noted(text: str, note: str | None) -> str:
    return f"{text} ({note})" if note else text


def _millions(count: int) -> str:
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"
