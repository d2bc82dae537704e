"""Loads a configuration from a command line and recipes, and writes it back as YAML.

Layers, where later ones override earlier ones: defaults < the recipe's `base:` < the recipe < flags.
"""

from __future__ import annotations

import difflib
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, TypedDict, TypeVar, Union

import yaml
from pydantic import ValidationError

from r1lite.bundled import bundled
from r1lite.config import trust
from r1lite.config.base import Section
from r1lite.config.bounds import shown
from r1lite.config.presets import PRESETS
from r1lite.errors import UserError
from verifiers.core import did_you_mean
from verifiers.terminal import unguarded
from verifiers.yaml_text import read_yaml

C = TypeVar("C", bound=Section)


def load(
    config_class: type[C],
    argv: Sequence[str],
    *,
    prog: str = "",
    complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda values: {},
) -> C:
    """The configuration of a command line; its `model_fields_set` are the keys that the user set.

    Args:
        argv: an optional recipe (see `recipe_path`) first, then flags.
        complete: gets the values that are set, and returns additional values, before the values are checked.

    Raises:
        UserError: a key, value or file is invalid; the message lists all bad values.
        SystemExit: `--help` was given (0), or the flags can't be parsed (2).
    """
    argv = list(argv)
    recipe = str(recipe_path(argv.pop(0))) if argv and not argv[0].startswith("-") else None
    flags = _read_flags(config_class, argv, prog)
    keys = _read_own(Path(recipe), config_class, flags) if recipe is not None else {}
    values = {**keys, **flags}
    return validated(config_class, {**values, **complete(values)}, flags=flags, recipe=recipe)


def recipe_path(name: str) -> Path:
    """The recipe that a command line names: the user's file, or a bundled one, with or without folder and suffix.

    Raises: UserError.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = {found.stem: found for found in sorted(bundled("recipes").glob("*.yaml"))}
    stem = path.name.removesuffix(".yaml")  # which may have dots: gsm8k-qwen2.5-0.5b
    if stem in shipped and str(path.parent) in (".", "recipes"):
        return shipped[stem]
    if path.is_dir():
        raise UserError(f"{name}: a folder is not a recipe; to name a data set, use --data {name}")
    hint = did_you_mean(stem, shipped, f"bundled recipes: {', '.join(shipped)}")
    raise UserError(f"{name}: no such recipe; {hint}")


def validated(
    config_class: type[C],
    values: Mapping[str, Any],
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    recipe: str | None = None,
) -> C:
    """The configuration with these values. Raises UserError whose message names the flags and recipe keys."""
    try:
        return config_class.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(_explain(error, values, flags, recipe)) from error


def _read_own(path: Path, config_class: type[Section], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe that the user named. A file that a run wrote is checked for requests that need --trust."""
    layers = _layers(path, config_class)
    data, said = False, dict(flags)
    for at, keys in layers:
        data = data or trust.of_a_run(at)  # the `base:` of an untrusted file is untrusted too
        if data:
            trust.check(keys, at, said=said, trust=bool(flags.get("trust")))
        else:
            said = {**keys, **said}
    return _merged(layers)


def read_recipe(path: Path, config_class: type[Section]) -> dict[str, Any]:
    """A recipe's keys over those of its `base:` (a path relative to it). Raises UserError."""
    return _merged(_layers(path, config_class))


def _merged(layers: Sequence[tuple[Path, Mapping[str, Any]]]) -> dict[str, Any]:
    return {key: value for _, layer in reversed(layers) for key, value in layer.items()}


def _layers(path: Path, config_class: type[Section]) -> list[tuple[Path, dict[str, Any]]]:
    """A recipe and its chain of `base:` recipes, the recipe itself first."""
    seen: list[Path] = []
    layers: list[tuple[Path, dict[str, Any]]] = []
    at: Path | None = path
    while at is not None:
        if at.resolve() in seen:
            raise UserError(f"{path}: 'base:' forms a cycle at {at}")
        seen.append(at.resolve())
        keys = _read_yaml(at)
        base = keys.pop("base", None)
        if base is not None and (not isinstance(base, str) or "\0" in base):
            raise UserError(f"{at}: base must be the path of a recipe, got {base!r}")
        if "trust" in keys:
            raise UserError(f"{at}: trust can't be set in a recipe: use --trust on the command line")
        for key in keys:
            if key not in config_class.model_fields:
                near = nearest(key, config_class.model_fields)
                raise UserError(f"{at}: unknown key '{key}' of r1lite {config_class.stage}; {near}")
        layers.append((at, keys))
        at = at.parent / str(base) if base is not None else None
    return layers


def read_saved(path: Path, config_class: type[Section]) -> dict[str, Any]:
    """The keys of a run's config.yaml. Raises UserError."""
    try:
        return read_recipe(path, config_class)
    except UserError as error:
        raise UserError(
            f"--resume: {' '.join(str(error).split())}; restore it from a copy, or start a new run"
        ) from error


