"""Worker processes: same scores, same order, deadlines, and failures that cost one item only."""

import itertools
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest

from verifiers import Completion, Problem, Reward, Verdict, VerifierError, score_many
from verifiers.pool import PLACE, SINCE, Pool

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _import_from_tests(monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS))


def pairs(texts):
    return [(Problem(id=str(i)), Completion(text)) for i, text in enumerate(texts)]


def test_the_same_scores_as_in_one_process_in_order():
    given = [
        (Problem(prompt="?", answer=str(i % 7), meta={"row": i, "set": {1}}), Completion(f"<answer>{i % 5}</answer>"))
        for i in range(700)
    ]
    reward = Reward("math + 0.1*format", options={"format": {"policy": "lenient"}})
    seen = []
    assert score_many(reward, given, workers=2, progress=seen.append) == score_many(reward, given)
    assert seen == list(range(1, 701))


def test_types_of_a_user_s_own_come_back_plain():
    plain = Verdict(0.5, "fine", "some", flags=("a",))
    good, odd, last = score_many(Reward("pool_trouble_for_tests:own_types"), pairs(["x", "odd", "y"]), workers=1)
    for score in (good, last):
        (verdict,) = score.verdicts.values()
        assert (score.reward, verdict, type(verdict.score), type(verdict.reason)) == (0.5, plain, float, str)
    assert (odd.reward, odd.error) == (None, "RuntimeError: no text of it")


def test_a_row_that_is_nested_deeply():
    problem = Problem(answer="1", meta={"deep": json.loads("[" * 800 + "]" * 800)})
    (score,) = score_many(Reward("math"), [(problem, Completion("<answer>1</answer>"))], workers=1)
    assert (score.reward, score.error) == (1.0, "")


def test_numbers_of_numpy_are_no_bytes():
    """As marshal makes them of whatever has a buffer, without an error."""
    (score,) = score_many(Reward("pool_trouble_for_tests:own_types"), pairs(["numpy"]), workers=1)
    assert list(score.verdicts.values()) == [Verdict(0.5, "fine", "some", span=(1, 2))]
    problem = Problem(tests={"a": numpy.array([1, 2])}, meta={"b": numpy.int64(3)})
    completion = Completion("", tuple(numpy.array([4])))
    (score,) = score_many(Reward("pool_trouble_for_tests:sums"), [(problem, completion)], workers=1)
    assert (score.reward, score.error) == (1.0, "")


def test_what_a_verifier_prepares_is_not_counted_against_its_first_completion():
    scores = score_many(Reward("pool_trouble_for_tests:SlowToLoad"), pairs(["x"]), workers=1, timeout_s=1.0)
    assert [score.reward for score in scores] == [1.0], scores[0].error


TROUBLE = {
    "hang": "no verdict within 2 s",
    "spin": "no verdict within 2 s",
    "crash": "exit status 7",
    "close": "closed file descriptors of its process",
    "close and work": "closed file descriptors of its process",
    "swap": "closed file descriptors of its process",
    "abort": "exit status -6",
    "exit": "SystemExit",
    "memory": "MemoryError",
    "nan": "returned nan",
    "two": "returned 2.0",
    "none": "returned NoneType",
    "text": "returned str",
    "raise": "raised KeyError: 'boom' in ",
    "gold": "VerifierError: no gold",
}


def test_trouble_costs_one_unscored_item_each():
    texts = list(itertools.chain.from_iterable((name, "1", "x") for name in TROUBLE))
    with Pool(Reward("pool_trouble_for_tests:trouble"), workers=2, timeout_s=2.0, memory_mib=600) as pool:
        scores = list(pool.map(pairs(texts)))
        for place, name in enumerate(TROUBLE):
            bad, right, wrong = scores[3 * place : 3 * place + 3]
            assert bad.reward is None
            assert TROUBLE[name] in bad.error
            assert "trouble" in bad.error or name == "gold" or name in ("exit", "memory")
            assert (right.reward, wrong.reward) == (1.0, 0.0)
        assert [score.reward for score in pool.map(pairs(["1", "print", "1"]))] == [1.0, 0.0, 1.0]  # and goes on
        (odd,) = pool.map(pairs(["odd"]))
        assert "must be text" in odd.error


