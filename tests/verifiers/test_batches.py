"""Batches: the same scores, errors and order as one at a time; each verifier in the process it belongs to."""

import dataclasses
import os
import re
import threading
import time
from pathlib import Path

import pytest
from batch_verifiers_for_tests import LETTERS, InBatches, Naive, Named, here
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verifiers import Completion, Problem, Reward, Verdict, VerifierError, score_many
from verifiers.reward import score_one
from verifiers.sandbox.threads import verdicts
from verifiers.scoring import BatchScorer

FORMULAS = ("a", "a + b", "a * (0.5 + 0.5*b) - 0.1*c", "c - a*b*c", "(b + 2*a) / 4 * c", "a*a - 0.25*b")


def pairs(texts):
    return [(Problem(id=str(i)), Completion(text)) for i, text in enumerate(texts)]


def placeless(scores):
    """Removes the line that an error was raised in, because a batch does not raise where a single call does."""
    return [dataclasses.replace(score, error=re.sub(r" in \S+, line \d+", "", score.error)) for score in scores]


@settings(max_examples=80, deadline=None)
@given(
    formula=st.sampled_from(FORMULAS),
    kinds=st.tuples(*[st.sampled_from((Named, InBatches, Naive))] * 3),
    texts=st.lists(st.text(LETTERS, min_size=3, max_size=3), max_size=9),
    size=st.integers(1, 4),
)
@example(formula="a * b", kinds=(InBatches, Named, Named), texts=["vvv", "kgk", "1v1", "aa1"], size=4)
def test_scores_verdicts_errors_and_order_are_those_of_one_at_a_time(formula, kinds, texts, size):
    def reward():
        made = {name: kind(i) for i, (name, kind) in enumerate(zip("abc", kinds, strict=True)) if name in formula}
        return Reward(formula, verifiers=made)

    given, alone, many = pairs(texts), reward(), reward()
    expected = [score_one(alone, *pair) for pair in given]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verifiers.scoring._BATCH", size)
        found = score_many(many, given)
    for scores in (found, many.batch(given) if given else []):
        assert placeless(scores) == placeless(expected)
        assert [list(score.verdicts) for score in scores] == [list(score.verdicts) for score in expected]
    once = reward()
    once.batch(given)
    for name, verify in once.verifiers.items():
        if not isinstance(verify, Naive):  # asked for the same items in the same order, each of them once
            assert verify.asked == alone.verifiers[name].asked


def test_a_batch_of_another_length_is_an_error_of_each_item():
    class Short(Named):
        def verify_many(self, pairs):
            return [1.0]

    scores = score_many(Reward("s", verifiers={"s": Short(0)}), pairs(["1", "1"]))
    assert [score.reward for score in scores] == [None, None]
    assert scores[0].error == "VerifierError: verifier 's': verify_many returned 1 results for 2 items"


def test_a_batch_is_bounded_and_what_needs_none_is_scored_as_it_comes(monkeypatch):
    monkeypatch.setattr("verifiers.scoring._BATCH", 8)
    monkeypatch.setattr("verifiers.scoring._BATCH_CHARS", 100)
    taken = []

    def source(text):
        for i in range(1000):
            taken.append(i)
            yield Problem(), Completion(text)

    for kind, text, read in ((InBatches, "1", 8), (InBatches, "1" * 50, 2), (Named, "1", 1)):
        taken.clear()
        scores = BatchScorer(Reward("v", verifiers={"v": kind(0)})).map(source(text))
        assert next(scores).reward == 1.0
        assert len(taken) == read
    seen = []
    score_many(Reward("v", verifiers={"v": InBatches(0)}), pairs(["1"] * 20), progress=seen.append)
    assert seen == list(range(1, 21))


@pytest.fixture
def _import_from_tests(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))


