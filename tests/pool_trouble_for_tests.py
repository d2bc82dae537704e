"""A verifier that gets into whatever trouble the completion names."""

import os
import sys
import time
from pathlib import Path

import numpy

from verifiers import Completion, Problem, Verdict, VerifierError, verifier


def waits(problem: Problem, completion: Completion):
    """Waits for the file that the completion names, until another one says that this is the end."""
    text = completion.text
    if text == "30 ms":
        time.sleep(0.03)
    elif text.startswith("end "):
        Path(text.removeprefix("end ")).touch()
    elif text.startswith("/"):
        Path(text).with_suffix(".begun").touch()
        while not Path(text).exists():
            time.sleep(0.01)
    return float(text == "1")


def trouble(problem: Problem, completion: Completion):
    match completion.text:
        case "hang":
            time.sleep(1000)
        case "spin":
            while True:
                pass
        case "close":
            os.closerange(3, 64)
        case "close and work":
            os.closerange(3, 64)
            time.sleep(1000)
        case "swap":
            for number in range(3, 64):
                os.dup2(2, number)
        case "crash":
            os._exit(7)
        case "abort":
            os.abort()
        case "exit":
            sys.exit(0)
        case "memory":
            hoard = []
            while True:
                hoard.append(bytes(1 << 24))  # zeros from calloc: the limit counts them, and no page is touched
        case "print":
            print("x" * 100, flush=True)
            sys.stdin.read()
        case "nan":
            return float("nan")
        case "two":
            return 2.0
        case "none":
            return None
        case "text":
            return "yes"
        case "raise":
            raise KeyError("boom")
        case "gold":
            raise VerifierError("no gold")
        case "odd":
            return Verdict(1.0, 5, object(), ["a"])
    return float(completion.text.isdigit())


def forks(problem: Problem, completion: Completion):
    """Forks as the completion says; the fork returns to the caller, which it must not."""
    how, text = completion.text.split()
    if how != "plain" and not os.fork():
        if how == "raises":
            raise ValueError("in the fork")
        if how == "exits":
            sys.exit(0)
        if how == "hangs":
            time.sleep(3)
    return float(text == "1")


class SlowToLoad:
    """Loads for longer than one completion may take."""

    version = "1"

    def __init__(self):
        self.loaded = False

    def prepare(self):
        time.sleep(1.5)
        self.loaded = True

    def __call__(self, problem: Problem, completion: Completion):
        if not self.loaded:
            self.prepare()
        return 1.0


@verifier(name="my_parent", version="7")
def parent(problem: Problem, completion: Completion):
    return Verdict(1.0, "ok", str(os.getpid()))


class Number(float):
    """Stands for numpy's."""


class Text(str):
    """Stands for what parsers return."""


class Odd:
    def __str__(self):
        raise RuntimeError("no text of it")


def sums(problem: Problem, completion: Completion):
    return float(problem.tests["a"].sum() + problem.meta["b"] + sum(completion.token_ids) == 10)


def own_types(problem: Problem, completion: Completion):
    if completion.text == "odd":
        return Verdict(1.0, "fine", answer=Odd())
    if completion.text == "numpy":
        return Verdict(numpy.float32(0.5), numpy.str_("fine"), "some", span=(numpy.int64(1), numpy.int64(2)))
    return Verdict(Number(0.5), Text("fine"), Text("some"), flags=[Text("a")])
