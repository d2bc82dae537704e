"""Third-party scorers inside the sandbox: what they score, what an answer can't do, what is to blame for failures."""

import errno
import functools
import importlib.util
import json
import subprocess
import textwrap
import threading

import pytest

from verifiers import Completion, GoldError, Problem, Reward, Verdict, VerifierError, resolve
from verifiers.sandbox import packages, probe
from verifiers.sandbox.threads import verdicts

GYM = pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
SCORERS = """
import json
import os
from pathlib import Path

from sandboxed_helper import same
from verifiers import Completion, GoldError, Problem, Verdict


def same_text(answer, gold):
    return same(answer, gold)

def by_entry(answer, entry):
    return entry["scores"].get(answer, 0)

def whole(problem, completion):
    return Verdict(0.5, "half", completion.text, problem.answer, flags=("seen",))

class Longer:
    def __init__(self, *, least):
        self.least = least

    def __call__(self, problem, completion):
        return len(completion.text) >= self.least

def evaluating(answer, gold):
    return float(eval(answer) == eval(gold))

def strict(answer, gold):
    return float(int(answer) == int(gold))

def returns(answer, gold):
    return json.loads(answer)

def broken(answer, gold):
    raise RuntimeError("no model to judge with")

def hanging(answer, gold):
    while answer == "hang":
        pass
    if answer == "die":
        os._exit(3)
    if answer == "fill":
        return len(bytearray(1 << 40))
    return 1.0

def reads(answer, gold):
    return float(Path(gold).exists())

def no_gold(problem, completion):
    raise GoldError("row 7 has no gold")

NOT_A_FUNCTION = 3
"""


@pytest.fixture(scope="module")
def scorers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorers")
    (folder / "sandboxed_scorers.py").write_text(SCORERS)
    (folder / "sandboxed_helper.py").write_text("def same(a, b):\n    return a == b\n")
    (folder / "secret.txt").write_text("secret")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


def fresh(attribute, **options):
    return resolve(f"sandboxed:sandboxed_scorers:{attribute}", **options)


@functools.cache
def made(attribute):
    """Shared by these tests, because its servers take a second to start."""
    return fresh(attribute)


@pytest.fixture(scope="module")
def evaluating(scorers):
    return made("evaluating")


def verdict(verify, answer, gold="4", **meta):
    return verify(Problem("2+2?", gold, meta=meta), Completion(f"<think>t</think><answer>{answer}</answer>"))


@pytest.mark.slow
def test_what_a_scorer_may_be(scorers):
    assert [verdict(made("same_text"), answer).score for answer in ("4", "5")] == [1.0, 0.0]
    assert verdict(made("by_entry"), "b", entry={"scores": {"b": 0.25}}).score == 0.25
    assert verdict(made("by_entry"), "b", scores={"b": 0.5}).score == 0.5
    found = verdict(made("whole"), "4")
    assert (found.score, found.reason, found.answer, found.flags) == (0.5, "half", "4", ("seen",))
    assert [verdict(fresh("Longer", least=least), "4").score for least in (10, 1000)] == [1.0, 0.0]
    assert Reward("sandboxed:sandboxed_scorers:same_text + 0.5*format").range == (0, 1.5)


def test_it_is_not_imported_here(scorers):
    import sys

    verdict(made("same_text"), "4")
    assert "sandboxed_scorers" not in sys.modules


CODE = (
    "__import__('os').system('touch {marker}')",
    "[x for x in ().__class__.__base__.__subclasses__()]",
    "open('{marker}', 'w').write('x') and 4",
    "(lambda: 4)()",
    "exec('import os') or 4",
    "getattr(4, 'real')",
    "globals() and 4",
    "(same := 4)",
    "4 if breakpoint() else 4",
    "eval('4')",
    "__builtins__ and 4",
    "type('X', (), {{}}) and 4",
)


@pytest.mark.parametrize("form", CODE)
def test_code_in_an_answer_scores_0_and_runs_nowhere(evaluating, tmp_path, form):
    marker = tmp_path / "marker"
    found = verdict(evaluating, form.format(marker=marker))
    assert (found.score, found.reason) == (0.0, "code")
    assert not marker.exists()


