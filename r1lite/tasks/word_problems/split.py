"""Decides by a question's wording alone whether it belongs to train or test."""

import hashlib
import re

from r1lite.tasks.word_problems.vocabulary import NAMES

_TEST_SHARE = 8  # one masked form in eight belongs to test only

_NUMBER_WORDS = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|once|twice|doubled?|triple|half|"
    r"thirds?|quarters?|fifths?|tenths?|dozens?"
)
# Pronouns are masked with the names, so that a question about Ada and the same one about Adam have one form.
_PRONOUNS = "he|she|him|her|his|hers|himself|herself"
_PLACEHOLDERS = (
    (re.compile(r"\d+"), "<number>"),
    (re.compile(r"\b[Aa] (?=third|quarter|fifth)"), ""),  # "half" has no article
    (re.compile(rf"\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE), "<number>"),
    (re.compile(rf"\b(?:{'|'.join(sorted(NAMES))})\b"), "<name>"),
    (re.compile(rf"\b(?:{_PRONOUNS})\b", re.IGNORECASE), "<pronoun>"),
)


def masked(question: str) -> str:
    """The question with numbers (digits and words), people's names and their pronouns replaced by placeholders."""
    for pattern, placeholder in _PLACEHOLDERS:
        question = pattern.sub(placeholder, question)
    return question


def in_test(question: str) -> bool:
    """True if only the test split may use the question's masked form (one in eight); the same on every machine."""
    digest = hashlib.sha256(masked(question).encode()).digest()
    return digest[0] % _TEST_SHARE == 0
