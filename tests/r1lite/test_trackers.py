"""Trackers: what is sent, once each, whatever a tracker does; the real libraries where they are installed."""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from report_for_tests import HOSTILE, made_run

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.trackers import check, find, sender
from r1lite.trackers.sender import COLUMNS, Sender, Senders, numbers, outcome, sample

needs = {name: pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"no {name}") for name in
         ("wandb", "trackio", "tensorboard", "mlflow")}  # fmt: skip


class Noted:
    """A tracker that notes what it is given."""

    def __init__(self, held=None, trouble=None):
        self.held, self.trouble, self.calls, self.logged = held, trouble, [], {}

    def start(self, about):
        self.about = about
        self.calls.append("start")
        return self.held

    def log(self, step, metrics):
        if self.trouble is not None:
            self.trouble(step)
        self.calls.append(("log", step))
        self.logged[step] = {**self.logged.get(step, {}), **metrics}

    def table(self, step, columns, rows):
        self.calls.append(("table", step, columns, rows))

    def finish(self, summary, findings):
        self.calls.append("finish")
        self.summary, self.findings = summary, findings


@pytest.fixture
def noted(monkeypatch):
    def use(tracker):
        monkeypatch.setattr(sender, "find", lambda name: lambda: tracker)
        return tracker

    return use


def test_damaged_files_of_a_run_leave_the_rest_to_be_sent(tmp_path, noted):
    run, tracker = made_run(tmp_path / "run", steps=3), noted(Noted())
    path = run / "rollouts" / "step-000001.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-40])
    (run / "config.yaml").write_text("2026-11-28: 1\n")
    lines = ['{"step": 4, "reward": 1' + "0" * 400 + ', "loss": 0.5}', '{"step": 5, "a": ' + "[" * 2000]
    (run / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text() + "\n".join([*lines, '{"step": 6}', ""]))
    Sender("noted", run, "r1lite", 3, print).send()
    assert steps_of(tracker) == [1, 2, 3, 4]
    assert tracker.logged[4] == {"loss": 0.5}
    assert tracker.about.config == {"2026-11-28": 1}
    assert [call[1] for call in tracker.calls if call[0] == "table"] == [2, 3]


def steps_of(tracker):
    return [call[1] for call in tracker.calls if call[0] == "log"]


def test_a_finished_run_is_sent_whole_and_once(tmp_path, noted):
    run = made_run(tmp_path / "run", steps=20, hostile=HOSTILE)
    tracker = noted(Noted())
    Sender("noted", run, "lab", 20, print).send()
    assert steps_of(tracker) == list(range(1, 21))
    assert (tracker.calls[0], tracker.calls[-1]) == ("start", "finish")
    assert tracker.logged[3]["parts/math"] == tracker.logged[3]["accuracy"]
    assert {"reasons/math/equal", "reward", "entropy", "step_s"} <= set(tracker.logged[3])
    assert tracker.logged[10]["test/pass_at_1"] == 0.7
    assert tracker.summary["wall_s"] == 12.5
    tables = [call for call in tracker.calls if call[0] == "table"]
    assert [table[1] for table in tables] == [1, *range(2, 21, 2)]
    assert tables[0][2] == COLUMNS
    assert len(tables[0][3]) == 4 * 4 + 6  # as many of each problem as make 32 together
    assert (tracker.about.name, tracker.about.project, tracker.about.last_step) == ("run", "lab", None)
    again = noted(Noted())
    Sender("noted", run, "lab", 20, print).send()
    assert steps_of(again) == []
    assert again.about.id == tracker.about.id
    assert again.about.last_step == 20


def test_a_resumed_run_goes_on_where_it_stopped(tmp_path, noted):
    run = made_run(tmp_path / "run", steps=20)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "evaluations.jsonl").unlink()
    (run / "metrics.jsonl").write_text("".join(lines[:12]) + '{"step": 13, "rewa')  # killed while it wrote
    first = noted(Noted())
    Sender("noted", run, "lab", 20, print).send()
    assert steps_of(first) == list(range(1, 13))
    (run / "metrics.jsonl").write_text("".join(lines[:10]))  # back to its checkpoint ...
    second = noted(Noted())
    going = Senders(["noted"], run, "lab", print)
    going.begin(20)
    for line in lines[10:]:  # ... and the steps after it once more
        with open(run / "metrics.jsonl", "a") as file:
            file.write(line)
    going.close()
    assert steps_of(second) == list(range(13, 21))


