"""A verifier that takes its time."""

import time


def slow_sum(problem, completion):
    time.sleep(0.01)
    return float(f"<answer>{problem.answer}</answer>" in completion.text)
