"""Data between a submission and its judge: messages, and the comparison of values and texts."""

from __future__ import annotations

import contextlib
import math
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers import Completion, Problem, Verdict, VerifierError
from verifiers.sandbox import CodeVerifier, checkers, probe, wire
from verifiers.terminal import visible

inf = math.inf


def refuse(value: Any) -> Any:
    raise wire.WireError(type(value).__name__)


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.integers(min_value=10**30)
    | st.dates()
    | st.datetimes().map(lambda at: at.replace(fold=0))
    | st.timedeltas()
    | st.fractions()
    | st.decimals(allow_nan=False)
)
keys = st.integers() | st.text() | st.tuples(st.integers(), st.text()) | st.frozensets(st.integers())
values = st.recursive(
    atoms,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner) | st.sets(keys),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(values)
def test_wire_keeps_values_and_types(value: Any) -> None:
    back = wire.decode(wire.unpack(wire.pack(wire.encode(value, refuse))[4:]), wire.no_reference)
    assert type(back) is type(value)
    assert checkers.equal(value, back, strict=not isinstance(value, complex)) or "nan" in repr(value)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x) | st.dictionaries(st.text(max_size=1), x)
    )
)
def test_wire_takes_or_refuses_but_never_breaks(message: Any) -> None:
    with contextlib.suppress(wire.WireError):
        wire.decode(message, wire.no_reference)


@pytest.mark.parametrize(
    "message",
    [
        {"s": [i * (2**61 - 1) for i in range(5000)]},
        {"d": [[i * (2**61 - 1), 0] for i in range(5000)]},
        {"s": [{"t": [i * (2**61 - 1)]} for i in range(5000)]},
        {"x": 1},
        {"i": 5},
        {"t": 5},
        {"r": "1e5x"},
        {"d": [[1]]},
        {"d": [[[], 1]]},
        {"s": [{"d": []}]},
        {"a": "0"},
        {"F": ["1", "0"]},
        {"T": ["object", "x"]},
        {"T": ["date", "2020-13-45"]},
        {"g": ["a"]},
        {"t": [], "s": []},
    ],
)
def test_wire_refuses(message: Any) -> None:
    begin = time.process_time()
    with pytest.raises(wire.WireError):
        wire.decode(message, wire.no_reference)
    assert time.process_time() - begin < 1


def test_wire_depth_is_bounded() -> None:
    deep: list[Any] = []
    for _ in range(wire.MAX_DEPTH + 5):
        deep = [deep]
    with pytest.raises(wire.WireError, match="deeper"):
        wire.encode(deep, refuse)
    with pytest.raises(wire.WireError):
        wire.unpack(b"[" * 1_000_000)


