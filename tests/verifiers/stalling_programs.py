"""Programs that would stall, poison or exhaust the judge, put together from the parts in tests/hacks/parts.

A statement runs in several places (at import, in the call, in a thread, in a child, in a destructor ...), an expression
is returned as an answer, bytes are written where the judge listens. A test does what tests do with an answer: it
iterates, compares, formats, calls, counts up to it. The problem is that of tests/hacks/code, or the program brings its
own test, and none of them solves it: each is a verdict of 0 within its limits, and leaves nothing behind.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

PARTS = Path(__file__).resolve().parents[1] / "hacks" / "parts"
_HEADER = re.compile(r"^#=== (\S+)(?: \[([a-z ]+)\])?$", re.MULTILINE)
_PRELUDE = """
import collections, decimal, fractions, functools, itertools, sys, time, types, weakref
def stall(*_, **__): time.sleep(1000)
def spin(*_, **__):
    while True: pass
def of(name, act, base=object): return type("Odd", (base,), {name: act})
class Meta(type):
    def __getattribute__(self, name): spin()
    def __instancecheck__(self, other): spin()
class Proxy:
    def __getattribute__(self, name): return Proxy()
    def __call__(self, *_, **__): return Proxy()
    def __iter__(self): return self
    def __next__(self): return self
DUNDERS = (
    "eq ne lt le gt ge hash len iter next bool int float index str repr format getitem contains call add radd mul sub "
    "neg abs round enter exit await reversed bytes complex trunc floor ceil length_hint missing copy deepcopy reduce_ex"
)
Stuck = type("Stuck", (), {f"__{name}__": spin for name in DUNDERS.split()})
def drip():
    while True:
        time.sleep(0.02)
        yield 1
def nested(make, depth):
    found = 0
    for _ in range(depth): found = make(found)
    return found
"""
_FRAMING = "import os, time\ndef put(b): os.write(3, len(b).to_bytes(4, 'little') + b)\n"
# What the programs need: <bits/stdc++.h> would cost each of them a second.
_CPP_HEADERS = (
    "atomic cstring iostream thread vector alloca.h fcntl.h signal.h sys/mman.h sys/syscall.h unistd.h"
).split()
_CPP_HEAD = "".join(f"#include <{name}>\n" for name in _CPP_HEADERS) + "using namespace std;\n"
_PRINTED = "import sys\nsys.stdin.read()\nprint(solve([]))\n"


class Program(NamedTuple):
    name: str
    style: str  # "function", "asserts" or "stdin"
    language: str  # "python", "cpp" or "javascript"
    code: str
    test: str = ""  # of assert style, in the place of the common one


def parts(name: str) -> dict[str, tuple[str, str]]:
    """Returns, by name, the text in brackets beside it and the text of each part of a file."""
    found = _HEADER.split((PARTS / f"{name}.txt").read_text(encoding="utf-8"))[1:]
    return {
        title: (beside or "", text.strip("\n"))
        for title, beside, text in zip(found[::3], found[1::3], found[2::3], strict=True)
    }


def _indented(statement: str) -> str:
    return textwrap.indent(statement, "    ")


def programs(native: bool = True) -> list[Program]:
    """Returns all programs; without those in C++ and JavaScript if not `native`."""
    found: list[Program] = []

    def add(name: str, code: str, *styles: str, language: str = "python") -> None:
        found.extend(Program(name, style, language, code) for style in styles)

    styles = ("function", "asserts")
    places = {name: text for name, (_, text) in parts("places").items()}
    for name, (chosen, statement) in parts("statements").items():
        for index, place in enumerate(chosen.split()):
            code = places[place].replace("@ACT@", _indented(statement)) + "\n"
            add(f"{name}/{place}", code, styles[index % 2])
            add(f"{name}/{place}", code if place == "import" else code + _PRINTED, "stdin")
    for index, line in enumerate((PARTS / "answers.txt").read_text(encoding="utf-8").splitlines()):
        name, _, expression = line.partition(": ")
        code = f"{_PRELUDE}\ndef solve(xs): return {expression}\n"
        add(f"answer/{name}", code, *styles)
        if index % 4 == 0:
            add(f"answer/{name}", code + "print(solve([]))", "stdin")
    for name, (_, statement) in parts("raised").items():
        code = f"{_PRELUDE}\ndef solve(xs):\n{_indented(statement)}\n"
        add(f"raised/{name}", code, *styles)
        add(f"raised/{name}", code + "solve([])", "stdin")
    for index, (name, (_, statement)) in enumerate(parts("frames").items()):
        at_once = f"{_FRAMING}if True:\n{_indented(statement)}\ndef solve(xs): return 0\n"
        add(
            f"frames/{name}/call",
            f"{_FRAMING}def solve(xs):\n{_indented(statement)}\n    return 0\n",
            styles[index % 2],
        )
        add(f"frames/{name}/import", at_once, styles[1 - index % 2], "stdin")
    for line in (PARTS / "comparisons.txt").read_text(encoding="utf-8").splitlines():
        expression, _, test = line.partition(" | ")
        code = f"{_PRELUDE}\ndef solve(xs): return {expression}\n"
        test = test.replace("@X@", "solve([1, 2, 3])").replace("\\n", "\n")
        found.append(Program(f"compared/{test}", "asserts", "python", code, test))
    for name, (_, text) in parts("calls").items():
        test, _, code = text.partition("\n#---\n")
        found.append(Program(f"calls/{name}", "asserts", "python", f"{_PRELUDE}\n{code}\n", test))
    if native:
        for name, (_, code) in parts("cpp").items():
            code = code.replace("@HEAD@\n", _CPP_HEAD).replace("@DEEP@", "(" * 60_000 + "1" + ")" * 60_000)
            add(f"cpp/{name}", code, "stdin", language="cpp")
        for name, (_, code) in parts("javascript").items():
            add(f"js/{name}", code, "stdin", language="javascript")
    return found
