"""`r1lite launch`: ranks and engines are started, watched and ended together, on this machine."""

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from processes_for_tests import all_gone

from r1lite.cli import main
from r1lite.config import GRPOConfig, load
from r1lite.config.launch import LaunchConfig
from r1lite.errors import UserError
from r1lite.launch import starting
from r1lite.launch.commands import rank_environment, read_job
from r1lite.launch.layout import lay_out

TESTS = Path(__file__).resolve().parents[1]
ENGINE = f"{shlex.quote(sys.executable)} {shlex.quote(str(TESTS / 'launch_for_tests.py'))} {{host}} {{port}}"
STAGE = [
    *("--template", "short", "--max-prompt-tokens", "40", "--max-completion-tokens", "6", "--prompts-per-step", "4"),
    *("--group-size", "2", "--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2"),
    *("--score-workers", "0", "--threads", "1", "--canary-tokens", "0", "--no-report", "--save-every", "1"),
]


def placed(specs):
    return [(spec.name, spec.node, spec.gpus) for spec in specs]


@pytest.mark.quick
def test_ranks_fill_nodes_before_engines_do():
    specs = lay_out(LaunchConfig(ranks=2, engines=3, tensor_parallel=2, on="local"), 8)
    assert placed(specs) == [
        ("rank 0", 0, (0, 1)),
        ("rank 1", 0, (0, 1)),
        ("engine 0", 0, (2, 3)),
        ("engine 1", 0, (4, 5)),
        ("engine 2", 0, (6, 7)),
    ]
    assert [spec.local_rank for spec in specs[:2]] == [0, 1]
    assert rank_environment(specs[1], 2, "host", 5, "secret") == {
        **{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "host"},
        **{"MASTER_PORT": "5", "R1LITE_ENGINE_TOKEN": "secret"},
    }
    on_cpus = lay_out(LaunchConfig(ranks=2, engines=1), 0)
    assert placed(on_cpus) == [("rank 0", 0, ()), ("rank 1", 0, ()), ("engine 0", 0, ())]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("listed", "ranks", "engine"),
    [(None, "0,1", "3"), ("4,5,6,7", "4,5", "7"), ("GPU-a, GPU-b,2,GPU-d", "GPU-a,GPU-b", "GPU-d")],
)
def test_processes_get_gpus_of_those_that_are_visible_here(listed, ranks, engine, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(starting, "LocalProcess", lambda words, variables, log: given.update({log.stem: variables}))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    specs = lay_out(LaunchConfig(ranks=2, engines=2, on="local"), 4)
    job = SimpleNamespace(gpus=4, engine_words=lambda *_: [], rank_words=lambda *_, **__: [])
    launcher = starting.LocalLauncher(job, specs, tmp_path)
    for spec in launcher.engines:
        launcher.start_engine(spec)
    launcher.start_ranks([], again=False)
    found = {name: variables["CUDA_VISIBLE_DEVICES"] for name, variables in given.items()}
    assert (found["rank-0"], found["rank-1"], found["engine-1"]) == (ranks, ranks, engine)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    with pytest.raises(UserError, match="--gpus-per-node 4 needs 4 GPUs, and CUDA_VISIBLE_DEVICES=4,5,6 lists 3"):
        starting.LocalLauncher(job, specs, tmp_path)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("asked", "gpus", "said"),
    [
        ({"ranks": 2, "engines": 7}, 8, "--ranks 2 and --engines 7 don't fit 1 node of 8 GPUs"),
        ({"ranks": 2, "engines": 4, "tensor_parallel": 2}, 8, "--engines 4 of 2 GPUs each don't fit"),
        ({"engines": 1, "tensor_parallel": 16}, 8, "--tensor-parallel 16: an engine's GPUs must be on one node"),
        ({"ranks": 12}, 8, "--ranks 12 on nodes of 8 GPUs: use a multiple of 8"),
        ({"engines": 1, "tensor_parallel": 2}, 0, "--tensor-parallel 2 is for GPUs"),
    ],
)
def test_what_does_not_fit_is_refused(asked, gpus, said):
    with pytest.raises(UserError, match=said):
        lay_out(LaunchConfig(**asked), gpus)