@pytest.mark.parametrize(
    ("name", "expected", "got", "same"),
    [
        ("exact", 2, 2.0, True),
        ("exact", [1, 2], (1, 2), True),
        ("exact", True, 1, False),
        ("exact", 1, "1", False),
        ("exact", math.nan, math.nan, True),
        ("exact", {1: [2]}, {1: (2,)}, True),
        ("exact", {1: 2}, {1: 2, 3: 4}, False),
        ("exact", 0.3, 0.1 + 0.2, False),
        ("float:1e-6", 0.3, 0.1 + 0.2, True),
        ("float:1e-6", [1.0], [1.1], False),
        ("float:1e-6", 10**12, 10**12 + 1, False),
        ("float:1e-6", 1.0, 10**400, False),
        ("strict", 2, 2.0, False),
        ("strict", [1], (1,), False),
        ("strict", {"a": {1}}, {"a": {1}}, True),
        ("item", [3], 3, True),
        ("item", [[1, 2]], [1, 2], True),
        ("item", [3], [3], True),
        ("item", [3], [[3]], False),
        ("item", [3, 4], 3, False),
        ("item", [True], 1, False),
        ("item", "a", "a", True),
        ("item", [], None, False),
        ("unordered", [[1], [2]], [(2,), (1,)], True),
        ("unordered", [1, 1, 2], [1, 2, 2], False),
        ("unordered", [1, 2.0], [2, 1], True),
        ("float:1e-6", inf, 5.0, False),
        ("float:1e-6", inf, -inf, False),
        ("float:1e-6", inf, inf, True),
        ("float:1e-6", 5.0, inf, False),
        ("float:1e-6", inf, 10**400, False),
        ("float:1e-6", [1.0, {"a": -inf}], [1.0, {"a": -7}], False),
        ("float:1e-6", [1.0, {"a": -inf}], [1.0, {"a": -inf}], True),
        ("float:1e-6", math.nan, 5.0, False),
        ("float:1e-6", 5.0, math.nan, False),
        ("float:1e-6", math.nan, math.nan, True),
        ("exact", {1, 2}, frozenset({1, 2}), True),
        ("exact", {1, 2}, frozenset({1, 3}), False),
        ("strict", {1, 2}, frozenset({1, 2}), False),
        ("exact", {1, 2}, {True, 2}, False),
        ("exact", {1: "a"}, {True: "a"}, False),
        ("exact", {(1, "x")}, {(True, "x")}, False),
        ("exact", {frozenset({0})}, {frozenset({False})}, False),
        ("exact", {True, 2}, {True, 2}, True),
        ("exact", {1, 2}, {1.0, Decimal(2)}, True),
        ("strict", {1, 2}, {1.0, 2.0}, False),
        ("strict", {1: "a"}, {1.0: "a"}, False),
        ("strict", {(1,): {2}}, {(1,): {2}}, True),
        ("strict", {(1,)}, {(1.0,)}, False),
        ("exact", {math.nan, 1}, {math.nan, 1}, True),
        ("exact", {math.nan: 1, 2: 3}, {math.nan: 1, -math.nan: 3}, False),
        ("exact", 1, Decimal(1), True),
        ("exact", 3, Fraction(3, 1), True),
        ("exact", 0.5, Fraction(1, 2), True),
        ("exact", 0.1, Decimal("0.1"), False),
        ("exact", True, Decimal(1), False),
        ("exact", 2, 2 + 0j, True),
        ("exact", 1, Decimal("sNaN"), False),
        ("exact", 1, Decimal("1e999999999"), False),
        ("exact", Decimal("1e999999999"), Fraction(1, 3), False),
        ("exact", Decimal("sNaN"), Decimal("NaN"), True),
        ("exact", 2, Decimal("Infinity"), False),
        ("strict", 1, Decimal(1), False),
        ("float:1e-6", 0.1, Decimal("0.1"), True),
        ("float:1e-6", 0.3333333, Fraction(1, 3), True),
        ("float:1e-6", 10**12, Decimal(10**12 + 1), False),
        ("float:1e-6", 1.0, Decimal("1e999999999"), False),
        ("float:1e-6", 1.0, Fraction(10**400, 3), False),
        ("float:1e-6", {"a": [1.0]}, {"a": [Decimal("1.0000001")]}, True),
        ("float:1e-6", 1.0, True, False),
        ("exact", b"ab", bytearray(b"ab"), True),
        ("strict", b"ab", bytearray(b"ab"), False),
        ("exact", [97, 98], b"ab", False),
        ("exact", "ab", b"ab", False),
        ("unordered", [[1, 2]], [{1, 2}], False),
        ("unordered", [{1, 2}], [{2, 1}], True),
        ("unordered", [{"a": 1}], [[["a", 1]]], False),
        ("unordered", [1, 2], [True, 2], False),
        ("unordered", [[1, 2], [3]], [(3.0,), (1, Decimal(2))], True),
        ("unordered", [math.nan, 1], [1, math.nan], True),
        ("unordered", [1], [{10**5000, 1}], False),
        ("unordered", [{10**5000, 1}], [{10**5000, 1}], True),
        ("unordered", [1], [Decimal("sNaN")], False),
        ("unordered", ["1"], [1], False),
        ("unordered", [{"a": {1}}, None], [None, {"a": {1}}], True),
        ("unordered", {1, 2}, {2, True}, False),
    ],
)
def test_value_checkers(name: str, expected: Any, got: Any, same: bool) -> None:
    assert checkers.value_checker(name)([], expected, got) is same


