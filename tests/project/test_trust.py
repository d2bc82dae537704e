"""SECURITY.md, line by line: each attack tries to make a marker file; twins show that the marker can be made."""

import ast
import itertools
import json
import sys
from pathlib import Path

import pytest
import yaml

from r1lite.cli import main
from verifiers import VERIFIERS, Completion, Problem, Reward, VerifierError, resolve
from verifiers.__main__ import main as verifiers_main
from verifiers.trust import beyond

ROOT = Path(__file__).resolve().parents[2]
EVIL = """
from pathlib import Path

Path(__file__).with_name("marker").touch()

def verify(problem, completion, **options):
    return 1.0

def check(given, expected, got):
    return True

def keep(candidate, **options):
    return None
"""


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


def row(**more):
    return {
        "step": 1,
        "problem_id": "p1",
        "sample": 0,
        "question": "2+2?",
        "gold": "4",
        "language": None,
        "tests": None,
        "meta": {},
        "prompt": "2+2?",
        "completion": "<think>t</think><answer>4</answer>",
        "reward": 1.0,
        "correct": True,
        "verdicts": [],
        "finish_reason": "stop",
        "policy_version": 1,
        "prompt_ids": [1],
        "token_ids": [1, 2],
        "logprobs": [-0.1, -0.1],
        **more,
    }


def run_dir(path, *, about=None, rows=None, **config):
    """A run directory as somebody may give it to you."""
    (path / "rollouts").mkdir(parents=True)
    lines = [json.dumps(one) for one in rows or [row()]]
    (path / "rollouts" / "step-000001.jsonl").write_text("\n".join(lines) + "\n")
    (path / "reward.json").write_text(json.dumps(about or {"formula": "math", "options": {}, "versions": {}}))
    base = {"device": "cpu", "threads": 1, "model": "nano", "source": "bundled", "engine": "transformers"}
    (path / "config.yaml").write_text(yaml.safe_dump({**base, **config}))
    return path


FORMULAS = [
    ("evil_for_tests:verify", {}),
    ("math + 0.1*evil_for_tests:verify", {}),
    ("math", {"math": {"use": "evil_for_tests:verify"}}),
    ("v", {"v": {"use": "evil_for_tests:verify", "words": ["x"]}}),
    ("code", {"code": {"checkers": ["evil_for_tests:check"]}}),
    ("rm:somewhere", {}),
    ("sandboxed:evil_for_tests:verify", {}),
    ("code", {"code": {"isolation": "rlimit-only"}}),
    ("code", {"code": {"packages": ["evil_for_tests"], "preload": ["evil_for_tests"]}}),
    ("reasoning_gym", {"reasoning_gym": {"isolation": "rlimit-only"}}),
]


@pytest.mark.parametrize(("formula", "options"), FORMULAS, ids=lambda value: json.dumps(value)[:60])
def test_a_run_s_reward_names_what_ships(tmp_path, marker, capsys, formula, options):
    path = run_dir(tmp_path / "run", about={"formula": formula, "options": options, "versions": {}})
    assert beyond(formula, options)
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    said = capsys.readouterr().err
    assert "--trust" in said
    assert "reward.json" in said
    assert not marker.exists()


def test_a_trusted_run_s_reward_is_imported(tmp_path, marker):
    path = run_dir(tmp_path / "run", about={"formula": "evil_for_tests:verify", "options": {}, "versions": {}})
    assert verifiers_main(["replay", str(path), "--workers", "0", "--trust"]) == 0
    assert marker.exists()


def test_the_same_formula_said_by_the_user_needs_no_trust(tmp_path, marker):
    path = run_dir(tmp_path / "run", about={"formula": "evil_for_tests:verify", "options": {}, "versions": {}})
    assert verifiers_main(["replay", str(path), "--workers", "0", "--reward", "evil_for_tests:verify"]) == 0
    assert marker.exists()


