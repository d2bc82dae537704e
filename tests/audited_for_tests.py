"""Verifiers that sin, and some that don't: each process of an audit imports them, and nothing else."""

import os
import re
import time
from pathlib import Path

from verifiers import Verdict


def substring(problem, completion):
    return float(str(problem.answer) in completion.text)


def by_hash(problem, completion):
    return float(hash(completion.text) % 2)


def raising(problem, completion):
    return float(int(completion.text) == int(problem.answer))


def quadratic(problem, completion):
    return float(re.search(r"<answer>.*?<end>", completion.text, re.DOTALL) is not None)


def hanging(problem, completion):
    if len(completion.text) > 5000 and completion.text.startswith("777"):
        time.sleep(100)
    return 0.0


def sleepy(problem, completion):
    time.sleep(100 if len(completion.text) > 100 else 0)
    return float(completion.text.endswith(str(problem.answer)))


def stalled_once(problem, completion):
    """Says of one text that its time ran out, the first time only."""
    mark = Path(os.environ["STALLED_ONCE"])
    if completion.text.startswith("9^9^") and len(completion.text) > 20_000 and not mark.exists():
        mark.touch()
        return Verdict(0.0, os.environ["STALLED_REASON"])
    return Verdict(float(completion.text.endswith(f"<answer>{problem.answer}</answer>")), "compared")


def asleep_once(problem, completion):
    """Takes its time for the empty text, the first time only."""
    mark = Path(os.environ["STALLED_ONCE"])
    if not completion.text and not mark.exists():
        mark.touch()
        time.sleep(100)
    return Verdict(float(completion.text.endswith(f"<answer>{problem.answer}</answer>")), "compared")


def slow(problem, completion):
    time.sleep(0.03)
    return float(f"<answer>{problem.answer}</answer>" in completion.text)


def no_hedging(problem, completion):
    return float("maybe" not in completion.text.lower() and "not sure" not in completion.text.lower())


def polite(problem, completion):
    return float("please" in completion.text.lower())


def always(problem, completion):
    return 1.0


def trl_manner(prompts, completions, completion_ids, **kwargs):
    return [float(completion[0]["content"].startswith("<think>")) for completion in completions]


def verl_style(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0 if solution_str.endswith(f"#### {ground_truth}") else -1.0, "acc": 0}


def hungry(problem, completion):
    """Takes memory for long texts."""
    return Verdict(float(len(b"1" * (len(completion.text) // 1000 * (25 << 20)))) > 0, "ok")


def trl_double(prompts, completions, completion_ids, **kwargs):
    return [2 * reward for reward in trl_style(prompts, completions, completion_ids, **kwargs)]


def trl_style(prompts, completions, completion_ids, **kwargs):
    return [
        1.0 if f"<answer>{gold}</answer>" in c[0]["content"] else 0.0
        for c, gold in zip(completions, kwargs["answer"], strict=True)
    ]
