"""What crosses the border between a submission and its judge: messages, and the comparison of values and texts."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers.sandbox import checkers, wire

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
    ],
)
def test_text_checkers(name: str, expected: str, got: str, verdict: str) -> None:
    assert checkers.text_checker(name)("", expected, got) == verdict


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\U0001f600", "\ud800", "\xe9", "a"])
def test_surrogates_are_not_joined(text: str) -> None:
    sent = wire.unpack(wire.pack([wire.encode({text: [text]}, wire.no_reference)])[4:])
    assert wire.decode(sent[0], wire.no_reference) == {text: [text]}
