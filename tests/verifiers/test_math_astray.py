"""A value that its sentence gives to something else than the answer is not paid, though it equals the gold."""

import itertools
import re

import pytest

from verifiers import Completion, Problem, resolve

VERIFY = resolve("math")


def paid(text, prompt="", gold="7"):
    return VERIFY(Problem(prompt, gold), Completion(text)).score == 1.0


# What excludes each other in "Find the {}." and "The {} is 7."
QUANTITIES = (
    ("mean", "median", "range"),
    ("perimeter", "area", "volume"),
    ("radius", "diameter"),
    ("sum", "product", "quotient", "remainder"),
    ("slope", "intercept"),
    ("least common multiple", "greatest common divisor"),
    ("length", "width"),
    ("numerator", "denominator"),
    ("minimum", "maximum"),
    ("limit", "derivative"),
    ("probability", "expected value"),
    ("variance", "standard deviation"),
    ("determinant", "trace"),
    ("height", "base"),
    ("speed", "time"),
    ("cost", "profit", "discount"),
    ("amplitude", "period"),
    ("degree", "leading coefficient"),
    ("hypotenuse", "perimeter"),
    ("square of 4", "cube of 4", "square root of 4"),
)
PAIRS = [pair for group in QUANTITIES for pair in itertools.permutations(group, 2)]


@pytest.mark.parametrize(("asked", "said"), PAIRS)
def test_another_quantity(asked, said):
    for question in (f"Find the {asked}.", f"What is the {asked}?"):
        for text in ("The {} is 7.", "So the {} is 7.", "Therefore, the {} equals 7.", "Hence the {} comes out to 7."):
            assert not paid(text.format(said), question), (question, text)
        assert paid(f"The {asked} is 7.", question)
        assert paid(f"The {said} is 3, so the {asked} is 7.", question)


def test_another_quantity_on_the_way():
    assert paid(
        "The difference is what the last test has to deliver, so she needs a 7.", "What must the fourth test be?"
    )
    assert paid("The product is 12, so we get 7.", "Find the sum.")
    assert paid("Damit ist das Produkt 12, also erhalten wir 7.", "Finde die Summe.")
    assert paid("The sum of the numbers whose product is 12 is 7.", "Find the sum.")
    assert not paid("The sum is 5 and the product is 7.", "Find the sum.")
    said = "The sphere therefore has surface area $27\\pi$ and volume $36\\pi$."
    assert paid(said, "What is the volume of a sphere of radius 3?", "36\\pi")
    assert not paid(said, "What is the surface area of a sphere of radius 3?", "36\\pi")
    assert paid("The four scores add up to 28, and a quarter of that is 7.", "Find the mean of 4, 5, 9 and 10.")


POINTS = (
    ("Find the vertex of the parabola.", "The vertex is {}.", "The focus is {}."),
    ("Find the vertex of the parabola.", "The turning point is {}.", "So the y-intercept is {}."),
    ("What are the coordinates of the center?", "The center is {}.", "The vertex is {}."),
    ("Bestimme den Scheitelpunkt.", "Der Scheitelpunkt ist {}.", "Damit ist der Brennpunkt {}."),
    ("Trouve le sommet.", "Le sommet est {}.", "Le foyer est {}."),
    ("Halla el vértice.", "El vértice es {}.", "El foco es {}."),
    ("Trova il vertice.", "Il vertice è {}.", "Il fuoco è {}."),
    ("Ache o vértice.", "O vértice é {}.", "O foco é {}."),
    ("Найдите вершину.", "Вершина - это {}.", "Фокус - это {}."),
    ("What are the coordinates of B?", "B is {}.", "A is {}."),
    ("What are the coordinates of B?", "Point B = {}.", "Point A = {}."),
)


@pytest.mark.parametrize(("question", "right", "wrong"), POINTS)
def test_another_point(question, right, wrong):
    assert paid(right.format("(2, -3)"), question, "(2, -3)")
    assert not paid(wrong.format("(2, -3)"), question, "(2, -3)")


