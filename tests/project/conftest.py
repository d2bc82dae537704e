"""The marker of a module that was imported."""

import sys

import pytest
from trust_for_tests import EVIL


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """What is made when the module `evil_for_tests`, which can be imported, is imported."""
    folder = tmp_path / "importable"
    folder.mkdir()
    (folder / "evil_for_tests.py").write_text(EVIL)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    yield folder / "marker"
    sys.modules.pop("evil_for_tests", None)
