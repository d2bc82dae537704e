"""What `r1lite launch` supervises: small scripts that fail, are killed, or get signals."""

import os
import signal
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
from processes_for_tests import all_gone

from r1lite.errors import Interrupted, RunError
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.process import LocalProcess
from r1lite.launch.running import Running
from r1lite.launch.supervise import Supervisor
from r1lite.run.signals import StopSignal


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
