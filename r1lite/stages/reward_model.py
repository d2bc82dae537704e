"""`r1lite reward-model`: trains a model on pairs of answers to score which one is preferred."""

from __future__ import annotations

from typing import Any

from r1lite.config import RewardModelConfig, validated
from r1lite.distributed.together import from_main, together
from r1lite.distributed.world import World
from r1lite.errors import UserError
from r1lite.evaluation.intervals import few
from r1lite.nano import model_place
from r1lite.preference.pairs import load_pairs
from r1lite.preference.reward_model import load_classifier, text_of
from r1lite.preference.training import Example, PreferenceTraining, examples, fingerprint
from r1lite.run.display import Display
from r1lite.training.lifecycle import run_life
from r1lite.training.machine import NANO, choose_device, default_threads
from r1lite.training.resolve import resumed, with_absolute_paths
from r1lite.training.setup import begin_run, open_dir, set_up_libraries
from r1lite.training.several import loads_for_parts, refuse_differences

_NANO_LR = 5e-4  # a small model needs a large learning rate


def run(config: RewardModelConfig) -> dict[str, Any]:
    """Trains a model and evaluates it on the held-out pairs before and after.

    Returns: the summary, as in summary.json.

    Raises:
        UserError: a requested resource is unavailable, or a setting is refused.
        RunError: the run can't continue; its checkpoints remain.
        Interrupted: a signal stopped the run; a checkpoint was written.
    """
    return run_life(config, _resolve_config, _open_run, lambda config, training, stop: training)


def _resolve_config(config: RewardModelConfig) -> tuple[RewardModelConfig, dict[str, str]]:
    given = config.model_dump(include=set(config.model_fields_set))
    if config.resume:
        return resumed(config, given), {}
    device, notes = choose_device(config.device)
    values = {**given, "device": device}
    if config.model is None:
        values["model"], notes["model"] = NANO, "the bundled model; use --model for another"
    if values["model"] == NANO and "lr" not in given:
        values["lr"], notes["settings"] = _NANO_LR, f"lr {_NANO_LR:g}, which suits nano"
    values.setdefault("threads", default_threads())
    return validated(type(config), with_absolute_paths(values)), notes


def _open_run(config: RewardModelConfig, notes: dict[str, str], world: World) -> PreferenceTraining:
    """Loads everything; nothing is written before every rank has loaded everything."""
    set_up_libraries(config)
    display = Display(loudness=config.verbose - config.quiet, silent=not world.is_main)
    config, found, model, tokenizer = together(world, lambda: _load(config))
    origin, train, test, dropped = found
    digest = fingerprint(train, test)
    refuse_differences(world, config, {"pairs": digest})
    run_dir = open_dir(config, world, "pairs")
    try:
        training = PreferenceTraining(config, run_dir, model, tokenizer, train, test, display, world)
        said = from_main(world, lambda: begin_run(run_dir, config, digest, f"the pairs of {config.source}"))
    except BaseException:
        run_dir.discard_if_empty()
        raise
    size = sum(p.numel() for p in model.parameters())
    ranks = f", {world.size} ranks, --shard {config.shard}" if world.size > 1 else ""
    for label, text in [
        ("device", f"{config.device}, {config.threads} threads{ranks}" + _note(notes, "device")),
        ("model", f"{config.model}, {size / 1e6:.2f} M parameters" + _note(notes, "model")),
        ("pairs", f"{origin}: {len(train):,} to train on, {len(test):,} to test"),
        *few(len(test), "held-out pair", "add pairs with --test-source or a larger --hold-out"),
        *([("dropped", f"{dropped} pairs longer than --max-tokens {config.max_tokens}")] if dropped else []),
        ("template", f"{config.template}"),
        ("epochs", f"{training.epochs:.3g}, in {training.steps:,} step{'s' * (training.steps > 1)}"),
        *([("settings", notes["settings"])] if "settings" in notes else []),
        ("run", f"{run_dir.path}{' (resumed)' if config.resume else ''}"),
        *(("warning", line) for line in said),
    ]:
        display.line(label, text)
    return training


# Origin, training pairs, held-out pairs, number of dropped pairs.
_Found = tuple[str, list[Example], list[Example], int]


def _load(config: RewardModelConfig) -> tuple[RewardModelConfig, _Found, Any, Any]:
    """Returns the configuration with its template, the tokenized pairs, the model and its tokenizer."""
    assert config.source is not None
    assert config.model is not None
    pairs = load_pairs(
        config.source,
        test_source=config.test_source,
        hold_out=config.hold_out,
        margin_column=config.margin_column,
        splits=(config.train_split, config.test_split),
    )
    base = model_place(config.model)
    model, tokenizer = load_classifier(base, seed=config.seed, mapped=loads_for_parts(config))
    if config.template is None:
        template = "chat" if getattr(tokenizer, "chat_template", None) else "short"
        config = config.model_copy(update={"template": template})
    text_of("a", "b", str(config.template), tokenizer)
    train, test, dropped = _encoded(config, pairs.train, pairs.test, model, tokenizer)
    try:
        if not loads_for_parts(config):
            model.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {config.device}: {error}") from error
    return config, (pairs.origin, train, test, dropped), model, tokenizer


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
                f"the model's context); the longest, {worst.where}, has {max(len(worst.chosen), len(worst.rejected))}. "
                "--overlong drop drops them"
            )
        dropped += len(found) - len(kept)
        if not kept:
            raise UserError(f"--source {config.source}: no pair is at most {longest} tokens long")
        made.append(kept)
    return made[0], made[1], dropped


def _note(notes: dict[str, str], key: str) -> str:
    return f" ({notes[key]})" if key in notes else ""
