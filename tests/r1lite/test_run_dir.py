"""Run directories and checkpoints: never half written, never shared, never lost."""

import contextlib
import json
import os
import shutil
import sys

import pytest
import torch
from conftest import make_tiny_tokenizer

from r1lite.config import GRPOConfig, SFTConfig
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.run import checkpoint
from r1lite.run.display import Display
from r1lite.run.ending import ending, resuming_options, resumption, resumption_of
from r1lite.run.files import clear_parts, new_folder, opened_regular, replaced_file, write_json
from r1lite.run.records import rollout_rows
from r1lite.run.run_dir import RunDir
from r1lite.types import Group, Rollout, TokenRecord
from verifiers import Completion, Problem, Score, rows

pytestmark = pytest.mark.quick


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with contextlib.suppress(RuntimeError), replaced_file(path) as aside:
        aside.write_text("half")
        raise RuntimeError
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with contextlib.suppress(RuntimeError), new_folder(tmp_path / "a") as aside:
        (aside / "x").write_text("half")
        raise RuntimeError
    assert os.listdir(tmp_path) == []
    for text in ("1", "2"):  # the same step saved again
        with new_folder(tmp_path / "a") as aside:
            (aside / "x").write_text(text)
    assert (tmp_path / "a" / "x").read_text() == "2"


@pytest.mark.parametrize("at", range(5))
def test_a_folder_that_is_replaced_is_there_whole_wherever_a_kill_comes(at, tmp_path, monkeypatch):
    calls, whole = [], {"replace": os.replace, "rmtree": shutil.rmtree}

    def counted(name):
        def call(path, *rest, **options):
            calls.append(name)
            if len(calls) > at:
                if name == "rmtree" and len(calls) == at + 1:
                    (path / "x").unlink(missing_ok=True)  # killed in the middle
                raise KeyboardInterrupt  # nor is anything done after it
            whole[name](path, *rest, **options)

        return call

    with new_folder(tmp_path / "a") as aside:
        (aside / "x").write_text("1")
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr("os.replace", counted("replace"))
        patched.setattr("shutil.rmtree", counted("rmtree"))
        with new_folder(tmp_path / "a") as aside:
            (aside / "x").write_text("2")
    assert len(calls) > at
    clear_parts(tmp_path)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a" / "x").read_text() == ("1" if at < 3 else "2")


