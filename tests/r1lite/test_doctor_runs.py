"""The doctor on recorded runs of nano, healthy and sick: its false alarms, and what it finds.

tests/doctor_runs.json holds the metrics alone of short runs on the bundled problems: healthy ones of several seeds and
sizes; `lr-N`, with a learning rate of N where 0.0005 is tried; `short`, cut off after 6 tokens; `never`, with a reward
that never pays. Each is looked at as it was after 4, 8, ... steps too, as a run does at its checkpoints.
"""

import json
from pathlib import Path

import pytest

from r1lite.doctor import Record, diagnose

RUNS = json.loads((Path(__file__).resolve().parents[1] / "doctor_runs.json").read_text())
HEALTHY = [run for run in RUNS if run["name"].startswith("healthy")]
TOO_FAST = [run for run in RUNS if run["name"].startswith("lr")]


def records(run, path):
    """The run after 4, 8, ... steps, and at its end."""
    steps = len(next(iter(run["metrics"].values())))
    lines = [
        {
            "step": step + 1,
            **{name: values[step] for name, values in run["metrics"].items() if values[step] is not None},
        }
        for step in range(steps)
    ]
    return [Record(path, run["config"], lines[:end]) for end in sorted({*range(4, steps, 4), steps})]


def test_there_are_enough():
    assert len(HEALTHY) >= 20
    assert len(RUNS) - len(HEALTHY) >= 20


def test_false_alarms(tmp_path):
    looked = [(run["name"], len(one.metrics), diagnose(one)) for run in HEALTHY for one in records(run, tmp_path)]
    alarms = [(name, steps, [finding.name for finding in found]) for name, steps, found in looked if found]
    assert len(alarms) <= 0.02 * len(looked), alarms


@pytest.mark.parametrize("run", TOO_FAST, ids=lambda run: run["name"])
def test_a_learning_rate_that_is_too_high(run, tmp_path):
    """It is the first suspect, and nothing that follows from it is told beside it."""
    names = [finding.name for finding in diagnose(records(run, tmp_path)[-1])]
    assert names[:1] in (["learning_rate"], ["collapsed"], ["nonfinite"]), names
    assert not {"truncated", "no_signal", "too_easy", "flat"} & set(names), names


@pytest.mark.parametrize(("kind", "name"), [("short", "truncated"), ("never", "no_signal")])
def test_other_troubles(kind, name, tmp_path):
    for run in RUNS:
        if run["name"].startswith(kind):
            found = [finding.name for finding in diagnose(records(run, tmp_path)[-1])]
            assert name in found
            assert "learning_rate" not in found
