"""Verifiers whose result each completion names, one letter for each verifier; some judge in batches."""

import os
import time
from dataclasses import dataclass, field

from verifiers import GoldError, Verdict, VerifierError

RESULTS = {
    "0": lambda: 0.0,
    "1": lambda: True,
    "h": lambda: Verdict(0.5, "half", "of it", answer="x", span=(0, 1), flags=("odd",)),
    "a": lambda: Verdict(None, "abstains"),
    "2": lambda: 2.0,
    "n": lambda: None,
    "t": lambda: "text",
}
ERRORS = {"v": VerifierError("no sandbox"), "g": GoldError("no gold"), "k": KeyError("boom"), "e": MemoryError()}
LETTERS = "".join((*RESULTS, *ERRORS))


@dataclass
class Named:
    """Does what the letter at `place` says, and keeps what it was asked."""

    place: int
    version = "1"
    asked: list[str] = field(default_factory=list)

    def __call__(self, problem, completion):
        self.asked.append(completion.text)
        letter = completion.text[self.place]
        if letter in ERRORS:
            raise ERRORS[letter]
        return RESULTS[letter]()


class InBatches(Named):
    """The same with `verify_many`, as it is asked for."""

    def verify_many(self, pairs):
        assert pairs
        self.asked += [completion.text for _, completion in pairs]
        letters = [completion.text[self.place] for _, completion in pairs]
        return [ERRORS[letter] if letter in ERRORS else RESULTS[letter]() for letter in letters]


class Naive(Named):
    """A batch that ends with its first error."""

    def verify_many(self, pairs):
        return [Named(self.place)(*pair) for pair in pairs]


class Isolated:
    """Says in which process it runs, and how many it was given."""

    version = "1"
    isolated = True

    def __call__(self, problem, completion):
        return self.verify_many([(problem, completion)])[0]

    def verify_many(self, pairs):
        return [
            VerifierError("no server")
            if completion.text == "fails there"
            else Verdict(1.0, "ok", f"{os.getpid()} {len(pairs)}")
            for _, completion in pairs
        ]


def here(problem, completion):
    """Says in which process it runs."""
    if completion.text == "hangs":
        time.sleep(1000)
    return Verdict(float(completion.text != "wrong"), "ok", str(os.getpid()))