def test_what_cannot_be_used_as_a_run_directory(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(UserError, match="not empty"):
        RunDir(tmp_path / "full")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not a folder"):
        RunDir(tmp_path / "file")
    with pytest.raises(UserError, match="holds no run"):
        RunDir(tmp_path / "new", resume=True)
    with pytest.raises(UserError, match="can't be written"):
        RunDir(tmp_path / "file" / "below")


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    with pytest.raises(OSError, match=f"not a regular file: '{tmp_path}'"), opened_regular(tmp_path):
        pass


def test_one_process_at_a_time(tmp_path):
    run = RunDir(tmp_path / "run")
    run.write_config("steps: 1\n", stage="grpo", learned={"problems": "x"})
    with pytest.raises(UserError, match="in use"):
        RunDir(tmp_path / "run", resume=True)
    run.close()
    RunDir(tmp_path / "run", resume=True).close()


def test_weights_for_engines_that_a_killed_process_left_are_removed(tmp_path):
    left = tmp_path / "run" / "launch" / "weights" / "r1lite-weights-1-another_machine-abc"
    left.mkdir(parents=True)
    run = RunDir(tmp_path / "run")
    assert list(left.parent.iterdir()) == []
    left.mkdir()
    with pytest.raises(UserError, match="in use"):
        RunDir(tmp_path / "run")
    assert left.exists()
    run.close()


def test_a_run_that_never_began_leaves_nothing(tmp_path):
    run = RunDir(tmp_path / "run")
    run.discard_if_empty()
    assert not (tmp_path / "run").exists()


def test_rewinding_forgets_later_steps_and_torn_lines(tmp_path):
    run = RunDir(tmp_path / "run")
    for step in (1, 2, 3):
        run.append_metrics({"step": step})
        run.write_rollouts(step, [])
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 4, "rew')
    assert [line["step"] for line in run.metrics()] == [1, 2, 3]
    run.rewind(2)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'
    assert sorted(path.name for path in run.rollouts.iterdir()) == ["step-000001.jsonl.gz", "step-000002.jsonl.gz"]
    run.close()


def test_rollouts_are_compressed_to_the_same_bytes_whenever_and_wherever_they_are_written(tmp_path, monkeypatch):
    rollout = Rollout(Completion("7 \ud800", (1, 2), (-0.25, -1 / 3)), Score(1.0), 0.5, True, None)
    group = Group(Problem("3 + 4?", "7", id="p"), "3 + 4?", (5,), (rollout, rollout))
    written = []
    for name in ("a", "b"):
        monkeypatch.setattr("time.time", lambda name=name: 1e9 + ord(name))
        run = RunDir(tmp_path / name)
        run.write_rollouts(1, [group])
        run.close()
        ((_, path),) = rows.step_files(tmp_path / name)
        written.append(path.read_bytes())
    assert path.name == "step-000001.jsonl.gz"
    assert written[0] == written[1]
    assert written[0][4:8] == bytes(4)  # the time, in gzip's header
    found = [row for _, row in rows.rows(path)]
    assert [row["sample"] for row in found] == [0, 1]
    assert found[0]["logprobs"] == [-0.25, -1 / 3]
    assert found[0]["completion"] == "7 \ud800"


def test_what_the_trainer_saw_of_each_token_is_kept_to_four_digits(tmp_path):
    seen = TokenRecord((-0.123456, -1e-7), (0.5, 2.0), (0.7, -12.34567))
    kept = []
    for tokens in (seen, None):
        rollout = Rollout(Completion("7", (1, 2), (-0.25, -0.5)), Score(1.0), 0.5, True, None, tokens)
        kept += rollout_rows(1, [Group(Problem("?", "7", id="p"), "?", (5,), (rollout,))])
    columns = ("trainer_logprobs", "token_entropy", "token_advantages")
    assert [kept[0][name] for name in columns] == [[-0.1235, -1e-7], [0.5, 2.0], [0.7, -12.35]]
    assert set(kept[0]) - set(kept[1]) == set(columns)


def test_a_step_that_lies_there_twice_counts_once(tmp_path):
    for name in ("step-000002.jsonl", "step-000001.jsonl", "step-000001.jsonl.gz", ".step-000003.jsonl.gz.part", "x"):
        (tmp_path / "rollouts").mkdir(exist_ok=True)
        (tmp_path / "rollouts" / name).write_text("")
    found = [(step, path.name) for step, path in rows.step_files(tmp_path)]
    assert found == [(1, "step-000001.jsonl.gz"), (2, "step-000002.jsonl")]
    assert rows.step_files(tmp_path / "none") == []


def test_a_write_of_rollouts_that_fails_leaves_nothing_to_be_read(tmp_path):
    run = RunDir(tmp_path / "run")

    def groups():
        yield Group(Problem("?", "7", id="p"), "?", (5,), ())
        raise OSError(28, "No space left")

    with pytest.raises(OSError, match="No space"):
        run.write_rollouts(1, groups())
    assert rows.step_files(tmp_path / "run") == []
    run.close()


def test_checkpoints(tmp_path, tiny_model, tiny_tokenizer):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def save(step):
        state = {"number": step, "tensor": torch.arange(3)}
        return checkpoint.save(tmp_path, step, model=tiny_model, tokenizer=tiny_tokenizer, state=state, keep=2)

    assert checkpoint.latest(tmp_path) == (None, [])
    for step in (1, 2, 3):
        path = save(step)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000002", "step-000003"]
    assert checkpoint.latest(tmp_path) == ((3, path), [])
    (path / ".DS_Store").write_text("what else lies there does not matter")
    assert checkpoint.latest(tmp_path) == ((3, path), [])
    assert checkpoint.load_state(path)["number"] == 3
    model = AutoModelForCausalLM.from_pretrained(path)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, tiny_model.state_dict()[name])
    assert AutoTokenizer.from_pretrained(path)("1+1?")["input_ids"] == tiny_tokenizer("1+1?")["input_ids"]
    # A damaged checkpoint is passed over.
    with open(path / "model.safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    second = tmp_path / "step-000002"
    assert checkpoint.latest(tmp_path) == ((2, second), [path])
    (second / "manifest.json").write_text("[]")
    assert checkpoint.latest(tmp_path) == (None, [path, second])


def test_only_checkpoints_are_removed_and_never_the_newest(tmp_path, tiny_model, tiny_tokenizer):
    tiny_tokenizer = make_tiny_tokenizer()
    tiny_tokenizer.chat_template = {"default": "{{ messages }}", "other": "{{ messages }}"}  # saved as a folder

    def save(step):
        return checkpoint.save(tmp_path, step, model=tiny_model, tokenizer=tiny_tokenizer, state={}, keep=1)

    save(6)
    (tmp_path / "step-000004-best").mkdir()
    (tmp_path / "step-000002.tar.gz").write_text("")
    save(5)  # after a resume from before step 6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000002.tar.gz", "step-000004-best", "step-000005"]
    assert checkpoint.latest(tmp_path)[0][0] == 5


@pytest.fixture
def by_command(monkeypatch):
    """Sets whether the process was started as `r1lite`."""

    def started(command):
        if command:
            monkeypatch.setitem(sys.modules, "r1lite.cli", contextlib)
        else:
            monkeypatch.delitem(sys.modules, "r1lite.cli", raising=False)

    started(True)
    return started


def test_the_command_that_resumes_a_run_is_known_without_its_file(tmp_path, by_command, monkeypatch):
    place = tmp_path / "run"
    trusting = GRPOConfig(out="elsewhere", trust=True)
    assert resumption_of(trusting, place) == f"r1lite grpo --resume --out {place}"
    assert resumption_of(SFTConfig(data="x"), tmp_path / "my run") == f"r1lite sft --resume --out '{tmp_path}/my run'"
    for foreign in ({"reward": "math + 0.1*mine:reward"}, {"task": "mine:TASK"}, {"push_to_hub": "me/model"}):
        assert resumption_of(GRPOConfig(**foreign), place) == f"r1lite grpo --resume --out {place} --trust"
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert resumption_of(trusting, place) == f"r1lite grpo --resume --out {place} (on 2 ranks)"
    by_command(False)
    assert resumption_of(trusting, place) == f"resume=True, out={str(place)!r} in the program's configuration"
    assert ", trust=True in" in resumption_of(GRPOConfig(task="mine:TASK"), place)


def test_a_stage_of_a_damaged_file_is_no_part_of_the_command(tmp_path, by_command):
    for stage, shown in (("reject", "r1lite reject "), ("a; b", "r1lite 'a; b' "), (None, ""), (["x"], "")):
        (tmp_path / "environment.json").write_text(json.dumps({"stage": stage}))
        assert resumption(tmp_path) == f"{shown}--resume --out {tmp_path}"
    assert resuming_options(tmp_path) == f"--resume --out {tmp_path}"


@pytest.mark.parametrize(
    ("raised", "becomes", "said"),
    [
        (None, None, ""),
        (Interrupted(15), Interrupted, "stopped; continue with --resume --out {run}\n"),
        (BrokenPipeError(), BrokenPipeError, "stopped; continue with --resume --out {run}\n"),
        (SystemExit(3), SystemExit, "stopped; continue with --resume --out {run}\n"),
        (OSError(28, "No space left", "x.json"), RunError, ""),
        (OSError("odd"), RunError, ""),
        (RunError("no finite gradient"), RunError, ""),
        (KeyError("a bug"), KeyError, ""),
    ],
)
def test_whoever_started_a_run_is_told_how_to_go_on(raised, becomes, said, tmp_path, capsys, by_command):
    run_dir, display = RunDir(tmp_path / "run", resume=False), Display()
    display.start("training", 4)
    expected = contextlib.nullcontext() if becomes is None else pytest.raises(becomes)
    with contextlib.closing(run_dir), expected as caught, ending(run_dir, display):
        if raised is not None:
            raise raised
    assert capsys.readouterr().err == said.format(run=run_dir.path)
    with pytest.raises(AssertionError):
        display.progress(1)  # finished
    (run_dir.path / "config.yaml").write_text("reward: math + 0.1*mine:reward\n")
    assert resumption(run_dir.path) == f"--resume --out {run_dir.path} --trust"
    if type(raised) is OSError:
        where, why = ("x.json", "No space left") if raised.filename else (run_dir.path, "odd")
        how = f"What was saved is kept; once this is fixed, continue with --resume --out {run_dir.path}"
        assert str(caught.value) == f"{where}: {why}. {how}"
        assert caught.value.__cause__ is raised
    elif raised is not None:
        assert caught.value is raised
