"""`r1lite launch --on slurm`: a batch script, whose body is run with stand-ins for Slurm's commands."""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time

import pytest
import slurm_for_tests
from test_launch import ENGINE, STAGE, steps_of

from r1lite.cli import main

NODES = ["--on", "slurm", "--nodes", "2"]


def checked(path):
    subprocess.run(["bash", "-n", str(path)], check=True)
    return path.read_text()


def test_the_script(tiny_path, tmp_path, capsys, monkeypatch):
    run = tmp_path / 'a "run" of 100% #1'
    options = [
        *NODES,
        "--gpus-per-node",
        "8",
        "--ranks",
        "8",
        "--engines",
        "4",
        "--tensor-parallel",
        "2",
        "--cpus",
        "4",
    ]
    stage = ["grpo", "--model", str(tiny_path), "--max-prompt-tokens", "40", "--max-completion-tokens", "30"]
    argv = ["launch", *options, "--restarts", "2", "--", *stage, "--template", "$(boom) {question}", "--out", str(run)]
    assert main(argv) == 0
    path = run / "launch" / "job.sbatch"
    assert f"submit it with: sbatch {shlex.quote(str(path))}" in capsys.readouterr().out
    text = checked(path)
    assert f"\ncd {shlex.quote(os.getcwd())} || exit 1" in text  # wherever it is submitted from
    lines = [line.strip() for line in text.splitlines()]
    assert len(lines) < 70
    for wanted in (
        "#SBATCH --nodes=2",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --cpus-per-task=32",
        rf'#SBATCH --output="{tmp_path}/a \"run\" of 100%% \#1/launch/job-%j.log"',
        "engine 0 1 0,1 & engines+=($!)",
        "engine 3 1 6,7 & engines+=($!)",
        '[ "${SLURM_RESTART_COUNT:-0}" -ge 2 ] && stopped=yes',
    ):
        assert wanted in lines
    assert "'$(boom) {question}'" in text
    assert '--engine-url "http://${nodes[1]}:$((port + 3))"' in text
    assert f"--engine-weights-dir {shlex.quote(str(run / 'launch' / 'weights'))}" in text
    token = run / "launch" / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(token.read_text()) > 40
    assert token.read_text() not in text
    before = token.read_text()
    assert main([*argv, "--seed", "1"]) == 0  # nothing has begun there
    assert token.read_text() != before

    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["launch", "--submit", *argv[1:]]) == 2
    assert "--submit: sbatch not found" in capsys.readouterr().err
    for name, value in slurm_for_tests.install(tmp_path / "bin").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert main(["launch", "--submit", *argv[1:]]) == 0
    assert "submitted job 7" in capsys.readouterr().out
    assert (tmp_path / "bin" / "calls").read_text() == f"sbatch --parsable {path}\n"


def test_a_script_of_one_rank_alone(tiny_path, tmp_path, capsys):
    options = ["--on", "slurm", "--gpus-per-node", "1", "--ranks", "1"]
    assert main(["launch", *options, "--", "sft", "--data", str(tmp_path), "--out", str(tmp_path / "run")]) == 0
    text = checked(tmp_path / "run" / "launch" / "job.sbatch")
    assert "R1LITE_ENGINE_TOKEN" not in text
    assert "requeue" not in text
    assert "again=(--resume)" in text
    stage = ["eval", "--model", str(tiny_path), "--out", str(tmp_path / "eval")]
    assert main(["launch", *options, "--", *stage]) == 0
    assert "--resume" not in checked(tmp_path / "eval" / "launch" / "job.sbatch")
    assert main(["launch", "--on", "slurm", "--", "sft"]) == 2
    assert "--on slurm needs --gpus-per-node" in capsys.readouterr().err


