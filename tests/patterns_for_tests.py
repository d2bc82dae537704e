"""The patterns of both packages, and texts for each that it nearly matches, with a part of them repeated."""

import importlib
import pkgutil
import re
from re import _constants as sre
from re import _parser

import r1lite
import verifiers
from verifiers.extract.gates import Gated

_LEFT_OUT = re.compile(r"__main__|\.adapters\.|\.vllm_")  # commands, and what imports other packages
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "0123456789",
    sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_WORD: "abx1é_",
    sre.CATEGORY_NOT_WORD: " .,-*",
    sre.CATEGORY_NOT_SPACE: "a1.",
    sre.CATEGORY_NOT_DIGIT: "a .",
}
_ANY = "ab1 é中.,-*_("
_LONGEST = 200  # characters of a text before its part is repeated


def patterns():
    """name -> pattern, of all modules: attributes and what tables hold."""
    found = {}
    for package in (verifiers, r1lite):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not _LEFT_OUT.search(module.name):
                for name, value in vars(importlib.import_module(module.name)).items():
                    _collect(found, f"{module.name}.{name}", value)
    by_text = {(pattern.pattern, pattern.flags): name for name, pattern in reversed(found.items())}
    return {name: found[name] for name in by_text.values()}


def _collect(found, name, value, depth=0):
    if isinstance(value, Gated):
        value = value.pattern
    if isinstance(value, re.Pattern) or type(value).__module__ == "verifiers.lazy_pattern":
        if isinstance(value.pattern, str):
            found[name] = value
    elif isinstance(value, (tuple, list)) and depth < 3:
        for index, item in enumerate(value):
            _collect(found, f"{name}[{index}]", item, depth + 1)
    elif isinstance(value, dict) and depth < 3 and len(value) < 100:
        for key, item in value.items():
            _collect(found, f"{name}[{key!r}]", item, depth + 1)


def pumped(pattern, rng, count, times):
    """Yields texts that the pattern nearly matches: a random part of one that matches is repeated so many times."""
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    for _ in range(count):
        text = _matching(parsed, rng)
        if text:
            low = rng.randrange(len(text))
            high = min(len(text), low + rng.randint(1, 8))
            part = text[low:high] * times
            yield f"{text[:low]}{part}{text[high:]}\0"
            yield f"{text[:low]}{part}\0"


def _matching(items, rng):
    text = ""
    for operation, value in items:
        if len(text) > _LONGEST:
            break
        if operation is sre.LITERAL:
            text += chr(value)
        elif operation is sre.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif operation is sre.IN:
            text += _of_set(value, rng)
        elif operation is sre.ANY:
            text += rng.choice("a 1")
        elif operation is sre.BRANCH:
            text += _matching(rng.choice(value[1]), rng)
        elif operation is sre.SUBPATTERN:
            text += _matching(value[3], rng)
        elif operation is sre.ATOMIC_GROUP:
            text += _matching(value, rng)
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, part = value
            for _ in range(rng.randint(least, min(most, least + 3))):
                text += _matching(part, rng)
    return text


def _of_set(items, rng):
    """A character of the set, or one that is likely outside of a negated set."""
    if items[0][0] is sre.NEGATE:
        return rng.choice([char for char in _ANY if not any(_holds(item, char) for item in items[1:])] or ["§"])
    kind, value = rng.choice(items)
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.RANGE:
        return chr(rng.randint(value[0], min(value[1], value[0] + 30)))
    return rng.choice(_CATEGORIES[value])


def _holds(item, char):
    kind, value = item
    if kind is sre.LITERAL:
        return ord(char) == value
    if kind is sre.RANGE:
        return value[0] <= ord(char) <= value[1]
    return char in _CATEGORIES[value]
