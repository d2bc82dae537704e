"""Writes the model card, README.md in each checkpoint, from the files of the run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from r1lite import __version__
from r1lite.config import EvalConfig
from r1lite.config.base import Section
from r1lite.config.distill import SHAPED
from r1lite.config.loading import OF_THE_COMMAND
from r1lite.hub.cards import block, code, front, plain, table
from r1lite.hub.revisions import split
from r1lite.nano import MODELS
from r1lite.run.environment import read_environment
from r1lite.run.files import is_number, json_or_empty
from verifiers.yaml_text import read_yaml

CARD = "README.md"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,40}")
# Settings about the machine and the run's outputs; they don't describe the model. Seed and reward have their own place,
# and a resumed run knows the reward that the task chose as a setting.
_PRIVATE = frozenset("engine_url engine_weights_dir log_to log_project push_to_hub report reward seed threads".split())
_MEASURED = (  # field, heading, its interval's field
    ("pass_at_1", "accuracy, greedy", "pass_at_1_interval"),
    ("pass_at_k", "pass@k", "pass_at_k_interval"),
    ("sampled_accuracy", "accuracy, T=1", "sampled_accuracy_interval"),
    ("format_rate", "format, greedy", ""),
    ("mean_tokens", "tokens per completion", ""),
    ("accuracy", "accuracy on pairs", "accuracy_interval"),
)
_DID = {
    "grpo": ("GRPO", ["grpo", "reinforcement-learning"]),
    "ppo": ("PPO", ["ppo", "reinforcement-learning"]),
    "sft": ("supervised fine-tuning", ["sft"]),
    "dpo": ("preference optimization", ["dpo"]),
    "distill": ("distillation", ["distillation"]),
    "reward-model": ("training as a reward model", ["reward-model"]),
}


def model_card(run: Path, config: Section, step: int, steps: int, *, after: Mapping[str, Any] | None = None) -> str:
    """Returns README.md for the checkpoint of a step. Its content does not depend on time or paths.

    Args:
        run: the run directory.
        config: configuration of the run.
        step: number of finished steps.
        steps: number of steps of the whole run.
        after: evaluation of these weights, if there is one.
    """
    stage = str(getattr(config, "stage", "run"))
    did, tags = _DID.get(stage, (stage, []))
    about, reward = read_environment(run), json_or_empty(run / "reward.json")
    base, base_id, license_ = _base(str(getattr(config, "model", None) or ""))
    loaded = [one for one in about.get("hub") or () if isinstance(one, dict)]
    sets = sorted({str(one["id"]) for one in loaded if one.get("kind") == "dataset" and _is_id(one.get("id"))})
    judges = stage == "reward-model"
    head = front(
        {
            "library_name": "transformers",
            "pipeline_tag": "text-classification" if judges else "text-generation",
            "license": license_,
            "base_model": base_id,
            "datasets": sets,
            "tags": ["r1lite", *tags, *(["reasoning"] if reward else [])],
        }
    )
    parts = [
        f"{head}\n# {plain(base)} after {did}, step {step} of {steps}",
        f"Made from {code(base)} by `r1lite {stage}`, version {__version__}"
        + (f", on the task {code(config.task)}." if hasattr(config, "task") and not judges else "."),
    ]
    if rank := getattr(config, "lora_rank", 0):
        parts.append(
            f"A LoRA adapter of rank {rank} was trained. The weights here are those of the base with the adapter "
            "merged into them; the folder `adapter` holds the adapter alone, as peft loads it."
        )
    if figures := _figures(json_or_empty(run / "eval_before.json"), after):
        parts.append(f"## Figures\n\n{figures}")
        if not judges:
            parts.append(
                "Measured on the test problems by the run. To measure again, run in this folder"
                f"{_with_files(config)}:\n\n{_again(config)}"
            )
    if isinstance(formula := reward.get("formula"), str) and not judges:
        versions = reward.get("versions")
        named = versions.items() if isinstance(versions, dict) else ()
        said = ", ".join(f"{code(name)} version {plain(version)}" for name, version in named)
        parts.append(f"## Reward\n\n{code(formula)}" + (f"\n\nVerifiers: {said}." if said else ""))
    seed = getattr(config, "seed", 0)
    parts.append(
        f"## Settings\n\nSeed {seed}. Settings that differ from `r1lite {stage}`'s defaults:\n\n{_settings(config)}"
    )
    parts.append("## Made with\n\n" + table(("what", "version"), list(_versioned(about))))
    known = (
        f"The licence named above comes from the card of {code(base)}; the licence of the training data may add to it."
        if license_
        else "The licences of the base model and of the training data apply; this card does not know them."
    )
    parts.append(f"## Licence\n\n{known}")
    return "\n\n".join(parts) + "\n"


def _base(model: str) -> tuple[str, str | None, str | None]:
    """Returns (display name, id on the Hub, licence) of a model; id and licence may be unknown."""
    if model in MODELS:
        return f"{model}, a model that r1lite bundles", None, "apache-2.0"
    place = Path(model).expanduser()
    if model and place.is_dir():
        said = _front(place / CARD)
        base, license_ = said.get("base_model"), said.get("license")
        named = f"{place.parent.parent.name}, {place.name}" if place.parent.name == "checkpoints" else place.name
        return named, base if _is_id(base) else None, license_ if _is_license(license_) else None
    if model in ("", SHAPED):
        return "a new model with random weights", None, None
    name = split(model)[0]
    return model, name if _is_id(name) else None, None


def _front(path: Path) -> dict[str, Any]:
    """Returns the YAML header of a card; {} if there is none or it can't be read."""
    try:
        text = path.read_text(encoding="utf-8")
        found = read_yaml(text.split("---\n")[1].encode()) if text.startswith("---\n") else {}
    except (OSError, ValueError, RecursionError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _REPOSITORY.fullmatch(value) is not None


def _is_license(value: object) -> bool:
    return isinstance(value, str) and _LICENSE.fullmatch(value) is not None


def _figures(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> str:
    columns = [("before", before), *([("after", after)] if after is not None else [])]
    body = []
    for key, label, interval in _MEASURED:
        if any(is_number(found.get(key)) for _, found in columns):
            body.append([_labelled(label, before), *(_figure(found, key, interval) for _, found in columns)])
    return table(["", *(name for name, _ in columns)], body) if body else ""


def _labelled(label: str, measured: Mapping[str, Any]) -> str:
    return label.replace("pass@k", f"pass@{measured['k']}") if isinstance(measured.get("k"), int) else label


def _figure(measured: Mapping[str, Any], key: str, interval: str) -> str:
    value = measured.get(key)
    if not is_number(value):
        return ""
    if key == "mean_tokens":
        return f"{value:.1f}"
    bounds = measured.get(interval)
    if isinstance(bounds, list | tuple) and len(bounds) == 2 and all(is_number(bound) for bound in bounds):
        return f"{value:.1%} ({bounds[0]:.1%} to {bounds[1]:.1%})"
    return f"{value:.1%}"


def _again(config: Section) -> str:
    """Returns a code block with the command that evaluates these weights."""
    words = ["r1lite", "eval", "--model", "."]
    for name in _AGAIN:
        value = getattr(config, name, None)
        if value not in (None, 0) and (name == "task" or value != EvalConfig.model_fields[name].default):
            words += [f"--{name.replace('_', '-')}", str(_public(value))]
    return block(shlex.join(words), "bash")


def _with_files(config: Section) -> str:
    """Returns what to replace in that command, which has no folders of the machine, as the end of a sentence."""
    given = [value for name in ("source", "test_source") if isinstance(value := getattr(config, name, None), str)]
    files = [code(_public(value)) for value in dict.fromkeys(given) if _public(value) != value]
    return f", with the path{'s' * (len(files) > 1)} to {' and '.join(files)}" if files else ""


_AGAIN = (
    *("task", "source", "test_source", "test_split", "template", "stop_text", "max_prompt_tokens"),
    *("max_completion_tokens", "eval_problems", "eval_samples", "eval_sample_problems", "seed"),
)


def _settings(config: Section) -> str:
    values = config.model_dump(mode="json", exclude={*OF_THE_COMMAND, *_PRIVATE})
    fields = type(config).model_fields
    body = [
        [code(key), code(json.dumps(_public(value), ensure_ascii=False) if value is not None else "none")]
        for key, value in values.items()
        if not key.startswith("stall_") and value != fields[key].get_default(call_default_factory=True)
    ]
    return table(("setting", "value"), body) if body else "Nothing."


def _public(value: Any) -> Any:
    """Replaces absolute paths by their last component."""
    if isinstance(value, str):
        return Path(value).name if value.startswith(("/", "~")) else value
    if isinstance(value, dict):
        return {key: _public(one) for key, one in value.items()}
    return [_public(one) for one in value] if isinstance(value, list) else value


def _versioned(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("r1lite", "python"):
        yield key, code(about.get(key))
    versions = about.get("versions")
    for name, version in versions.items() if isinstance(versions, dict) else ():
        if version is not None:
            yield plain(name), code(version)
    for one in about.get("hub") or ():
        if isinstance(one, dict) and one.get("commit"):
            yield code(one.get("id")), f"commit {code(one['commit'])}"
