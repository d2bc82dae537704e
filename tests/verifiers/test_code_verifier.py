"""The code verifier's verdicts: every style, every reason, bad input."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from verifiers import Completion, GoldError, Problem, Reward, Verdict, VerifierError, resolve
from verifiers.sandbox import CodeVerifier, from_code_contests, from_humaneval, from_mbpp, probe
from verifiers.sandbox.submission import NoSubmissionError, _dedented, extract

pytestmark = pytest.mark.quick

ADD = {"style": "function", "entry_point": "add", "args": [[1, 2], [3, 4]], "outs": [3, 7]}
ASSERTS = {"style": "asserts", "entry_point": "f", "tests": ["x = 1\nassert f(x) == 2", "assert f(5) == 6"]}
LITERALS = {"style": "asserts", "entry_point": "f", "tests": ["assert f(1) == 2", "assert f(5) == 6"]}
STDIN = {"style": "stdin", "inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}


@pytest.fixture(scope="module")
def verifier() -> Iterator[CodeVerifier]:
    if probe.report().best is None:
        pytest.skip(f"nothing here isolates code: {probe.report().missing}")
    with CodeVerifier(time_s=1, wall_s=2, memory_mib=256, output_mib=1) as found:
        yield found


def judged(verifier: CodeVerifier, tests: Any, code: str) -> Verdict:
    return verifier(Problem(tests=tests), Completion(code))


@pytest.mark.parametrize(
    ("tests", "code", "score", "reason"),
    [
        (ADD, "def add(a, b): return a + b", 1.0, "AC"),
        (ADD, "def add(a, b): return a - b", 0.0, "WA"),
        (ADD, "def add(a, b): return 3", 0.0, "WA"),
        (ADD, "def add(a, b): return float(a + b)", 1.0, "AC"),
        (ADD, "def add(a, b): return str(a + b)", 0.0, "WA"),
        (ADD, "def add(a, b): return (i for i in [a + b])", 0.0, "WA"),
        (ADD, "class P:\n  pass\ndef add(a, b): return {P()}", 0.0, "WA"),
        (ADD, "class P:\n  pass\ndef add(a, b): return [a + b, {'x': P()}]", 0.0, "WA"),
        (ADD, "def add(a, b): raise ValueError('no')", 0.0, "RTE"),
        (ADD, "def add(a): return a", 0.0, "RTE"),
        (ADD, "def other(a, b): return a + b", 0.0, "RTE"),
        (ADD, "def add(a, b) return", 0.0, "CE"),
        (ADD, "import os\nos._exit(0)", 0.0, "EXIT"),
        (ADD, "def add(a, b): exit()", 0.0, "EXIT"),
        (ADD, "def add(a, b):\n  while True: pass", 0.0, "TLE"),
        (ADD, "import time\ntime.sleep(100)", 0.0, "TLE"),
        (ADD, "def add(a, b): return [0] * 10 ** 9", 0.0, "MLE"),
        (ADD, "def add(a, b): return 'x' * 3_000_000", 0.0, "OLE"),
        (ADD, "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)", 0.0, "SV"),
        (ADD, "import os, signal\nimport ctypes\nctypes.string_at(0)", 0.0, "RTE"),
        (ASSERTS, "def f(x): return x + 1", 1.0, "AC"),
        (ASSERTS, "def f(x): return 2", 0.0, "WA"),
        (ASSERTS, "def f(x): return undefined", 0.0, "RTE"),
        (ASSERTS, "def f(x): raise SystemExit", 0.0, "EXIT"),
        (ASSERTS, "def f(x", 0.0, "CE"),
        (ASSERTS, "def f(x):\n  while True: pass", 0.0, "TLE"),
        (LITERALS, "def f(x): return x + 1", 1.0, "AC"),
        (LITERALS, "def f(x): return 2", 0.0, "WA"),
        (LITERALS, "def f(x): return undefined", 0.0, "RTE"),
        (LITERALS, "def f(x): raise SystemExit", 0.0, "EXIT"),
        (LITERALS, "def f(x", 0.0, "CE"),
        (LITERALS, "def f(x):\n  while True: pass", 0.0, "TLE"),
        (STDIN, "print(sum(map(int, input().split())))", 1.0, "AC"),
        (STDIN, "print(3)", 0.0, "WA"),
        (STDIN, "raise SystemExit(3)", 0.0, "RTE"),
        (STDIN, "print(", 0.0, "CE"),
        (STDIN, "while True: print('x' * 1000)", 0.0, "OLE"),
        (STDIN, "x = [0] * 10 ** 9", 0.0, "MLE"),
        (STDIN, "open('f', 'wb').write(b'x' * (40 << 20))", 0.0, "RTE"),
        ({**STDIN, "checker": "exact"}, "print(' ', sum(map(int, input().split())))", 0.0, "PE"),
    ],
)
def test_reasons(verifier: CodeVerifier, tests: Any, code: str, score: float, reason: str) -> None:
    verdict = judged(verifier, tests, code)
    assert (verdict.score, verdict.reason) == (score, reason), verdict.detail
    if reason != "CE":
        assert f"level {verifier.level}" in verdict.detail


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("```python\ndef add(a, b):\n    return a + b\n```", 1.0),
        ("<think>```python\ndef add(a, b): return a + b\n```</think>I give up.", 0.0),
        (
            "<think>add</think>\n```py\ndef add(a, b): return a + b\n```\nUse it:\n```python\nprint(add(1, 2))\n```",
            1.0,
        ),
        ("```python\ndef add(a, b): return 0\n```\nBetter:\n```python\ndef add(a, b): return a + b\n```", 1.0),
        ("```python\ndef add(a, b): return a + b\n```\nNo:\n```python\ndef add(a, b): return 0\n```", 0.0),
        ("```text\nhello\n```\n```\ndef add(a, b): return a + b\n```", 1.0),
        ("<answer>\ndef add(a, b): return a + b\n</answer>", 1.0),
        ("- so:\n  ```python\n  def add(a, b):\n      return a + b\n  ```", 1.0),
        ("<think>still thinking ```python\ndef add(a, b): return a + b\n```", 0.0),
        ('```python\ndef add(a, b):\n    """\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n```', 1.0),
        ("1. so:\n\n    ```python\n    def add(a, b):\n        return a + b\n    ```\n", 1.0),
        ("~~~python\ndef add(a, b): return a + b\n~~~", 1.0),
        ("\ufeffdef add(a, b): return a + b", 1.0),
        ("```python:add.py\ndef add(a, b): return a + b\n```", 1.0),
        ("```{.python}\ndef add(a, b): return a + b\n```", 1.0),
        ("```python,linenos\ndef add(a, b): return a + b\n```", 1.0),
        ("```cpp:add.cc\nint add;\n```\n```python3.11\ndef add(a, b): return a + b\n```", 1.0),
        ("With `+`:```python\ndef add(a, b): return a + b\n```", 1.0),
        ("So it stands in ```python\n```python\ndef add(a, b): return a + b\n```", 1.0),
        ("> ```python\n> def add(a, b):\n>     return a + b\n> ```", 1.0),
        ("```python\ndef add(a, b): return a + b", 1.0),
        ("<answer>```python\ndef add(a, b): return a + b\n```</answer>", 1.0),
        ("<answer>\n```python\ndef add(a, b): return a + b\n</answer>", 1.0),
        ("<think>a</think><answer>```\ndef add(a, b): return '</answer>'\n```</answer>", 0.0),
        ("", 0.0),
        ("def add(a, b): return a + b # \0", 0.0),
        ("x" * 10_000_000, 0.0),
    ],
)
def test_submission(verifier: CodeVerifier, text: str, score: float) -> None:
    verdict = judged(verifier, ADD, text)
    assert verdict.score == score
    assert verdict.reason == "AC" if score else verdict.reason in ("CE", "WA", "RTE")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n" * 3_900_000 + "```python\nprint(1)\n```", "print(1)\n"),
        ("a`b~~c\n" * 500_000 + "```python\nprint(1)\n```", "print(1)\n"),
        ("<think>" + "\n" * 9_000_000 + "</think>```python\nprint(1)\n```", "print(1)\n"),
        ("```python\n" + "pass\n" * 700_000 + "```", None),
        ("```python\n" + "pass\n" * 1_500_000 + "```", None),
        ("\n" * 9_000_000 + "```python\nprint(1)\n```", None),
        ("~~~\n" * 999_000, None),
    ],
    ids=["empty lines", "near fences", "long reasoning", "long program", "longer program", "long text", "fences"],
)
def test_a_program_is_found_cheaply_in_any_text(text: str, found: str | None) -> None:
    begin = time.process_time()
    if found is None:
        with pytest.raises(NoSubmissionError, match=r"characters; at most|more than 10,000 fences"):
            extract(text, ("python",))
    else:
        assert extract(text, ("python",))[0] == found
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (None, "has no tests"),
        ({"style": "magic"}, "unknown test style 'magic'; known: function, asserts, stdin"),
        ({**ADD, "entry_point": "1x"}, "entry_point"),
        ({**ADD, "outs": [3]}, "as many of each"),
        ({**ADD, "args": [], "outs": []}, "'args' is empty"),
        ({**ADD, "args": [1, 2]}, "must be a list of arguments"),
        ({**ADD, "outs": [3, object()]}, "built-in types"),
        ({**ADD, "checker": "fuzzy"}, "unknown checker 'fuzzy'"),
        ({**ADD, "checker": "no_such_module:fn"}, "data runs no function of this process"),
        ({**ADD, "checker": ["exact"]}, "must be a name or"),
        ({**ADD, "checker": {"program": "def check(", "more": 1}}, "a program is given as"),
        ({**ADD, "checker": "float:2"}, "tolerance"),
        ({**ADD, "time": 3}, "no field 'time'"),
        ({**ADD, "time_s": -3}, "time_s"),
        ({**ADD, "time_s": 10_000}, "60 at most"),
        ({**ADD, "memory_mib": 100_000}, "4096 at most"),
        ({**ADD, "memory_mib": 100.5}, "tests: memory_mib must be a whole number"),
        ({**ASSERTS, "tests": ["assert ("]}, "does not compile"),
        ({**ASSERTS, "tests": ["assert g(1)"]}, "no test mentions"),
        ({**ASSERTS, "tests": []}, "'tests' is empty"),
        ({**ASSERTS, "setup": "import no_such_module_at_all"}, "setup fails"),
        ({**ASSERTS, "tests": ["f"]}, "no test ever calls"),
        ({**STDIN, "inputs": ["1"]}, "1 inputs and 2 outputs"),
        ({**STDIN, "inputs": [1, 2]}, "must be texts"),
    ],
)
def test_bad_tests_are_the_problems_fault(verifier: CodeVerifier, tests: Any, message: str) -> None:
    with pytest.raises(GoldError, match=message):
        judged(verifier, tests, "def add(a, b): return 1\ndef f(x): return x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "cobol"}, "unknown language"),
        ({"isolation": "none"}, "isolation must be"),
        ({"time_s": 0}, "time_s must be a number above 0"),
        ({"memory_mib": 10}, "at least 64"),
        ({"servers": 0}, "servers must be a whole number >= 1"),
        ({"servers": 1.5}, "servers must be a whole number >= 1"),
        ({"packages": ["no_such_package"]}, "not installed"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve("code", **options)


def ends_alike(given: str, expected: str, got: str) -> bool:
    return got.split()[-1] == expected.split()[-1]


def test_custom_checker_that_fails_is_no_zero() -> None:
    custom = {**STDIN, "checker": "test_code_verifier:ends_alike"}
    with CodeVerifier(checkers=["test_code_verifier:ends_alike", "math:sqrt"], servers=1) as verifier:
        assert judged(verifier, custom, "print('the sum is', sum(map(int, input().split())))").reason == "AC"
        assert judged(verifier, custom, "print(3)").reason == "WA"
        with pytest.raises(VerifierError, match="checker"):
            judged(verifier, {**ADD, "checker": "math:sqrt"}, "def add(a, b): return a + b")
    with pytest.raises(ValueError, match="can't be loaded"):
        CodeVerifier(checkers=["no_such_module:fn"])


ROUNDED = "def check(given, expected, got):\n    return sum(given) == got or got == 'rounded'"


def test_a_checker_that_comes_with_the_tests_is_a_program_in_the_sandbox(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    touch = f"import os\ndef check(given, expected, got):\n    os.system('touch {marker}')\n    return True"
    with CodeVerifier(servers=1) as verifier:
        own = {**ADD, "checker": {"program": ROUNDED}}
        assert judged(verifier, own, "def add(a, b): return a + b").reason == "AC"
        assert judged(verifier, own, "def add(a, b): return a - b").reason == "WA"
        zoned = b'["ok",{"T":["time","00:00+01:00"]}]'  # read, but never sent: the checker can't receive it
        forged = f"import os\ndef add(a, b): os.write(3, {len(zoned).to_bytes(4, 'little') + zoned!r})"
        assert judged(verifier, own, forged).reason == "WA"
        whole = {**STDIN, "checker": {"program": "def check(given, expected, got): return expected in got"}}
        assert judged(verifier, whole, "print('the sum is', sum(map(int, input().split())))").reason == "AC"
        judged(verifier, {**ADD, "checker": {"program": touch}}, "def add(a, b): return a + b")
        assert not marker.exists()
        for broken in ("def check(", "1/0", "def check(given, expected, got): return 1", "def other(): pass"):
            with pytest.raises(GoldError, match="checker"):
                judged(verifier, {**ADD, "checker": {"program": broken}}, "def add(a, b): return a + b")


def test_partial_score_counts_all_tests(verifier: CodeVerifier) -> None:
    code = "def add(a, b):\n    if a == 3: import os; os._exit(0)\n    return a + b"
    tests = {**ADD, "args": [[1, 2], [3, 4], [5, 6]], "outs": [3, 7, 11]}
    with CodeVerifier(partial=True, servers=1) as partial:
        assert judged(partial, tests, code).score == pytest.approx(1 / 3)
        assert judged(partial, tests, "def add(a, b): return a + b if a != 3 else 0").score == pytest.approx(2 / 3)
        assert judged(partial, STDIN, "print(3)").score == 0.5
        assert judged(partial, ASSERTS, "def f(x): return 2").score == 0.5


@pytest.mark.parametrize(
    ("tests", "code", "reason"),
    [
        (["a = [3, 1]\nf(a)\nassert a == [1, 3]"], "def f(x): x.sort()", "AC"),
        (["a = [1]\nassert f(a) is a"], "def f(x): return x", "AC"),
        (["assert f(lambda x: x + 1, 3) == 4"], "def f(g, x): return g(x)", "AC"),
        (["g = f(2)\nassert g(3) == 5"], "def f(x): return lambda y: x + y", "AC"),
        (
            ["try:\n    f(0)\nexcept ZeroDivisionError:\n    pass\nelse:\n    assert False"],
            "def f(x): return 1 / x",
            "AC",
        ),
        (["assert list(f(3)) == [0, 1, 2]"], "def f(n): yield from range(n)", "AC"),
        (["x = f(1)\nx.left = f(2)\nassert x.left.v == 2"], "class f:\n    def __init__(self, v): self.v = v", "AC"),
        (["assert f([1, (2, {3: {4}})]) == [1, (2, {3: {4}})]"], "def f(x): return x", "AC"),
        (["assert f(iter([1, 2])) == 3"], "def f(x): return sum(x)", "AC"),
        (["assert max(1, 2) == 2", "assert f(1) == 1"], "def f(x): return x", "AC"),
        (["assert f() == 3"], "class A:\n    def __eq__(self, o): return True\ndef f(): return A()", "WA"),
        (["assert 5 in f()"], "class A:\n    def __contains__(self, o): return True\ndef f(): return A()", "RTE"),
        (["assert abs(f() - 5) < 1"], "class A:\n    def __sub__(self, o): return 0\ndef f(): return A()", "WA"),
        (["assert all(map(lambda p: f(p) == 7, [1, 2]))"], "def f(x): raise StopIteration", "RTE"),
        (["def ok(v): assert v == 5\nf(ok)"], "def f(g):\n    try: g(1)\n    except AssertionError: pass", "WA"),
        (["try:\n    f()\nexcept BaseException:\n    pass"], "def f(): raise SystemExit", "EXIT"),
        (["assert f(f) == 1"], "def f(x): return int(x is f)", "AC"),
    ],
)
def test_assert_style_meets_proxies(verifier: CodeVerifier, tests: list[str], code: str, reason: str) -> None:
    verdict = judged(verifier, {"style": "asserts", "entry_point": "f", "tests": tests}, code)
    assert verdict.reason == reason, verdict.detail


def test_a_large_input_is_no_disk_trouble(verifier: CodeVerifier) -> None:
    tests = {"style": "stdin", "inputs": ["x" * (70 << 20)], "outputs": [str(70 << 20)]}
    assert judged(verifier, tests, "import os\nprint(os.fstat(0).st_size)").reason == "AC"


LATER = "import threading, time\ndef later(): time.sleep({}); print('x')\n"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("", LATER.format(0.1) + "threading.Thread(target=later).start()"),
        ("", LATER.format(9) + "threading.Thread(target=later, daemon=True).start()\nprint('x')"),
        ("", LATER.format(0.1) + "import concurrent.futures as c\nc.ThreadPoolExecutor(2).submit(later)"),
        ("", "import atexit\natexit.register(print, 'x')"),
        ("", "print('x' + open('/dev/stdin').read())"),
        ("x", "print(open('/dev/stdin').read())"),
    ],
)
def test_a_program_begins_and_ends_as_with_the_interpreter(verifier: CodeVerifier, given: str, code: str) -> None:
    assert judged(verifier, {"style": "stdin", "inputs": [given], "outputs": ["x"]}, code).reason == "AC"


def test_flags_are_beside_the_verdict(verifier: CodeVerifier) -> None:
    verdict = judged(verifier, ADD, "import os\ndef add(a, b):\n    os._exit(0)")
    assert {"premature_exit", "early_exit"} <= set(verdict.flags)
    verdict = judged(verifier, ADD, "class A:\n    def __eq__(s, o): return True\ndef add(a, b): return A()")
    assert {"not_data", "always_equal"} <= set(verdict.flags)
    verdict = judged(verifier, STDIN, "import os\nos.write(3, b'x')\nprint(3)")
    assert "odd_descriptor" in verdict.flags
    assert judged(verifier, ADD, "def add(a, b): return a + b").flags == ()


def test_chosen_packages_can_be_imported_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypack").mkdir()
    (tmp_path / "mypack" / "__init__.py").write_text("def add(a, b): return a + b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "import mypack\ndef add(a, b): return mypack.add(a, b)"
    with CodeVerifier(packages=["mypack"], preload=["mypack"], servers=1) as verifier:
        assert judged(verifier, ADD, code).reason == "AC"
        assert judged(verifier, ADD, "import sympy\ndef add(a, b): return a + b").reason == "RTE"
    with CodeVerifier(servers=1) as verifier:
        assert judged(verifier, ADD, code).reason == "RTE"


def test_humaneval_and_mbpp_rows(verifier: CodeVerifier) -> None:
    row = {
        "prompt": 'import math\ndef twice(x):\n    return 2 * x\n\ndef f(x):\n    """Half."""\n',
        "test": "def check(candidate):\n    assert candidate(twice(4)) == 4\n",
        "entry_point": "f",
        "canonical_solution": "    return x / 2\n",
    }
    tests = from_humaneval(row)
    assert judged(verifier, tests, row["canonical_solution"]).reason == "AC"  # a base model goes on where it stopped
    assert judged(verifier, tests, row["prompt"] + row["canonical_solution"]).reason == "AC"
    assert judged(verifier, tests, "def f(x): return twice(x) / 4").reason == "AC"
    assert judged(verifier, tests, "def twice(x): return 4\ndef f(x): return 4\n").reason == "AC"  # weak test, honest
    assert (
        judged(verifier, tests, "def twice(x): return 1\ndef f(x): return x").reason == "WA"
    )  # its helper is not ours
    row = {"code": "def sum(a): return 0", "test_list": ["assert sum([1, 2]) == 3", "assert len([sum([])]) == 1"]}
    assert from_mbpp(row)["entry_point"] == "sum"
    assert judged(verifier, from_mbpp(row), "def total(a): return 3").reason == "RTE"  # the built-in does not count
    assert judged(verifier, from_mbpp(row), "def sum(a):\n    return 3 if a else 0").reason == "AC"
    tests = from_code_contests({"test": '[{"input": {"stdin": "5"}, "output": {"stdout": "5"}}]'})
    assert judged(verifier, tests, "print(input())").reason == "AC"
    bad_rows = (
        ({}, from_humaneval), ({"prompt": "", "test": ["assert f()"], "entry_point": "f"}, from_humaneval),
        ({}, from_mbpp), ({"test_list": [1]}, from_mbpp), ({**row, "test_imports": [1]}, from_mbpp),
        ({**row, "test_imports": 1}, from_mbpp), ({**row, "test_imports": "import math"}, from_mbpp),
        ({"test": 3}, from_code_contests), ({"test": ["5"]}, from_code_contests),
        ({"test": "[" * 100_000}, from_code_contests),
    )  # fmt: skip
    for bad, convert in bad_rows:
        with pytest.raises(GoldError):
            convert(bad)


def test_threads_asyncio_and_many(verifier: CodeVerifier) -> None:
    pairs = [(Problem(tests=ADD), Completion(f"def add(a, b): return a + b + {i % 2}")) for i in range(40)]
    wanted = [1.0, 0.0] * 20
    assert [v.score for v in verifier.verify_many(pairs) if isinstance(v, Verdict)] == wanted
    with ThreadPoolExecutor(8) as threads:
        assert [verdict.score for verdict in threads.map(lambda pair: verifier(*pair), pairs)] == wanted

    async def scores() -> list[Verdict]:
        return await asyncio.gather(*(asyncio.to_thread(verifier, *pair) for pair in pairs))

    assert [verdict.score for verdict in asyncio.run(scores())] == wanted
    bad = verifier.verify_many([(Problem(), Completion("x")), pairs[0]])
    assert isinstance(bad[0], GoldError)
    assert isinstance(bad[1], Verdict)


def test_in_a_reward(verifier: CodeVerifier) -> None:
    reward = Reward("code + 0.1*format", verifiers={"code": verifier})
    text = "<think>easy</think><answer>\n```python\ndef add(a, b): return a + b\n```\n</answer>"
    assert reward(Problem(tests=ADD), Completion(text)).reward == pytest.approx(1.1)


def test_import_loads_nothing_heavy_and_doctor_speaks() -> None:
    code = "import verifiers, sys; print({'torch', 'sympy', 'verifiers.sandbox', 'ctypes'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=os.getcwd()) == "set()\n"
    done = subprocess.run([sys.executable, "-m", "verifiers", "doctor"], capture_output=True, text=True)
    assert "in force by default" in done.stdout
    assert done.returncode == (0 if probe.report().best else 1)


def test_the_indentation_of_a_program_is_taken_off_without_a_pattern_of_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`re` would compile it for a second, and keep hundreds of megabytes of such patterns."""
    rng = random.Random(0)
    for _ in range(2000):
        code = "".join(rng.choice(["  ", "\t", " ", "a", "\n", "\r", "b\n", "  x", "\x0b", "\xa0"]) for _ in range(12))
        assert _dedented(code) == textwrap.dedent(code)
    monkeypatch.setattr("re._parser.parse", None)  # no pattern is compiled
    code, _ = extract("```python\n" + "\t" * 900_000 + "x = 1\n```", ("python",))
    assert code.strip() == "x = 1"
    assert not code.startswith("\t")
