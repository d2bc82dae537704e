"""From a command line and recipes to a configuration, and back.

Layers, later ones win: defaults < the recipe's `base:` < the recipe < flags.
"""

from __future__ import annotations

import difflib
import functools
import operator
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypedDict, TypeVar, Union

import yaml
from pydantic import ValidationError

from r1lite.config.base import Section
from r1lite.errors import UserError

C = TypeVar("C", bound=Section)


def load(config_class: type[C], argv: Sequence[str], *, prog: str = "") -> C:
    """The configuration that a command line asks for; its `model_fields_set` are the keys that were given.

    Args:
        argv: an optional recipe (a .yaml file) first, then flags.

    Raises:
        UserError: a key, value or file that can't be used; all bad values at once.
        SystemExit: from `--help` (0) and flags that can't be read (2).
    """
    argv = list(argv)
    recipe = argv.pop(0) if argv and argv[0].lower().endswith((".yaml", ".yml")) else None
    flags = _read_flags(config_class, _joined(argv, config_class.repeatable), prog)
    keys = read_recipe(Path(recipe), config_class) if recipe is not None else {}
    return validated(config_class, {**keys, **flags}, flags=flags, recipe=recipe)


def validated(
    config_class: type[C],
    values: Mapping[str, Any],
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    recipe: str | None = None,
) -> C:
    """The configuration with these values. Raises UserError, which calls flags and recipe keys by their names."""
    try:
        return config_class.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(_explain(error, flags, recipe)) from error


def read_recipe(path: Path, config_class: type[Section]) -> dict[str, Any]:
    """A recipe's keys, those of its `base:` (a path beside it) underneath. Raises UserError."""
    seen: list[Path] = []
    layers: list[dict[str, Any]] = []
    at: Path | None = path
    while at is not None:
        if at.resolve() in seen:
            raise UserError(f"{path}: 'base:' goes round in a circle at {at}")
        seen.append(at.resolve())
        keys = _read_yaml(at)
        base = keys.pop("base", None)
        if base is not None and not isinstance(base, str):
            raise UserError(f"{at}: base must be the path of a recipe, got {base!r}")
        for key in keys:
            if key not in config_class.model_fields:
                near = _nearest(key, config_class.model_fields)
                raise UserError(f"{at}: unknown key '{key}' of r1lite {config_class.stage}{near}")
        layers.append(keys)
        at = at.parent / str(base) if base is not None else None
    return {key: value for layer in reversed(layers) for key, value in layer.items()}


# About one command rather than the run: not kept with it.
OF_THE_COMMAND = frozenset({"out", "resume", "quiet", "verbose"})


def dump(config: Section) -> str:
    """YAML that `load` reads back to the same run."""
    values = config.model_dump(mode="json", exclude=set(OF_THE_COMMAND))
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """YAML in which a key stands once, and aliases don't multiply."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise yaml.YAMLError(f"the key '{key.value}' stands there twice (line {key.start_mark.line + 1})")
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_MOST_VALUES = 100_000


def _count(value: Any, known: dict[int, int]) -> int:
    """Values in it, those behind aliases as often as they are named."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES  # a list that holds itself has no end
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count(one, known) for one in inside)
    return known[id(value)]


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        keys = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        if _count(keys, {}) >= _MOST_VALUES:
            raise ValueError(f"it holds more than {_MOST_VALUES:,} values (aliases count as what they stand for)")
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read as a recipe: {error}") from error
    if keys is None:
        return {}
    if not isinstance(keys, dict):
        raise UserError(f"{path}: a recipe is a map of keys to values, not a {type(keys).__name__}")
    return {str(key): value for key, value in keys.items()}


def _joined(argv: Sequence[str], names: frozenset[str]) -> list[str]:
    """The arguments with repeated flags of these names made one, their values joined by commas."""
    found: list[str] = []
    places: dict[str, int] = {}  # where the flag's value stands in `found`
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in names:
            found.append(word)
            continue
        value = value if equals else next(words, "")
        if name in places:
            found[places[name]] += f",{value}"
        else:
            found += [flag, value]
            places[name] = len(found) - 1
    return found


def _read_flags(config_class: type[Section], argv: list[str], prog: str) -> dict[str, Any]:
    import tyro

    # A TypedDict without required keys tells what was given from what was not, which layering needs.
    annotations = {
        name: Annotated[
            _without_none(field.annotation),
            tyro.conf.arg(
                help=" ".join((field.description or "").split()),
                help_behavior_hint="" if field.default is None else f"(default: {field.default})",
            ),
        ]
        for name, field in config_class.model_fields.items()
        if typing.get_origin(field.annotation) is not dict  # maps are for recipes
    }
    flags = TypedDict("Flags", annotations, total=False)  # type: ignore[operator]
    description = f"{config_class.__doc__}\n\nA recipe (FILE.yaml) may come first; flags win over it."
    several = [
        name for name, field in config_class.model_fields.items() if typing.get_origin(field.annotation) is tuple
    ]
    return dict(tyro.cli(flags, args=_gathered(argv, several), prog=prog or None, description=description))


def _gathered(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """`--flag A --flag B` as `--flag A B`, for flags that take several values: tyro would keep the last alone."""
    flags = {f"--{name.replace('_', '-')}" for name in names} | {f"--{name}" for name in names}
    rest: list[str] = []
    values: dict[str, list[str]] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in flags:
            rest.append(word)
        else:
            values.setdefault(flag, []).append(value if equals else next(words, ""))
    return rest + [word for flag, given in values.items() for word in (flag, *given)]


def _without_none(annotation: Any) -> Any:
    """`X` of `X | None`: leaving a flag away is how None is said on the command line."""
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
_WHY = {"group_size": ": GRPO compares siblings", "maj_at": ": one vote is no vote, pass@1 says what it is worth"}


def _explain(error: ValidationError, flags: Mapping[str, Any], recipe: str | None) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        name = f"--{key.replace('_', '-')}" if key in flags or recipe is None else f"{recipe}: {key}"
        if problem["type"] in _BOUNDS:
            bound, sign = _BOUNDS[problem["type"]]
            lines.append(f"{name} must be {sign} {problem['ctx'][bound]}, got {problem['input']}{_WHY.get(key, '')}")
        elif problem["type"] == "value_error":
            lines.append(str(problem["ctx"]["error"]))
        else:
            lines.append(f"{name}: {problem['msg']}, got {problem['input']!r}")
    return "\n".join(lines)


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(sorted(known))}"