def test_mistakes_are_told_before_anything_starts(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run")]
    for argv, said in (
        (["grpo", "--steps", "3"], "write the stage's command after --"),
        (["--"], "nothing follows --"),
        (["--", "reject", *out], "'reject' can't be launched; stages: grpo, ppo"),
        (["--nodes", "2", "--", "grpo"], "--nodes 2 with --on local: this machine is one node"),
        (["--tensor-parallel", "2", "--", "grpo"], "--tensor-parallel, --engine-command and --verbose need --engines"),
        (["--verbose", "--", "grpo"], "--verbose need --engines N"),
        (
            ["--engines", "1", "--on", "slurm", "--gpus-per-node", "0", "--verbose", "--", "grpo"],
            "--verbose shows nothing with --on slurm",
        ),
        (["--engines", "1", "--engine-command", "a 'b", "--", "grpo"], "--engine-command: No closing quotation"),
        (["--engines", "1", "--engine-command", " ", "--", "grpo"], "--engine-command is empty"),
        (["--engines", "1", "--", "reward-model", "--source", str(TESTS), *out], "r1lite reward-model doesn't sample"),
        (["--engines", "1", "--", "grpo", "--engine", "transformers", *out], "--engine transformers has no servers"),
        (["--engines", "1", "--", "grpo", "--engine-url", "http://a:1", *out], "contradict each other"),
        (["--engines", "1", "--", "grpo", "--engine", "sglang-server", *out], "needs --engine-command"),
        (["--engines", "1", "--", "grpo", "--engine", "vlm-server", *out], "--engine vlm-server: unknown; known: auto"),
        (["--engines", "1", "--gpus-per-node", "2", "--", "grpo", *out], "--model is missing"),
        (["--gpus-per-node", "0", "--", "grpo", "--device", "cuda", *out], "--device cuda, but --gpus-per-node is 0"),
        (["--", "grpo", "--group-size", "1", *out], "--group-size must be >= 2"),
    ):
        assert main(["launch", *argv]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_dry_run_shows_layout_memory_and_commands(tiny_path, tmp_path, capsys):
    options = ["--ranks", "2", "--engines", "2", "--tensor-parallel", "2", "--gpus-per-node", "8", "--dry-run"]
    stage = ["grpo", "--model", str(tiny_path), "--out", str(tmp_path / "run"), "--max-completion-tokens", "60"]
    assert main(["launch", *options, "--", *stage, "--max-prompt-tokens", "20", "--lora-rank", "2"]) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.replace("│", " ").split()) for line in shown.splitlines()]
    assert "rank 1 0 1 1" in lines
    assert "engine 1 0 4, 5 1" in lines
    assert "each rank" in lines
    assert "each engine (vllm-server)" in lines
    ranks = next(line for line in lines if line.startswith("each rank /"))
    assert "--device cuda" in ranks
    assert ranks.endswith("--engine vllm-server --engine-url http://127.0.0.1:8100 --engine-url http://127.0.0.1:8101")
    engine = next(line for line in lines if line.startswith("engine 1 /"))
    for flags in ("--port 8101", "--device cuda", "--context 80", "--lora-rank 2", "--tensor-parallel 2"):
        assert flags in engine
    assert lines[-1] == "nothing was started: --dry-run"
    assert not (tmp_path / "run").exists()


