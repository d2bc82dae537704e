"""Length, repetition and thinking."""

import pytest

from verifiers import Completion, Problem, VerifierError, resolve, score_many
from verifiers.reward import Reward
from verifiers.segments import answering, thinking

pytestmark = pytest.mark.quick


def tokens(count):
    return Completion("x" * count, token_ids=tuple(range(count)))


@pytest.mark.parametrize(
    ("length", "score", "reason"),
    [
        (0, 0.0, "within"),
        (80, 0.0, "within"),
        (81, 0.05, "buffer"),
        (90, 0.5, "buffer"),
        (100, 1.0, "buffer"),
        (101, 1.0, "overlong"),
    ],
)
def test_soft_overlong(length, score, reason):
    verdict = resolve("overlong", max_tokens=100)(Problem(), tokens(length))
    assert (verdict.score, verdict.reason) == (pytest.approx(score), reason)


@pytest.mark.parametrize(
    ("length", "score"), [(0, 1.0), (25, 0.853553), (50, 0.5), (99, 0.000247), (100, 0.0), (500, 0.0)]
)
def test_cosine_length(length, score):
    assert resolve("length", max_tokens=100)(Problem(), tokens(length)).score == pytest.approx(score, abs=1e-6)


def test_units_of_length():
    assert resolve("overlong", max_tokens=4, buffer_tokens=2, unit="words")(Problem(), Completion("a b c")).score == 0.5
    assert resolve("overlong", max_tokens=4, buffer_tokens=2, unit="chars")(Problem(), Completion("a b")).score == 0.5
    with pytest.raises(VerifierError, match="unit: chars"):
        resolve("overlong")(Problem(), Completion("a b"))
    (score,) = score_many(Reward("overlong"), [(Problem(), Completion("a b"))])
    assert score.reward is None


@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ("<think>one two three four five</think><answer>4</answer>", 1.0, "enough"),
        ("<think>one two three four</think><answer>a b c d e f</answer>", 0.8, "little"),
        ("<think>one one one one one one one</think>", 0.2, "little"),
        ("<think> </think><answer>4</answer>", 0.0, "none"),
        ("<think>我们先求和</think><answer>4</answer>", 1.0, "enough"),
    ],
)
def test_minimum_of_thinking(text, score, reason):
    verdict = resolve("thinking", min_words=5)(Problem(), Completion(text))
    assert (verdict.score, verdict.reason) == (pytest.approx(score), reason)


PROSE = (
    "First we add the three numbers that the problem gives, which makes twelve. Then we halve the sum, because both "
    "sisters get the same. Each of them has six sweets now, and the older one eats two of hers. So she has four left."
)


@pytest.mark.parametrize(
    ("text", "low", "high", "reason"),
    [
        (PROSE, 1.0, 1.0, "ok"),
        ("", 1.0, 1.0, "ok"),
        ("4", 1.0, 1.0, "ok"),
        ("3 + 4 = 7, 7 + 4 = 11, 11 + 4 = 15, 15 + 4 = 19, 19 + 4 = 23, 23 + 4 = 27", 1.0, 1.0, "ok"),
        ("1 | 2 | 3 |\n" + "-" * 100 + "\n4 | 5 | 6 |", 1.0, 1.0, "ok"),
        (PROSE + " wait" * 20, 0.0, 0.0, "loop"),
        (PROSE + " Let me check that again." * 5, 0.0, 0.0, "loop"),
        (PROSE + " Let me check that again." * 5 + " Let me", 0.0, 0.0, "loop"),
        (PROSE + "我们来检查。" * 6, 0.0, 0.0, "loop"),
        ("a" * 500, 0.0, 0.0, "loop"),
        ("-" * 100 + "\n" + "ha" + "a" * 100 + " " + PROSE, 0.0, 0.0, "loop"),
        ("\n".join([PROSE, "so", PROSE, "hence", PROSE, "thus"]), 0.0, 0.3, "repeated"),
    ],
)
def test_repetition(text, low, high, reason):
    verdict = resolve("repetition")(Problem(), Completion(text))
    assert low <= verdict.score <= high
    assert verdict.reason == reason


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>a</think><answer>4</answer>", "a", "4"),
        ("a</think> b", "a", "b"),
        ("<think>a", "a", None),
        ("a <answer>4</answer>", "a ", "4"),
        ("a", "a", "a"),
        ("<think>a</think><answer>4</answer><answer>5</answer>", "a", None),
    ],
)
def test_segments(text, thought, answer):
    assert (thinking(text), answering(text)) == (thought, answer)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("overlong", {"max_tokens": 4, "buffer_tokens": 5}, "buffer_tokens <= max_tokens"),
        ("overlong", {"unit": "lines"}, "unit must be one of"),
        ("length", {"max_tokens": 0}, "max_tokens must be >= 1"),
        ("thinking", {"min_words": 0}, "min_words"),
        ("repetition", {"free": 0.7}, "free < full"),
    ],
)
def test_refused_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        resolve(name, **options)
