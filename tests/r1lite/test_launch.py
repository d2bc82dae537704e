"""`r1lite launch`: ranks and engines are started, watched and ended together, on this machine."""

import contextlib
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

from r1lite.cli import main
from r1lite.config import GRPOConfig, load
from r1lite.config.launch import LaunchConfig
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.launch import starting
from r1lite.launch.commands import rank_environment, read_job
from r1lite.launch.layout import ProcessSpec, lay_out
from r1lite.launch.process import LocalProcess
from r1lite.launch.running import Running
from r1lite.launch.supervise import Supervisor
from r1lite.run.signals import StopSignal

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
        (["--tensor-parallel", "2", "--", "grpo"], "--tensor-parallel and --engine-command need --engines N"),
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


# --- supervision, of small scripts -----------------------------------------------------------------------------------


class Scripts:
    """A launcher whose ranks run scripts of their own, one list of them for each start."""

    def __init__(self, folder, *starts):
        self.folder, self.starts, self.again = folder, list(starts), []
        self.pids = []

    def start_engine(self, spec):
        raise AssertionError(spec)

    def start_ranks(self, urls, *, again):
        self.again.append(again)
        return [self._start(number, script) for number, script in enumerate(self.starts.pop(0))]

    def _start(self, number, script):
        spec = ProcessSpec("rank", number, 0)
        log = self.folder / spec.log
        words = [sys.executable, "-S", "-c", script]
        running = Running.begun(spec, log, lambda: LocalProcess(words, {}, log))
        self.pids.append(running.process._keeper.pid)
        return running


def supervised(launcher, restarts=0):
    said = []
    supervisor = Supervisor(launcher, [], token="", start_s=10, restarts=restarts, say=said.append, verbose=False)
    return supervisor, said


def all_gone(pids, seconds=30):
    """True once none of these processes runs any more."""
    until = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_running(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != "zombie"
    return False


WAITS = "import time; print('working', flush=True); time.sleep(600)"
DIES = "import os, sys; print('a first line'); print('error: too bad', flush=True); os._exit(3)"
SHOT = "import os, signal, time; print('working', flush=True); time.sleep(0.3); os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.quick
def test_a_rank_that_fails_ends_all_with_its_last_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.launch.supervise._RANKS_END_S", 0.5)
    launcher = Scripts(tmp_path, [WAITS, DIES])
    supervisor, said = supervised(launcher)
    with (
        pytest.raises(RunError, match=r"^rank 1 ended with exit code 3, so all processes were stopped") as failed,
        StopSignal() as stop,
    ):
        supervisor.run(stop)
    assert str(failed.value).endswith(f"{tmp_path}/rank-1.log ends:\n  error: too bad")
    assert {"rank 0 | working", "rank 1 | a first line", "rank 1 | error: too bad"} <= set(said)
    assert all_gone(launcher.pids)


@pytest.mark.quick
def test_ranks_are_started_again_as_often_as_was_said(tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.launch.supervise._RANKS_END_S", 0.5)
    launcher = Scripts(tmp_path, [WAITS, SHOT], ["print('done')", "print('done')"])
    supervisor, said = supervised(launcher, restarts=1)
    with StopSignal() as stop:
        supervisor.run(stop)
    assert launcher.again == [False, True]
    assert "rank 1 was ended by a signal, SIGKILL (exit code 137): all ranks are restarted; 0 restarts are left" in said
    assert said[-2:] == ["rank 0 | done", "rank 1 | done"]
    launcher = Scripts(tmp_path, [SHOT], [DIES])
    supervisor, _ = supervised(launcher, restarts=1)
    with pytest.raises(RunError, match="rank 0 ended with exit code 3"), StopSignal() as stop:
        supervisor.run(stop)


@pytest.mark.quick
def test_a_signal_is_passed_to_the_ranks_and_waited_for(tmp_path):
    ends = "import time\ntry: print('working', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: print('saved')"
    launcher = Scripts(tmp_path, [ends, ends])
    supervisor, said = supervised(launcher)

    class Stop:
        """A Ctrl-C as soon as both ranks work."""

        def interruptible(self):
            if sum(line.endswith("working") for line in said) == 2:
                raise Interrupted(signal.SIGINT)
            return StopSignal().interruptible()

    with pytest.raises(Interrupted):
        supervisor.run(Stop())
    assert {"rank 0 | saved", "rank 1 | saved"} <= set(said)
    assert all_gone(launcher.pids)


@pytest.mark.quick
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_every_process_leaves_the_command_its_time(number, tmp_path):
    saves = (
        "import os, re, signal, sys\n"
        "def save(number, frame):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "    sys.exit('saved')\n"
        f"signal.signal({int(number)}, save)\n"
        "def handled():\n"
        "    return int(re.search('SigCgt:(.*)', open(f'/proc/{os.getppid()}/status').read())[1], 16)\n"
        f"while not handled() >> {number - 1} & 1: pass\n"  # its parent process is ready
        "print('working', flush=True)\n"
        "while True: signal.pause()"
    )
    log = tmp_path / "log"
    process = LocalProcess([sys.executable, "-S", "-c", saves], {}, log)
    until = time.monotonic() + 60
    while not log.read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process._keeper.pid, number)
    while process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert log.read_text() == "working\nsaved\n"
    assert process.poll() == 1


@pytest.mark.quick
def test_signals_soon_after_the_first_belong_to_it(monkeypatch):
    """A rank gets the signal of its launcher besides the one that every process of a job gets."""
    exits, clock = [], [100.0]
    monkeypatch.setattr("r1lite.run.signals.os", SimpleNamespace(_exit=exits.append))
    monkeypatch.setattr("r1lite.run.signals.time", SimpleNamespace(monotonic=lambda: clock[0]))
    with StopSignal() as stop:
        for second, ended in ((0.0, []), (1.5, []), (2.5, [130])):
            clock[0] = 100.0 + second
            signal.raise_signal(signal.SIGTERM if not second else signal.SIGINT)
            assert exits == ended
        with pytest.raises(Interrupted) as stopped:
            stop.check()
    assert stopped.value.signum == signal.SIGTERM


@pytest.mark.quick
def test_a_signal_that_is_ignored_stays_ignored():
    """As by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignal() as stop:
            signal.raise_signal(signal.SIGHUP)
            stop.check()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("with_its_children", [False, True])
def test_all_that_a_process_started_dies_with_its_launcher(tmp_path, forks, with_its_children):
    """By kill -9, which Ray sends to the children of its workers too, with a child that takes no notice of signals."""
    child = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    spec = (
        "import os, subprocess, sys, time\n"
        f"other = subprocess.Popen([sys.executable, '-S', '-c', {child!r}])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}\\n')\n"
        "time.sleep(600)"
    )
    code = (
        "import sys, time; from pathlib import Path; from r1lite.launch.process import LocalProcess\n"
        f"process = LocalProcess([sys.executable, '-S', '-c', {spec!r}], {{}}, Path({str(tmp_path / 'log')!r}))\n"
        "time.sleep(600)"
    )
    launcher = forks.start([], code=code)
    pids = tmp_path / "pids"
    until = time.monotonic() + 60
    while not (pids.exists() and pids.read_text().endswith("\n")):
        assert time.monotonic() < until, launcher.communicate(1)
        time.sleep(0.05)
    if with_its_children:
        for child in psutil.Process(launcher.pid).children():
            child.kill()
    launcher.kill()
    assert all_gone([int(pid) for pid in pids.read_text().split()])


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