# Options in `--help`, in this order; `--help-all` shows the others below.
_EVERYDAY = (
    *("task", "tasks", "model", "teacher", "source", "data", "rollouts", "reward", "verifier", "template", "preset"),
    *("steps", "epochs", "lr", "group_size", "prompts_per_step", "samples", "format", "max_prompt_tokens"),
    *("max_completion_tokens", "eval_every", "engine", "engine_url", "device", "out", "resume"),
    *("on", "ranks", "engines", "nodes", "gpus_per_node", "restarts", "dry_run", "submit"),
)
_FEW = 6  # number of options that are always shown

# Settings of one command rather than of the run: not saved with the run.
OF_THE_COMMAND = frozenset(
    {"out", "resume", "accept_lost_records", "quiet", "verbose", "trust"}
    | {"estimate", "estimate_ranks", "estimate_gpus", "estimate_gib"}
)

# Values that leave a setting open: a run stores what it became.
_OPEN = {
    **dict.fromkeys(("device", "engine", "importance"), "auto"),
    **dict.fromkeys(("model", "source", "reward", "template", "threads"), None),
}


def without_open(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that aren't left open."""
    return {key: value for key, value in given.items() if key not in _OPEN or value != _OPEN[key]}


def refuse_changes(path: Path, saved: Mapping[str, Any], given: Mapping[str, Any], may_change: Set[str]) -> None:
    """Raises UserError if a resumed run's setting differs, unless it is in `may_change` or not part of the run."""
    for key, value in given.items():
        if key not in OF_THE_COMMAND | may_change and value != saved.get(key):
            raise UserError(
                f"--resume: --{key.replace('_', '-')} is {saved.get(key)} in {path} and can't become {value}; "
                "omit it, or start a new run"
            )


def dump(config: Section) -> str:
    """The configuration as YAML; `load` reads it back as the same configuration."""
    values = config.model_dump(mode="json", exclude=set(OF_THE_COMMAND))
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        keys = read_yaml(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: can't be read as a recipe: {error}") from error
    if keys is None:
        return {}
    if not isinstance(keys, dict):
        raise UserError(f"{path}: a recipe is a map of keys to values, not a {type(keys).__name__}")
    return {str(key): value for key, value in keys.items()}


def _read_flags(config_class: type[Section], argv: list[str], prog: str) -> dict[str, Any]:
    if not {"-h", "--help", "--help-all"}.isdisjoint(argv):
        print_help(config_class, prog, everything="--help-all" in argv)
    import tyro

    # A TypedDict without required keys distinguishes flags that were given from defaults, which layering needs.
    annotations = _of_flags(argv, flag_annotations(config_class))
    flags = TypedDict("Flags", annotations, total=False)  # type: ignore[misc]  # its keys are known only here
    several = [
        name for name, field in config_class.model_fields.items() if typing.get_origin(field.annotation) is tuple
    ]
    with unguarded():  # tyro prints flags and their values in colours
        return dict(tyro.cli(flags, args=_with_repeated(argv, several, config_class.repeatable), prog=prog or None))


def _of_flags(argv: Sequence[str], annotations: dict[str, Any]) -> dict[str, Any]:
    """The annotations of the flags that are given, since tyro takes most of its time to describe the others.

    All are needed if a flag is unknown: the message proposes known ones.
    """
    given = set()
    for word in argv:
        if word.startswith("-"):
            name = word.partition("=")[0].removeprefix("--").replace("-", "_")
            name = name if name in annotations else name.removeprefix("no_")
            if name not in annotations:
                return annotations
            given.add(name)
    return {name: annotations[name] for name in annotations if name in given} or annotations


def flag_annotations(config_class: type[Section]) -> dict[str, Any]:
    """The fields that are flags, with types and help texts for tyro; fields that are maps are for recipes only."""
    import tyro

    return {
        name: Annotated[
            _without_none(field.annotation),
            tyro.conf.arg(
                help=" ".join((field.description or "").split()),
                help_behavior_hint="" if field.default is None else f"(default: {field.default})",
            ),
        ]
        for name, field in config_class.model_fields.items()
        if typing.get_origin(field.annotation) is not dict
    }


def print_help(config_class: type[Section], prog: str, *, everything: bool) -> NoReturn:
    """Prints the common options, or all options by section, and raises SystemExit(0)."""
    import tyro

    annotations = flag_annotations(config_class)
    everyday = [name for name in _EVERYDAY if name in annotations]
    rest = [name for name in annotations if name not in everyday]
    groups: dict[str, list[str]] = {"everyday": everyday}
    if everything or len(rest) <= _FEW:
        for section in reversed(config_class.__mro__):  # groups the fields by section
            own = [name for name in rest if name in vars(section).get("__annotations__", {})]
            groups[_title(section)] = own
            rest = [name for name in rest if name not in own]
    shown = sum(map(len, groups.values()))
    more = f" --help-all shows the other {len(annotations) - shown} options." if shown < len(annotations) else ""
    sections = {
        title: Annotated[
            TypedDict(title, {name: annotations[name] for name in names}, total=False),  # type: ignore[operator]
            tyro.conf.arg(help=""),
        ]
        for title, names in groups.items()
        if names
    }
    flags = TypedDict("Flags", sections, total=False)  # type: ignore[misc]  # its keys are known only here
    bundled_model = " A bundled model brings other defaults, which the run prints." if "model" in annotations else ""
    told = f"A recipe (FILE.yaml) may come first; flags override it.{bundled_model}{more}"
    description = f"{config_class.__doc__}\n\n{told}"
    config = (tyro.conf.OmitArgPrefixes,)
    with unguarded():
        tyro.cli(flags, args=["--help"], prog=prog or None, description=description, config=config)
    raise SystemExit(0)


def _title(section: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", section.__name__.removesuffix("Config")).lower().replace(" ", "_")


def _with_repeated(argv: Sequence[str], several: Sequence[str], joined: Set[str]) -> list[str]:
    """Rewrites repeated flags, of which tyro would keep only the last: `--flag A --flag B` to `--flag A B`, or to
    `--flag A,B` for the names in `joined`."""
    rest: list[str] = []
    values: dict[str, list[str]] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in {*several, *joined}:
            rest.append(word)
        else:
            values.setdefault(name, []).append(value if equals else next(words, ""))
    found = {name: [",".join(given)] if name in joined else given for name, given in values.items()}
    return rest + [word for name, given in found.items() for word in (f"--{name.replace('_', '-')}", *given)]


def _without_none(annotation: Any) -> Any:
    """`X` for `X | None`: on the command line, leaving out the flag means None."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is Union:
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return functools.reduce(operator.or_, kinds)
    return annotation


_BOUNDS = {
    "greater_than_equal": ("ge", ">="),
    "greater_than": ("gt", ">"),
    "less_than_equal": ("le", "<="),
    "less_than": ("lt", "<"),
}
_WHY = {
    "group_size": ": GRPO compares the completions of a group, unless --value-samples is set",
    "maj_at": ": maj@1 would be pass@1",
}


def _explain(error: ValidationError, values: Mapping[str, Any], flags: Mapping[str, Any], recipe: str | None) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        name = f"--{key.replace('_', '-')}" if key in flags or recipe is None else f"{recipe}: {key}"
        if problem["type"] in _BOUNDS:
            bound, sign = _BOUNDS[problem["type"]]
            lines.append(
                f"{name} must be {sign} {problem['ctx'][bound]}, got {shown(problem['input'])}{_WHY.get(key, '')}"
            )
        elif problem["type"] == "value_error":
            message = str(problem["ctx"]["error"])
            lines.append(message + _of_preset(message, values))
        else:
            lines.append(f"{name}: {problem['msg']}, got {shown(problem['input'])}")
    return "\n".join(lines)


def _of_preset(message: str, values: Mapping[str, Any]) -> str:
    """Returns which flags of a message have the preset's value, as the end of a sentence."""
    preset = PRESETS.get(str(values.get("preset")))
    flags = {name: f"--{name.replace('_', '-')}" for name in (preset.values if preset else {}) if name not in values}
    named = [name for name, flag in flags.items() if re.search(rf"{flag}(?![\w-])", message)]
    if preset is None or not named:
        return ""
    listed = ", ".join(f"{flags[name]} {shown(preset.values[name])}" for name in named)
    return f"; --preset {values['preset']} sets {listed}: set it yourself as well, or leave out the preset"


# Names of settings in other trainers -> names in r1lite.
_ELSEWHERE = {
    "beta": "kl_coef",
    "epsilon": "clip_low",
    "epsilon_high": "clip_high",
    "learning_rate": "lr",
    "lr_scheduler_type": "lr_schedule",
    "max_completion_length": "max_completion_tokens",
    "max_new_tokens": "max_completion_tokens",
    "max_prompt_length": "max_prompt_tokens",
    "max_response_length": "max_completion_tokens",
    "max_steps": "steps",
    "model_name_or_path": "model",
    "n_samples_per_prompt": "group_size",
    "num_generations": "group_size",
    "num_iterations": "updates_per_rollout",
    "num_train_epochs": "epochs",
    "output_dir": "out",
    "report_to": "log_to",
    "reward_funcs": "reward",
    "rollout_batch_size": "prompts_per_step",
    "save_steps": "save_every",
}
_NEAR = 3  # number of names that are shown if none is close


def called_elsewhere(name: str) -> str | None:
    """r1lite's name for a setting of another trainer; None for an unknown name."""
    return _ELSEWHERE.get(name)


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """Suggestion for an unknown setting, as the end of a sentence: a close name, a translation, or a few names."""
    names = list(known)
    key = name.lower().replace("-", "_")
    meant = {**{theirs: ours for theirs, ours in _ELSEWHERE.items() if ours in names}, **{one: one for one in names}}
    if same := difflib.get_close_matches(key, meant, 1):
        return f"did you mean '{meant[same[0]]}'?"
    few = difflib.get_close_matches(key, names, _NEAR, cutoff=0.0)
    return f"the nearest are {', '.join(few)}; --help-all lists all {len(names)}"
