"""Entropy, the tokens of the highest, and its adaptive coefficient against the textbook."""

import math

import papers
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.rl.entropy import adapted_entropy_coef, entropy_threshold, top_entropy
from r1lite.rl.logprobs import entropies


def test_entropy_is_the_textbooks():
    torch.manual_seed(0)
    logits = torch.randn(3, 6, dtype=torch.float64)
    logits[0, 2] = -math.inf  # a token that can't come
    expected = [papers.entropy((row / 0.7).softmax(0).tolist()) for row in logits]
    assert entropies(logits, temperature=0.7).tolist() == pytest.approx(expected, rel=1e-10)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 30).map(lambda n: n / 7), min_size=1, max_size=20),
    st.sampled_from([0.1, 0.2, 0.5, 0.8, 1.0]),
)
def test_the_top_tokens_are_those_above_the_quantile(values, share):
    entropy = torch.tensor([values], dtype=torch.float64)
    kept = top_entropy(entropy, entropy >= 0, threshold=entropy_threshold(entropy[0], share))
    bound = papers.quantile(values, 1 - share)
    assert kept.tolist()[0] == [value >= bound - 1e-9 for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_tokens_that_tie_stay_together_whatever_their_micro_batches_round_to(dtype):
    entropy = torch.tensor([[2.895365585323688, 2.895365585323688 - 1e-6, 2.8, 3.0, 0.1]], dtype=dtype)
    threshold = entropy_threshold(entropy[0], 0.25)
    assert top_entropy(entropy, entropy > 0, threshold=threshold).tolist() == [[True, True, False, True, False]]


@pytest.mark.parametrize(
    ("coef", "entropy", "expected"), [(0.0, 0.2, 0.005), (0.0, 0.3, 0.0), (0.01, 0.3, 0.005), (0.999, 0.1, 1.0)]
)
def test_the_entropy_coefficient_adapts(coef, entropy, expected):
    assert adapted_entropy_coef(coef, entropy, target=0.2) == pytest.approx(expected)