def test_a_fork_that_comes_back_from_a_verifier_is_no_second_worker():
    hows = ["returns", "raises", "exits", "hangs", "plain"]
    texts = [f"{how} {number % 3 % 2}" for number, how in enumerate(hows * 12)]
    with Pool(Reward("pool_trouble_for_tests:forks"), workers=1, timeout_s=20) as pool:
        for _ in range(2):
            scores = list(pool.map(pairs(texts)))
            assert [score.reward for score in scores] == [float(text[-1]) for text in texts], scores


def test_a_fork_that_comes_back_from_a_verifier_is_no_second_caller(tmp_path):
    code = (
        "from verifiers import *\nfrom test_pool import pairs\n"
        "texts = [f'{how} 1' for how in ('returns', 'raises', 'exits', 'plain')]\n"
        "print([score.reward for score in score_many(Reward('pool_trouble_for_tests:forks'), pairs(texts), workers=0)])"
    )
    paths = os.pathsep.join([str(TESTS), str(TESTS / "verifiers"), str(TESTS.parent)])
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert (ran.stdout, ran.returncode) == ("[1.0, 1.0, 1.0, 1.0]\n", 0), ran.stderr


def test_what_a_worker_notes_is_never_half_new_and_half_old():
    """An index beside an outdated time would seem late at once: unscored, in one run of some hundreds."""
    old, stop = [], threading.Event()
    with Pool(Reward("format"), workers=1) as pool:
        worker = pool._workers[0]

        sent = [time.monotonic()]

        def watch():
            while not stop.is_set():
                before = sent[0]
                place, since = worker.progress()
                if place >= 0 and since < before:
                    old.append((place, since))

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(500):
            sent[0] = time.monotonic()
            assert [score.error for score in pool.map(pairs(["1"]))] == [""]
        stop.set()
        watcher.join()
        assert pool._workers[0] is worker
    assert not old


def test_a_worker_is_late_only_if_it_is_seen_so_twice():
    with Pool(Reward("format"), workers=1) as pool:
        worker = pool._workers[0]
        list(pool.map(pairs(["1"])))
        now = time.monotonic()
        for since, late in ((now - 40, False), (now, False), (now - 40, False), (now - 40, True)):
            SINCE.pack_into(worker._page, PLACE.size, since)
            PLACE.pack_into(worker._page, 0, 0)
            assert worker.is_late(now, 30, 120) is late


def test_names_registered_here_are_known_there():
    import pool_trouble_for_tests  # noqa: F401  # registers

    (score,) = score_many(Reward("my_parent"), pairs(["1"]), workers=1)
    assert score.versions == {"my_parent": "7"}
    assert score.verdicts["my_parent"].detail != str(os.getpid())


def test_back_pressure_and_an_early_end():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield Problem(), Completion("1")

    with Pool(Reward("pool_trouble_for_tests:trouble"), workers=1) as pool:
        some = list(itertools.islice(pool.map(endless()), 10))
        assert [score.reward for score in some] == [1.0] * 10
        assert taken < 5000
        assert [score.reward for score in pool.map(pairs(["1", "x"]))] == [1.0, 0.0]
    with pytest.raises(ValueError, match="closed"):
        list(pool.map(pairs(["1"])))


