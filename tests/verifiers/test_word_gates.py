"""What spares slow patterns their work must never change what they find."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
from pathlib import Path

from tables_for_tests import each

import verifiers.extract
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


TABLES = ("statement_cases.txt", "asked_cases.txt", "prose_cases.txt")
GATED = {
    f"{module.name}.{name}": value
    for module in pkgutil.iter_modules(verifiers.extract.__path__)
    for name, value in vars(importlib.import_module(f"verifiers.extract.{module.name}")).items()
    if isinstance(value, Gated)
}


def texts() -> list[str]:
    root = Path(__file__).parents[1]
    rows = [line for name in TABLES for line in (root / name).read_text(encoding="utf-8").splitlines()]
    for path in sorted((root.parent / "datasets" / "maths_verdicts").glob("*.jsonl")):
        rows += [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    return rows[::4]


def test_a_gate_keeps_nothing_from_its_pattern() -> None:
    opened = 0
    for text in texts():
        for name, gated in GATED.items():
            for part in (text, text.upper(), text[len(text) // 2 :]):
                found = gated.pattern.search(part)
                opened += found is not None
                assert gated.search(part) == found or str(gated.search(part)) == str(found), (name, part)
                assert gated.sub(" ", part) == gated.pattern.sub(" ", part), (name, part)
    assert opened > 500


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
    for text in texts():
        for end in range(20, len(text), 17):
            before = text[max(0, end - conclusions._ARGUMENTS) : end]
            assert conclusions._leads_on(before) == (conclusions._ARGUMENT.pattern.search(before) is not None), before
