"""Values that the last sentence states of things, where nothing announces an answer: which are paid and which not."""

from pathlib import Path

import pytest
from tables_for_tests import each

from verifiers import Completion, Problem, resolve
from verifiers.extract.numerals import language_of, numerals


def table(name):
    return [
        (*(part.strip().replace("⏎", "\n") for part in line[1:].split("|", 2)), float(line[0] == "="))
        for line in (Path(__file__).parents[1] / name).read_text(encoding="utf-8").splitlines()
        if line[:1] in ("=", "!")
    ]


CASES = table("statement_cases.txt")


def check(gold, prompt, text, score):
    verdict = resolve("math")(Problem(answer=gold, prompt=prompt), Completion(text))
    assert verdict.score == score, verdict


test_what_the_last_sentence_says = each(CASES)(check)
test_what_a_question_asks_for = each(table("asked_cases.txt"))(check)
test_what_ordinary_prose_says = each(table("prose_cases.txt"))(check)
test_what_the_main_clause_claims = each(table("claim_cases.txt"))(check)
test_what_a_text_claims_in_the_end = each(table("final_claim_cases.txt"))(check)
test_what_a_remark_behind_the_answer_says = each(table("remark_cases.txt"))(check)
test_conclusions_about_a_noun_and_remarks_behind_them = each(table("conclusion_cases.txt"))(check)
test_expressions_that_end_a_text = each(table("expression_cases.txt"))(check)
test_lists_that_end_a_text = each(table("list_cases.txt"))(check)
test_how_a_text_ends = each(table("closing_cases.txt"))(check)
test_shares_and_odds = each(table("share_cases.txt"))(check)
test_what_a_text_says_or_states_of_yes_and_no = each(table("truth_cases.txt"))(check)


@pytest.mark.parametrize("text", [r"\boxed{7}, \boxed{A: ^}", r"\boxed{(A) ^} and \boxed{7}"])
def test_an_option_beside_another_box_that_cannot_be_read_is_a_verdict(text):
    assert resolve("math")(Problem(answer="7"), Completion(text)).score == 0.0


def test_the_value_that_is_taken_does_not_depend_on_the_gold():
    verify = resolve("math")
    for gold, prompt, text, score in CASES:
        if score:
            other = verify(
                Problem(answer=f"{gold} + 10^6" if "=" in gold else "123456789", prompt=prompt), Completion(text)
            )
            right = verify(Problem(answer=gold, prompt=prompt), Completion(text))
            assert other.score == 0.0
            assert other.span == right.span


@pytest.mark.parametrize(
    ("language", "words", "value"),
    [
        ("en", "twenty four", 24),
        ("de", "siebenunddreißig", 37),
        ("fr", "quatre vingt seize", 96),
        ("es", "treinta y dos", 32),
        ("pt", "quarenta e oito", 48),
        ("it", "ventotto", 28),
        ("nl", "drieënzestig", 63),
        ("sv", "fyrtiosju", 47),
        ("pl", "dwadzieścia trzy", 23),
        ("ru", "пятьдесят девять", 59),
        ("uk", "п’ятдесят дев’ять", 59),
        ("cs", "pětadvacet", 25),
        ("el", "είκοσι τρία", 23),
        ("fa", "سی و شش", 36),
        ("tr", "kırk iki", 42),
        ("vi", "hai mươi lăm", 25),
        ("id", "tujuh belas", 17),
        ("hi", "पचपन", 55),
        ("ko", "스물두", 22),
        ("ar", "خمسة وثلاثون", 35),
    ],
)
def test_numbers_in_words(language, words, value):
    assert numerals(language)[words] == value
    assert {*range(1, 100)} <= set(numerals(language).values())


def test_the_language_is_told_from_script_and_common_words():
    assert language_of("How many apples are in the box?") == "en"
    assert language_of("Wie viele Äpfel sind in der Kiste?") == "de"
    assert language_of("Il y a cinq pommes dans le panier.") == "fr"
    assert language_of("箱にりんごが五個あります。") == "ja"
    assert language_of("篮子里有五个苹果。") == "zh"
    assert language_of("42") == "en"
