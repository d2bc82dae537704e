"""The graph of a recipe's stages, which is checked as a whole before any stage runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from r1lite.config import (
    ColdStartConfig,
    DistillConfig,
    EvalConfig,
    GRPOConfig,
    PPOConfig,
    RejectConfig,
    Section,
    SFTConfig,
    validated,
)
from r1lite.config.pipeline import PipelineConfig
from r1lite.config.supervised import DPOConfig
from r1lite.errors import UserError, quoted
from r1lite.nano.config import PretrainConfig
from verifiers.core import did_you_mean


@dataclass(frozen=True, slots=True)
class Kind:
    """A command that can be a step of a pipeline."""

    config_class: type[Section]
    makes: tuple[str, ...]  # outputs: "model", "data", "rollouts"
    begun: str = "{name}/config.yaml"  # if this file exists beside the step's recipe, the step can be resumed
    resumes: bool = True  # resumed with --resume; otherwise by the same command


KINDS = {
    "cold-start": Kind(ColdStartConfig, ("data",)),
    "distill": Kind(DistillConfig, ("model",)),
    "dpo": Kind(DPOConfig, ("model",)),
    "eval": Kind(EvalConfig, (), begun="{name}/summary.json"),
    "grpo": Kind(GRPOConfig, ("model", "rollouts")),
    "ppo": Kind(PPOConfig, ("model", "rollouts")),
    "pretrain": Kind(PretrainConfig, ("model",), begun=".{name}.begun/state.pt", resumes=False),
    "reject": Kind(RejectConfig, ("data",)),
    "sft": Kind(SFTConfig, ("model",)),
}
# Field of a stage's configuration -> kind of input.
INPUTS = {"model": "model", "teacher": "model", "tokenizer": "model", "data": "data", "rollouts": "rollouts"}
MEASURES = ("accuracy", "greedy", "format", "language")
WANTED = ("higher", "lower", "kept")
_OURS = ("out", "resume", "quiet", "verbose")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of the recipe."""

    name: str
    kind: str
    inputs: dict[str, str] = field(default_factory=dict)  # field -> name of a stage or a model
    settings: dict[str, Any] = field(default_factory=dict)  # including those of `common`

    @property
    def needs(self) -> set[str]:
        """Names of its inputs."""
        return set(self.inputs.values())


@dataclass(frozen=True, slots=True)
class Graph:
    """Steps in the recipe's order, then the evaluations for the table's rows."""

    steps: dict[str, Step]
    models: dict[str, str]
    rows: dict[str, str]  # row of the final table -> its evaluation step

    def ancestors(self, name: str) -> list[str]:
        """Names of the step and of all steps that it builds on, in order."""
        found, waiting = set[str](), [name]
        while waiting:
            at = waiting.pop()
            if at in self.steps and at not in found:
                found.add(at)
                waiting += self.steps[at].needs
        return [step for step in self.steps if step in found]


def build(config: PipelineConfig) -> Graph:
    """The graph of a recipe. Raises UserError that lists all its mistakes."""
    wrong: list[str] = []
    steps: dict[str, Step] = {}
    if not config.stages:
        wrong.append("stages: the recipe has none")
    _check_common(config, wrong)
    for name, given in config.stages.items():
        step = _step(name, given, config, steps, wrong)
        if step is not None:
            steps[name] = step
    rows: dict[str, str] = {}
    for label, target in config.compare.items():
        made = _row(label, target, config, steps, wrong)
        if made is not None:
            rows[label] = made.name
            steps[made.name] = made
    _check_observations(config, rows, wrong)
    if wrong:
        raise UserError("\n".join(dict.fromkeys(wrong)))
    return Graph(steps, dict(config.models), rows)