def test_an_engine_that_ends_ends_the_job_which_is_queued_again(tiny_path, tmp_path):
    run, folder = tmp_path / "run", tmp_path / "bin"
    environment = {**os.environ, **slurm_for_tests.install(folder)}
    options = ["--on", "slurm", "--gpus-per-node", "0", "--engines", "1", "--restarts", "1", "--cpus", "1"]
    stage = ["grpo", "--model", str(tiny_path), "--max-completion-tokens", "60", "--out", str(run)]
    assert main(["launch", *options, "--engine-command", "bash -c 'sleep 1; exit 3' {port}", "--", *stage]) == 0
    ranks = tmp_path / "ranks"
    ranks.write_text("trap 'echo saved; exit 143' TERM; sleep 600 & wait")
    script = run / "launch" / "job.sbatch"
    text = script.read_text()
    command = f"{sys.executable} -m r1lite grpo"
    assert text.count(command) == 1
    script.write_text(text.replace(command, f"bash {ranks}"))
    for count, asked in (("0", ["scontrol requeue 7"]), ("1", [])):
        (folder / "calls").unlink(missing_ok=True)
        variables = {**environment, "SLURM_RESTART_COUNT": count}
        done = subprocess.run(["bash", str(script)], env=variables, stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 1
        assert f"error: an engine ended; see {run}/launch/engine-*.log" in done.stderr
        assert (run / "launch" / "rank-0.log").read_text().endswith("saved\n")
        calls = (folder / "calls").read_text().splitlines()
        assert [call for call in calls if "requeue" in call] == asked


@pytest.mark.parametrize(("listed", "wanted"), [(None, "0,1"), ("4,GPU-b,6", "4,GPU-b"), ("4", None)])
def test_ranks_get_gpus_of_those_that_slurm_gave(listed, wanted, tmp_path):
    run, folder = tmp_path / "100%t run", tmp_path / "bin"
    environment = {**os.environ, **slurm_for_tests.install(folder)}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if listed:
        environment["CUDA_VISIBLE_DEVICES"] = listed
    options = ["--on", "slurm", "--gpus-per-node", "2", "--ranks", "2", "--cpus", "1"]
    assert main(["launch", *options, "--", "sft", "--data", str(tmp_path), "--out", str(run)]) == 0
    script = run / "launch" / "job.sbatch"
    seen = tmp_path / "seen"
    seen.write_text('echo "sees $CUDA_VISIBLE_DEVICES"')
    script.write_text(checked(script).replace(f"{sys.executable} -m r1lite sft", f"bash {seen}"))
    done = subprocess.run(["bash", str(script)], env=environment, timeout=120)
    for rank in range(2):
        said = (run / "launch" / f"rank-{rank}.log").read_text()
        assert said == f"sees {wanted}\n" if wanted else said.endswith("Slurm gave only 4\n")
    assert (done.returncode == 0) == (wanted is not None)


def test_consecutive_jobs_have_ports_of_their_own(tiny_path, tmp_path):
    options = ["--on", "slurm", "--gpus-per-node", "0", "--engines", "3", "--cpus", "1"]
    stage = ["grpo", "--model", str(tiny_path), "--max-completion-tokens", "60", "--out", str(tmp_path / "run")]
    assert main(["launch", *options, "--engine-command", "serve {port}", "--", *stage]) == 0
    (line,) = [x for x in checked(tmp_path / "run" / "launch" / "job.sbatch").splitlines() if x.startswith("port=")]
    asked = f"for SLURM_JOB_ID in {{3330..3340}}; do {line}\n echo $port; done"
    first = [int(port) for port in subprocess.check_output(["bash", "-c", asked]).split()]
    used = {port + number for port in first for number in range(3)}
    assert len(used) == 3 * len(first)
    assert min(used) >= 10000
    assert max(used) < 20000


@pytest.mark.slow
def test_the_script_runs(tiny_path, sums_path, tmp_path, forks):
    """Two ranks and two engines on two nodes, which are this machine; stopped, and submitted again."""
    run, folder = tmp_path / "run", tmp_path / "bin"
    environment = {**os.environ, **slurm_for_tests.install(folder), **forks.environment}
    options = [
        *NODES,
        "--gpus-per-node",
        "0",
        "--ranks",
        "2",
        "--engines",
        "2",
        "--cpus",
        "1",
        "--engine-command",
        ENGINE.format(host="127.0.0.1", port="{port}"),
    ]
    stage = ["grpo", "--model", str(tiny_path), "--source", str(sums_path), *STAGE, "--steps", "30", "--out", str(run)]
    assert main(["launch", *options, "--", *stage]) == 0
    script = run / "launch" / "job.sbatch"

    def submitted():
        return subprocess.Popen(["bash", str(script)], env=environment, stderr=subprocess.PIPE, text=True)

    def log():
        return (run / "launch" / "rank-0.log").read_text() + (run / "launch" / "rank-1.log").read_text()

    job = submitted()
    deadline = time.monotonic() + 300
    while steps_of(run) < 2:
        assert job.poll() is None, log() + job.communicate()[1]
        assert time.monotonic() < deadline, log()
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=120)
    assert job.returncode == 1, err
    done = steps_of(run)
    assert (run / "checkpoints" / f"step-{done:06d}").is_dir(), log() + err
    assert done < 30

    job = submitted()
    _, err = job.communicate(timeout=300)
    assert job.returncode == 0, log() + err
    assert json.loads((run / "summary.json").read_text())["steps"] == 30
    assert steps_of(run) == 30
    calls = (folder / "calls").read_text().splitlines()
    assert sum(call.startswith("srun") for call in calls) == 6
    assert sum("--resume" in call for call in calls) == 1
    assert "scancel --signal=TERM 7.ranks" in calls
