"""Every stage, ended at some of the calls by which it changes files: it goes on, to what an uninterrupted run leaves.

`python benchmarks/kill_points.py --out DIR` tries all of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kill_stages_for_tests import STAGES, jobs

ROOT = Path(__file__).resolve().parents[2]
# As shares of a run's calls: while it starts (config.yaml is put in place at about a tenth), saves, and ends.
POINTS = [{"kill": [0.05], "full": [0.6]}, {"kill": [0.97]}, {"kill": [0.1], "full": [0.8]}, {"kill": [0.4]}]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What came of each stage; all in one process that imports torch once."""
    place = tmp_path_factory.mktemp("points")
    made, paths = jobs(place), []
    for number, name in enumerate(STAGES):
        paths.append(place / f"{name}.job")
        paths[-1].write_text(json.dumps({**made[name], "points": POINTS[number % len(POINTS)]}))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "tests" / "kill_points_for_tests.py"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {path.stem: one for path, one in zip(paths, told, strict=True)}


@pytest.mark.parametrize("name", STAGES)
def test_it_goes_on_wherever_it_ended(name, found):
    assert found[name]["wrong"] == []
    assert found[name]["calls"] > 30
    assert found[name]["tried"] == sum(map(len, POINTS[STAGES.index(name) % len(POINTS)].values()))
