"""Lists whose order is the answer: the question names the items and asks to order them."""

import pytest
from tables_for_tests import each

from verifiers import Completion, Problem, resolve

pytestmark = pytest.mark.quick

NUMBERS = "Write the numbers 7, 2, 9, 4 from smallest to largest."
NAMES = "Ann, Ben and Cid race. Ben beats Ann and Ann beats Cid. Rank them from fastest to slowest."
FRACTIONS = r"Order $\frac{1}{2}, \frac{2}{3}, \frac{1}{3}$ from least to greatest."


@pytest.mark.parametrize(
    ("gold", "prompt", "right", "wrong"),
    [
        ("2, 4, 7, 9", NUMBERS, "2, 4, 7, 9", "7, 2, 9, 4"),
        ("2, 4, 7, 9", NUMBERS, "2, 4, 7, 9", "9, 7, 4, 2"),
        ("2, 4, 7, 9", NUMBERS, "2, 4, 7, 9", r"\{4, 2, 7, 9\}"),
        ("Ben, Ann, Cid", NAMES, r"\text{Ben, Ann, Cid}", r"\text{Ann, Ben, Cid}"),
        (
            r"\frac{1}{3}, \frac{1}{2}, \frac{2}{3}",
            FRACTIONS,
            r"\frac13, \frac12, \frac23",
            r"\frac12, \frac13, \frac23",
        ),
        ("A, C, B", "Order A, B, C from lightest to heaviest.", "A, C, B", "A, B, C"),
        ("3, 5, 8", "Ordne die Zahlen 8, 3 und 5 der Größe nach.", "3, 5, 8", "8, 3, 5"),
        ("3, 5, 8", "Ordena de menor a mayor: 8, 3 y 5.", "3, 5, 8", "5, 3, 8"),
        ("3, 5, 8", "Расположите числа 8, 3 и 5 в порядке возрастания.", "3, 5, 8", "8, 5, 3"),
        ("3, 5, 8", "把 8、3、5 从小到大排列。", "3, 5, 8", "8, 3, 5"),
    ],
)
def test_another_order_is_wrong(gold, prompt, right, wrong):
    verifier, problem = resolve("math"), Problem(prompt, answer=gold)
    assert verifier(problem, Completion(rf"\boxed{{{right}}}")).score == 1.0
    assert verifier(problem, Completion(rf"\boxed{{{wrong}}}")).score == 0.0


@pytest.mark.parametrize(
    ("gold", "prompt"),
    [
        ("2, 3", "Find all roots of $x^2 - 5x + 6$, in increasing order."),  # not named by the question
        ("2, 3", "Which of the numbers 2, 3, 4 divide 6 but not 4, or are even primes?"),
        ("3, 4", "What is the most to pay for tickets of 3 or 4 euros?"),
        ("2, 3", ""),
    ],
)
def test_elsewhere_any_order_is_right(gold, prompt):
    verdict = resolve("math")(
        Problem(prompt, answer=gold), Completion(rf"\boxed{{{', '.join(gold.split(', ')[::-1])}}}")
    )
    assert verdict.score == 1.0


NAMED = [  # (question, gold, answer, score)
    ("Find (n, k).", "(3, 5)", "n = 3, k = 5", 1),
    ("Find (n, k).", "(3, 5)", "k = 5, n = 3", 1),
    ("Find (n, k).", "(5, 3)", "n = 3, k = 5", 0),
    ("Find $n$ and $k$.", "5, 3", "k = 5, n = 3", 0),
    (r"Find $(\beta, \alpha)$.", "(3, 5)", r"\alpha = 5, \beta = 3", 1),
    ("Find both.", "(3, 5)", "k = 5, n = 3", 0),
    ("Find both.", "(5, 3)", "k = 5, n = 3", 1),
]


@each(NAMED)
def test_values_with_names_are_in_the_order_of_the_names_in_the_question(question, gold, answer, score):
    verdict = resolve("math")(Problem(question, gold), Completion(rf"\boxed{{{answer}}}"))
    assert verdict.score == score, verdict