@pytest.mark.parametrize(
    ("name", "expected", "got", "verdict"),
    [
        ("exact", "1 2\n", "1 2", "AC"),
        ("exact", "1 2", "1  2", "PE"),
        ("exact", "1", "2", "WA"),
        ("tokens", "1 2\n3", "1 2 3", "AC"),
        ("tokens", "YES", "yes", "PE"),
        ("tokens", "1 2", "1", "WA"),
        ("tokens", "12", "1 2", "PE"),
        ("float:1e-6", "0.333333", "0.3333331", "AC"),
        ("float:1e-6", "1000000007", "1000000008", "WA"),
        ("float:1e-6", "1.5", "nan", "WA"),
        ("float:1e-6", "1", "1_0", "WA"),
        ("float:1e-6", "1.5", "1.5" + "0" * 1000, "WA"),
        ("float:1e-6", "3", "3.0", "AC"),
        ("float:1e-6", "x 1.0", "x 1", "AC"),
        ("tokens", "1 2 3", "1\x1c2\x853", "WA"),
        ("tokens", "1 2 3", "1\xa02\u20033", "WA"),
        ("tokens", "\xe9 2", "\xe9\t2\r\n", "AC"),
        ("exact", "1 2", "1\xa02", "WA"),
        ("float:1e-6", "1 2", "1\x1c2", "WA"),
        ("float:1e-6", "inf", "5", "WA"),
        ("float:1e-6", "1e999", "5", "WA"),
        ("float:1e-6", "inf", "inf", "AC"),
        ("unordered", "a\nb", "a\x1cb", "WA"),
        ("unordered", "a b\nc", "c\na  b\n", "AC"),
        ("unordered", "a\na\nb", "a\nb", "WA"),
        ("unordered", "a b\nc", "\n \n c \t\n\n\r\na\x0b b\n \n", "AC"),
        ("unordered", "a b", "a\nb", "WA"),
        ("unordered", "", " \n\n ", "AC"),
        ("tokens", "1 2", "1 2 3", "WA"),
        ("tokens", "1 2", " 1 2 \n\n", "AC"),
        ("tokens", "", " \n", "AC"),
        ("tokens", "", "x", "WA"),
        ("exact", "1\n2", "1 2 \n", "PE"),
        ("float:1e-6", "1 2", "1 2 3", "WA"),
    ],
)
def test_text_checkers(name: str, expected: str, got: str, verdict: str) -> None:
    assert checkers.text_checker(name)("", expected, got) == verdict


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\U0001f600", "\ud800", "\xe9", "a"])
def test_surrogates_are_not_joined(text: str) -> None:
    sent = wire.unpack(wire.pack([wire.encode({text: [text]}, wire.no_reference)])[4:])
    assert wire.decode(sent[0], wire.no_reference) == {text: [text]}


def nested(depth: int, wide: bool) -> Any:
    found: Any = {}
    for n in range(depth):
        found = {n: found, "x": [n]} if wide else {n: found}
    return found


