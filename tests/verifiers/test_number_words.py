"""Numbers in words within sentences of 20 languages: whole numbers, fractions, decimals, halves, negative ones."""

from fractions import Fraction
from pathlib import Path

import pytest

from verifiers.extract.quantities import quantities


def cases():
    sentence = language = ""
    for line in (Path(__file__).resolve().parents[1] / "number_words.txt").read_text(encoding="utf-8").splitlines():
        first, _, rest = line.partition(" ")
        if first[0] == "@":
            language, sentence = first[1:], rest
        else:
            yield pytest.param(sentence.format(rest), language, Fraction(first), id=f"{language} {rest}")


@pytest.mark.parametrize(("sentence", "language", "value"), list(cases()))
def test_is_read_whole(sentence, language, value):
    found = [item for item in quantities(sentence, 0, len(sentence), language) if not item.article]
    assert [item.value for item in found] == [value]


@pytest.mark.parametrize(
    ("sentence", "language", "values"),
    [
        ("4주는 28일입니다.", "ko", [4, 28]),
        ("이 문제의 답은 3입니다.", "ko", [3]),
        ("Es gibt drei Komma, und fünf Punkte.", "de", [3, 5]),
        ("Il reste trois fois moins trois pommes.", "fr", [3, 3]),
        ("In dem Regal stehen tausend Bücher.", "de", [1000]),
    ],
)
def test_what_only_resembles_one(sentence, language, values):
    found = [item for item in quantities(sentence, 0, len(sentence), language) if not item.article]
    assert [item.value for item in found] == values
