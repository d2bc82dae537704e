"""Prose around a right answer: paid only where every word said of the answer is understood."""

import pytest

from verifiers import Completion, Problem, resolve

MATH = resolve("math")
PAID = [
    "\\boxed{24} which matches what we expected.",
    "\\boxed{24}.\n\nThis is not obvious at first, but the argument above proves it.",
    "\\boxed{24}.\n\nIf you would like, I can explain another approach.",
    "\\boxed{24}.\n\nTo double check: the left side and the right side agree, so the result holds.",
    "\\boxed{24}.\n\nThis problem illustrates the power of the inclusion-exclusion principle.",
    "\\boxed{24}.\n\nThis means the farmer must sell that many eggs every week to break even.",
    "\\boxed{24}.\n\nIt can't be smaller, because each of the rows needs at least one.",
    "\\boxed{24}. I solved it by factoring.",
    "\\boxed{24} (rounded to the nearest integer)",
    "\\boxed{24} by the AM-GM inequality.",
    "\\boxed{24}, so Tom is right.",
    "\\boxed{24} minutes later, the train arrives.",
    "\\boxed{24}. Damit ist die Aufgabe gelöst.",
    "#### 24. It checks out.",
    "After simplifying, we obtain 24.",
    "I am certain that it's 24.",
    "Entonces x = 24.",
    "\\boxed{24}. I double-checked by substituting back.",
    "The answer is 24 because 4 times 6 is 24.",
    "The answer is 24, no doubt about it.",
    "The answer is 24, not 42 as one might think.",
    "The answer is 24, and it is the only one.",
    "Although it looks hard, the answer is simply 24.",
    "The answer is 24. This follows from the binomial theorem.",
    "\\boxed{24}\n\nLet me know if you'd like more detail.",
    "Die Lösung lautet 24, nicht 42.",
    "Le résultat est 24, et non 42.",
    "El resultado es 24 y no 42.",
    "因此答案为24，不是42。",
    "答えは42ではなく24です。",
    "Ответ: 24 яблока.",
    "Putting everything together yields \\boxed{24}.",
    "By the Pythagorean theorem, the hypotenuse is 24.",
    "Surprisingly, the answer is 24.",
    "The length of AB is 24.",
    "The answer is ~~7~~ 24.",
    "The answer is 24. Cheers!",
    "Correction: the answer is 24.",
    "Thus the angle measures 24 degrees.",
    "Oops, the answer is actually 24.",
    "Hay 24 posibilidades.",
    "周长是24厘米。",
    "Периметр равен 24 см.",
    "全部で24通りあります。",
]
REFUSED = [
    "\\boxed{24} turned out to be incorrect.",
    "\\boxed{24} (just a placeholder)",
    "\\boxed{24} is off by a factor of two.",
    "\\boxed{24}, or something close to it.",
    "\\boxed{24}. This was a stab in the dark.",
    "\\boxed{24}. I was asked to write something, so I wrote this.",
    "\\boxed{24}. Of course this ignores leap years, so the real number is larger.",
    "\\boxed{24}. But we must still divide by two.",
    "I can't solve this. There are 24 lines in it.",
    "It used to be 24.",
    "24 is a divisor of the answer.",
    "Roughly 24.",
    "The teacher's key says 24.",
    "My friend got 24.",
    "Rumor has it that the answer is 24.",
    "The trap answer is 24.",
    "In a parallel universe the answer is 24.",
    "The count up to now is 24.",
    "The answer is 24 in a dream.",
    "The answer is 24, wrongly.",
    "\\boxed{24}. Needless to say, this contradicts the given data.",
    "\\boxed{24}. April fools.",
    "\\boxed{24}. I pulled this out of thin air.",
    "\\boxed{24} belongs to another problem.",
    "\\boxed{24} plus one.",
    "\\boxed{24}\n\nGrade: F",
    "Example format: \\boxed{24}",
    "#### about 24",
    "Laut Lehrbuch ist die Antwort 24.",
    "24 wäre denkbar.",
    "\\boxed{24}. Reingefallen!",
    "La réponse serait 24.",
    "D'après le prof, la réponse est 24.",
    "24 sería la solución.",
    "\\boxed{24}. Me lo inventé.",
    "A resposta é 24, acho.",
    "La risposta sarebbe 24.",
    "\\boxed{24}. Я это выдумал.",
    "据说答案是24。",
    "答案是24吧。",
    "答えは24らしい。",
    "~~The answer is 24~~",
    "The answer is 24. LOL",
    "In case x > 0, the answer is 24.",
    "One answer is 24.",
    "For even n the answer is 24.",
    "The answer is 24. Who knows.",
    "The answer is 24. Ha!",
    "x \\approx 24",
    "\\boxed{24}... right?",
    "\\boxed{24}. Remember to halve it at the end.",
    "Aufgabe 24 überspringe ich.",
    "Man munkelt, es seien 24.",
    "\\boxed{24}. Ich rate.",
    "Ma mère dit 24.",
    "\\boxed{24}. Il manque le facteur 2.",
    "Mi abuela dice 24.",
    "Se dan 24 manzanas.",
    "我奶奶说是24。",
    "\\boxed{24}。还差一个因子2。",
    "答えは24とは思えない。",
    "\\boxed{24}. Надо ещё умножить на 2.",
    "Minha avó diz 24.",
    "Mia nonna dice 24.",
    "أشك في أن الجواب 24.",
    "\\boxed{24}. هذا تخمين.",
]


@pytest.mark.parametrize("text", PAID)
def test_paid(text: str) -> None:
    assert MATH(Problem("", "24"), Completion(text)).score == 1.0


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    assert MATH(Problem("", "24"), Completion(text)).score == 0.0


def test_words_of_the_question_are_understood() -> None:
    text = "So the gizmos weigh 24 blorgs before lunch."
    assert MATH(Problem("", "24"), Completion(text)).score == 0.0
    assert MATH(Problem("How many blorgs do the gizmos weigh before lunch?", "24"), Completion(text)).score == 1.0