OPPOSITES = (
    ("What is the {} number?", "The {} number is 7.", ("first", "second", "third")),
    ("What is the {} number?", "The {} number is 7.", ("first", "middle", "last")),
    ("What is the {} number?", "So the {} number is 7.", ("larger", "smaller")),
    ("What is the {} root?", "The {} root is 7.", ("positive", "negative")),
    ("How old is the {} brother?", "The {} brother is 7 years old.", ("older", "younger")),
    ("What was the {} price?", "The {} price was $7.", ("original", "new")),
    ("How many {} are in the class?", "There are 7 {} in the class.", ("boys", "girls")),
    ("How many {} does it have?", "It has 7 {}.", ("edges", "vertices", "faces")),
    ("How many {} numbers are there?", "There are 7 {} numbers.", ("even", "odd", "prime")),
    ("What is the {} digit?", "The {} digit is 7.", ("tens", "units", "hundreds")),
    ("What is the {}-coordinate?", "The {}-coordinate is 7.", ("x", "y")),
    ("What is the {} part?", "The {} part is 7.", ("real", "imaginary")),
    ("What is the {} speed?", "The {} speed is 7.", ("average", "maximum", "initial", "final")),
    ("What is the {} radius?", "The {} radius is 7.", ("inner", "outer")),
    ("How many pages did she read on {}?", "She read 7 pages on {}.", ("Monday", "Tuesday")),
    ("How many cars passed in the {}?", "In the {}, 7 cars passed.", ("morning", "evening")),
)


@pytest.mark.parametrize(("question", "text", "words"), OPPOSITES)
def test_the_opposite(question, text, words):
    for asked, said in itertools.product(words, repeat=2):
        assert paid(text.format(said), question.format(asked)) == (asked == said), (asked, said)


SYMBOLS = (
    ("What is {}?", "{} = 7.", ("x", "y", "a")),
    ("Find {}.", "Therefore {} = 7.", ("AB", "BC")),
    ("What is {}?", "So {} = 7.", ("f(1)", "f(2)")),
    ("What is the value of {}?", "The value of {} is 7.", ("x", "y", "x + y", "x - y", "2x")),
    ("What is the coefficient of {}?", "The coefficient of {} is 7.", ("x", "x^2", "x^3")),
)


@pytest.mark.parametrize(("question", "text", "symbols"), SYMBOLS)
def test_another_symbol(question, text, symbols):
    for asked, said in itertools.product(symbols, repeat=2):
        assert paid(text.format(said), question.format(asked)) == (asked == said), (asked, said)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Find x.", "Since y = 3, x = 7."),
        ("Find x.", "Since y = 3, we get 7."),
        ("What is y?", "y = 2 + x = 2 + 5 = 7."),
        ("What is BA?", "AB = 7."),
        ("Find the number x that gives 31 when it is tripled and increased by 10.", "So x equals 7."),
    ],
)
def test_the_symbol_that_is_asked_for(question, text):
    assert paid(text, question)


ROLES = """
Then we subtract 7. We divide by 7. The next step is to add 7. Testing 7. Checking 7 first. It is divisible by 7.
It used to be 7. She owes 7. It exceeds 7. Half the number is 7. The answer to the second question is 7.
An upper bound is 7. Its square is 7. The sum of its digits is 7. The last digit is 7. The other answer is 7. Score: 7.
Confidence: 7. Line 7. It is a 7-digit number. It has 7 digits. There were 7 before. 7 are missing.
7 remain to be counted. The question has 7 words. 7 works too. 7 is one of the answers.
"""


