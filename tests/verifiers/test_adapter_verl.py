"""verl's `compute_score`: its call, its code data in Arrow's form, and verl itself where it is installed.

Run with verl 0.9.1 from PyPI, whose loader and reward manager are those of 0.10.0.dev (commit 1dda039b9).
"""

import asyncio
import importlib.util
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from verifiers import VerifierError
from verifiers.adapters.verl import compute_score
from verifiers.sandbox import probe

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
ECHO = "```python\nprint(input())\n```"
README = Path(__file__).resolve().parents[2] / "verifiers" / "README.md"
sandboxed = pytest.mark.skipif(probe.report().best is None, reason="nothing here isolates code")


def test_the_result_has_what_verl_reads():
    found = compute_score("openai/gsm8k", GOOD, "4", {"question": "2+2?", "index": 3}, reward="math + 0.1*format")
    assert found == {"score": pytest.approx(1.1), "acc": 1.0, "math": 1.0, "format": 1.0, "unscored": 0.0}
    found = compute_score(data_source="x", solution_str=BAD, ground_truth="4", reward="math + 0.1*format")
    assert (found["score"], found["acc"]) == (pytest.approx(0.1), 0.0)
    assert compute_score("x", GOOD, "4", None, reward="format")["acc"] == 1.0
    messages = [{"role": "user", "content": "2+2?"}, {"role": "user", "content": "Which?\nA) 3\nB) 4"}]
    for prompt in (messages, np.array(messages, dtype=object)):
        assert compute_score("x", "<answer>4</answer>", "B", {"prompt": prompt}, reward="choice")["acc"] == 1.0
    options = {"format": {"policy": "lenient"}}
    assert compute_score("x", f"so {GOOD}", "4", reward="format", options=options)["score"] == 1.0


def test_what_can_t_be_scored_raises_or_has_the_chosen_reward():
    with pytest.raises(VerifierError, match="set `unscored`"):
        compute_score("x", GOOD, None, reward="math")
    found = compute_score("x", GOOD, None, reward="math", unscored=-1)
    assert found == {"score": -1.0, "acc": 0.0, "math": 0.0, "unscored": 1.0}


STDIN = {"inputs": ["a\n", "b\n"], "outputs": ["a\n", "b\n"]}
CALLS = {"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"], "fn_name": "add"}
ADD = "```python\ndef add(a, b):\n    return a + b\n```"
NULLS = dict.fromkeys(("fn_name", "assert_case", "style", "entry_point", "checker"))


@sandboxed
@pytest.mark.parametrize(
    ("tests", "right", "wrong"),
    [
        (STDIN, ECHO, "```python\nprint(1)\n```"),
        ({"inputs": [["1", "2"]], "outputs": [["3"]]}, "```python\nprint(int(input())+int(input()))\n```", ECHO),
        (CALLS, ADD, ADD.replace("+", "-")),
        ({"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"}, ADD, ADD.replace("+", "-")),
        ({"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"}, ADD.replace("a + b", "[a + b]"), ADD + "1"),
        ({"assert_case": ["assert add(1, 2) == 3"], "inputs": [""], "outputs": [None]}, ADD, ADD.replace("+", "*")),
        ({"style": "function", "entry_point": "add", "args": [[1, 2]], "outs": [3]}, ADD, ADD.replace("+", "-")),
    ],
)
def test_verl_s_code_data_in_all_their_shapes(tests, right, wrong):
    """Tests as JSON text, as an object with the nulls that Arrow adds, and with NumPy's arrays instead of lists."""
    arrays = {
        name: np.array(value, dtype=object) if isinstance(value, list) else value for name, value in tests.items()
    }
    for truth in (json.dumps(tests), {**NULLS, **tests}, {**NULLS, **arrays}):
        assert compute_score("taco", right, truth, {}, reward="code")["acc"] == 1.0, truth
    assert compute_score("taco", wrong, json.dumps(tests), {}, reward="code")["acc"] == 0.0


@sandboxed
def test_verl_s_code_data_through_parquet(tmp_path):
    import pandas

    rows = [STDIN, CALLS, {"inputs": ["1"], "outputs": [None]}]
    pandas.DataFrame({"reward_model": [{"style": "rule", "ground_truth": row} for row in rows]}).to_parquet(
        tmp_path / "code.parquet"
    )
    truths = [row["ground_truth"] for row in pandas.read_parquet(tmp_path / "code.parquet")["reward_model"]]
    assert isinstance(truths[0]["inputs"], np.ndarray)
    assert compute_score("taco", ECHO, truths[0], {"index": np.int64(3)}, reward="code")["score"] == 1.0
    assert compute_score("taco", ADD, truths[1], None, reward="code")["score"] == 1.0
    with pytest.raises(VerifierError, match="must be texts"):
        compute_score("taco", ECHO, truths[2], None, reward="code")