@pytest.mark.usefixtures("_import_from_tests")
def test_isolated_verifiers_run_from_here_and_the_others_in_workers():
    name, other = "batch_verifiers_for_tests:Isolated", "batch_verifiers_for_tests:here"
    reward = Reward(
        "iso * right + 0.5*calm", options={"iso": {"use": name}, "right": {"use": other}, "calm": {"use": other}}
    )
    texts = ["good", "hangs", "wrong", "fails there", "good"]
    with BatchScorer(reward, workers=1, timeout_s=1.0) as scorer:
        scores = list(scorer.map(pairs(texts)))
        assert [score.reward for score in scores] == [1.5, None, 0.0, None, 1.5]
        assert scores[1].error == "VerifierError: 'right', 'calm': no verdict within 1 s (on problem '1')"
        assert scores[3].error == "VerifierError: no server"
        assert list(scores[0].verdicts) == ["iso", "right", "calm"]
        assert scores[0].verdicts["iso"].detail == f"{os.getpid()} 4"  # those that were not given up before
        worker = scores[0].verdicts["right"].detail
        assert worker != str(os.getpid())
        (again,) = scorer.map(pairs(["good"]))
        assert again.versions == reward.versions
    for workers in (0, 3):  # nothing to do for a worker: none is started
        with BatchScorer(Reward("iso", options={"iso": {"use": name}}), workers=workers) as alone:
            assert alone.start() is None
            assert [score.reward for score in alone.map(pairs(texts))] == [1.0, 1.0, 1.0, None, 1.0]


@pytest.mark.usefixtures("_import_from_tests")
def test_a_scorer_that_was_closed_can_score_again():
    with BatchScorer(Reward("batch_verifiers_for_tests:here"), workers=1) as scorer:
        first = scorer.start()
        assert first is scorer.start()
        scorer.close()
        assert [score.reward for score in scorer.map(pairs(["good", "wrong"]))] == [1.0, 0.0]
    unsent = BatchScorer(Reward("f", verifiers={"f": lambda p, c: 1.0}), workers=1)
    with pytest.raises(ValueError, match="name its verifiers as"):
        unsent.start()


def test_a_part_of_a_reward_has_its_own_verifiers_and_options():
    reward = Reward("math*format + calm", options={"format": {"policy": "lenient"}}, verifiers={"calm": here})
    part = reward.only(["format", "calm"])
    assert part.verifiers == {name: reward.verifiers[name] for name in ("format", "calm")}
    assert (part.options, part.ready, part.formula) == (reward.options, reward.ready, "format+calm")
    assert list(reward.verifiers) == ["math", "format", "calm"]


def test_an_interrupted_batch_begins_nothing_more():
    begun, gate = [], threading.Event()

    def verify(problem, completion):
        begun.append(completion.text)
        if threading.current_thread() is threading.main_thread():
            gate.set()
            raise KeyboardInterrupt
        gate.wait(60)
        time.sleep(0.2)
        return Verdict(1.0, "ok")

    with pytest.raises(KeyboardInterrupt):
        verdicts(verify, pairs(map(str, range(1000))), 2)
    assert len(begun) < 10


def test_code_in_a_batch_gives_the_verdicts_of_one_at_a_time():
    tests = {"style": "function", "entry_point": "f", "args": [[1], [2]], "outs": [2, 3]}
    codes = ["def f(x): return x + 1", "def f(x): return x", "def f(x: return", "raise SystemExit", "no code"]
    items = [(Problem(tests=tests), Completion(f"```python\n{code}\n```")) for code in codes]
    items.insert(1, (Problem(), items[0][1]))  # no tests to judge by
    reward = Reward("code + 0.1*format")
    try:
        found, expected = score_many(reward, items), [score_one(reward, *item) for item in items]
    except VerifierError as error:
        pytest.skip(str(error))
    finally:
        reward.verifiers["code"].close()
    for one, other in zip(found, expected, strict=True):
        assert (one.reward, one.error, list(one.verdicts)) == (other.reward, other.error, list(other.verdicts))
        for name, verdict in one.verdicts.items():
            assert (verdict.score, verdict.reason) == (other.verdicts[name].score, other.verdicts[name].reason)
    assert found[0].verdicts["code"].reason == "AC"
    assert "GoldError" in found[1].error