def test_a_caller_with_many_open_files(request):
    """select() accepts no descriptor above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1100:
        pytest.skip("this machine allows too few open files")
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1100 if hard == resource.RLIM_INFINITY else hard, hard))
    opened = []
    try:
        while not opened or opened[-1] < 1024:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        scores = score_many(Reward("format"), pairs(["a", "b"]), workers=1)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert [score.reward for score in scores] == [0.0, 0.0], scores[0].error


def test_calls_from_several_threads_share_the_workers(tmp_path):
    path = tmp_path / "go on"
    with Pool(Reward("pool_trouble_for_tests:waits"), workers=2, timeout_s=60.0) as pool:
        held = []
        first = threading.Thread(target=lambda: held.extend(pool.map(pairs([str(path), *"111"]))))
        first.start()
        until = time.monotonic() + 60
        while not path.with_suffix(".begun").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        for _ in range(3):  # each goes on although the first call waits
            assert [score.reward for score in pool.map(pairs("1x1x1x"))] == [1.0, 0.0] * 3
        early = pool.map(pairs("1" * 2000))
        assert next(early).reward == 1.0
        early.close()  # may cost the first call a worker, but none of its scores
        assert not held
        path.touch()
        first.join()
        assert [score.reward for score in held] == [0.0, 1.0, 1.0, 1.0]


def test_an_item_that_waits_holds_up_no_other(tmp_path):
    path = tmp_path / "go on"
    texts = [*["30 ms"] * 4, str(path), *["30 ms"] * 6, f"end {path}", "1"]
    with Pool(Reward("pool_trouble_for_tests:waits"), workers=2, timeout_s=60.0) as pool:
        scores = [(score.reward, score.error) for score in pool.map(pairs(texts))]
    assert scores == [(0.0, "")] * 12 + [(1.0, "")]


def test_no_process_is_left_behind():
    with Pool(Reward("pool_trouble_for_tests:parent"), workers=2) as pool:
        (score,) = pool.map(pairs(["1"]))
        pid = int(score.verdicts["pool_trouble_for_tests:parent"].detail)
        assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_a_killed_caller_takes_a_hung_worker_along(tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from verifiers import *\nfrom verifiers.pool import Pool\n"
        "pool = Pool(Reward('pool_trouble_for_tests:trouble'), workers=1)\n"
        "list(pool.map([(Problem(), Completion('1'))]))\n"
        "print(pool._workers[0]._process.pid, flush=True)\n"
        "list(pool.map([(Problem(), Completion('spin'))]))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=TESTS.parent, text=True)
    with caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        time.sleep(0.3)
        caller.kill()
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.05)
    pytest.fail(f"worker {pid} lives on")


def test_a_worker_whose_caller_is_gone_ends_without_a_word(capfd):
    pool = Pool(Reward("pool_trouble_for_tests:trouble"), workers=1)
    try:
        assert len(list(pool.map([(Problem(), Completion("1"))]))) == 1
        worker = pool._workers[0]
        worker._process.stdout.close()
        worker.give(None, [(0, Problem(), Completion("1"))])
        assert not worker.unsent
        assert worker._process.wait(60) == 0
        assert capfd.readouterr().err == ""
    finally:
        pool.close()


def test_rewards_that_cannot_be_sent_or_set_up():
    with pytest.raises(ValueError, match="name its verifiers as"):
        Pool(Reward("f", verifiers={"f": lambda p, c: 1.0}))
    with pytest.raises(ValueError, match="workers must be >= 1"):
        Pool(Reward("math"), workers=0)


def test_a_module_that_ends_the_process_on_import(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text(
        f"import os\nif os.getpid() != {os.getpid()}: os._exit(3)\ndef f(p, c): return 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with Pool(Reward("deadly:f"), workers=1) as pool, pytest.raises(VerifierError, match="exit status 3"):
        list(pool.map(pairs(["1"])))


def test_a_set_up_that_fails_in_the_worker_only(tmp_path, monkeypatch):
    (tmp_path / "shy.py").write_text(f"import os\nif os.getpid() != {os.getpid()}: 1 / 0\ndef f(p, c): return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Pool(Reward("shy:f"), workers=1) as pool, pytest.raises(ValueError, match="ZeroDivisionError"):
        list(pool.map(pairs(["1"])))