def test_an_evaluation_is_sent_before_the_steps_after_it(tmp_path, noted):
    """Also if the tracker was busy meanwhile: W&B drops what comes for an earlier step than the last one."""
    run, tracker = made_run(tmp_path / "run", steps=6), noted(Noted())
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:3]))
    (run / "evaluations.jsonl").write_text("")

    def meanwhile(step):
        if step == 3:
            (run / "evaluations.jsonl").write_text('{"step": 3, "pass_at_1": 0.5}\n')
            (run / "metrics.jsonl").write_text("".join(lines))
            sending.finishing.set()
            tracker.trouble = None

    tracker.trouble = meanwhile
    sending = Sender("noted", run, "lab", 6, print)
    sending._all(tracker)
    assert steps_of(tracker) == [1, 2, 3, 3, 4, 5, 6]
    assert tracker.logged[3]["test/pass_at_1"] == 0.5


def test_what_the_tracker_holds_is_not_sent_again(tmp_path, noted):
    run = made_run(tmp_path / "run", steps=6)
    (run / "evaluations.jsonl").unlink()
    tracker = noted(Noted(held=4))
    Sender("noted", run, "lab", 6, print).send()
    assert steps_of(tracker) == [5, 6]


def test_a_tracker_that_fails_is_told_once(tmp_path, noted):
    def trouble(step):
        raise ConnectionError(f"no route at step {step}")

    run = made_run(tmp_path / "run", steps=6)
    noted(Noted(trouble=trouble))
    said = []
    senders = Senders(["one"], run, "lab", said.append)
    senders.begin(6)
    senders.close()
    (line,) = said
    assert line.startswith("tracker one: ConnectionError: no route at step 1; the run continues. r1lite log")


def test_a_tracker_that_hangs_holds_nothing_up(tmp_path, noted, monkeypatch):
    monkeypatch.setattr(sender, "_FLUSH_S", 0.2)
    release = threading.Event()
    run = made_run(tmp_path / "run", steps=6)
    noted(Noted(trouble=lambda step: release.wait()))
    said = []
    began = time.monotonic()
    senders = Senders(["one"], run, "lab", said.append)
    senders.begin(6)
    assert time.monotonic() - began < 30
    senders.close()
    release.set()
    assert [line.partition(";")[0] for line in said] == ["tracker one: it did not receive everything in time"]


def test_a_library_that_ends_the_process_does_not(tmp_path, noted):
    def trouble(step):
        sys.exit("no account")

    run = made_run(tmp_path / "run", steps=3)
    noted(Noted(trouble=trouble))
    said = []
    senders = Senders(["one"], run, "lab", said.append)
    senders.begin(3)
    senders.close()
    assert "SystemExit: no account" in said[0]