@pytest.mark.parametrize("text", re.findall(r"[^.]+\.", ROLES.replace("\n", " ")))
def test_another_role(text):
    assert not paid(text, "What is the number?")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many digits does it have?", "It has 7 digits."),
        ("What is the last digit of 2^20 + 1?", "The last digit is 7."),
        ("How many are missing?", "7 are missing."),
        ("By which number do we have to divide?", "We divide by 7."),
        ("How many words are in the sentence?", "The sentence has 7 words."),
        ("How much does he have to pay?", "He owes 7 dollars."),
        ("How many games did they not win?", "They lost 7 games."),
        ("How long is the word?", "It has 7 letters."),
        ("How long is the number 2^20 in decimal?", "It has 7 digits."),
        ("How many eggs can't be used?", "7 are broken."),
        ("How many marbles does Tom have left after he lost 3?", "He lost 3 and has 7 marbles left."),
    ],
)
def test_a_role_that_is_asked_for(question, text):
    assert paid(text, question)


@pytest.mark.parametrize(
    ("question", "text", "gold"),
    [
        ("Find the limit.", "The limit is near to 7.", "7"),
        ("Find the limit.", "The limit is in the neighbourhood of 7.", "7"),
        ("Halla el límite.", "El límite es cercano a 7.", "7"),
        ("Trova il limite.", "Il limite è prossimo a 7.", "7"),
        ("Найдите предел.", "Предел близок к 7.", "7"),
        ("Znajdź granicę.", "Granica leży blisko 7.", "7"),
        ("Bepaal de limiet.", "De limiet ligt dicht bij 7.", "7"),
        ("Limiti bulun.", "Limit 7'ye yakındır.", "7"),
        ("求极限。", "极限接近于7。", "7"),
        ("極限を求めよ。", "極限は7に近い。", "7"),
        ("극한을 구하시오.", "극한은 7에 가깝다.", "7"),
        ("Find the vertex.", "The vertex is close to (2, -3).", "(2, -3)"),
        ("Bestimme den Scheitelpunkt.", "Der Scheitelpunkt liegt nahe bei (2, -3).", "(2, -3)"),
        ("Trouve le sommet.", "Le sommet est proche de (2, -3).", "(2, -3)"),
        ("Find the line through (0, 1) and (2, 5).", "The line is parallel to y = 2x + 1.", "y = 2x + 1"),
        ("Find the line through (0, 1) and (2, 5).", "The line lies above y = 2x + 1.", "y = 2x + 1"),
    ],
)
def test_a_value_that_is_only_near(question, text, gold):
    assert not paid(text, question, gold)


def test_a_long_sentence_costs_little_work():
    text = "so the mean of " + "the first product is (the " * 4_000 + "limit is 7."
    assert paid("The sum is 7.", "Find the sum.")
    assert isinstance(paid(text, "Find the sum."), bool)


@pytest.mark.parametrize(
    ("question", "text", "steps", "answer"),
    [
        (
            "A glass costs $5, and every second one costs 60% of that. How much do 16 glasses cost?",
            "He pays 8 * 3 = $24 for the cheap ones. And for the others, he will pay 8 * 5 = $40. So in total he needs"
            " to pay 24 + 40 = $64 for the glasses.",
            ("24", "40"),
            "64",
        ),
        (
            "There were 5 pies of 8 pieces each, and 14 pieces remained at the end. How many pieces were taken by the"
            " guests?",
            "To start the evening, there were 5 pies, each with 8 pieces, which is 5*8=40 pieces of pie. If only 14"
            " remained, then 40-14=26 pieces of pie had been taken by guests.",
            ("40",),
            None,
        ),
        (
            "How many trees does he have left after a fire that burns 30% of 80 + 50 trees?",
            "After 10 years he has 8*10=80 new trees. So he had 80+50=130 trees. He lost 130*.3=39 trees. That means he"
            " had 130-39=91 trees.",
            ("130", "39"),
            None,
        ),
    ],
)
def test_a_step_before_a_last_calculation(question, text, steps, answer):
    assert answer is None or paid(text, question, answer)
    assert not any(paid(text, question, step) for step in steps)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many students are left?", "7 are gone."),
        ("How many marbles does Tom have now?", "Tom lost 7 marbles."),
        ("How much change does Lea get?", "Lea owes 7 dollars."),
    ],
)
def test_what_is_gone_or_due(question, text):
    assert not paid(text, question)
