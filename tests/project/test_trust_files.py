"""Files of runs and sets are data: none is unpickled or run, and none of another shape ends in a traceback."""

import ast
import itertools
import json
from pathlib import Path

import pytest
from trust_for_tests import HOSTILE, row, run_dir

from r1lite.cli import main
from verifiers.__main__ import main as verifiers_main

ROOT = Path(__file__).resolve().parents[2]


def test_files_that_are_not_as_they_were_written_are_errors(tmp_path, capsys):
    shapes = ["[]", "3", '{"formula": 3}', '{"formula": "math", "options": 3}', '{"formula": "math", "versions": []}']
    for number, text in enumerate(shapes):
        path = run_dir(tmp_path / f"run{number}")
        (path / "reward.json").write_text(text)
        assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2, text
    manifests = [
        "[]",
        '{"verifiers": []}',
        '{"verifiers": {"math": 3}, "data": {"file": "x"}}',
        '{"verifiers": {"math": {}}}',
    ]
    for number, text in enumerate(manifests):
        path = tmp_path / f"set{number}"
        path.mkdir()
        (path / "x").write_text("")
        (path / "manifest.json").write_text(text)
        assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2, text
    path = run_dir(tmp_path / "rows", rows=[{"completion": "x"}])
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    assert "not a rollout" in capsys.readouterr().err


def test_no_file_is_unpickled(tmp_path):
    """Pickles pass between our own processes only; torch.load reads weights only."""
    through_pipes = {"verifiers/pool.py", "verifiers/worker.py", "r1lite/curation/workers.py"}
    through_pipes |= {
        "verifiers/on_ray/actors.py",
        "verifiers/on_ray/fleet.py",
        "verifiers/on_ray/host.py",
    }  # of Ray, between our own actors
    for path in (*ROOT.glob("verifiers/**/*.py"), *ROOT.glob("r1lite/**/*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert name in through_pipes or "pickle" not in {alias.name for alias in node.names}, name
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert any(key.arg == "weights_only" and ast.unparse(key.value) == "True" for key in node.keywords), (
                    name
                )


YAMLS = [
    "!!python/object/apply:os.system ['touch marker']",
    "task: !!python/object/apply:os.system ['touch marker']",
    "task: !!python/name:evil_for_tests.TASK ''",
    "!!python/object/new:evil_for_tests.TASK {}",
    "? [a, b]\n: 1",
    "a: &a [*a]",
    "a: &a {b: *a}",
    "a: &a [x, x]" + "".join(f"\n{b}: &{b} [*{a}, *{a}, *{a}, *{a}]" for a, b in itertools.pairwise("abcdefghijkl")),
    "[" * 1000,
    "seed: !!bool x",
    "seed: !!timestamp x",
    "seed: !!binary x",
    "seed: !!int ''",
    "seed: !!float x",
    "!!omap [1]",
    "seed: 2024-13-45",
    "<<: [1]",
    "%YAML 9.9\n---",
    "--- 1\n--- 2",
    "seed: 0x" + "f" * 9999,
    "\x01: 1",
]  # fmt: skip


@pytest.mark.parametrize("text", YAMLS, ids=lambda text: repr(text[:40]))
def test_yaml_is_plain_data_in_every_command(tmp_path, marker, capsys, text):
    path = run_dir(tmp_path / "run")
    (path / "config.yaml").write_text(text)
    for argv in (
        ["grpo", str(path / "config.yaml"), "--out", str(tmp_path / "new")],
        ["grpo", "--resume", "--out", str(path)],
        ["reject", "--rollouts", str(path), "--out", str(tmp_path / "set"), "--max-rows", "0"],
        ["doctor", str(path)],
    ):
        assert main(argv) in ((0, 1, 2) if argv[0] == "doctor" else (2,))
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert all(line.startswith(("error: ", "  ", "note: ")) for line in said.splitlines()), said
    if text.startswith("!!python"):
        assert main(["doctor", str(path)]) == 2
    (tmp_path / "options.yaml").write_text(text)
    assert verifiers_main(["score", "rows.jsonl", "--reward", "math", "--options", "options.yaml"]) == 2
    assert not marker.exists()
    assert not (tmp_path / "marker").exists()


def test_the_doctor_believes_numbers_only(tmp_path, capsys):
    path = run_dir(tmp_path / "run", group_size=[1], prompts_per_step="x", kl_coef=HOSTILE[:5], eval_problems={})
    values = [10**400, "x", [], {"a": "x"}, None, float("nan"), True, -1]
    names = ("accuracy", "kl", "policy_kl", "reward", "skipped_updates", "truncated", "pass_at_1", "problems", "parts")
    lines = [{"step": step, **{name: values[(step + at) % 8] for at, name in enumerate(names)}} for step in range(20)]
    for file in ("metrics.jsonl", "evaluations.jsonl"):
        (path / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["doctor", str(path)]) in (0, 1)
    capsys.readouterr()


def test_a_damaged_index_is_an_error(tmp_path):
    from r1lite.curation.scan import read_index
    from r1lite.errors import UserError

    for text in ("\x80\x05.", "[[1, 2]]", "{}", "3", "[3]", "[" * 100_000):
        (tmp_path / "000000.index").write_text(text)
        with pytest.raises(UserError, match="remove it"):
            list(read_index(tmp_path / "000000.index"))


@pytest.mark.parametrize("value", [None, True, 10**400, float("nan"), "", [1], {"a": 1}], ids=str)
def test_a_rollout_of_other_kinds_is_an_unreadable_row(tmp_path, capsys, value):
    rows = [row(problem_id=f"p{number}", **{key: value}) for number, key in enumerate(row()) if key != "problem_id"]
    path = run_dir(tmp_path / "run", rows=[row(), *rows, row(problem_id=value)], model=[1], template={})
    code = main(["reject", "--rollouts", str(path), "--out", str(tmp_path / "set"), "--quiet", "--workers", "1"])
    assert code in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("reward.json", '{"formula": "math", "options": 3}'),
        ("reward.json", '{"formula": "math", "options": {"format": 3}}'),
        ("reward.json", '{"versions": 3}'),
        ("environment.json", '{"versions": 3}'),
        ("environment.json", '{"stage": 3, "versions": {"transformers": [1]}}'),
        ("summary.json", '{"engine": [1], "engine_version": {}}'),
        ("config.yaml", '{"model": [1], "task": {}, "seed": []}'),
    ],
)
def test_a_run_s_files_of_other_shapes_leave_no_traceback(tmp_path, capsys, file, text):
    path = run_dir(tmp_path / "run")
    (path / file).write_text(text)
    code = main(["reject", "--rollouts", str(path), "--out", str(tmp_path / "set"), "--quiet", "--workers", "1"])
    assert code == 2 if file == "reward.json" else code in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