def test_names(monkeypatch, tmp_path, capsys):
    with pytest.raises(UserError, match="unknown tracker 'wandbb'; known: mlflow, tensorboard, trackio, wandb"):
        check(["wandbb"])
    with pytest.raises(UserError, match="twice"):
        check(["x", "x"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs wandb: pip install 'r1lite\[wandb\]'"):
        check(["wandb"])
    point = importlib.metadata.EntryPoint("mine", "test_trackers:Noted", "r1lite.trackers")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == "r1lite.trackers" else [])
    check(["mine"])
    assert find("mine")().__class__.__name__ == "Noted"
    assert main(["log", str(tmp_path), "--to", "mine"]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert main(["log", str(made_run(tmp_path / "run")), "--to", "mine", "mine"]) == 2
    assert "--to names mine twice" in capsys.readouterr().err


def test_a_training_run_is_sent_while_it_goes_on(tiny_path, sums_path, tmp_path, monkeypatch, capsys):
    """An entry point's tracker sees every step, and one that raises leaves the results as they are."""
    from test_shaping import arguments

    made = {"good": Noted(), "bad": Noted(trouble=lambda step: 1 / 0)}
    monkeypatch.setattr(sender, "find", lambda name: lambda: made[name])
    monkeypatch.setattr("r1lite.training.lifecycle.check", lambda names: None)
    out = tmp_path / "run"
    argv = arguments(tiny_path, sums_path, out, "--log-to", "good", "bad", "--steps", "3")
    assert main(argv) == 0
    assert steps_of(made["good"]) == [1, 2, 3]
    assert made["good"].summary["steps"] == 3.0
    assert capsys.readouterr().out.count("tracker bad: ZeroDivisionError") == 1
    assert json.loads((out / "trackers" / "good.json").read_text())["step"] == 3


def test_numbers_and_samples(tmp_path):
    assert numbers({"step": 3, "a": 1, "b": {"c": 2.5, "d": None}, "e": "x", "f": True}) == {"a": 1.0, "b/c": 2.5}
    run = made_run(tmp_path / "run", steps=2)
    rows = sample(run / "rollouts" / "step-000002.jsonl.gz", 2)
    assert rows[0][1] == "p0"
    assert rows[0][-1] in ("math equal", "math different")
    (run / "summary.json").unlink()
    assert outcome(run)[0] == {}


def real(run, name, *, env=None):
    """Sends by the command, in a process of its own."""
    code = f"import sys; from r1lite.cli import main; sys.exit(main(['log', {str(run)!r}, '--to', {name!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr + done.stdout


def cut_and_whole(run, cut, send):
    """Sends a run's beginning, then all of it: as when a run is resumed."""
    whole = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text("".join(whole.splitlines(keepends=True)[:cut]))
    send()
    (run / "metrics.jsonl").write_text(whole)
    send()
    return [json.loads(line) for line in whole.splitlines()]


@pytest.mark.slow
@needs["tensorboard"]
def test_tensorboard(tmp_path):
    run = made_run(tmp_path / "run", steps=8, hostile=HOSTILE)
    lines = cut_and_whole(run, 5, lambda: real(run, "tensorboard"))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    assert [event.step for event in found.Scalars("reward")] == list(range(1, 9))
    assert [event.value for event in found.Scalars("reward")] == pytest.approx([line["reward"] for line in lines])
    texts = [event.tensor_proto.string_val[0].decode() for event in found.Tensors("completions/text_summary")]
    assert all(line.startswith("    ") for text in texts for line in text.splitlines())


@pytest.mark.slow
@needs["wandb"]
def test_wandb_offline(tmp_path):
    run = made_run(tmp_path / "run", steps=8, hostile=HOSTILE)
    env = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    lines = cut_and_whole(run, 5, lambda: real(run, "wandb", env=env))
    files = sorted((run / "trackers" / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2
    assert len({path.name for path in files}) == 1  # the same id both times
    seen = [items for path in files for items in wandb_history(path.read_bytes())]
    assert [(int(items["_step"]), float(items["reward"])) for items in seen if "reward" in items] == [
        (line["step"], pytest.approx(line["reward"])) for line in lines
    ]
    assert any(name.startswith("completions") for items in seen for name in items)


def wandb_history(data):
    """The history of an offline run's file: LevelDB's log format, with a record of protocol buffers in each entry."""
    from wandb.proto import wandb_internal_pb2

    place, parts = 7, b""  # after the file's header
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:  # the rest of a block is filled up
            place += 32768 - place % 32768
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        parts += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record.FromString(parts)
            parts = b""
            if record.WhichOneof("record_type") == "history":
                yield {
                    (item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item
                }


@pytest.mark.slow
@needs["trackio"]
def test_trackio(tmp_path):
    run = made_run(tmp_path / "run", steps=8, hostile=HOSTILE)
    env = {"TRACKIO_DIR": str(tmp_path / "store"), "HF_HUB_OFFLINE": "1"}
    lines = cut_and_whole(run, 5, lambda: real(run, "trackio", env=env))
    name = f"run-{json.loads((run / 'trackers' / 'trackio.json').read_text())['id']}"
    code = (
        "import json; from trackio.sqlite_storage import SQLiteStorage as S; "
        f"print(json.dumps([[x['step'], x['reward']] for x in S.get_logs('r1lite', {name!r}) if 'reward' in x]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    assert json.loads(done.stdout.splitlines()[-1]) == [[line["step"], pytest.approx(line["reward"])] for line in lines]


@pytest.mark.slow
@needs["mlflow"]
def test_mlflow(tmp_path):
    run = made_run(tmp_path / "run", steps=8, hostile=HOSTILE)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    lines = cut_and_whole(run, 5, lambda: real(run, "mlflow", env={"MLFLOW_TRACKING_URI": uri}))
    code = (
        "import json, mlflow; c = mlflow.MlflowClient(); e = c.get_experiment_by_name('r1lite'); "
        "(r,) = c.search_runs([e.experiment_id]); print(json.dumps([r.info.status, r.data.params['model'], "
        "[[m.step, m.value] for m in c.get_metric_history(r.info.run_id, 'reward')]]))"
    )
    env = {**os.environ, "MLFLOW_TRACKING_URI": uri}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
    status, model, found = json.loads(done.stdout.splitlines()[-1])
    assert (status, model) == ("FINISHED", "nano")
    assert sorted(found) == [[line["step"], pytest.approx(line["reward"])] for line in lines]