def test_engines_are_of_the_kind_that_the_stage_names(tiny_path, tmp_path, capsys):
    stage = ["--", "grpo", "--model", str(tiny_path), "--out", str(tmp_path / "run"), "--max-prompt-tokens", "20"]
    stage += ["--max-completion-tokens", "20"]
    for own, launch, wanted in (
        (["--weight-transport", "gloo"], [], "--context 40 --weight-transport gloo"),
        (["--engine", "vllm-server"], [], "serve-engine --model"),
        (["--engine", "sglang-server"], ["--engine-command", "serve-it {port}"], "serve-it 8100"),
    ):
        options = ["--engines", "1", "--gpus-per-node", "0", "--dry-run", *launch]
        assert main(["launch", *options, *stage, *own]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert wanted in next(line for line in lines if line.startswith("engine 0 "))
        ranks = next(line for line in lines if line.startswith("each rank  /"))
        kind = own[1] if own[0] == "--engine" else "vllm-server"
        assert ranks.endswith(f"--engine {kind} --engine-url http://127.0.0.1:8100")
        # the ranks themselves can read it
        words = ranks.split()[ranks.split().index("grpo") + 1 :]
        assert load(GRPOConfig, words).engine == kind


def test_ranks_that_sample_by_themselves_need_no_engine_named(tiny_path, tmp_path, capsys):
    """What `--engine auto` will be, the ranks settle."""
    stage = ["grpo", "--model", str(tiny_path), "--out", str(tmp_path / "run")]
    for name in (stage[0], "eval"):
        assert main(["launch", "--ranks", "2", "--gpus-per-node", "0", "--dry-run", "--", name, *stage[1:]]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "nothing was started: --dry-run"
    assert main(["launch", "--ranks", "2", "--gpus-per-node", "0", "--", *stage, "--engine", "vllm"]) == 2
    assert "--engine vllm only works with one rank so far" in capsys.readouterr().err


def test_only_stages_that_can_be_resumed_are(tiny_path, tmp_path):
    for stage, resumes in (("grpo", True), ("eval", False)):
        out = tmp_path / stage
        job = read_job(LaunchConfig(), [stage, "--model", str(tiny_path), "--out", str(out)], 0, 1)
        out.mkdir()
        (out / "config.yaml").touch()
        assert job.has_begun() is resumes


# --- a run -----------------------------------------------------------------------------------------------------------


def steps_of(run):
    path = run / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def until_steps(launcher, run, count):
    deadline = time.monotonic() + 300
    while steps_of(run) < count:
        assert launcher.poll() is None, launcher.communicate(1)
        assert time.monotonic() < deadline, [path.read_text() for path in (run / "launch").glob("*.log")]
        time.sleep(0.05)


@pytest.mark.slow
def test_two_ranks_and_two_engines(tiny_path, sums_path, tmp_path, forks):
    """Ctrl-C leaves a checkpoint and no process; the run goes on from it, and an engine that is killed is replaced."""
    run, engines = tmp_path / "run", tmp_path / "engines"
    engines.mkdir()
    options = ["launch", "--ranks", "2", "--engines", "2", "--gpus-per-node", "0"]
    options += ["--engine-command", f"{ENGINE} {shlex.quote(str(engines))}"]
    stage = ["grpo", "--model", tiny_path, "--source", sums_path, *STAGE, "--steps", "900", "--out", run]
    launcher = forks.start([*options, "--", *stage])
    until_steps(launcher, run, 2)
    pids = [child.pid for child in psutil.Process(launcher.pid).children(recursive=True)]
    assert len(pids) >= 8  # two ranks, two engines, and what keeps each
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(120)
    assert launcher.returncode == 130, out + err
    assert f"continue with: r1lite launch ... -- grpo --resume --out {run}" in out
    assert all_gone(pids)
    done = steps_of(run)
    assert (run / "checkpoints" / f"step-{done:06d}").is_dir()
    assert {path.name for path in (run / "launch").iterdir()} == {
        *("rank-0.log", "rank-1.log", "engine-0.log", "engine-1.log")
    }

    for path in engines.iterdir():
        path.unlink()
    resumed = ["grpo", "--resume", "--out", run, "--steps", done + 8]
    launcher = forks.start([*options, "--restarts", "1", "--", *resumed])
    until_steps(launcher, run, done + 1)
    victim, other = sorted(engines.iterdir())
    os.kill(int(victim.read_text()), signal.SIGKILL)
    out, err = launcher.communicate(300)
    assert launcher.returncode == 0, out + err
    assert "was ended by a signal, SIGKILL (exit code 137): it is restarted; 0 restarts are left" in out
    assert json.loads((run / "summary.json").read_text())["steps"] == done + 8
    told = [line for line in out.splitlines() if line.startswith("rank 0 | step")]
    assert told
    assert all_gone([int(path.read_text()) for path in (victim, other)])
    secrets = [path for path in run.rglob("*") if path.is_file() and b"R1LITE_ENGINE_TOKEN" in path.read_bytes()]
    assert not secrets
