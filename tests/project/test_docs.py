"""The documentation's examples run, and are as short as it says."""

import re
import shlex
from pathlib import Path

from verifiers import Completion, Problem
from verifiers.registry import VERIFIERS

TEXT = (Path(__file__).resolve().parents[2] / "verifiers" / "README.md").read_text(encoding="utf-8")


def test_a_verifier_of_your_own(tmp_path, monkeypatch):
    source = re.search(r"<!-- run by tests/project/test_docs.py -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]
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


STAGES = (Path(__file__).resolve().parents[2] / "r1lite" / "stages" / "README.md").read_text(encoding="utf-8")


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", STAGES, re.DOTALL | re.MULTILINE)[1]


def test_commands_of_the_stages_are_understood():
    """Every flag that the README shows is one of its command."""
    from r1lite.cli import COMMANDS
    from r1lite.config import load

    shown = re.findall(r"^r1lite (grpo|ppo|reward-model) ([^#\n]*)", STAGES, re.MULTILINE)
    assert {"ppo", "reward-model"} <= {name for name, _ in shown}
    for name, words in shown:
        load(COMMANDS[name][0], shlex.split(words))


def test_every_finding_of_the_doctor_is_in_the_table():
    sources = (Path(__file__).resolve().parents[2] / "r1lite" / "doctor" / "run.py").read_text(encoding="utf-8")
    names = set(re.findall(r'Finding\(\s*"(\w+)"', sources))
    assert len(names) > 15
    assert names <= set(re.findall(r"`(\w+)`", section("doctor")))
