"""The workers that run these tests: what fails, ends or kills its worker is told, and costs nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CONFTEST = """
import os, pathlib, pytest, sys
from workers_for_tests import pytest_addoption, pytest_runtestloop
@pytest.fixture(scope="session")
def told():
    yield pathlib.Path(__file__).with_name(f"torn-down-{os.getpid()}")
    pathlib.Path(__file__).with_name(f"torn-down-{os.getpid()}").touch()
"""


def play(folder, files, *flags):
    """(the exit code, what pytest printed) for test files with these contents, in two workers."""
    for name, text in {"conftest.py": CONFTEST, **files}.items():
        (folder / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-rA",
        *flags,
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_reports_are_those_of_one_process(tmp_path):
    both = """
import os, pytest
@pytest.fixture(scope="module", autouse=True)
def module(told): yield; print("torn down")
def test_passes(told, tmp_path): assert tmp_path.exists(); print(tmp_path.parents[1])
def test_fails(): print("printed"); assert [1, 2] == [1, 3]
@pytest.mark.skip(reason="not now")
def test_skipped(): pass
def test_last(): pass
"""
    code, said = play(tmp_path, {"test_one.py": both, "test_two.py": both})
    assert code == 1, said
    assert "2 failed, 4 passed, 2 skipped" in said
    for part in ("assert [1, 2] == [1, 3]", "At index 1 diff: 2 != 3", "printed", "not now"):
        assert said.count(part) >= 2, said
    assert len(list(tmp_path.glob("torn-down-*"))) == 2
    assert len(set(re.findall(r"^(/.*/pytest-\d+)$", said, re.MULTILINE))) == 1


def test_a_worker_that_is_killed_costs_one_test(tmp_path):
    kills = (
        "import os\ndef test_before(told): pass\ndef test_kills(): os.kill(os.getpid(), 9)\ndef test_after(): pass\n"
    )
    code, said = play(tmp_path, {"test_kills.py": kills, "test_other.py": "def test_other(): pass\n"})
    assert code == 1, said
    assert "1 failed, 3 passed" in said
    assert "FAILED test_kills.py::test_kills - the worker ended with -9 in this test" in said


def test_the_first_failure_stops_all_workers(tmp_path):
    waits = "import time\ndef test_waits(told): told.with_name('begun').touch(); time.sleep(600)\n"
    fails = """
import time
def test_fails(told):
    while not told.with_name("begun").exists(): time.sleep(0.05)
    assert False
def test_after(): pass
"""
    code, said = play(tmp_path, {"test_fails.py": fails, "test_waits.py": waits}, "-x")
    assert code == 1, said
    assert "1 failed in " in said
    assert len(list(tmp_path.glob("torn-down-*"))) == 2


def test_a_teardown_that_fails_at_the_end_is_no_success(tmp_path):
    text = "def test_it(worse): pass\n"
    worse = "@pytest.fixture(scope='session')\ndef worse(): yield; raise OSError('can not be put away')\n"
    files = {"conftest.py": CONFTEST + worse, "test_one.py": text, "test_two.py": text}
    code, said = play(tmp_path, files)
    assert code == 1, said
    assert "can not be put away" in said
