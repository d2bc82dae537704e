"""A reward that a random model can climb: the share of its tokens that are digits."""

from verifiers import Completion, Problem


def digits(problem: Problem, completion: Completion) -> float:
    text = completion.text.replace(" ", "")
    return sum(char.isdigit() for char in text) / max(1, len(text))


def has_7(problem: Problem, completion: Completion) -> float:
    """1 if there is a 7, which an untrained model seldom writes: many groups have no signal."""
    return float("7" in completion.text)


def any_text(problem: Problem, completion: Completion) -> float:
    """1 for whatever is said."""
    return float(bool(completion.text))
