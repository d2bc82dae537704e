"""Sentences of the labelled cases, cut and joined at random: each gets a verdict, never an exception."""

import contextlib
import json
import random
import re
from pathlib import Path

import pytest

from verifiers import Completion, GoldError, Problem, resolve

CASES = Path(__file__).resolve().parents[2] / "datasets" / "maths_verdicts"
SENTENCE = re.compile(r"[^.!?。！？\n]*[.!?。！？\n]*\s*")
TOKEN = re.compile(r"\s+|[^\W\d_]+|\d+|.", re.DOTALL)
ODD = (
    "h 05", "h", "min", "km/h", "€", "$", "°C", "%", "cm²", "Uhr", "時", "pm", "a.m.", "du matin", "de la tarde", "分",
    "half", "½", "π", "√", "dozen", "و نیم", "hundert", "mil", "тысяч", "第", "(", "minus", "−", "/", ":", ".", ",",
    "0", "12", "007", "1,5", "1/2", "2:30", "10000000000000000000000000",
)  # fmt: skip


class Splicer:
    """Makes (question, gold, completion) out of pieces of the cases, most of one language."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        files = sorted(CASES.glob("*.jsonl"))
        self.rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
        self.by_language = {}
        for row in self.rows:
            self.by_language.setdefault(row["language"], []).append(row)

    def piece(self, rows):
        text = self.draw.choice(rows).get(self.draw.choice(("text", "text", "text", "prompt", "gold"))) or "."
        sentences = [part for part in SENTENCE.findall(text) if part]
        at = self.draw.randrange(len(sentences))
        return "".join(sentences[at : at + self.draw.randint(1, 2)])

    def odd(self, text):
        """The text with one of its tokens replaced, repeated, moved or taken out."""
        tokens = TOKEN.findall(text)
        at, other = self.draw.randrange(len(tokens)), self.draw.randrange(len(tokens))
        what = self.draw.randrange(4)
        if what == 0:
            tokens[at] = self.draw.choice(ODD)
        elif what == 1:
            tokens.insert(at, f" {self.draw.choice(ODD)} ")
        elif what == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            del tokens[at : at + self.draw.randint(1, 3)]
        return "".join(tokens) or "."

    def case(self):
        rows = self.by_language[self.draw.choice(sorted(self.by_language))] if self.draw.random() < 0.8 else self.rows
        text = "".join(self.piece(rows) + self.draw.choice(("", " ", "\n")) for _ in range(self.draw.randint(1, 4)))
        for _ in range(self.draw.choice((0, 0, 1, 2, 3, 5))):
            text = self.odd(text)
        row = self.draw.choice(rows)
        return row.get("prompt") or self.piece(rows), row["gold"], text


@pytest.mark.parametrize(("seed", "count"), [(1, 2000), pytest.param(2, 100_000, marks=pytest.mark.exhaustive)])
def test_every_splice_gets_a_verdict(seed, count):
    splicer, verify = Splicer(seed), resolve("math")
    for _ in range(count):
        prompt, gold, text = splicer.case()
        with contextlib.suppress(GoldError):
            verdict = verify(Problem(prompt, gold), Completion(text))
            assert verdict.score in (0.0, 1.0)
