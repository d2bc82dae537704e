"""Every stage, ended at some of the calls by which it changes files: it goes on, to what an uninterrupted run leaves.

`python benchmarks/kill_points.py --out DIR` tries all of them.
"""

import json
from pathlib import Path

import pytest
from kill_stages_for_tests import STAGES, jobs

TESTS = Path(__file__).resolve().parents[1]
# As shares of a run's calls: while it starts (config.yaml is put in place at about a tenth), saves, and ends.
POINTS = [{"kill": [0.05], "full": [0.6]}, {"kill": [0.97]}, {"kill": [0.1], "full": [0.8]}, {"kill": [0.4]}]


@pytest.fixture(scope="module")
def found(tmp_path_factory, forks):
    """What came of each stage."""
    place = tmp_path_factory.mktemp("points")
    made, paths = jobs(place), []
    for number, name in enumerate(STAGES):
        paths.append(place / f"{name}.job")
        paths[-1].write_text(json.dumps({**made[name], "points": POINTS[number % len(POINTS)]}))
    code, said, errors = forks.run(paths, script=TESTS / "kill_points_for_tests.py", timeout=900)
    assert code == 0, said + errors
    told = [json.loads(line) for line in said.splitlines()]
    return {path.stem: one for path, one in zip(paths, told, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_it_goes_on_wherever_it_ended(name, found):
    assert found[name]["wrong"] == []
    assert found[name]["calls"] > 30
    assert found[name]["tried"] == sum(map(len, POINTS[STAGES.index(name) % len(POINTS)].values()))