@pytest.mark.parametrize("options", [{"use": "evil_for_tests:verify"}, {"checkers": ["evil_for_tests:check"]}])
@pytest.mark.parametrize("name", ["code", "evil_for_tests:verify"])
def test_a_set_s_manifest_names_what_ships(tmp_path, marker, capsys, name, options):
    path = tmp_path / "set"
    path.mkdir()
    (path / "train.jsonl").write_text("")
    used = {name: {"options": options, "version": "1"}}
    (path / "manifest.json").write_text(json.dumps({"verifiers": used, "data": {"file": "train.jsonl"}}))
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


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


CONFIGS = [
    {"task": "evil_for_tests:TASK"},
    {"reward": "math + evil_for_tests:verify"},
    {"verifiers": {"math": {"use": "evil_for_tests:verify"}}, "reward": "math"},
    {"verifiers": {"code": {"checkers": ["evil_for_tests:check"]}}, "reward": "code"},
    {"attn_implementation": "somebody/kernel"},
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda value: next(iter(value)))
def test_a_run_that_goes_on_names_what_ships(tmp_path, marker, capsys, config):
    path = run_dir(tmp_path / "run", **config)
    for stage in ("grpo", "ppo"):
        assert main([stage, "--resume", "--out", str(path)]) == 2
        assert "--trust" in capsys.readouterr().err
        assert main([stage, str(path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
        assert "--trust" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text(f"base: {path / 'config.yaml'}\n")
    assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


@pytest.mark.parametrize(
    "recipe",
    [
        {"stages": {"a": {"stage": "reject", "settings": {"task": "evil_for_tests:TASK"}}}},
        {"common": {"reward": "evil_for_tests:verify"}, "stages": {}},
        {"evaluate": {"verifier": "evil_for_tests:verify"}, "stages": {}},
        {"compare": {"row": {"model": "nano", "settings": {"task": "gsm8k,evil_for_tests:TASK"}}}, "stages": {}},
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_pipeline_in_a_run_s_folder_names_what_ships(tmp_path, marker, capsys, recipe):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recipe))
    assert main(["r1", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


def test_what_the_user_repeats_needs_no_trust(tmp_path, marker, capsys):
    path = run_dir(tmp_path / "run", task="evil_for_tests:TASK")
    for said in (["--trust"], ["--task", "evil_for_tests:TASK"]):
        assert main(["grpo", "--resume", "--out", str(path), *said]) == 2
        assert "has no 'TASK'" in capsys.readouterr().err
        assert marker.exists()
        marker.unlink()
        sys.modules.pop("evil_for_tests")


SENT = [
    ("reject", {"push_to_hub": "somebody/set"}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["https://example.com"]}),
    ("grpo", {"log_to": ["wandb"]}),
    ("sft", {"log_to": ["tensorboard", "of_another_package"]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9", "http://127.0.0.1.example.com:9"]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9/shutdown?x="]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9"], "engine_weights_dir": "elsewhere"}),
    ("distill", {"teacher": "nano", "trajectories": {"push_to_hub": "somebody/set"}}),
    ("grpo", {"score_workers": 100_000}),
    ("reject", {"workers": 65}),
    ("reject", {"filters": ["code:time_s=1e9"]}),
    ("grpo", {"reward": "code", "verifiers": {"code": {"servers": 1000}}}),
    ("grpo", {"reward": "regex", "verifiers": {"regex": {"pattern": "x", "timeout_s": 10**40}}}),
]


@pytest.mark.parametrize(("stage", "config"), SENT, ids=str)
def test_a_run_s_files_send_nothing_out_and_take_no_more_than_is_usual(tmp_path, monkeypatch, capsys, stage, config):
    monkeypatch.chdir(tmp_path)
    made = run_dir(tmp_path / "made")
    path = run_dir(tmp_path / "run", **({"rollouts": str(made)} if stage == "reject" else {}), **config)
    assert main([stage, "--resume", "--out", str(path)]) == 2
    said = capsys.readouterr().err
    assert "paths outside" in said
    assert "--trust" in said
    assert main([stage, str(path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_run_s_files_say_of_places_is_the_user_s_to_replace(tmp_path):
    from r1lite.config import trust

    saved = {"engine_url": ["https://example.com"], "engine_weights_dir": "/a", "workers": 1000, "push_to_hub": "x/y"}
    said = {"engine_url": ["https://mine.example"], "engine_weights_dir": "/b", "workers": 70, "push_to_hub": "me/y"}
    trust.check(saved, "config.yaml", said=said, trust=False)
    trust.check({"engine_url": ["http://127.0.0.1:8100", "http://[::1]:8100/"]}, "config.yaml", said={}, trust=False)


@pytest.mark.parametrize("mark", ["config.yaml", "manifest.json", "summary.json", ".lock", "environment.json"])
def test_a_base_of_a_run_s_file_is_data_wherever_it_lies(tmp_path, marker, capsys, mark):
    inside = tmp_path / "run" / "more" / "x.yaml"
    inside.parent.mkdir(parents=True)
    inside.write_text("task: evil_for_tests:TASK\n")
    name = mark if mark == "config.yaml" else "recipe.yaml"
    (tmp_path / "run" / mark).write_text("")
    (tmp_path / "run" / name).write_text("base: more/x.yaml\n")
    (tmp_path / "mine.yaml").write_text(f"base: run/{name}\n")
    for recipe in (tmp_path / "run" / name, tmp_path / "mine.yaml"):
        assert main(["grpo", str(recipe), "--out", str(tmp_path / "new")]) == 2
        assert "--trust" in capsys.readouterr().err
    (tmp_path / "run" / name).write_text(f"out: {tmp_path / 'elsewhere'}\n")
    assert main(["grpo", str(tmp_path / "run" / name)]) == 2
    assert "out: " in capsys.readouterr().err
    assert not marker.exists()


def test_a_recipe_is_the_user_s_word_and_can_t_say_trust(tmp_path, marker, capsys):
    (tmp_path / "mine.yaml").write_text("task: evil_for_tests:TASK\n")
    assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert marker.exists()
    (tmp_path / "other.yaml").write_text("trust: true\n")
    assert main(["grpo", str(tmp_path / "other.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "use --trust on the command line" in capsys.readouterr().err


REJECTS = [
    ({"task": "evil_for_tests:TASK"}, {}),
    ({"task": "gsm8k"}, {"math": {"use": "evil_for_tests:verify"}}),
    ({"task": "gsm8k"}, {"format": {"use": "evil_for_tests:verify"}}),
    ({"task": "gsm8k"}, {"code": {"checkers": ["evil_for_tests:check"]}}),
]


@pytest.mark.parametrize(("config", "options"), REJECTS)
def test_a_run_that_is_curated_names_what_ships(tmp_path, marker, capsys, config, options):
    path = run_dir(tmp_path / "run", about={"formula": "math", "options": options}, **config)
    assert main(["reject", "--rollouts", str(path), "--out", str(tmp_path / "set"), "--quiet"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


@pytest.mark.parametrize(
    "config",
    [
        {"filters": ["evil_for_tests:keep"]},
        {"correct": "evil_for_tests:verify"},
        {"filters": ["code:isolation=rlimit-only"]},
    ],
)
def test_a_set_that_goes_on_names_what_ships(tmp_path, marker, capsys, config):
    made = run_dir(tmp_path / "run")
    path = tmp_path / "set"
    path.mkdir()
    (path / "config.yaml").write_text(yaml.safe_dump({"rollouts": str(made), **config}))
    assert main(["reject", "--resume", "--out", str(path)]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


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


CHECKERS = [
    "evil_for_tests:check",
    "subprocess:call",
    {"program": "import evil_for_tests\ndef check(given, expected, got):\n    return True"},
    {"use": "evil_for_tests:check"},
]


@pytest.mark.parametrize("checker", CHECKERS, ids=str)
@pytest.mark.parametrize("style", ["function", "stdin"])
def test_a_row_s_checker_runs_nothing_here(tmp_path, marker, capsys, checker, style):
    function = {"entry_point": "f", "args": [[1]], "outs": [1]}
    whole = {"inputs": ["1"], "outputs": ["1"]}
    tests = {"style": style, **(function if style == "function" else whole), "checker": checker}
    program = "def f(x): return x" if style == "function" else "print(1)"
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"tests": tests, "completion": f"```python\n{program}\n```"}) + "\n"
    )
    assert verifiers_main(["score", "rows.jsonl", "--reward", "code", "--workers", "0", "--out", "out.jsonl"]) == 1
    (found,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert found["reward"] is None
    assert "checker" in found["error"]
    assert not marker.exists()


CODE = "__import__('pathlib').Path({marker!r}).touch()"
FORMS = (
    "{code}",
    "<answer>{code}</answer>",
    "\\boxed{{{code}}}",
    "```python\n{code}\n```",
    "[{code}]",
    "{{{code}: 1}}",
)
PROBLEM = Problem(
    "2+2? (A) 3 (B) 4",
    "4",
    meta={"numbers": [2, 2], "schema": {"type": "integer"}, "choices": ["3", "4"], "reasoning_gym": "countdown",
          "entry": {"answer": "2+2", "metadata": {"numbers": [2, 2], "target": 4}}},
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(VERIFIERS) - {"code"}))
def test_a_completion_is_never_run(tmp_path, name):
    if name == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    path = tmp_path / "marker"
    verify = resolve(name, **({"pattern": "4"} if name == "regex" else {}))
    for form in FORMS:
        text = form.format(code=CODE.format(marker=str(path)))
        for problem in (PROBLEM, Problem(text, text, meta={**PROBLEM.meta, "schema": text})):
            try:
                verify(problem, Completion(text))
            except VerifierError:
                continue
    assert not path.exists()


def test_a_schema_fetches_nothing(tmp_path, monkeypatch):
    import socket
    import urllib.request

    def refuse(*arguments, **more):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    (tmp_path / "schema.json").write_text("true")
    places = ["http://127.0.0.1:9/x", "https://example.com/s.json", f"file://{tmp_path}/schema.json", "schema.json"]
    for place in places:
        for schema in ({"$ref": place}, {"$dynamicRef": place}, {"$schema": place}, {"$id": place, "$ref": "#/x"}):
            try:
                found = resolve("json_schema")(Problem("?", meta={"schema": schema}), Completion("<answer>1</answer>"))
            except VerifierError:
                continue
            assert set(schema) == {"$schema"}, found


def test_a_row_s_template_is_filled_in_by_replacement():
    from r1lite.tasks.prompts import render

    for text in ("{question.__class__}", "{0.__class__.__mro__}", "{question!r:>{width}}"):
        assert render("Q: {question}", text, None) == f"Q: {text}"
    assert render("{question.__class__} {question}", "x", None) == "{question.__class__} x"


def test_a_formula_is_no_program():
    for text in (
        "__import__('os')",
        "math.__class__",
        "(lambda: 1)()",
        "[math]",
        "math if math else math",
        "math or 1",
    ):
        with pytest.raises(ValueError, match=r"formula|unknown verifier"):
            Reward(text)


HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.\u200b\ud800[red]x[/red]\x00\r"


def is_safe(text):
    return all(char.isprintable() or char in "\n\t" for char in text)


def test_hostile_text_is_shown_and_not_obeyed(tmp_path, capsys):
    """Identifiers, reasons, paths and messages out of data, on every command's output."""
    rows = [
        row(problem_id=HOSTILE, reward=0.5),
        row(problem_id=f"a\nerror: b{HOSTILE}", gold=HOSTILE.replace("\ud800", "")),
    ]
    path = run_dir(tmp_path / "run", rows=rows, about={"formula": "math", "options": {}, "versions": {"math": HOSTILE}})
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 1
    shown = capsys.readouterr()
    assert "[red]x[/red]" in shown.out
    assert "\\x1b[2J" in shown.out
    assert "\nerror: b" not in shown.out
    (tmp_path / "rows.jsonl").write_text(json.dumps({"answer": "4", HOSTILE: 1}) + "\n")
    assert verifiers_main(["score", str(tmp_path / "rows.jsonl"), "--reward", "math", "--workers", "0"]) == 1
    assert verifiers_main(["score", HOSTILE.replace("\x00", ""), "--reward", "math"]) == 2
    (path / "reward.json").write_text(json.dumps({"formula": HOSTILE}))
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    for key, value in (("task", HOSTILE), ("template", HOSTILE), ("model", f"x/{HOSTILE}"), (HOSTILE, 1)):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({key: value.replace("\ud800", "") if key != HOSTILE else 1}))
        assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert main(["doctor", str(path)]) in (0, 1, 2)
    shown = shown.out + shown.err + "".join(capsys.readouterr())
    assert is_safe(shown), [char for char in shown if not is_safe(char)]


def test_the_console_reads_no_markup(capsys):
    from rich.table import Table

    from r1lite.run.display import Display
    from verifiers.terminal import guarded

    with guarded():
        display = Display()
        display.say(HOSTILE)
        display.line(HOSTILE, HOSTILE)
        display.start(HOSTILE, 3)
        table = Table(title=HOSTILE)
        table.add_column(HOSTILE)
        table.add_row(HOSTILE)
        display.console.print(table)
        display.console.print(f"x {HOSTILE}")
        print(HOSTILE)
    shown = capsys.readouterr().out
    assert shown.count("[red]x[/red]") >= 6
    assert is_safe(shown), [char for char in shown if not is_safe(char)]


def test_what_is_shown_is_the_text():
    from verifiers.terminal import one_line, visible

    for text in ("plain", "größer ∑ 数 🎉", "two\nlines\tand a tab", ""):
        assert visible(text) == text
    assert visible("a\x1b[31mb\x9b\u202e\ud800\x7f") == "a\\x1b[31mb\\x9b\\u202e\\ud800\\x7f"
    assert one_line("a\nb\tc") == "a\\nb\\tc"


def test_no_model_s_code_is_asked_for():
    """Every call says `trust_remote_code=False`, by itself or by `pinned`."""
    calls = 0
    for path in ROOT.glob("r1lite/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in ("from_pretrained", "from_config", "LLM"):
                words = {key.arg or ast.unparse(key.value).partition("(")[0] for key in node.keywords}
                assert words & {"pinned", "trust_remote_code"}, f"{path}:{node.lineno}"
                calls += 1
            if name in ("load_dataset", "get_dataset_split_names"):
                assert path.name == "revisions.py", f"{path}:{node.lineno}"
    assert calls > 10


def test_a_model_that_brings_code_is_refused_whatever_stands_on_standard_input(tmp_path, capsys, monkeypatch):
    import io

    model = tmp_path / "model"
    model.mkdir()
    (model / "evil_model.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')\nclass Config: pass\n")
    code = {"AutoConfig": "evil_model.Config", "AutoModelForCausalLM": "evil_model.Config"}
    (model / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": code}))
    (model / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["evil_model.Config", None]}})
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 20))
    for argv in (
        ["eval", "--model", str(model)],
        ["grpo", "--model", str(model)],
        ["distill", "--teacher", str(model), "--model", "nano"],
        ["reward-model", "--model", str(model), "--source", str(tmp_path / "none.jsonl")],
    ):
        assert main([*argv, "--out", str(tmp_path / argv[0]), "--device", "cpu"]) == 2
    assert not (tmp_path / "marker").exists()


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_revisions_are_pinned_and_commits_recorded(tmp_path, monkeypatch, tiny_model, tiny_tokenizer):
    """A cache as huggingface_hub lays it out; nothing is fetched."""
    from huggingface_hub import constants

    from r1lite.hub import revisions as hub

    folder = tmp_path / "models--somebody--tiny"
    snapshot = folder / "snapshots" / COMMIT
    tiny_model.save_pretrained(snapshot)
    tiny_tokenizer.save_pretrained(snapshot)
    (folder / "refs").mkdir()
    for name in ("v1", "main"):
        (folder / "refs" / name).write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "_loaded", {})
    assert hub.split("somebody/tiny@v1") == ("somebody/tiny", "v1")
    assert hub.split("somebody/tiny") == ("somebody/tiny", None)
    assert hub.split(f"{tmp_path}/x@y") == (f"{tmp_path}/x@y", None)
    found = hub.pinned("somebody/tiny@v1")
    assert found == {
        "pretrained_model_name_or_path": "somebody/tiny", "revision": "v1", "trust_remote_code": False
    }  # fmt: skip
    from transformers import AutoConfig

    assert AutoConfig.from_pretrained(**found, cache_dir=tmp_path).hidden_size == tiny_model.config.hidden_size
    assert hub.commits() == [{"kind": "model", "id": "somebody/tiny", "revision": "v1", "commit": COMMIT}]
    assert hub.cached_commit("model", "somebody/tiny", COMMIT) == COMMIT
    assert hub.cached_commit("model", "somebody/other") is None


def test_a_data_set_s_revision_reaches_the_library(monkeypatch):
    import types

    from r1lite.hub import revisions as hub
    from r1lite.tasks import Source, find

    asked = []

    def load_dataset(*names, **more):
        asked.append((*names, more))
        info = types.SimpleNamespace(download_checksums={f"hf://datasets/openai/gsm8k@{COMMIT}/main/train.parquet": {}})
        rows = [{"question": f"{len(asked)} + {i}?", "answer": f"#### {len(asked) + i}"} for i in range(3)]
        return type("Rows", (list,), {"info": info})(rows)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr(hub, "_loaded", {})
    find("gsm8k").load(Source("hub@v2"))
    assert {more["revision"] for *_, more in asked} == {"v2"}
    assert hub.commits() == [{"kind": "dataset", "id": "openai/gsm8k", "revision": "v2", "commit": COMMIT}]


BIG = [
    "a{1000000000}",
    "(?:(?:(?:a{1000}){1000}){1000}){1000}",
    "(" * 3000 + "a" + ")" * 3000,
    "a" * 20_000,
    "[]a]{,900000}",
]


@pytest.mark.parametrize("pattern", [*BIG, "("], ids=lambda text: text[:30])
def test_a_pattern_is_compiled_in_bounded_time(pattern):
    from verifiers.patterns import compiled

    with pytest.raises(ValueError, match=r"nested|characters|missing"):
        compiled(pattern)
    with pytest.raises(ValueError, match="pattern"):
        resolve("regex", pattern=pattern)
    with pytest.raises(VerifierError, match="pattern"):
        resolve("regex")(Problem("?", pattern), Completion("<answer>a</answer>"))
    with pytest.raises(VerifierError, match=r"pattern|recursion"):
        resolve("json_schema")(Problem("?", meta={"schema": {"pattern": pattern}}), Completion("<answer>1</answer>"))


@pytest.mark.parametrize(
    "pattern", [r"(\d{4}-){3}\d{2}", r"[^]]{2,500}\{9999999\}", "(a|b){1000}(?:c{10}){10}", r"\p{L}{1,5}"]
)
def test_usual_patterns_are_compiled(pattern):
    from verifiers.patterns import compiled

    assert compiled(pattern).pattern == pattern


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
