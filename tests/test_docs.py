"""The documentation's examples run, and are as short as it says."""

import re
from pathlib import Path

from verifiers import Completion, Problem
from verifiers.registry import VERIFIERS

TEXT = (Path(__file__).resolve().parent.parent / "verifiers" / "README.md").read_text(encoding="utf-8")


def test_a_verifier_of_your_own(tmp_path, monkeypatch):
    source = re.search(r"<!-- run by tests/test_docs.py -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 10
    (tmp_path / "my_rewards_of_the_docs.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("verifiers.registry.REGISTERED", {})
    import my_rewards_of_the_docs as mine

    problem = Problem(answer="4")
    assert mine.reward(problem, Completion("<think>a</think><answer>4</answer>")).reward == 1.1
    assert mine.reward(problem, Completion("<think>a!</think><answer>4</answer>")).reward == 0.6


def test_every_verifier_is_in_the_table():
    assert set(re.findall(r"`(\w+)`", TEXT.split("## A verifier of your own")[0])) >= set(VERIFIERS)
