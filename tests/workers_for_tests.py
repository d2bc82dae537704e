"""`pytest -n N`: N forks of the process that has collected run the tests, whole files at a time.

To collect is to import torch and to rewrite the asserts of all files: half a minute, which pytest-xdist spends anew in
each of its workers. Files with slow tests come first, so that none of them is left over at the end.

conftest.py imports the hooks.
"""

import contextlib
import gc
import multiprocessing.connection
import os
import signal
import sys
import traceback
import warnings

import pytest
from _pytest.config import create_terminal_writer

PATIENCE_S = 60  # for the teardowns of a worker that is interrupted


def pytest_addoption(parser):
    parser.getgroup("workers")._addoption(
        "-n", dest="workers", type=int, default=0, metavar="N", help="run the tests in N forks; 0: in this process"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Without collections of garbage: nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    files = by_file(session.items)
    count = min(session.config.option.workers, len(files))
    if count < 2 or session.config.option.collectonly or session.config.option.usepdb or session.testsfailed:
        return None
    session.config.pluginmanager.getplugin("terminalreporter").showfspath = False  # files run side by side
    session.config._tmp_path_factory.getbasetemp()  # made once, with a folder in it for each worker
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of it
    distribute(session, files, count)
    return True


def by_file(items):
    """The places of the tests of each file: first of files with slow tests, last of those whose tests are all quick."""
    files = {}
    for place, item in enumerate(items):
        files.setdefault(item.path, []).append(place)

    def weight(path):
        words = [items[place].keywords for place in files[path]]
        return sum("slow" in one for one in words), sum("quick" not in one for one in words)

    return [files[path] for path in sorted(files, key=weight, reverse=True)]


def distribute(session, files, count):
    """Gives a file to each worker that has none, until there are no more, and makes their reports this session's."""
    files, workers = files[::-1], []

    def begin():
        workers.append(Worker(session, workers))
        workers[-1].give(files.pop() if files else [])

    try:
        for _ in range(count):
            begin()
        while workers:
            ready = multiprocessing.connection.wait([end for worker in workers for end in (worker.pipe, worker.ended)])
            for worker in [worker for worker in workers if {worker.pipe, worker.ended} & set(ready)]:
                reports = worker.reports()
                if reports is not None:
                    report(session, session.items[worker.todo.pop(0)], reports)
                    if not worker.todo:
                        worker.give(files.pop() if files else [])
                    continue
                workers.remove(worker)
                code = worker.exit_code()
                if worker.todo:
                    crashed(session, session.items[worker.todo[0]], code)
                    files.append(worker.todo[1:])
                    begin()
                elif code:
                    raise session.Failed(f"a worker ended with {code} after its last test")
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        for worker in workers:
            worker.interrupt()


def report(session, item, reports):
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for data in reports:
        found = hook.pytest_report_from_serializable(config=session.config, data=data)
        hook.pytest_runtest_logreport(report=found)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def crashed(session, item, code):
    said = f"the worker ended with {code} in this test"
    made = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
    session.config.hook.pytest_runtest_logreport(report=made)


class Worker:
    """A fork. It is given lists of tests, by their places among all, and sends the reports of each."""

    def __init__(self, session, others):
        self.todo = []
        self.pipe, theirs = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: libraries' own, which wait for work
            self.pid = os.fork()
        if not self.pid:
            for pipe in (self.pipe, *(other.pipe for other in others)):
                pipe.close()
            become_worker(session, theirs)
        theirs.close()
        self.ended = os.pidfd_open(self.pid)

    def give(self, places):
        self.todo = list(places)
        with contextlib.suppress(BrokenPipeError):  # it has crashed, which its end of the pipe tells
            self.pipe.send(self.todo)

    def reports(self):
        """Of its present test; None if it has ended."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            return self.pipe.recv() if self.pipe.poll() else None

    def exit_code(self):
        """Waits for its end."""
        self.pipe.close()
        os.close(self.ended)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def interrupt(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            os.kill(self.pid, number)
            if multiprocessing.connection.wait([self.ended], PATIENCE_S):
                break
        self.exit_code()


def become_worker(session, pipe):
    """In the fork: runs what it is given, to its end."""
    code = 1
    try:
        sent = stand_apart(session.config)
        try:
            while places := pipe.recv():
                for place, following in zip(places, [*places[1:], None], strict=True):
                    item = session.items[place]
                    # After the last one of a file all is torn down but the session's: the next file may be any.
                    after = session if following is None else session.items[following]
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    pipe.send(sent.taken())
        except (KeyboardInterrupt, EOFError, BrokenPipeError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # nobody waits for more, and all is put away
        session._setupstate.teardown_exact(None)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def stand_apart(config):
    """What a worker has for itself: captured output, temporary folders, reports."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = config._tmp_path_factory
    folders._basetemp = folders.getbasetemp() / f"worker-{os.getpid()}"
    folders._basetemp.mkdir(mode=0o700)
    config.pluginmanager.unregister(name="terminalreporter")
    reports = Reports(config)
    config.pluginmanager.register(reports, "terminalreporter")
    return reports


class Reports:
    """In the place of what tells the terminal."""

    def __init__(self, config):
        self._config, self._kept = config, []
        self._tw = create_terminal_writer(config, open(os.devnull, "w"))  # noqa: SIM115  asserts are formatted with it

    def pytest_runtest_logreport(self, report):
        hook = self._config.hook
        self._kept.append(hook.pytest_report_to_serializable(config=self._config, report=report))

    def taken(self):
        kept, self._kept = self._kept, []
        return kept
