"""A reward that a random model can climb: the share of its tokens that are digits."""

from verifiers import Completion, Problem


def digits(problem: Problem, completion: Completion) -> float:
    text = completion.text.replace(" ", "")
    return sum(char.isdigit() for char in text) / max(1, len(text))
