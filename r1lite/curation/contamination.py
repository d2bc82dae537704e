"""Detects questions that repeat a problem of an evaluation set.

Rules, tried in this order against every evaluation problem:

exact          the same words, numbers and signs, ignoring case, spaces and Unicode forms
digits_masked  the same up to its numbers (Light-R1, arXiv:2503.10460: MATH-500 has tens of such neighbours in the
               training set); for problems of at least n words, since "2 + 3?" and "4 + 9?" are not the same problem
ngrams         the question contains at least a given share of the evaluation problem's n-grams of words
short          for an evaluation problem of fewer than n words, which has no n-gram: the question contains all of its
               words, numbers and signs (at least 4) in one piece

Other tools count one common 8-gram as contamination. That flags 1.3 % of GSM8K's training problems and 73 % of the
bundled ones, mostly for common phrases ("how much money does she have left"); half of the n-grams flag 0.03 % and 1 %.
"""

from __future__ import annotations

import collections
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from r1lite.curation.similar import tokens
from verifiers import Problem

RULES = ("exact", "digits_masked", "ngrams", "short")
_MASK = "0"
_LEAST = 4  # fewest tokens of a short problem: shorter ones occur in any text


@dataclass(frozen=True, slots=True)
class Overlap:
    """The evaluation problem that a question repeats."""

    rule: str
    where: str  # "SET: problem ID"
    share: float = 1.0  # of the evaluation problem's n-grams


@dataclass(slots=True)
class EvaluationSets:
    """An index of all evaluation problems.

    `n` is the number of words in an n-gram; `share` is the share of an evaluation problem's n-grams that counts as
    contamination.
    """

    n: int
    share: float
    count: int = 0
    _places: list[str] = field(default_factory=list)
    _exact: dict[str, int] = field(default_factory=dict)
    _masked: dict[str, int] = field(default_factory=dict)
    _ngrams: dict[str, list[int]] = field(default_factory=dict)
    _totals: list[int] = field(default_factory=list)
    _short: dict[int, dict[str, int]] = field(default_factory=dict)  # number of tokens -> text -> problem

    def add(self, name: str, problems: Sequence[Problem]) -> None:
        """Adds a set; findings refer to it by `name`."""
        for number, problem in enumerate(problems):
            place = len(self._places)
            self._places.append(f"{name}: {problem.id or number}")
            found = read(problem.prompt)
            words = _words(found)
            self._exact.setdefault(" ".join(found), place)
            grams = _ngrams(words, self.n)
            self._totals.append(len(grams))
            if grams:
                self._masked.setdefault(_masked(found), place)
            elif len(found) >= _LEAST:
                self._short.setdefault(len(found), {}).setdefault(" ".join(found), place)
            for gram in grams:
                self._ngrams.setdefault(gram, []).append(place)
            self.count += 1

    def find(self, question: str) -> Overlap | None:
        """The evaluation problem that this question repeats, if any."""
        found = read(question)
        text = " ".join(found)
        place = self._exact.get(text)
        if place is not None:
            return Overlap("exact", self._places[place])
        words = _words(found)
        grams = _ngrams(words, self.n)
        if grams:
            place = self._masked.get(_masked(found))
            if place is not None:
                return Overlap("digits_masked", self._places[place])
            hits: collections.Counter[int] = collections.Counter()
            for gram in grams:
                hits.update(self._ngrams.get(gram, ()))
            best = max(hits, key=lambda place: (hits[place] / self._totals[place], -place), default=None)
            if best is not None and hits[best] >= self.share * self._totals[best]:
                return Overlap("ngrams", self._places[best], hits[best] / self._totals[best])
        for length, texts in self._short.items():
            for start in range(len(found) - length + 1):
                place = texts.get(" ".join(found[start : start + length]))
                if place is not None:
                    return Overlap("short", self._places[place])
        return None

    def repeats(self, question: str) -> bool:
        """True if an evaluation problem equals this question word for word."""
        return " ".join(read(question)) in self._exact


def read(text: str) -> list[str]:
    """Words, numbers and signs of a text in its compatibility form, which unifies full-width digits and ligatures."""
    return tokens(unicodedata.normalize("NFKC", text))


def _words(tokens: list[str]) -> list[str]:
    return [token for token in tokens if token[0].isalnum()]


def _masked(tokens: list[str]) -> str:
    return " ".join(_MASK if token[0].isdigit() else token for token in tokens)


def _ngrams(words: list[str], n: int) -> set[str]:
    return {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)}