def _step(
    name: str, given: Mapping[str, Any], config: PipelineConfig, earlier: Mapping[str, Step], wrong: list[str]
) -> Step | None:
    where = f"stage '{name}'"
    if not _NAME.fullmatch(name) or name in config.models:
        wrong.append(f"{where}: a name consists of letters, digits, _ . and -, and must differ from the models' names")
    if unknown := set(given) - {"stage", "inputs", "settings", "about"}:
        wrong.append(f"{where}: unknown key {quoted(sorted(unknown))}; known: about, inputs, settings, stage")
        return None
    kind = given.get("stage")
    if not isinstance(kind, str) or kind not in KINDS or kind == "eval":
        hint = did_you_mean(str(kind), KINDS, f"known: {', '.join(k for k in KINDS if k != 'eval')}")
        wrong.append(f"{where}: unknown stage {kind!r}; {hint}")
        return None
    inputs, settings = given.get("inputs") or {}, given.get("settings") or {}
    if not isinstance(inputs, dict) or not isinstance(settings, dict):
        wrong.append(f"{where}: inputs and settings must be maps")
        return None
    step = Step(name, kind, {k: str(v) for k, v in inputs.items()}, {**_common(kind, config), **settings})
    _check_step(step, config, earlier, where, wrong)
    return step


def _row(
    label: str, target: str | Mapping[str, Any], config: PipelineConfig, steps: Mapping[str, Step], wrong: list[str]
) -> Step | None:
    given = {"model": target} if isinstance(target, str) else dict(target)
    where = f"compare '{label}'"
    if unknown := set(given) - {"model", "settings"}:
        wrong.append(f"{where}: unknown key {quoted(sorted(unknown))}; known: model, settings")
        return None
    if "model" not in given:
        wrong.append(f"{where}: model is missing")
        return None
    model = str(given["model"])
    own = given.get("settings") or {}
    if not isinstance(own, dict):
        wrong.append(f"{where}: settings must be a map")
        return None
    settings = {**_common("eval", config), **config.evaluate, **own}
    step = Step(f"eval-{re.sub('[^A-Za-z0-9_.-]+', '-', label)}", "eval", {"model": model}, settings)
    if step.name in steps:
        wrong.append(f"{where}: another row or stage has nearly the same name")
        return None
    _check_step(step, config, steps, where, wrong)
    return step