def test_an_expression_is_no_code(evaluating):
    for answer, score in {"2 + 2": 1.0, "abs(-4)": 1.0, "[4][0]": 1.0, "sum([1, 3])": 1.0, "5": 0.0}.items():
        assert verdict(evaluating, answer).score == score


@pytest.mark.slow
def test_a_scorer_that_may_evaluate_reaches_nothing_either(scorers, tmp_path):
    verify, marker = fresh("evaluating", sandbox={"evaluates": True}), tmp_path / "marker"
    assert verdict(verify, "(lambda: 4)()").score == 1.0
    assert verdict(verify, f"__import__('os').system('touch {marker}') or 4").score in (0.0, 1.0)
    assert not marker.exists()
    assert verdict(made("reads"), "x", str(scorers / "secret.txt")).score == 0.0
    assert verdict(made("reads"), "x", "/etc/shadow").score == 0.0


@pytest.mark.slow
def test_whose_fault_trouble_is(scorers):
    """The answer is to blame if the problem's own answer works; otherwise nothing is known about the answer."""
    assert verdict(made("strict"), "four").reason == "raised"
    quick = fresh("hanging", sandbox={"time_s": 0.3, "memory_mib": 512})
    assert [verdict(quick, answer).reason for answer in ("hang", "die", "fill", "4")] == [
        "timeout",
        "crashed",
        "raised",  # a MemoryError, by the limit on addresses
        "ok",
    ]
    for attribute, gold in (("broken", "4"), ("strict", "four")):
        with pytest.raises(VerifierError, match="fails on the problem's own answer too"):
            verdict(made(attribute), "x", gold)
    with pytest.raises(GoldError, match="row 7"):
        verdict(made("no_gold"), "4")


def test_a_score_that_is_none_leaves_the_completion_unscored(scorers):
    verify = made("returns")
    for answer in ("NaN", "Infinity", "1.5", "-1", "1e999"):
        with pytest.raises(VerifierError, match="a score is a number in"):
            verdict(verify, answer, "1")


def test_what_can_not_start(scorers, monkeypatch):
    with pytest.raises(ValueError, match="'no_such_module' is not installed"):
        resolve("sandboxed:no_such_module:f")
    with pytest.raises(ValueError, match="must be 'sandboxed:module:attr'"):
        resolve("sandboxed:json")
    with pytest.raises(ValueError, match="sandbox has no option 'level'"):
        fresh("strict", sandbox={"level": "none"})
    for attribute in ("nothing_so_called", "NOT_A_FUNCTION"):
        with pytest.raises(VerifierError, match="did not start"):
            verdict(fresh(attribute), "4")
    monkeypatch.setattr(probe, "_trouble", lambda level: "not on this machine")
    with pytest.raises(VerifierError, match="isolation='rlimit-only'"):
        verdict(fresh("same_text"), "4")


