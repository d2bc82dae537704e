"""No regular expression takes long for a short text, whatever it holds: their work is nowhere exponential."""

import random
import re
import signal

import pytest
from patterns_for_tests import patterns, pumped

TIMES = 32  # a pattern that reads a part in two ways takes 2**32 steps; no text has more blanks in a row
MOST_CPU_S = 0.5


class TooLong(BaseException):
    pass


@pytest.fixture(scope="module")
def known():
    found = patterns()
    assert len(found) > 700
    return found


@pytest.fixture
def limited():
    def end(*_):
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, end)  # `re` looks at signals while it matches
    yield lambda seconds: signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def slow_texts(pattern, texts, limited):
    found = []
    for text in texts:
        for read in (pattern.match, pattern.search, pattern.fullmatch):
            limited(MOST_CPU_S)
            try:
                read(text)
            except TooLong:
                found.append(text[:80])
            limited(0)
            if found:
                return found
    return found


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(2, 12))])
def test_no_pattern_takes_long_for_a_short_text(known, limited, seed):
    slow = {}
    for name, pattern in known.items():
        rng = random.Random(f"{seed} {name}")
        found = slow_texts(pattern, pumped(pattern, rng, 12, TIMES), limited)
        if found:
            slow[name] = found
    assert not slow


@pytest.mark.parametrize(
    "text", [r"(?:[ab]|\\,|,)*(?:;(?:[ab]|\\;|\\)*)+x", r"(?:[*_]|#+)+$", r"(?:number\s+|numbers?\s+)*7$"]
)
def test_patterns_that_were_exponential_are_found(text, limited):
    pattern = re.compile(text)
    assert slow_texts(pattern, pumped(pattern, random.Random(0), 400, TIMES), limited)


def endless():
    while True:
        pass


def test_the_time_is_that_of_the_process(limited):
    limited(0.05)
    with pytest.raises(TooLong):
        endless()