def _check_step(step: Step, config: PipelineConfig, earlier: Mapping[str, Step], where: str, wrong: list[str]) -> None:
    """Checks that earlier stages make the step's inputs, and that its configuration is valid."""
    fields = KINDS[step.kind].config_class.model_fields
    for name, source in step.inputs.items():
        if name not in INPUTS or name not in fields:
            takes = [key for key in INPUTS if key in fields]
            wrong.append(f"{where}: {step.kind} takes no input '{name}'; it takes {', '.join(takes) or 'none'}")
            continue
        what = INPUTS[name]
        if source in config.models and what == "model":
            continue
        if source not in earlier:
            later = " (it comes later)" if source in config.stages else ""
            known = [key for key, other in earlier.items() if what in KINDS[other.kind].makes]
            known += list(config.models) if what == "model" else []
            wrong.append(
                f"{where}: its {name} '{source}' is not made by an earlier stage{later}; available: "
                f"{', '.join(known) or 'none'}"
            )
        elif what not in KINDS[earlier[source].kind].makes:
            made = " and ".join(KINDS[earlier[source].kind].makes) or "nothing"
            wrong.append(f"{where}: its {name} can't be '{source}', a {earlier[source].kind}, which makes {made}")
    _check_tokenizers(step, earlier, where, wrong)
    if taken := set(step.settings) & {*_OURS, *step.inputs}:
        wrong.append(f"{where}: {quoted(sorted(taken))} can't be set: the pipeline decides")
        return
    for key in sorted(set(step.settings) - set(fields)):
        near = difflib.get_close_matches(key, fields, 1)
        wrong.append(f"{where}: {step.kind} has no setting '{key}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    if set(step.settings) <= set(fields):
        _check_values(step, earlier, where, wrong)


def _check_tokenizers(step: Step, earlier: Mapping[str, Step], where: str, wrong: list[str]) -> None:
    """On-policy distillation needs a shared tokenizer, but by default a pretrain stage trains its own."""
    if step.kind != "distill" or step.settings.get("method") != "on-policy" or {"model", "teacher"} - set(step.inputs):
        return
    student, teacher = (_tokenizer_of(step.inputs[name], earlier) for name in ("model", "teacher"))
    if student != teacher and (own := set(earlier) & {student, teacher}):
        wrong.append(
            f"{where}: on-policy, its model and its teacher ('{step.inputs['model']}' and '{step.inputs['teacher']}') "
            f"must share a tokenizer, but {quoted(sorted(own))} trains its own; set its input tokenizer to the "
            "teacher's"
        )


def _tokenizer_of(source: str, earlier: Mapping[str, Step]) -> str | None:
    """The pretrain stage or the existing model that the tokenizer comes from; None if unknown."""
    while source in earlier:
        step = earlier[source]
        if step.kind == "pretrain":
            given = step.inputs.get("tokenizer")
            if given is None:
                return None if {"tokenizer", "start"} & set(step.settings) else source
            source = given
        else:
            shaped = step.kind == "distill" and "model" not in step.inputs
            source = step.inputs.get("teacher" if shaped else "model", "")
    return source or None


def _check_values(step: Step, earlier: Mapping[str, Step], where: str, wrong: list[str]) -> None:
    places = {name: "made-by-an-earlier-stage" for name in step.inputs if name in INPUTS}
    if "data" not in step.inputs and step.kind in ("dpo", "sft") and step.settings.get("data") is None:
        wrong.append(f"{where}: {step.kind} needs data, as an input or among its settings")
    if "model" not in step.inputs and step.kind in ("dpo", "grpo", "ppo", "sft") and step.settings.get("model") is None:
        wrong.append(f"{where}: {step.kind} needs a model, as an input or among its settings")
    made = earlier.get(step.inputs.get("data", ""))
    if step.kind == "dpo" and made is not None and not made.settings.get("pairs"):
        wrong.append(f"{where}: its data '{made.name}' holds no pairs: give that stage pairs: 1 among its settings")
    try:
        config = validated(KINDS[step.kind].config_class, {**step.settings, **places})
        if isinstance(config, EvalConfig) and len(config.tasks) != 1:
            wrong.append(
                f"{where}: task {config.task}: a row of the table has one task; for several, add rows with the same "
                "model and settings: {task: ...} of their own"
            )
    except UserError as error:
        wrong += [f"{where}: {line.removeprefix('--')}" for line in str(error).splitlines()]


def _check_common(config: PipelineConfig, wrong: list[str]) -> None:
    kinds = {str(given.get("stage")) for given in config.stages.values()} & set(KINDS) | {"eval"}
    known = {key for kind in kinds for key in KINDS[kind].config_class.model_fields}
    for key in sorted(set(config.common) - known):
        near = difflib.get_close_matches(key, known, 1)
        wrong.append(f"common: no stage has a setting '{key}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    for key in sorted(set(config.common) & {*_OURS, *INPUTS}):
        wrong.append(f"common: '{key}' can't be the same for every stage")


def _check_observations(config: PipelineConfig, rows: Mapping[str, str], wrong: list[str]) -> None:
    for label, given in config.observations.items():
        where = f"observation '{label}'"
        if set(given) != {"row", "than", "measure", "wanted"}:
            wrong.append(f"{where}: needs row, than, measure and wanted")
            continue
        for key in ("row", "than"):
            if given[key] not in rows:
                wrong.append(f"{where}: no row of compare is called '{given[key]}'")
        for key, known in (("measure", MEASURES), ("wanted", WANTED)):
            if given[key] not in known:
                wrong.append(f"{where}: {key} is one of {', '.join(known)}, not '{given[key]}'")


def _common(kind: str, config: PipelineConfig) -> dict[str, Any]:
    fields = KINDS[kind].config_class.model_fields
    # A new model shares only the settings of the machine with the other stages.
    keys = ("threads",) if kind == "pretrain" else fields
    return {key: value for key, value in config.common.items() if key in keys}
