"""Edge cases of assert style: what a test sees of the submission, and what the submission may supply to a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verifiers import Completion, GoldError, Problem, Verdict
from verifiers.sandbox import CodeVerifier, probe
from verifiers.sandbox.literal import comparisons
from verifiers.sandbox.names import resolve
from verifiers.sandbox.oracle import Candidate, RemoteStopError


@pytest.fixture(scope="module")
def verifier() -> Iterator[CodeVerifier]:
    if probe.report().best is None:
        pytest.skip(f"nothing here isolates code: {probe.report().missing}")
    with CodeVerifier(time_s=1, memory_mib=256, output_mib=1) as found:
        yield found


def judged(verifier: CodeVerifier, test: str, code: str, **fields: Any) -> Verdict:
    return verifier(
        Problem(tests={"style": "asserts", "entry_point": "f", "tests": [test], **fields}), Completion(code)
    )


def raises(kind: str, more: str = "True", imports: str = "") -> str:
    """Returns a test that expects exactly this exception."""
    return (
        f"{imports}\ncaught = False\ntry:\n    f(-1)\nexcept {kind} as e:\n    caught = {more}\n"
        "except Exception:\n    pass\nassert caught"
    )


@pytest.mark.parametrize(
    ("raised", "wanted", "caught"),
    [
        ("raise ValueError('negative')", raises("ValueError", "(str(e), e.args) == ('negative', ('negative',))"), True),
        ("raise ValueError", raises("ValueError", "str(e) == '' and e.args == ()"), True),
        ("raise ValueError(3, [4])", raises("ValueError", "e.args == (3, [4])"), True),
        ("raise Exception('x')", raises("Exception", "type(e) is not ValueError and str(e) == 'x'"), True),
        ("raise Exception('x')", raises("ValueError"), False),
        ("raise ExceptionGroup('x', [ValueError()])", raises("ValueError"), False),
        ("import queue; raise queue.Empty", raises("ValueError"), False),
        ("import queue; raise queue.Empty", raises("queue.Empty", imports="import queue"), True),
        ("class E(Exception): pass\n    raise E", raises("ValueError"), False),
        ("class ValueError(Exception): pass\n    raise ValueError", raises("ValueError"), False),
        ("class E(KeyError): pass\n    raise E('k')", raises("KeyError", "type(e).__name__ == 'E'"), True),
        (
            "class E(Exception):\n        def __init__(s, v): s.v = v\n    raise E(3)",
            raises("Exception", "e.v == 3"),
            True,
        ),
        ("raise KeyError('k')", raises("LookupError", "e.args[0] == 'k'"), True),
        ("open('/none')", raises("FileNotFoundError", "e.errno == 2 and e.filename == '/none'"), True),
        ("raise OSError(5, 'x')", raises("OSError", "(e.errno, e.strerror) == (5, 'x')"), True),
        ("raise EOFError", raises("EOFError"), True),
        ("raise BrokenPipeError", raises("ConnectionError"), True),
        (r"b'\xff'.decode()", raises("UnicodeDecodeError", r"(e.object, e.start) == (b'\xff', 0)"), True),
        ("import json; json.loads('{')", raises("json.JSONDecodeError", "e.pos == 1", "import json"), True),
        (
            "import decimal; decimal.Decimal('x')",
            raises("decimal.InvalidOperation", imports="import decimal"),
            True,
        ),
        ("raise StopIteration", raises("StopIteration"), False),  # it would end `all(map(f, ...))` early and quietly
        ("raise StopIteration", "assert all(map(f, [1, 2]))", False),
        ("import unittest; raise unittest.SkipTest", raises("unittest.SkipTest", imports="import unittest"), False),
        ("raise SystemExit", raises("BaseException"), False),
    ],
)
def test_exceptions_keep_what_they_are(verifier: CodeVerifier, raised: str, wanted: str, caught: bool) -> None:
    verdict = judged(verifier, wanted, f"def f(x):\n    {raised}")
    assert (verdict.score, verdict.reason == "AC") == (float(caught), caught), verdict.detail
    assert "forged_message" not in verdict.flags


def test_what_a_generator_returns_can_be_seen(verifier: CodeVerifier) -> None:
    test = "g = f(1)\nassert next(g) == 1\ntry:\n    next(g)\nexcept StopIteration as e:\n    assert e.value == 7"
    assert judged(verifier, test, "def f(x):\n    yield x\n    return 7").reason == "AC"
    assert judged(verifier, test, "def f(x):\n    yield x\n    return 8").reason == "WA"


def test_the_line_stands_in_the_detail(verifier: CodeVerifier) -> None:
    verdict = judged(verifier, "assert f(1) == 1", "def f(x):\n    raise KeyError('k')")
    assert verdict.reason == "RTE"
    assert "KeyError: 'k' (line 2)" in verdict.detail


SAME = "def f(x): return 0\n"
LIAR = "class {}:\n    isclose = getsizeof = staticmethod(lambda *a, **k: True)\n"


@pytest.mark.parametrize(
    ("test", "hack", "fields"),
    [
        ("assert math.isclose(f(3), 9.5)", LIAR.format("math"), {}),
        ("assert f(3) == sys.getsizeof(3) - sys.getsizeof(3) + 9", "class sys:\n    getsizeof = lambda x: 0\n", {}),
        ("assert isclose(f(3), 9.5)", "isclose = lambda a, b: True\n", {}),
        ("from math import *\nassert isclose(f(3), 9.5)", "isclose = lambda a, b: True\n", {}),
        ("import math\nassert all([isclose(f(3), 9.5)])", "isclose = lambda a, b: True\n", {}),
        ("assert Counter([f(3)]) == Counter([9])", "Counter = lambda x: 1\n", {}),
        ("assert f(3) == helper(3)", "def helper(x): return 0\n", {"prefix": "def helper(x): return x * x"}),
        ("assert helper(f(3)) == 9", "def helper(x): return 9\n", {"prefix": "def helper(x): return x * x"}),
        (
            "assert helper(f(3)) == 9",
            "def helper(x): return 9\n",
            {"prompt": "def helper(x):\n    return x * x\n\ndef f(x):\n    '''Doc.'''\n"},
        ),
    ],
)
def test_the_tests_own_names_are_not_the_submissions(
    verifier: CodeVerifier, test: str, hack: str, fields: dict[str, str]
) -> None:
    assert judged(verifier, test, hack + SAME, **fields).score == 0


@pytest.mark.parametrize(
    ("test", "code", "fields"),
    [
        ("assert math.isclose(f(3), 9.5)", "def f(x): return 9.5", {}),
        ("assert Counter(f('aab')) == Counter('aba')", "def f(x): return x", {}),
        ("assert f(helper(3)) == 9", "def f(x): return x", {"prefix": "def helper(x): return x * x"}),
        (
            "assert f([Pair(5, 24), Pair(1, 2)]) == 2",
            "class Pair:\n    def __init__(s, a, b): s.a = a\ndef f(x): return len({p.a for p in x})",
            {},
        ),
        ("p = Pair(4)\nassert f(p) == 4", "class Pair:\n    def __init__(s, a): s.a = a\ndef f(p): return p.a", {}),
        (
            "l = f(Node(1, Node(2)))\nassert (l.v, l.n.v, l.n.n) == (2, 1, None)",
            "def f(h):\n    p = None\n    while h: h.n, p, h = p, h, h.n\n    return p",
            {"prefix": "class Node:\n    def __init__(s, v, n=None): s.v = v; s.n = n"},
        ),
        ("assert f(lambda g, n: 0 if n == 0 else g(n - 1) + 1, 150) == 150",
         "def f(g, n): return g(lambda m: f(g, m), n)", {}),
    ],
)  # fmt: skip
def test_honest_submissions_pass(verifier: CodeVerifier, test: str, code: str, fields: dict[str, str]) -> None:
    verdict = judged(verifier, test, code, **fields)
    assert verdict.reason == "AC", verdict.detail


PRINTS = "print('loaded')\ndef f(*xs):\n    for x in xs: print(x, end='.')\n    return len(xs)"


@pytest.mark.parametrize(
    ("test", "code", "reason"),
    [
        ("from contextlib import redirect_stdout\nimport io\nout = io.StringIO()\n"
         "with redirect_stdout(out): n = f(1, 'a')\n"
         "assert (n, out.getvalue()) == (2, '1.a.')", PRINTS, "AC"),
        ("import io, sys\nout = sys.stdout = io.StringIO()\nf(1)\nf(2)\nsys.stdout = sys.__stdout__\nf(3)\n"
         "assert out.getvalue() == '1.2.'", PRINTS, "AC"),
        ("import io\nfrom unittest.mock import patch\nwith patch('sys.stdout', new_callable=io.StringIO) as out: f(5)\n"
         "assert out.getvalue() == '5.'", PRINTS, "AC"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(lambda: 1)\nassert sys.stdout.getvalue() == 'before after'",
         "def f(g): print('before', end=' '); g(); print('after', end='')", "AC"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '2.'", PRINTS, "WA"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '1.'",
         "import sys\ndef f(x): sys.stdout.buffer.write(b'1.'); sys.stdout.flush()", "AC"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '1.'",
         "import sys\ndef f(x): sys.stdout.close()", "WA"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '1.'",
         "def f(x): print('1.', end='') or print('x' * 20_000_000)", "OLE"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '1.'",
         "import os\nt = b'[\"out\",0,\"1.\"]'\nos.write(3, len(t).to_bytes(4, 'little') + t)\ndef f(x): pass", "SV"),
    ],
)  # fmt: skip
def test_what_is_printed_during_a_call_can_be_captured(
    verifier: CodeVerifier, test: str, code: str, reason: str
) -> None:
    assert judged(verifier, test, code).reason == reason


def test_names_are_not_supplied_unless_asked_for(verifier: CodeVerifier) -> None:
    code = "def f(x: List[int] = []): return math.floor(sqrt(81)) if x else 0"
    assert judged(verifier, "assert f(3) == 9", code).reason == "RTE"
    with CodeVerifier(common_names=True, servers=1) as generous:
        assert judged(generous, "assert f(3) == 9", code).reason == "AC"


def test_a_name_that_nobody_defines_is_the_problems_fault(verifier: CodeVerifier) -> None:
    with pytest.raises(GoldError, match="np"):
        judged(verifier, "assert np.allclose(f(3), [9.5])", "class np: allclose = lambda *a: True\n" + SAME)


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("assert f(3) == 9", ["f"]),
        ("assert f(g(h(3))) == 9", ["f", "g", "h"]),
        ("assert g(f(3)) == h(9)", ["f"]),
        ("x = g(1)\ny = [x, h(2)]\nassert f(k=y) == z(9)", ["f", "g", "h"]),
        ("assert f(MOST) == 3", ["f"]),
    ],
)
def test_the_submission_supplies_what_makes_arguments(test: str, names: list[str]) -> None:
    assert sorted(resolve("f", [test], []).submission) == names


@pytest.mark.parametrize("test", ["assert sum(f(3)) == 6", "assert 2.5 in f(3)", "assert list(map(str, f(3))) == []"])
def test_a_value_that_takes_long_to_look_at_is_a_time_out(verifier: CodeVerifier, test: str) -> None:
    verdict = judged(verifier, test, "def f(x): return range(10**12)")
    assert (verdict.score, verdict.reason in ("TLE", "MLE")) == (0, True), verdict.detail


def test_recursion_through_a_callback_is_no_forgery(verifier: CodeVerifier) -> None:
    verdict = judged(verifier, "assert f(lambda g: f(g)) == 1", "def f(g): return g(g)")
    assert (verdict.reason, verdict.flags) == ("RTE", ()), verdict.detail
    assert "RecursionError" in verdict.detail


def test_a_reply_counts_for_its_own_call(verifier: CodeVerifier) -> None:
    """A process left behind answers before the next call is made."""
    forger = (
        "import os, socket, threading, time\n"
        "body = b'[\"ok\",%d,9,[]]'\n"
        "def f(x):\n"
        "    if x == 1 and os.fork() == 0:\n"
        "        time.sleep(0.1)\n"
        "        for token in (0, 1, 2):\n"
        "            text = body % token\n"
        "            os.write(3, len(text).to_bytes(4, 'little') + text)\n"
        "        os._exit(0)\n"
        "    time.sleep(0.3 * (x != 1))\n"
        "    return x\n"
    )
    verdict = judged(verifier, "assert f(1) == 1\nassert f(2) == 9", forger)
    assert verdict.score == 0, verdict.detail


CHECK = "import math\n\nMETADATA = {{'author': 'x'}}\n\ndef check(candidate):\n    'Doc.'\n    assert True\n    {}\n"


@pytest.mark.parametrize(
    ("setup", "tests", "calls"),
    [
        ("", ["assert f(1, [2, ('a', None)], k={'x': -1.5}) == {3}", "assert (f()) == 1 + 2j, f(2)"], 2),
        ("", ["assert f(1) == 2\nassert f(2) == 3"], 2),
        ("import sys\nfrom typing import *", ["assert f(1) == True"], 1),
        (CHECK.format("assert candidate(3) == 'x', 'message'\n    assert candidate('') == []"), ["check(f)"], 2),
        (CHECK.format("assert f(3) == 4"), ["check(f)"], None),  # `f` may be the setup's own
        (CHECK.format("for x in [3]: assert candidate(x) == 4"), ["check(f)"], None),
        (CHECK.format("assert candidate(3) == 4") + "check = print", ["check(f)"], None),
        (CHECK.format("assert candidate(3) == 4"), ["check(f, 1)"], None),
        (CHECK.format("pass"), ["check(f)"], None),
        ("@print\ndef check(g): assert g(1) == 2", ["check(f)"], None),
        ("def check(g=1): assert g(1) == 2", ["check(f)"], None),
        ("def check(g: int()): assert g(1) == 2", ["check(f)"], None),
        ("async def check(g): assert g(1) == 2", ["check(f)"], None),
        ("x = print()", ["assert f(1) == 2"], None),
        ("import no_such_module", ["assert f(1) == 2"], None),
        ("import builtins; builtins.bool = print", ["assert f(1) == 2"], None),
        *[
            ("", [test], None)
            for test in (
                "assert f(x) == 2", "assert f(1) == x", "assert f(1) == 2 == 2", "assert f(1) != 2", "assert f(1)",
                "assert f(1) is True", "assert g(1) == 2 == f(1)", "assert f(1) == f(1)", "assert f({1, 2}) == 2",
                "assert f(f(1)) == 2", "assert f(*[1]) == 2", "assert f(**{'k': 1}) == 2", "assert f.g(1) == 2",
                "assert f(1)(1) == 2", "assert f(...) == 2", "assert f(1) == {[]: 1}",
                "if 1: assert f(1) == 2", "import f\nassert f(1) == 2", "assert f(1) == f'{2}'", "assert True", "f(1)",
            )
        ],
    ],
)  # fmt: skip
def test_comparisons_with_literals_are_recognised(setup: str, tests: list[str], calls: int | None) -> None:
    found = comparisons("f", [setup] if setup else [], tests)
    assert (None if found is None else len(found.calls)) == calls


@pytest.mark.parametrize(
    ("literal", "returned", "reason"),
    [
        ("3", "3", "AC"),
        ("3", "3.0", "AC"),
        ("1", "True", "AC"),
        ("[1, 2]", "(1, 2)", "WA"),  # unlike function style
        ("(1, 2)", "__import__('collections').namedtuple('P', 'x y')(1, 2)", "AC"),
        ("{1, 2}", "frozenset([2, 1])", "AC"),
        ("{'a': [1]}", "__import__('collections').OrderedDict(a=[1])", "AC"),
        ("0.5", "__import__('fractions').Fraction(1, 2)", "AC"),
        ("0", "__import__('decimal').Decimal('sNaN')", "WA"),
        ("1e999", "float('inf')", "AC"),
        ("0.0", "float('nan')", "WA"),
        ("[]", "iter([])", "WA"),
        ("3", "type('A', (), {'__eq__': lambda s, o: True})()", "WA"),
        ("[3]", "[type('A', (), {'__eq__': lambda s, o: True})()]", "WA"),
        ("3", "int", "WA"),
        ("None", "None", "AC"),
        ("b'x'", "bytearray(b'x')", "AC"),
        (r"'\ud800'", r"'\ud800'", "AC"),
        ("3", "1 / 0", "RTE"),
        ("3", "exit()", "EXIT"),
    ],
)
def test_both_ways_of_comparing_agree(verifier: CodeVerifier, literal: str, returned: str, reason: str) -> None:
    code = f"def f(x): return {returned}"
    for test in (f"assert f(1) == {literal}", f"x = 1\nassert f(x) == {literal}"):
        verdict = judged(verifier, test, code)
        assert verdict.reason == reason, verdict.detail


def test_a_test_of_several_comparisons_counts_once(verifier: CodeVerifier) -> None:
    tests = {
        "style": "asserts",
        "entry_point": "f",
        "tests": ["assert f(1) == 1\nassert f(2) == 3", "assert f(3) == 3"],
    }
    verdict = verifier(Problem(tests=tests), Completion("def f(x): return x"))
    assert (verdict.reason, verdict.score) == ("WA", 0)
    assert verdict.detail.startswith("test 0: f(2) returned 2, expected 3; 0 of 2 tests passed"), verdict.detail
    with CodeVerifier(partial=True, servers=1) as partial:
        assert partial(Problem(tests=tests), Completion("def f(x): return x")).score == 0.5


@pytest.mark.parametrize(
    "test",
    [
        "r = f(3)\nassert r == 14, r",
        "assert {14: 1}[f(3)] == 1",
        "r = f(3)\nraise ValueError(r)",
        "import sys\nsys.exit(f(3))",
        "def must(value):\n    assert value == 14, value\nf(must)",
    ],
)
@pytest.mark.parametrize("value", ["10**5000", "[10**5000]", "{10**5000: 1}"])
def test_a_value_without_a_text_is_a_wrong_answer(verifier: CodeVerifier, test: str, value: str) -> None:
    """Python makes no text of an integer of more than 4,300 digits."""
    program = f"def f(x):\n    return x({value}) if callable(x) else {value}"
    verdict = judged(verifier, test, program)
    assert (verdict.score, verdict.reason in ("WA", "RTE")) == (0, True), verdict.detail


@pytest.mark.parametrize("text", ["import os; os._exit(0)", "import ctypes; ctypes.string_at(0)"])
def test_a_value_that_ends_the_tests_process_is_a_verdict(verifier: CodeVerifier, text: str) -> None:
    verdict = judged(verifier, "exec(f(3))", f"def f(x): return {text!r}")
    assert (verdict.score, verdict.reason) == (0, "RTE"), verdict.detail


def test_a_first_message_that_takes_all_memory_is_a_verdict() -> None:
    class Full:
        def receive(self) -> None:
            raise MemoryError

    candidate = Candidate(Full(), {})  # type: ignore[arg-type]
    with pytest.raises(RemoteStopError):
        candidate.start()
    assert candidate.stopped[0] == "MLE"
