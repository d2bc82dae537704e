"""Whole runs on a tiny model: they can be stopped anywhere, and they say what they did."""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pandas
import pytest

from r1lite.cli import main
from r1lite.errors import Interrupted
from r1lite.run import checkpoint
from r1lite.run.places import claim_path
from r1lite.run.run_dir import RunDir

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
# Everything that could break exactness at once: several updates of several minibatches, with a reference.
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "12", "--steps", str(STEPS), "--lr", "3e-3"),
    *("--prompts-per-step", "4", "--group-size", "4", "--eval-problems", "4", "--eval-sample-problems", "2"),
    *("--eval-samples", "2", "--updates-per-rollout", "2", "--minibatches", "2", "--kl-coef", "0.01"),
    *("--reward", "reward_for_tests:digits", "--threads", "1", "--save-every", "3", "--warmup-steps", "2"),
    *("--lr-schedule", "cosine", "--micro-batch-tokens", "100"),
]


def arguments(tiny_path, sums_path, out, *more):
    return ["grpo", "--model", str(tiny_path), "--source", str(sums_path), *FLAGS, "--out", str(out), *more]


def outcome(out):
    """All that must be the same in two runs of the same work."""
    rollouts = {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())}
    clocks = {"generate_s", "score_s", "train_s", "step_s"}
    metrics = [
        {key: value for key, value in json.loads(line).items() if key not in clocks}
        for line in (out / "metrics.jsonl").read_text().splitlines()
    ]
    weights = (out / "checkpoints" / f"step-{STEPS:06d}" / "model.safetensors").read_bytes()
    return rollouts, metrics, weights


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, tiny_path, sums_path, forks):
    out = tmp_path_factory.mktemp("whole") / "run"
    code, printed, err = forks.run(arguments(tiny_path, sums_path, out))
    assert code == 0, err
    return out, printed


def test_it_says_what_it_does(uninterrupted):
    out, printed = uninterrupted
    assert len((out / "metrics.jsonl").read_text().splitlines()) == STEPS
    for word in (
        "device",
        "engine",
        "model",
        "problems",
        "reward",
        "run",
        f"step 1/{STEPS}",
        f"{STEPS}/{STEPS}",
        "accuracy",
    ):
        assert word in printed


def test_the_run_directory_is_the_source_of_truth(uninterrupted, tiny_path):
    import datasets
    from transformers import AutoModelForCausalLM

    out, _ = uninterrupted
    summary = json.loads((out / "summary.json").read_text())
    for name in ("eval_before", "eval_after"):
        assert {"pass_at_1", "pass_at_k", "format_rate", "mean_tokens"} <= set(summary[name])
    wanted = {"wall_s", "steps", "tokens_generated", "peak_rss_mib", "device", "engine", "model", "source"}
    assert wanted <= set(summary)
    assert summary["steps"] == STEPS
    frame = pandas.concat(pandas.read_json(path, lines=True) for path in sorted((out / "rollouts").iterdir()))
    assert len(frame) == STEPS * 16
    assert frame["token_ids"].map(len).sum() == summary["tokens_generated"]
    assert (frame["token_ids"].map(len) == frame["logprobs"].map(len)).all()
    assert set(frame["policy_version"] - frame["step"]) == {-1}
    assert frame.groupby(["step", "problem_id"])["advantage"].sum().abs().max() < 1e-4
    assert set(frame["verdicts"].iloc[0][0]) >= {"verifier", "score", "reason"}
    files = [str(path) for path in sorted((out / "rollouts").iterdir())]
    rows = datasets.load_dataset("json", data_files=files, split="train", cache_dir=str(out.parent / "cache"))
    assert rows.num_rows == STEPS * 16
    AutoModelForCausalLM.from_pretrained(summary["checkpoint"])
    assert json.loads((out / "environment.json").read_text())["versions"]["torch"]


def test_the_kept_configuration_runs_again_bit_for_bit(uninterrupted, tmp_path, forks):
    out, _ = uninterrupted
    code, _, err = forks.run(["grpo", str(out / "config.yaml"), "--out", str(tmp_path / "again"), "--trust", "--quiet"])
    assert code == 0, err
    assert outcome(tmp_path / "again") == outcome(out)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("after", [0, 4])