@pytest.mark.parametrize(
    "tests",
    [
        {"inputs": ["1"], "outputs": ["{"], "fn_name": "f"},
        {"inputs": "1", "outputs": ["1"]},
        {"inputs": ["1"], "outputs": [], "fn_name": "f"},
        {"inputs": [], "outputs": []},
        {"inputs": ["1"], "outputs": ["1"], "fn_name": "os.system('x')"},
        {"assert_case": ["1 +"]},
        {"assert_case": [1]},
        {"assert_case": [["assert f(1) == 1"]]},
        {"assert_case": {"assert f(1) == 1": 1}},
        {"assert_case": []},
        {"inputs": [1], "outputs": [1], "fn_name": 3},
        {"style": "asserts"},
    ],
)
def test_tests_that_can_t_be_used_are_unscored(tests):
    found = compute_score("taco", ADD, json.dumps(tests), {}, reward="code", unscored=0)
    assert (found["score"], found["unscored"]) == (0.0, 1.0)


def test_a_gold_in_braces_is_an_answer():
    assert compute_score("x", r"<answer>\{1, 2\}</answer>", r"\{2, 1\}", reward="math")["acc"] == 1.0
    assert compute_score("x", r"<answer>\{1, 2\}</answer>", "{1, 2}", reward="math")["acc"] == 1.0


def documented():
    """Returns the overrides in the README's block for verl, as a shell would pass them to Hydra."""
    block = re.search(r"<!-- verl-line -->\n```bash\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    words = shlex.split(block[1].replace("\\\n", " "))
    return words[words.index("verl.trainer.main_ppo") + 1 :]


def config(*overrides):
    """Returns verl's own configuration with these overrides, composed as in its `main_ppo`."""
    hydra = pytest.importorskip("hydra")
    verl = importlib.util.find_spec("verl")
    if verl is None:
        pytest.skip("verl is not installed")
    folder = Path(verl.submodule_search_locations[0]) / "trainer" / "config"
    with hydra.initialize_config_dir(version_base=None, config_dir=str(folder)):
        return hydra.compose("ppo_trainer", overrides=list(overrides))


PREFIX = "reward.custom_reward_function"


@pytest.mark.filterwarnings("ignore")
def test_the_documented_line_in_verl_itself():
    """Uses Hydra's parser, verl's configuration and its loader; its default reward manager returns the score."""
    made = config(*documented())
    import torch
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(made, Tokenizer())
    truth = {"style": "rule", "ground_truth": json.dumps(STDIN)}
    for text, reward_model, extra, score in (
        (GOOD, {"style": "rule", "ground_truth": "4"}, {"index": 0, "question": "2+2?"}, 1.0),
        (BAD, {"style": "rule", "ground_truth": "4"}, {"index": 1}, 0.0),
        (GOOD, {"style": "rule", "ground_truth": None}, {"index": 2}, 0.0),
        (ECHO, truth, {"index": 3}, 0.0),  # tests, and no verifier that runs them
    ):
        ids = torch.tensor([[ord(char) for char in text]])
        data = DataProto.from_dict(
            {"responses": ids, "attention_mask": torch.ones_like(ids)},
            non_tensors={
                "data_source": np.array(["sums"], dtype=object),
                "reward_model": np.array([reward_model], dtype=object),
                "extra_info": np.array([extra], dtype=object),
            },
        )
        manager.loop = asyncio.new_event_loop()
        found = manager.loop.run_until_complete(manager.run_single(data))
        manager.loop.close()
        assert found["reward_score"] == pytest.approx(score)
        assert set(found["reward_extra_info"]) == {"math", "format", "score", "acc", "unscored"}
        assert found["reward_extra_info"]["unscored"] == float(extra["index"] >= 2)


class Tokenizer:
    """A tokenizer whose token ids are character codes."""

    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(i) for i in ids.tolist())


@pytest.mark.filterwarnings("ignore")
def test_what_hydra_takes():
    """A key that verl does not have needs a plus; parentheses need quotes inside; options are given as a tree."""
    from verifiers.adapters.shared import reward_of

    path = f"{PREFIX}.path=pkg://verifiers.adapters.verl"
    for given, formula in (
        (f"+{PREFIX}.reward_kwargs.reward=math + 0.1*format", "math + 0.1*format"),
        (f'+{PREFIX}.reward_kwargs.reward="math * (0.9 + 0.1*format)"', "math * (0.9 + 0.1*format)"),
    ):
        kwargs = config(path, given, f"+{PREFIX}.reward_kwargs.options.format.policy=lenient").reward
        kwargs = dict(kwargs.custom_reward_function.reward_kwargs)
        assert kwargs["reward"] == formula
        assert reward_of(kwargs["reward"], kwargs["options"]).options == {"format": {"policy": "lenient"}}
    from hydra.errors import HydraException

    for given in (f"{PREFIX}.reward_kwargs.reward=math", f"+{PREFIX}.reward_kwargs.reward=math * (0.9 + 0.1*format)"):
        with pytest.raises(HydraException):
            config(path, given)