def test_what_the_host_lacks_leaves_the_completion_unscored(scorers, monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    verify = fresh("same_text")
    pairs = [(Problem("2+2?", "4"), Completion(f"<answer>{answer}</answer>")) for answer in ("4", "5", "4")]
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        for unscored in verify.verify_many(pairs):
            assert isinstance(unscored, VerifierError)
            assert "Resource temporarily unavailable" in str(unscored)
        with pytest.raises(VerifierError, match="the check could not be made"):
            verify(*pairs[0])
    assert [found.score for found in verify.verify_many(pairs)] == [1, 0, 1]


@pytest.mark.parametrize("had", [0, 1, 9])
def test_fewer_threads_than_wanted_will_do(had, monkeypatch):
    """... and a failure of one item, of any kind, affects only that item."""
    started, start = [], threading.Thread.start

    def few(thread):
        if len(started) >= had:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def verify(problem, completion):
        if problem.prompt == "raises":
            raise {"OSError": OSError, "GoldError": GoldError, "RuntimeError": RuntimeError}[completion.text]("why")
        return Verdict(1.0, completion.text)

    monkeypatch.setattr(threading.Thread, "start", few)
    given = [
        ("", "a"),
        ("raises", "OSError"),
        ("", "b"),
        ("raises", "GoldError"),
        ("raises", "RuntimeError"),
        ("", "c"),
    ]
    found = verdicts(verify, [(Problem(prompt), Completion(text)) for prompt, text in given], 4)
    assert [item.reason if isinstance(item, Verdict) else type(item) for item in found] == [
        "a", OSError, "b", GoldError, RuntimeError, "c",
    ]  # fmt: skip
    assert len(started) == min(had, 3)
    assert verdicts(verify, [], 4) == []


def test_what_a_module_needs(scorers, tmp_path, monkeypatch):
    assert set(packages.needed_by("sandboxed_scorers")) >= {"sandboxed_scorers.py", "sandboxed_helper.py"}
    assert not any("secret" in path for path in packages.needed_by("sandboxed_scorers").values())
    before = packages.fingerprint("sandboxed_helper")
    (tmp_path / "sandboxed_changing.py").write_text("x = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = packages.fingerprint("sandboxed_changing")
    (tmp_path / "sandboxed_changing.py").write_text("x = 2")
    assert first != packages.fingerprint("sandboxed_changing")
    assert before == packages.fingerprint("sandboxed_helper")


def test_it_works_in_worker_processes_and_on_the_command_line(scorers, tmp_path, capsys):
    from verifiers import score_many
    from verifiers.__main__ import main

    pairs = [(Problem("2+2?", "4"), Completion(f"<answer>{i}</answer>")) for i in (4, 5)]
    found = score_many(Reward("sandboxed:sandboxed_scorers:same_text"), pairs, workers=1)
    assert [score.reward for score in found] == [1.0, 0.0]
    rows = [json.dumps({"question": "2+2?", "answer": "4", "completion": f"<answer>{i}</answer>"}) for i in (4, 5)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    out = tmp_path / "scored.jsonl"
    reward = "sandboxed:sandboxed_scorers:same_text"
    assert main(["score", str(tmp_path / "rows.jsonl"), "--reward", reward, "--out", str(out)]) == 0
    assert [json.loads(line)["reward"] for line in out.read_text().splitlines()] == [1.0, 0.0]
    capsys.readouterr()


@GYM
@pytest.mark.filterwarnings("ignore")
def test_code_in_an_answer_to_reasoning_gym(tmp_path):
    """Their scorers evaluate the answer; countdown and puzzle24, whose scorers do too, are judged by ours."""
    from verifiers.adapters.reasoning_gym import problems

    verify, marker = resolve("reasoning_gym", servers=1), tmp_path / "marker"
    for name in ("polynomial_multiplication", "string_insertion"):
        (problem,) = problems(name, seed=3, size=1)
        assert verdict(verify, problem.answer, **problem.meta).score == 1.0, name
        assert verdict(verify, f"__import__('os').system('touch {marker}')", **problem.meta).reason == "code", name
        assert not marker.exists(), name
    verify.close()


@GYM
@pytest.mark.parametrize("name", ["countdown", "puzzle24"])
def test_our_own_verifier_judges(name):
    from verifiers.adapters.reasoning_gym import problems

    verify = resolve("reasoning_gym")
    (problem,) = problems(name, seed=3, size=1)
    assert verdict(verify, problem.answer, **problem.meta).reason == "right"
    for wrong in ("24", f"{problem.answer} + 0", "__import__('os').getpid()", "9**9**9"):
        assert verdict(verify, wrong, **problem.meta).score == 0.0
    with pytest.raises(GoldError):
        verdict(verify, "1", reasoning_gym=name, entry={"answer": "1"})


def test_the_page_names_the_signatures():
    from verifiers.sandboxed import Sandboxed

    text = textwrap.dedent(Sandboxed.__doc__)
    assert all(form in text for form in ("f(problem, completion)", "f(answer, gold)", "f(answer, entry)"))