def test_stopped_and_resumed_is_the_same_as_never_stopped(
    uninterrupted, tiny_path, sums_path, tmp_path, forks, signum, after
):
    out = tmp_path / "run"
    process = forks.start(arguments(tiny_path, sums_path, out, "--quiet"))
    awaited = out / "rollouts" / f"step-{after:06d}.jsonl.gz" if after else out / "config.yaml"
    deadline = time.monotonic() + 600
    while not awaited.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signum)
    _, err = process.communicate(600)
    code = process.returncode
    assert code == (-9 if signum == signal.SIGKILL else 128 + signum), err
    if signum != signal.SIGKILL and after:
        saved = max(path.name for path in (out / "checkpoints").iterdir())
        assert int(saved.removeprefix("step-")) >= after  # nothing is lost
    code, _, err = forks.run(["grpo", "--resume", "--trust", "--out", str(out), "--quiet"])
    assert code == 0, err
    assert outcome(out) == outcome(uninterrupted[0])


def test_a_run_that_is_stopped_while_it_shows_its_settings_says_how_to_continue(
    tiny_path, sums_path, tmp_path, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(ROOT / "tests")
    monkeypatch.setattr("r1lite.training.setup.show_settings", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert main(arguments(tiny_path, sums_path, tmp_path / "run", "--quiet")) == 128 + signal.SIGTERM
    assert f"stopped; continue with r1lite grpo --resume --out {tmp_path / 'run'}" in capsys.readouterr().err

    def stop(*_):
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr("r1lite.training.setup.show_settings", stop)
    argv = ["eval", "--model", str(tiny_path), "--source", str(sums_path), "--out", str(tmp_path / "eval"), "--quiet"]
    assert main([*argv, "--template", "short", "--max-completion-tokens", "8"]) == 128 + signal.SIGTERM
    assert "--resume" not in capsys.readouterr().err  # an evaluation begins anew


def test_a_run_that_is_stopped_at_a_checkpoint_does_not_write_it_again(tiny_path, sums_path, tmp_path, monkeypatch):
    saved, save, append = [], checkpoint.save, RunDir.append_metrics

    def append_and_stop(run, record):
        append(run, record)
        if record["step"] == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.syspath_prepend(ROOT / "tests")
    monkeypatch.setattr(RunDir, "append_metrics", append_and_stop)
    monkeypatch.setattr(
        checkpoint, "save", lambda folder, step, **rest: (saved.append(step), save(folder, step, **rest))[1]
    )
    flags = ("--quiet", "--save-every", "1", "--eval-problems", "0", "--score-workers", "0")
    assert main(arguments(tiny_path, sums_path, tmp_path / "run", *flags)) == 128 + signal.SIGTERM
    assert saved == [1, 2]


def test_resume_keeps_to_the_run(uninterrupted, capsys):
    out, _ = uninterrupted
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--lr", "1"]) == 2
    assert "--lr is 0.003" in capsys.readouterr().err
    assert main(["grpo", "--out", str(out)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--steps", "2"]) == 2
    assert f"already done {STEPS}" in capsys.readouterr().err


def test_two_runs_of_one_second_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda form: "now")
    first, second = (claim_path("grpo", "gsm8k", "some/model") for _ in range(2))
    assert (str(first), str(second)) == ("runs/now-grpo-gsm8k-model", "runs/now-grpo-gsm8k-model-2")


def test_micro_batches_change_nothing_but_rounding(uninterrupted, tiny_path, sums_path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    argv = arguments(tiny_path, sums_path, tmp_path / "run", "--quiet", "--steps", "2")
    assert main([*argv, "--lr-schedule", "constant", "--micro-batch-tokens", "100000"]) == 0
    norms = []
    for out in (tmp_path / "run", uninterrupted[0]):
        norms.append(json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["grad_norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--task", "gsm8"], "did you mean 'gsm8k'"),
        (["--model", "/nowhere/model"], "/nowhere/model: no such folder here"),
        (["--model", "nobody/nothing"], "--model nobody/nothing: no such folder here"),
        (["--source", "/nowhere"], "no such file"),
        (["--source", "hub"], "can't load openai/gsm8k"),
        (["--reward", "math + 0.1*fromat"], "did you mean 'format'"),
        (["--template", "shrot"], "--template 'shrot' is unknown"),
        (["--max-prompt-tokens", "3"], "--max-prompt-tokens is 3"),
        (
            ["--max-completion-tokens", "400"],
            "the model's context is 160: the largest that fits all prompts is --max-completion-tokens 155",
        ),
        (["--device", "cuda"], "finds no CUDA device"),
        (["--device", "gpu"], "--device gpu: unknown"),
        (["--threads", "100000"], "--threads must be <= 512"),
        (["--reward", ""], "can't read the reward formula"),
        (["--task", "trouble_for_tests:EMPTY"], "0 problems to train on"),
        (["--task", "trouble_for_tests:BROKEN"], "no such place"),
        (["--task", "trouble_for_tests:ENDING"], "load() raised SystemExit: 0"),
        (["--task", "ending_for_tests:TASK"], "it must not end the program when it is imported"),
        (["--reward", "ending_for_tests:score"], "it must not end the program when it is imported"),
        (["--reward", "trouble_for_tests:EndsWhenMade"], "__init__() raised SystemExit: 0"),
        (["--reward", "trouble_for_tests:EndsWhenPrepared"], "prepare() raised SystemExit: 0"),
        (["--reward", "trouble_for_tests:ends"], "SystemExit: 0"),
        (["--reward", "trouble_for_tests:ends", "--score-workers", "0"], "raised SystemExit: 0"),
        (["--group-size", "1"], "GRPO compares the completions"),
    ],
)
def test_mistakes_of_use_leave_nothing_behind(change, message, tiny_path, sums_path, tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    flags = dict(zip(FLAGS[::2], FLAGS[1::2], strict=True))
    flags |= {"--model": str(tiny_path), "--source": str(sums_path), "--out": str(tmp_path / "run")}
    flags |= dict(zip(change[::2], change[1::2], strict=True))
    code = 1 if message.startswith("prepare()") else 2  # 1: a reward's own code ran, which is no wrong usage
    assert main(["grpo", *(word for pair in flags.items() for word in pair)]) == code
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "run").exists()


def test_a_gold_that_cannot_be_checked_is_named(tiny_path, tmp_path, capsys):
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text('{"question": "1+1?", "answer": "####"}\n')
    argv = ["grpo", "--model", str(tiny_path), "--source", str(tmp_path), "--out", str(tmp_path / "run")]
    assert main([*argv, "--template", "short", "--max-completion-tokens", "12"]) == 2
    shown = capsys.readouterr().err
    assert "2 problems can't be used" in shown
    assert "train-0" in shown


def test_a_verifier_that_breaks_stops_the_run_with_its_reason(tiny_path, sums_path, tmp_path, capsys, monkeypatch):
    (tmp_path / "broken_reward.py").write_text(
        "def broken(problem, completion):\n    if completion.logprobs: raise KeyError('oops')\n    return 0.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    argv = arguments(tiny_path, sums_path, tmp_path / "run", "--quiet")
    argv[argv.index("reward_for_tests:digits")] = "broken_reward:broken"
    assert main(argv) == 1
    assert "could not be scored" in (shown := capsys.readouterr().err)
    assert "KeyError: 'oops'" in shown


def test_eval_of_a_checkpoint_prompts_it_as_it_was_trained(uninterrupted, sums_path, tmp_path, capsys):
    out, _ = uninterrupted
    checkpoint = out / "checkpoints" / f"step-{STEPS:06d}"
    argv = ["eval", "--model", str(checkpoint), "--source", str(sums_path), "--out", str(tmp_path / "run")]
    assert main([*argv, "--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2"]) == 0
    assert "the run that trained this model: template short" in capsys.readouterr().out
    measured = json.loads((tmp_path / "run" / "summary.json").read_text())["tasks"]["gsm8k"]
    trained = json.loads((out / "summary.json").read_text())["eval_after"]
    assert trained.pop("measured_on") == {"eval_problems": 4, "eval_sample_problems": 2, "eval_samples": 2}
    assert {key: measured[key] for key in trained} == trained


def test_a_small_set_comes_round_with_fresh_completions(tiny_path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    assert main(arguments(tiny_path, tmp_path, tmp_path / "run", "--quiet", "--steps", "1")) == 0
    frame = pandas.read_json(tmp_path / "run" / "rollouts" / "step-000001.jsonl.gz", lines=True)
    assert len(frame) == 16
    assert len(set(frame["completion"])) > 12


@pytest.mark.parametrize("returns", ["1/len(completion.text)", "None", "'yes'", "2.0", "float('nan')", "[][0]"])
def test_a_reward_that_misbehaves_is_unscored_from_the_first_step_on(
    returns, tiny_path, sums_path, tmp_path, capsys, monkeypatch
):
    (tmp_path / "mine.py").write_text(
        # Sampled completions have log-probabilities; the one that is tried before the model is loaded has none.
        f"def mine(problem, completion):\n    return {returns} if completion.logprobs else 0.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("mine", None)
    argv = arguments(tiny_path, sums_path, tmp_path / "run", "--quiet", "--steps", "1")
    argv[argv.index("reward_for_tests:digits")] = "mine:mine"
    code = main(argv)
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert code == 0 if returns.startswith("1/") else (code == 1 and "could not be scored" in shown)


def test_gradient_checkpointing_samples_the_same(tiny_path, sums_path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    for name, flags in (("plain", []), ("saving", ["--gradient-checkpointing"])):
        assert main(arguments(tiny_path, sums_path, tmp_path / name, "--quiet", "--steps", "1", *flags)) == 0
    first = [(tmp_path / name / "rollouts" / "step-000001.jsonl.gz").read_bytes() for name in ("plain", "saving")]
    assert first[0] == first[1]
    norms = [json.loads((tmp_path / name / "metrics.jsonl").read_text())["grad_norm"] for name in ("plain", "saving")]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)


def copy_of(run, place):
    shutil.copytree(run, place)
    return place


def test_a_run_without_an_intact_checkpoint_is_not_thrown_away(uninterrupted, tmp_path, capsys):
    out = copy_of(uninterrupted[0], tmp_path / "run")
    for folder in (out / "checkpoints").iterdir():
        (folder / "model.safetensors").write_bytes(b"damaged")
    assert main(["grpo", "--resume", "--trust", "--out", str(out)]) == 2
    shown = capsys.readouterr()
    assert "no intact checkpoint" in shown.err
    assert "is damaged and is skipped" in shown.out
    assert len((out / "metrics.jsonl").read_text().splitlines()) == STEPS


def test_a_resumed_run_keeps_what_it_was_told_to_change(uninterrupted, tmp_path, capsys):
    out = copy_of(uninterrupted[0], tmp_path / "run")
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--steps", str(STEPS + 1), "--quiet"]) == 0
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--quiet"]) == 0
    assert json.loads((out / "summary.json").read_text())["steps"] == STEPS + 1


def test_resuming_notices_other_problems_and_other_stages(uninterrupted, sums_path, tmp_path, capsys):
    out = copy_of(uninterrupted[0], tmp_path / "run")
    environment = json.loads((out / "environment.json").read_text())
    for change, message in (({"problems": "other"}, "no longer those"), ({"stage": "eval"}, "is a run of r1lite eval")):
        (out / "environment.json").write_text(json.dumps({**environment, **change}))
        assert main(["grpo", "--resume", "--trust", "--out", str(out)]) == 2
        assert message in capsys.readouterr().err
    (out / "config.yaml").write_text("")
    (out / "environment.json").write_text(json.dumps(environment))
    assert main(["grpo", "--resume", "--trust", "--out", str(out)]) == 2
    assert "is damaged: it lacks" in capsys.readouterr().err


def test_models_with_missing_weights_are_refused(tiny_path, sums_path, tmp_path, capsys):
    from safetensors.torch import load_file, save_file

    model = copy_of(tiny_path, tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "layers.1.mlp" not in name}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    assert main(arguments(model, sums_path, tmp_path / "run")) == 2
    assert "3 of its weights are not in the files" in capsys.readouterr().err


def test_divergence_ends_with_one_line(tiny_path, sums_path, tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    # A high --lr need not end in such a gradient: the kernels' rounding decides whether one overflows.
    loss = "--quiet", "--loss", "losses_for_tests:overflowing"
    assert main(arguments(tiny_path, sums_path, tmp_path / "run", *loss)) == 1
    shown = capsys.readouterr().err
    assert "not finite" in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_a_closed_pipe_leaves_a_checkpoint(tiny_path, sums_path, tmp_path, forks):
    out, pipe = tmp_path / "run", tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = [*arguments(tiny_path, sums_path, out, "--verbose"), "--save-every", "1000", "--steps", "2000"]
    code = "import os, runpy, sys; os.dup2(os.open(sys.argv.pop(1), os.O_WRONLY), 1); sys.stdout = open(1, 'w'); "
    code += "runpy.run_module('r1lite', run_name='__main__', alter_sys=True)"
    reader, printed = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), b""
    process = forks.start([pipe, *argv], code=code)
    while b"\nstep 2/" not in printed:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(BlockingIOError):
            printed += os.read(reader, 1 << 16)
        time.sleep(0.01)
    os.close(reader)
    process.wait(600)
    assert list((out / "checkpoints").iterdir())
