"""What names a model: a folder, a run, the Hub."""

import pytest

from r1lite.errors import UserError
from r1lite.training.machine import located


def test_a_run_stands_for_its_newest_checkpoint(tmp_path):
    for step in ("step-000009", "step-000010", "step-1000000"):
        (tmp_path / "one" / "checkpoints" / step).mkdir(parents=True)
    assert located(str(tmp_path / "one")) == str(tmp_path / "one" / "checkpoints" / "step-1000000")
    (tmp_path / "two" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="a run without a checkpoint"):
        located(str(tmp_path / "two"))


@pytest.mark.parametrize("name", ["runs/nothing-of-this-name", "./no", "/no/such", "a/b/c"])
def test_a_path_where_nothing_is_is_not_asked_of_the_hub(name):
    with pytest.raises(UserError, match="no such folder here"):
        located(name)


@pytest.mark.parametrize("name", ["nano", "nano-countdown", "Qwen/Qwen2.5-0.5B", "gpt2"])
def test_other_names_stay(name):
    assert located(name) == name