@pytest.mark.parametrize("name", ["exact", "strict", "float:1e-6", "unordered"])
@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ([nested(95, True)], [nested(95, True)]),
        ([nested(95, False)] * 50, [nested(95, False)] * 50),
        ([1] * 3, [n * ((1 << 61) - 1) for n in range(20_000)]),
        ([{n} for n in range(3000)], [{n * ((1 << 61) - 1)} for n in range(3000)]),
        ([n * ((1 << 61) - 1) for n in range(20)], [n * ((1 << 61) - 1) + 5 for n in range(20)]),
        ([10**5000] * 20, [Decimal("1e999999999")] * 20),
        ([Fraction(10**5000, 3)] * 20, [Decimal("1e-999999999")] * 20),
        ([Decimal(1)] * 20, [Fraction(3**20000, 2**30000)] * 20),
    ],
    ids=range(8),
)
def test_comparing_is_cheap_whatever_came(name: str, expected: Any, got: Any) -> None:
    begin = time.process_time()
    checkers.value_checker(name)([], expected, got)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("name", ["exact", "tokens", "unordered", "float:1e-6"])
@pytest.mark.parametrize(
    "got", ["1 " * 2_000_000, "\n" * 4_000_000, " \n" * 2_000_000, "\ufffd" * 2_000_000, "1" * 4_000_000]
)
def test_texts_are_cheap_whatever_came(name: str, got: str) -> None:
    begin = time.process_time()
    assert checkers.text_checker(name)("", "1 2 3", got) == "WA"
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text \xe9 \u4e2d\n\tmore", "plain text \xe9 \u4e2d\n\tmore"),
        ("\x1b[2J\x07\r\x00\x7f\x9b", "\\x1b[2J\\x07\\r\\x00\\x7f\\x9b"),
        ("\ud800a\udfff", "\\ud800a\\udfff"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
    ],
)
def test_details_are_printable(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert (Verdict(0.0, text, text).reason, Verdict(0.0, text, text).detail) == (shown, shown)
    assert str(VerifierError(text)) == shown
    shown.encode()


def fails_on_text(given: Any, expected: Any, got: Any) -> bool:
    return bool(got - expected == 0)


HOSTILE_ANSWERS = [
    "{10**5000, 1}", "{1, 2}", "__import__('decimal').Decimal('sNaN')", "__import__('decimal').Decimal('1e999999999')",
    "'\\ud800\\x1b[2J'", "__import__('decimal').Decimal('0.' + '3' * 20000)", "float('nan')",
]  # fmt: skip
LARGE_ANSWERS = [
    "[[]] * 650000", "['x' * 900000]", "[set() for _ in range(100000)]", "{n: {n: n} for n in range(50000)}",
    "__import__('fractions').Fraction(3**60000, 2**90000)", "'x,' * 300000",
    "[n * ((1 << 61) - 1) for n in range(40000)]",
]  # fmt: skip
FORMS = ("{}", "[{}]")
CHECKERS = ["exact", "strict", "float:1e-6", "unordered", "test_code_wire:fails_on_text"]


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_answer_ends_a_batch_or_costs_much(checker: str) -> None:
    """Such a value is wrong, and never an infrastructure error."""
    if probe.report().best is None:
        pytest.skip(f"nothing here isolates code: {probe.report().missing}")
    tests = {"style": "function", "entry_point": "f", "args": [[1]], "outs": [7], "checker": checker}
    answers = [form.format(answer) for answer in HOSTILE_ANSWERS for form in FORMS]
    # The large ones in one form, and in the other one for the next checker.
    turn = CHECKERS.index(checker)
    answers += [FORMS[(turn + i) % 2].format(answer) for i, answer in enumerate(LARGE_ANSWERS)]
    codes = [f"def f(x): return {answer}" for answer in answers]
    with CodeVerifier(servers=2, checkers=["test_code_wire:fails_on_text"]) as verifier:
        verifier(Problem(tests=tests), Completion("def f(x): return 7"))
        begin = time.process_time()
        verdicts = verifier.verify_many([(Problem(tests=tests), Completion(code)) for code in codes])
        spent = time.process_time() - begin
    wrong = [
        (code, v) for code, v in zip(codes, verdicts, strict=True) if not (isinstance(v, Verdict) and v.score == 0)
    ]
    assert wrong == []
    assert spent < 0.1 * len(codes)
    "".join(verdict.detail for verdict in verdicts if isinstance(verdict, Verdict)).encode()
