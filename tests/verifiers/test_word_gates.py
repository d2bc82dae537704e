"""What spares slow patterns their work must never change what they find."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tables_for_tests import each

import verifiers.extract
import verifiers.language
import verifiers.mathexpr
import verifiers.units
from verifiers import lazy_pattern
from verifiers.extract import conclusions, hedges
from verifiers.extract.gates import Gated, needed
from verifiers.extract.words import ascii_words
from verifiers.mathexpr import dressing, languages

HEDGES = (
    "maybe, perhaps, possibly, wait, hmm, hmmmm, or so, not sure, unsure, I guess, nope, actually, I mean, I think,"
    " I believe, oder mehr, or mehr, ou plus, not certain, vielleicht, eventuell, warte, nein, attends, quizas, quiza,"
    " tal vez, a lo mejor, espera, talvez, forse, aspetta, misschien, kanske, belki, mungkin, to, till, until, through,"
    " versus, vs, vs., no, not, but, bis, oder möglicherweise, peut-être, o más, może, 也许, 至"
).split(", ")
RESTATEMENTS = (
    "or, equivalently, | or equivalently | or in other words | equivalently | in other words | that is | that is to say"
    " | i.e. | i. e. | which is | which equals | which is also | or simply | or just | also written as"
    " | d.h. | c'est-à-dire"
    " | es decir | ou seja | cioè | 即 | or "
).split("|")
JOINTS = "oder ou oppure or veya lub albo of eller atau nebo sau und et ta ve en och og dan oraz y e o или 和".split()
FRAMES = ("7 {} 8", "${}$", "7, {} $8$", "7\\text{{ {} }}8", "(7 {} 8)", "{} 7", "7{}8", "MAYBE {} 7")


def filled(words: list[str]) -> list[str]:
    return [frame.format(word) for frame, word in itertools.product(FRAMES, (*words, *map(str.upper, words)))]


@each(HEDGES)
def test_hedges(word: str) -> None:
    for text in filled([word]):
        found = hedges._HEDGE.search(text)
        assert hedges.hedge(text) == (found[0] if found else "")


def test_hedges_are_found() -> None:
    assert all(hedges.hedge(f"7 {word} 8") for word in HEDGES)


@each(RESTATEMENTS)
def test_restatements(words: str) -> None:
    for text in (f"7 {words} 8", f"$7$,{words}$8$", f"7{words.upper()}8"):
        parts = hedges.RESTATEMENT.split(text)
        parts = hedges.OR_VALUE.split(text) if len(parts) == 1 else parts
        kept = tuple(part.strip(" ,;") for part in parts if part.strip(" ,;"))
        assert hedges.restated(text, one=True) == (kept if len(kept) > 1 else ())
    assert len(hedges.restated(f"$7$,{words}$8$", one=True)) == 2


@each([*JOINTS, *languages._ENGLISH, "per cent", "pct", "pourcent", "por ciento", "per cento"])
def test_joints_and_words_after_a_number(word: str) -> None:
    for text in (f"7 {word} 8", f"7 {word}", f"7{word}", f"7\\text{{ {word} }}", f"7 {word.upper()} $8$", f"{word} 7"):
        plain = dressing._TEXT_JOINT.sub(dressing._joint, text)
        plain = languages.in_english(dressing._BARE_JOINT.sub(dressing._joint, plain))
        assert dressing.undressed(text) == dressing._COUNTED.sub("", plain) or not text.isascii()
        assert dressing.undressed(text) == plain or not text.isascii()


def test_negative_words() -> None:
    assert [dressing.undressed(f"{word} 7") for word in ("menos", "moins", "Meno", "минус")] == ["-7"] * 4


def test_words_of_an_ascii_text() -> None:
    assert ascii_words("It's 7apples_and \\frac{A}{b}\x00\x7f-Z \ud800") == "it s apples and frac a b z".split()


TABLES = ("statement_cases.txt", "asked_cases.txt", "prose_cases.txt", "claim_cases.txt")
PARTS = (verifiers.extract, verifiers.language, verifiers.mathexpr, verifiers.units)
GLOBALS = {
    f"{part.__name__}.{module.name}.{name}": value
    for part in PARTS
    for module in pkgutil.iter_modules(part.__path__)
    for name, value in vars(importlib.import_module(f"{part.__name__}.{module.name}")).items()
}
GATED = {name: value for name, value in GLOBALS.items() if isinstance(value, Gated)} | {
    f"{name}[{number}]": item
    for name, value in GLOBALS.items()
    if isinstance(value, list)
    for number, item in enumerate(value)
    if isinstance(item, Gated)
}


def texts(step: int) -> list[str]:
    root = Path(__file__).parents[1]
    rows = [line for name in TABLES for line in (root / name).read_text(encoding="utf-8").splitlines()]
    for path in sorted((root.parent / "datasets" / "maths_verdicts").glob("*.jsonl")):
        rows += [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    return rows[::step]


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_gated_search_finds_what_its_pattern_finds(step: int) -> None:
    opened = 0
    for text in texts(step):
        for part in (text, text.upper(), text[len(text) // 2 :]):
            for name, gated in GATED.items():
                found, same = gated.search(part), gated.pattern.search(part)
                opened += same is not None
                assert (found and found.span()) == (same and same.span()), (name, part)
    assert opened > 200


def test_what_an_open_gate_lets_through() -> None:
    gated = Gated(r"\bmaybe (\d)\b")
    text, without = "well, maybe 7, or maybe 8", "7 or 8"
    assert gated.may_match(text)
    assert not gated.may_match(without)
    for part in (text, without):
        assert str(gated.search(part)) == str(gated.pattern.search(part))
        assert str(gated.search(part, 8)) == str(gated.pattern.search(part, 8))
        assert str(gated.search(part, 8, 20)) == str(gated.pattern.search(part, 8, 20))
        assert [*map(str, gated.finditer(part))] == [*map(str, gated.pattern.finditer(part))]
        assert gated.sub(" ", part) == gated.pattern.sub(" ", part)
        assert str(gated.match(part, 6)) == str(gated.pattern.match(part, 6))


def lazy_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, lazy_pattern._Compiled):
        yield cast("re.Pattern[str]", value)
    elif isinstance(value, Gated):
        yield value.pattern
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from lazy_in(one)


def test_every_lazy_pattern_is_valid() -> None:
    found = {id(pattern): pattern for pattern in lazy_in(GLOBALS)}
    for pattern in found.values():
        assert pattern.groups >= 0  # for which it is compiled
    assert len(found) > 450


def test_a_lazy_pattern_does_what_a_compiled_one_does() -> None:
    given = r"(?P<sign>[-+]?)(\d)", re.IGNORECASE
    for name, arguments in {
        "search": ("a -7 8",), "match": ("+7",), "fullmatch": ("-7",), "findall": ("1 -2",), "split": ("1 -2",),
        "sub": ("x", "1 -2"), "subn": ("x", "1 -2"), "finditer": ("1 -2",),
    }.items():  # fmt: skip
        for lazy in [lazy_pattern.lazy_pattern(*given)] * 2:  # not compiled yet, then compiled
            found, wanted = getattr(lazy, name)(*arguments), getattr(re.compile(*given), name)(*arguments)
            assert [*map(str, found)] == [*map(str, wanted)] if name == "finditer" else str(found) == str(wanted)
    lazy = lazy_pattern.lazy_pattern(*given)
    assert (lazy.groups, dict(lazy.groupindex), lazy.pattern) == (2, {"sign": 1}, given[0])
    assert not hasattr(lazy_pattern.lazy_pattern("x"), "no_such_name")
    with pytest.raises(re.error):
        lazy_pattern.lazy_pattern("(").search("")


def test_what_a_pattern_needs() -> None:
    def said(pattern: str) -> set[tuple[str, str]] | None:
        needs = needed(pattern)
        return None if needs is None else {(need.kind, need.text) for need in needs}

    assert said(r"\b(?:so|thus)\b") == {("word", "so"), ("word", "thus")}
    assert said(r"\bquiz[áa]s?\b") == {("prefix", "quiz")}
    assert said(r"也许|[?？]") == {("char", "也"), ("char", "?"), ("char", "？")}
    assert said(r"(?:the )?answer\b") == {("part", "answer")}
    assert said(r"\b(?:no|\d+)\b") is None  # a number needs no word
    assert said(r"\w+") is None


def test_an_argument_is_found_by_its_last_words() -> None:
    for text in texts(4):
        for end in range(20, len(text), 17):
            before = text[max(0, end - conclusions._ARGUMENTS) : end]
            assert conclusions._leads_on(before) == (conclusions._ARGUMENT.pattern.search(before) is not None), before
