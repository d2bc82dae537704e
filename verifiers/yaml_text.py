"""Reads YAML from untrusted files: plain data of bounded size, or ValueError."""

from __future__ import annotations

import re
from typing import Any

import yaml

_LONGEST = 1 << 21  # characters or bytes; a larger document takes minutes
_LONGEST_INT = 100
_AMBIGUOUS_INT = re.compile(r"[-+]?(0[0-9_]+|.*:.*)")  # YAML 1.1 reads 010 as 8 and 1:30 as 90, YAML 1.2 doesn't
_MOST_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses repeated keys."""

    merged = 0  # pairs in all mappings with merge keys so far

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Copies the pairs of merged mappings into this one; limits their number, which may grow exponentially."""
        before = len(node.value)
        super().flatten_mapping(node)
        self.merged += max(0, len(node.value) - before)
        if self.merged > _MOST_VALUES:
            raise yaml.YAMLError(f"merge keys stand for more than {_MOST_VALUES:,} values")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.tag == "tag:yaml.org,2002:bool":  # as keys, `on` and `yes` are names
                key.tag = "tag:yaml.org,2002:str"
            if key.value in seen:
                raise yaml.YAMLError(f"the key '{key.value}' occurs twice (line {key.start_mark.line + 1})")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Converts errors: PyYAML's constructors fail in many ways if a value does not fit its tag (`!!bool x`)."""
        try:
            return super().construct_object(node, deep)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            kind = node.tag.rpartition(":")[2]
            raise yaml.YAMLError(f"a value is not of type {kind} (line {node.start_mark.line + 1})") from error

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Limits length, as Python can't print long hexadecimal integers, and refuses octal and sexagesimal ones."""
        if len(str(node.value)) > _LONGEST_INT:
            raise yaml.YAMLError(f"an integer of {len(str(node.value))} characters (line {node.start_mark.line + 1})")
        if _AMBIGUOUS_INT.fullmatch(str(node.value)):
            where = f"line {node.start_mark.line + 1}"
            raise yaml.YAMLError(
                f"{node.value} is another number in YAML 1.1 than in 1.2 ({where}): write it in decimal"
            )
        return int(super().construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_yaml(text: str | bytes) -> Any:
    """Returns the document's value. No tag creates another kind of object; an alias counts as what it stands for.

    Raises: ValueError.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST >> 20} MiB")
    try:
        found = yaml.load(text, Loader=_Loader)
        size = _count(found, {})
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {error}") from error
    if size >= _MOST_VALUES:
        raise ValueError(f"it holds more than {_MOST_VALUES:,} values (aliases count as what they stand for)")
    return found


def _count(value: Any, known: dict[int, int]) -> int:
    """Values in it, those behind aliases as often as they are named."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES  # a list that contains itself would never end
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count(one, known) for one in inside)
    return known[id(value)]
