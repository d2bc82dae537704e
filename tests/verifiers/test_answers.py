"""Verifiers for your own tasks: choice, exact, regex, json_schema, countdown, knights and knaves."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers import Completion, GoldError, Problem, resolve

pytestmark = pytest.mark.quick

OPTIONS = "Which is prime?\nA) 4\nB) 7\nC) nine\nD) none of these"


@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ("<think>x</think><answer>B</answer>", 1.0, "equal"),
        ("<answer>(b)</answer>", 1.0, "equal"),
        (r"so \boxed{\text{(B)}}", 1.0, "equal"),
        ("<answer>B) 7</answer>", 1.0, "equal"),
        ("<answer>7</answer>", 1.0, "equal"),
        ("<answer>**B**</answer>", 1.0, "equal"),
        ("<answer>Option B.</answer>", 1.0, "equal"),
        ("<answer>The correct answer is B</answer>", 1.0, "equal"),
        ("B", 1.0, "equal"),
        ("I compared them all at length.\nSome are even.\nThe answer is (B) since 7 is prime.", 1.0, "equal"),
        ("<answer>C</answer>", 0.0, "different"),
        ("<answer>nine</answer>", 0.0, "different"),
        ("<answer>none of these</answer>", 0.0, "different"),
        ("<answer>A or B</answer>", 0.0, "hedged"),
        ("<answer>B, C</answer>", 0.0, "hedged"),
        ("<answer>B) nine</answer>", 0.0, "hedged"),
        ("<answer>not B</answer>", 0.0, "hedged"),
        ("<answer>A B C D</answer>", 0.0, "hedged"),
        ("<answer>E</answer>", 0.0, "unparseable"),
        ("<answer>the second</answer>", 0.0, "unparseable"),
        ("<think>B", 0.0, "no_answer"),
        ("<answer>A</answer><answer>B</answer>", 0.0, "no_answer"),
        ("", 0.0, "no_answer"),
    ],
)
def test_choice(text, score, reason):
    verdict = resolve("choice")(Problem(prompt=OPTIONS, answer="B"), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


def test_choices_in_meta_and_golds_as_text():
    verify = resolve("choice")
    problem = Problem(answer="Paris", meta={"choices": ["Rome", "Paris", "Oslo"]})
    assert verify(problem, Completion("<answer>B</answer>")).score == 1.0
    assert verify(problem, Completion("<answer>It is Paris.</answer>")).score == 1.0
    assert verify(problem, Completion("<answer>Paris or Rome</answer>")).reason == "hedged"
    with pytest.raises(GoldError, match="none of the options"):
        verify(Problem(answer="Bonn", meta={"choices": ["Rome", "Paris"]}), Completion("A"))
    with pytest.raises(GoldError, match="must be a list or a map"):
        verify(Problem(answer="A", meta={"choices": 4}), Completion("A"))


@pytest.mark.parametrize(
    ("gold", "text", "options", "score", "reason"),
    [
        ("New York", "<think>x</think> <answer> New  York </answer>", {}, 1.0, "equal"),
        ("New York", "New\u200b York", {}, 1.0, "equal"),
        ("New York", "new york", {}, 0.0, "different"),
        ("New York", "new york", {"ignore_case": True}, 1.0, "equal"),
        ("ab", "a.b", {"ignore_punctuation": True}, 0.0, "different"),
        ("a b", "a, b!", {"ignore_punctuation": True}, 1.0, "equal"),
        ("x", "y", {"also": "aliases"}, 1.0, "equal"),
        ("x", "", {}, 0.0, "no_answer"),
        ("x", "x" * 200_000, {}, 0.0, "too_long"),
        ("x", "<think>x</think>", {}, 0.0, "no_answer"),
        ("*", "/", {"ignore_punctuation": True}, 0.0, "different"),
        ("*", "*", {"ignore_punctuation": True}, 1.0, "equal"),
        ("x", "None", {"also": "aliases"}, 0.0, "different"),
    ],
)
def test_exact(gold, text, options, score, reason):
    verdict = resolve("exact", **options)(Problem(answer=gold, meta={"aliases": ["y", None, "z"]}), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


def test_exact_needs_a_gold_that_can_be_seen():
    with pytest.raises(GoldError, match="only invisible characters"):
        resolve("exact")(Problem(answer="\u200b"), Completion("\u2060"))


@pytest.mark.parametrize(
    ("options", "text", "score", "reason"),
    [
        ({"pattern": r"\d{4}-\d\d"}, "<answer>2024-05</answer>", 1.0, "match"),
        ({"pattern": r"\d{4}-\d\d"}, "<answer>in 2024-05</answer>", 0.0, "no_match"),
        ({"pattern": r"\d{4}-\d\d", "search": True}, "<answer>in 2024-05</answer>", 1.0, "match"),
        ({"pattern": "(a+)+b", "timeout_s": 0.05}, "a" * 5000 + "c", 0.0, None),
        ({}, "gold", 1.0, "match"),
        ({"ignore_case": True}, "GOLD", 1.0, "match"),
    ],
)
def test_regex(options, text, score, reason):
    verdict = resolve("regex", **options)(Problem(answer="go.d"), Completion(text))
    assert verdict.score == score
    assert verdict.reason == reason or reason is None


def test_patterns_that_cannot_be_read():
    with pytest.raises(ValueError, match="can't be read"):
        resolve("regex", pattern="(")
    with pytest.raises(GoldError, match="can't be read"):
        resolve("regex")(Problem(answer="("), Completion("x"))
    with pytest.raises(GoldError, match="no pattern"):
        resolve("regex")(Problem(), Completion("x"))


SCHEMA = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True, "maxItems": 3},
        "kind": {"oneOf": [{"const": "a"}, {"pattern": "^b"}]},
    },
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["x", "y"]}},
}


@pytest.mark.parametrize(
    ("text", "score", "reason", "detail"),
    [
        ('{"name": "Ann", "age": 3}', 1.0, "valid", ""),
        ('```json\n{"name": "Ann", "age": 3.0, "tags": ["x", "y"], "kind": "b1"}\n```', 1.0, "valid", ""),
        ('{"name": "Ann"}', 0.0, "invalid", "$: 'age' is a required property"),
        ('{"name": "", "age": 3}', 0.0, "invalid", "$.name: '' should be non-empty"),
        ('{"name": "Ann", "age": true}', 0.0, "invalid", "is not of type 'integer'"),
        ('{"name": "Ann", "age": 3.5}', 0.0, "invalid", "is not of type 'integer'"),
        ('{"name": "Ann", "age": -1}', 0.0, "invalid", "-1 is less than the minimum of 0"),
        ('{"name": "Ann", "age": 1, "x": 1}', 0.0, "invalid", "the property 'x' is not allowed"),
        ('{"name": "Ann", "age": 1, "tags": ["x", "x"]}', 0.0, "invalid", "twice"),
        ('{"name": "Ann", "age": 1, "tags": ["z"]}', 0.0, "invalid", "$.tags[0]: 'z' is not one of"),
        ('{"name": "Ann", "age": 1, "kind": "c"}', 0.0, "invalid", "$.kind: 'c' is not valid under any"),
        ('{"name": "Ann", "name": "Bob", "age": 1}', 0.0, "not_json", "twice"),
        ('{"name": "Ann", "age": NaN}', 0.0, "not_json", "NaN"),
        ('Here it is: {"name": "Ann", "age": 3}', 0.0, "not_json", ""),
        ("[" * 90_000, 0.0, None, ""),
    ],
)
def test_json_schema(text, score, reason, detail):
    verdict = resolve("json_schema")(
        Problem(meta={"schema": SCHEMA}), Completion(f"<think>x</think><answer>{text}</answer>")
    )
    assert verdict.score == score
    assert verdict.reason == reason or reason is None
    assert detail in verdict.detail


def test_json_that_must_also_be_equal():
    verify = resolve("json_schema", equal=True)
    problem = Problem(answer='{"a": [1, true]}')
    assert verify(problem, Completion('{"a": [1.0, true]}')).score == 1.0
    assert verify(problem, Completion('{"a": [1, 1]}')).score == 0.0
    assert {verify(problem, Completion("[" * n + "]" * n)).score for n in (200, 500, 900, 2000)} == {0.0}
    assert verify(Problem(answer="1e308"), Completion("-1e500")).reason == "not_json"
    for gold in ("[" * 900 + "]" * 900, "1e400"):  # 1e400 would equal 1e500
        with pytest.raises(GoldError, match="not valid JSON"):
            verify(Problem(answer=gold), Completion("1"))


@pytest.mark.parametrize(
    "schema",
    [
        {"typ": "object"},
        {"properties": {"a": {"allOf": [{"minimun": 3}]}}},
        {"type": "obj"},
        {"properties": []},
        {"$ref": "#/$defs/x"},
        {"$ref": "https://example.org/schema.json"},
        {"pattern": "("},
        {"title": "abc", "$ref": "#/title"},
        {"allOf": [True], "$ref": "#/allOf/x"},
        {"items": {"$id": "http://[b"}, "$id": "http://a/"},
        {"$ref": "#/examples/0", "examples": [{"pattern": "(?:(?:a{120}){120}){120}"}]},
        {"$id": "http://a/", "examples": [{}], "items": {"$id": "b", "$ref": "#/examples/0", "examples": [{"p": 1}]}},
        4,
    ],
)
def test_schemas_that_cannot_be_used(schema):
    with pytest.raises(ValueError, match="schema"):
        resolve("json_schema", schema=schema)
    with pytest.raises(GoldError, match="its schema can't be used"):
        resolve("json_schema")(Problem(meta={"schema": schema}), Completion("{}"))


@pytest.mark.parametrize(
    ("schema", "text", "score"),
    [
        ({"multipleOf": 0.1}, "0.3", 1.0),
        ({"multipleOf": 0.5}, "9" * 400, 1.0),
        ({"multipleOf": 3}, "3" + "0" * 30, 1.0),
        ({"multipleOf": 3}, "3" + "0" * 30 + "1", 0.0),
        ({"multipleOf": 1}, "1e308", 1.0),
        ({"multipleOf": 1}, "1e999", 0.0),
        ({"type": "integer"}, "1e999", 0.0),
        ({"uniqueItems": True}, "[1, true, [1], [true]]", 1.0),
        ({"uniqueItems": True}, "[1, 1.0]", 0.0),
        ({"uniqueItems": True}, "[" + '1, "1", [2], ' * 6000 + "0]", 0.0),
        ({"pattern": "(a+)+$"}, '"' + "a" * 5000 + '!"', 0.0),  # no answer makes a pattern run for ever
        ({"patternProperties": {"^n": {"type": "number"}}, "additionalProperties": False}, '{"n1": 1}', 1.0),
        ({"patternProperties": {"^n": {"type": "number"}}, "additionalProperties": False}, '{"m1": 1}', 0.0),
        ({"patternProperties": {"^n": {"type": "number"}}}, '{"n1": "1"}', 0.0),
        ({"properties": {"a": True}, "unevaluatedProperties": False}, '{"b": 1}', 0.0),
        ({"allOf": [{"patternProperties": {"^a": True}}], "unevaluatedProperties": False}, '{"ab": 1}', 1.0),
        (
            {"if": {"required": ["a"]}, "then": {"properties": {"a": True}}, "unevaluatedProperties": False},
            '{"a": 1}',
            1.0,
        ),
        ({"prefixItems": [True], "contains": {"const": 2}, "unevaluatedItems": {"type": "string"}}, '[1, 2, "a"]', 1.0),
        ({"prefixItems": [True], "contains": {"const": 2}, "unevaluatedItems": {"type": "string"}}, "[1, 2, 3]", 0.0),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"prefixItems": [True]}}, "unevaluatedItems": False}, "[1]", 1.0),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, '{"a": 1}', 0.0),
        ({"$defs": {"n": {"$anchor": "n", "items": {"$ref": "#n"}, "type": "array"}}, "$ref": "#n"}, "[[[]]]", 1.0),
    ],
)
def test_rules_of_schemas(schema, text, score):
    assert resolve("json_schema", schema=schema, where="text")(Problem(), Completion(text)).score == score


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_every_json_value_is_equal_to_itself(value):
    text = json.dumps(value)
    assert resolve("json_schema", equal=True, where="text")(Problem(answer=text), Completion(text)).score == 1.0


COUNTDOWN = Problem(answer="24", meta={"numbers": [3, 4, 6, 6]})


@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [
        ("6*4*(6-3)/3", 0.0, "wrong_numbers"),
        ("(6 - 6 / 3) * 4", 0.0, "different"),
        ("6 * 4 / (6 / 3 - 1)", 0.0, "wrong_numbers"),
        ("(6*3 - 6) * 4 / 2", 0.0, "wrong_numbers"),
        ("6*6 - 3*4", 1.0, "equal"),
        ("6 × 6 − 3 × 4 = 24", 1.0, "equal"),
        (r"6 \times 6 - 3 \cdot 4", 1.0, "equal"),
        ("[6*6] - {4*3}", 1.0, "equal"),
        (r"\(6 \times 6 - 3 \cdot 4 = 24\)", 1.0, "equal"),
        (r"\[ 6*6 - 3*4 \]", 1.0, "equal"),
        (r"\frac{6 \cdot 4}{\frac{6}{3+3}}", 0.0, "wrong_numbers"),
        (r"6 \cdot 6 - \dfrac{3}{\frac{+4}{4 \cdot 4}}", 0.0, "wrong_numbers"),
        (r"\frac{\frac{6}{4}}{\frac{3}{6}}", 0.0, "different"),
        ("+6*6 - (+3)*4", 1.0, "equal"),
        ("6*6 - 3*4 = 25", 0.0, "unparseable"),
        ("66 - 34", 0.0, "wrong_numbers"),
        ("24", 0.0, "wrong_numbers"),
        ("6*6 - 3*", 0.0, "unparseable"),
        ("6**6 - 34", 0.0, "unparseable"),
        ("__import__('os').getcwd()", 0.0, "unparseable"),
        ("3/(6-6)*4", 0.0, "division_by_zero"),
        ("9" * 100, 0.0, "too_long"),
        ("6*6-3*4" + " " * 3000 + "1", 0.0, "too_long"),
        ("(" * 500 + "6" + ")" * 500, 0.0, "unparseable"),
        ("", 0.0, "no_answer"),
    ],
)
def test_countdown(answer, score, reason):
    verdict = resolve("countdown")(COUNTDOWN, Completion(f"<think>x</think><answer>{answer}</answer>"))
    assert (verdict.score, verdict.reason) == (score, reason)


def test_countdown_options_and_golds():
    completion = Completion("<answer>6*4</answer>")
    assert resolve("countdown", use_all=False)(COUNTDOWN, completion).score == 1.0
    assert resolve("countdown", partial=0.1)(COUNTDOWN, Completion("<answer>6+6+3+4</answer>")).score == 0.1
    assert (
        resolve("countdown")(
            Problem(meta={"nums": ["1/2", 2], "target": 1}), Completion(r"\boxed{2 * \frac{1}{2}}")
        ).score
        == 0.0
    )
    assert (
        resolve("countdown")(Problem(meta={"nums": [1, 2], "target": "1/2"}), Completion(r"\boxed{\frac{1}{2}}")).score
        == 1.0
    )
    with pytest.raises(GoldError, match="needs meta"):
        resolve("countdown")(Problem(answer="24"), completion)
    with pytest.raises(GoldError, match="can't be read"):
        resolve("countdown")(Problem(answer="x", meta={"numbers": [1]}), completion)


KNIGHTS = Problem(answer="Zoey is a knight, and Oliver is a knave.")


@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [
        ("(1) Zoey is a knight\n(2) Oliver is a knave", 1.0, "equal"),
        ("Oliver is a knave and Zoey is a knight.", 1.0, "equal"),
        ("**Zoey**: knight, **Oliver**: knave", 1.0, "equal"),
        ("Knights: Zoey. Knaves: Oliver.", 1.0, "equal"),
        ("Oliver is not a knight; Zoey is a knight.", 1.0, "equal"),
        ("Zoey and Oliver are knights", 0.0, "different"),
        ("Oliver says Zoey is a knight. Oliver is a knave.", 0.0, "incomplete"),
        ("It is impossible that Zoey is a knight. Oliver is a knave.", 0.0, "incomplete"),
        ("Both Zoey is a knight and Oliver is a knave are wrong.", 0.0, "hedged"),
        ("We can say that Zoey is a knight. Oliver, who says that Zoey is a knight, is a knave.", 0.0, "incomplete"),
        ("Zoey is a knight. Oliver is a knave, although he says: Oliver is a knave.", 1.0, "equal"),
        ("Zoey is a knave, Oliver is a knight", 0.0, "different"),
        ("Zoey is a knight", 0.0, "incomplete"),
        ("Zoey is a knight, Oliver is a knave, Oliver is a knight", 0.0, "hedged"),
        ("Zoey is a knight or a knave, Oliver is a knave", 0.0, "hedged"),
        ("If Zoey is a knight, Oliver is a knave", 0.0, "hedged"),
        ("Zoey: knight/knave, Oliver: knave", 0.0, "hedged"),
        ("Zoey = knight = knave, Oliver = knave", 0.0, "hedged"),
        ("Zoey is a knight, Oliver is a knave; alternatively Zoey knave, Oliver knight", 0.0, "hedged"),
        ("Zoey is a knight, since no knave would say that; Oliver is a knave.", 1.0, "equal"),
        ("Zoey is a knight and Oliver is a knave, because knaves lie.", 1.0, "equal"),
        ("", 0.0, "no_answer"),
    ],
)
def test_knights_and_knaves(answer, score, reason):
    verdict = resolve("knights_knaves")(KNIGHTS, Completion(f"<think>x</think><answer>{answer}</answer>"))
    assert (verdict.score, verdict.reason) == (score, reason)


def test_knights_and_knaves_golds():
    problem = Problem(meta={"solution": {"Ann": True, "Bob": "knave"}})
    assert resolve("knights_knaves")(problem, Completion("Ann is a knight. Bob is a knave.")).score == 1.0
    assert resolve("knights_knaves", partial=True)(problem, Completion("Ann and Bob are knights.")).score == 0.5
    with pytest.raises(GoldError, match="who is a knight"):
        resolve("knights_knaves")(Problem(answer="42"), Completion("x"))


def test_a_schema_whose_references_repeat_one_another_is_too_hard():
    parts = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)} | {"d30": {}}
    problem = Problem(answer=json.dumps({"$defs": parts, "$ref": "#/$defs/d0"}))
    assert resolve("json_schema")(problem, Completion("<answer>{}</answer>")).reason == "too_hard"
    many = Problem(answer=json.dumps({"items": {"type": "integer"}}))
    assert resolve("json_schema")(many, Completion(f"<answer>{list(range(9000))}</answer>")).reason == "valid"


DRAFT = "https://json-schema.org/draft/2020-12/schema"
SLOW = "^(a|aa)+$"
LONG = "a" * 60 + "!"
TWICE = {f"d{i}": {"dependentSchemas": {n: {"$ref": f"#/$defs/d{i + 1}"} for n in "ab"}} for i in range(40)} | {
    "d40": {}
}


def a_thousand_times(schema):
    levels = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 10} for i in range(3)}
    return {"$ref": "#/$defs/d0", "$defs": {**levels, "d3": schema}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"patternProperties": {SLOW: {"type": "integer"}}}, {LONG: "x"}),
        ({"not": {"pattern": f"{SLOW}|x"}}, f"{LONG}x"),
        ({"unevaluatedProperties": {}, "patternProperties": {SLOW: True}}, {LONG: 1}),
        ({"properties": {"a": {"$schema": DRAFT, "pattern": SLOW}}}, {"a": LONG}),
        ({"$schema": DRAFT, "items": {"$ref": "#"}, "pattern": SLOW}, [LONG]),
        ({"items": {"anyOf": [{"pattern": "^(a|aa)+b"}, True]}}, ["a" * 20] * 50),  # each is fast, but not all
        ({"unevaluatedProperties": False, "$ref": "#/$defs/d0", "$defs": TWICE}, {"a": 1, "b": 1}),
        ({"items": {"allOf": [{}] * 200}}, [1] * 100),
        (a_thousand_times({"anyOf": [False] * 5}), "a" * 4000),
        (a_thousand_times({"enum": [[n] for n in range(900)]}), 1),
        (a_thousand_times({"anyOf": [{"not": {"type": "string"}}] * 5}), "a" * 4000),
    ],
    ids=range(11),
)
def test_what_takes_too_long_is_no_match_and_no_mismatch(schema, value, monkeypatch):
    monkeypatch.setattr("verifiers.schema._PATTERNS_S", 0.05)
    monkeypatch.setattr("verifiers.schema._STEPS", 1_000)
    verdict = resolve("json_schema")(Problem(meta={"schema": schema}), Completion(json.dumps(value)))
    assert (verdict.score, verdict.reason) == (0.0, "too_hard")


@pytest.mark.parametrize("pattern", ["(?R)?a", r"(a)(?1)", "(?P<n>a)(?&n)", "a" * 9999])
def test_patterns_whose_work_has_no_bound_are_refused(pattern):
    with pytest.raises(GoldError, match=r"calls itself|plain characters in a row"):
        resolve("regex")(Problem(answer=pattern), Completion("<answer>a</answer>"))
    assert resolve("regex")(Problem(answer=r"[(?R)]\(?R"), Completion("<answer>R(R</answer>")).score == 1.0


@pytest.mark.parametrize("number", ["1e99999999", "1e-9999999", "9" * 5000])
def test_countdown_reads_no_number_that_only_its_digits_make_large(number):
    for numbers, target in (([1, number], "3"), ([1, 2], number)):
        with pytest.raises(GoldError, match="can't be read"):
            resolve("countdown")(Problem(answer=target, meta={"numbers": numbers}), Completion("<answer>1+2</answer>"))


@pytest.mark.parametrize("text", ["C or 5", "(C) or 9", "C and 5", "5 (C)", "either C or 3"])
def test_a_letter_beside_the_text_of_another_option_is_hedged(text):
    problem = Problem("What is it?\n(A) 3\n(B) 5\n(C) 8\n(D) 9", "C")
    assert resolve("choice")(problem, Completion(f"<answer>{text}</answer>")).reason == "hedged"
    for good in ("C", "C) 8", "8 (C)", "C, since 3 + 5 = 8"):
        assert resolve("choice")(problem, Completion(f"<answer>{good}</answer>")).score == 1.0


COLORS = ["red", "green", "blue", "red, blue", "a car", "m or n", "5 g", "x", "lime", "violet"]


@pytest.mark.parametrize(
    "text",
    [
        *("B or c", "B and d", "B/c", "B, c, d, a", "B or possibly c", "Either B or d", "B maybe c", "B; c", "B, (c)"),
        *(
            "B) green c) blue",
            "B) green, blue",
            "B) green or blue",
            "B or I",
            "(B) or (I)",
            "B, I.",
            "B oder c",
            "B ou d",
        ),
        *("B 或 c", "B and also c", "green (B), c", "B perhaps d.", "B, or (d)", "B & d"),
    ],
)
def test_another_letter_or_text_beside_the_chosen_one_is_hedged(text):
    problem = Problem(answer="B", meta={"choices": COLORS})
    assert resolve("choice")(problem, Completion(f"<answer>{text}</answer>")).reason == "hedged"


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        *(
            ("B", text)
            for text in ("(B) because green has a longer wave", "B. green", "The answer is (B)", "B, I think")
        ),
        *(
            ("B", text)
            for text in ("B) green, a colour", "B, as I said", "B: green and a leaf", "B, o verde", "B y es verde")
        ),
        *(
            ("B", text)
            for text in ("B, e é verde", "B (green)", "b", "b)", "**B**", "B, since a + b = c", "B, und a gilt")
        ),
        *(("D", text) for text in ("D) red, blue", "D, red, blue", "red, blue", "(D) red, blue.")),
        *(("E", text) for text in ("E) a car", "E, a car", "a car")),
        *(("F", text) for text in ("F) m or n", "F: m or n")),
        *(("G", text) for text in ("G) 5 g", "G, 5 g", "G")),
        *(("I", text) for text in ("I", "(I)", "I) lime", "I. lime")),
    ],
)
def test_a_letter_with_its_own_text_or_a_reason_is_chosen(gold, text):
    problem = Problem(answer=gold, meta={"choices": COLORS})
    assert resolve("choice")(problem, Completion(f"<answer>{text}</answer>")).reason == "equal"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "hedged") for text in (r"It is \boxed{A} or \boxed{B}.", "\\boxed{A}\n\\boxed{B}", "#### A\n#### B")),
        *((text, "hedged") for text in ("The answer is A. The answer is B.", "<answer>B</answer> or maybe C")),
        *((text, "hedged") for text in (r"\boxed{B}. No wait, it is A.", r"Either A or \boxed{B}", "#### B\nOr A")),
        *(
            (text, "equal")
            for text in (r"First \boxed{A}. Wait, that is wrong. So \boxed{B}.", r"\boxed{B}, \boxed{B}")
        ),
        *((text, "equal") for text in (r"\boxed{7} of them. The answer: \boxed{B}", r"\boxed{B}, or green, as I said")),
        *(
            (text, "equal")
            for text in (r"\boxed{B} and A is wrong", "A or B? <answer>B</answer>", r"\boxed{B} (green)")
        ),
    ],
)
def test_another_option_in_a_second_answer_is_hedged(text, reason):
    problem = Problem(answer="B", meta={"choices": COLORS})
    assert resolve("choice")(problem, Completion(text)).reason == reason


@pytest.mark.parametrize(
    "text", ["\n" * 300_000 + "not ", "B" + " \n" * 300_000 + "x", "x" + "\n" * 300_000 + "<answer>B</answer>"]
)
def test_long_runs_of_white_space_take_linear_time(text):
    before = time.process_time()
    verdict = resolve("choice")(Problem(answer="B", meta={"choices": COLORS}), Completion(text))
    resolve("countdown")(COUNTDOWN, Completion(text))
    assert time.process_time() - before < 5  # seconds; a tenth of it took over 20
    assert verdict.span is None or text[slice(*verdict.span)].strip()[:1] in "nBx"


@pytest.mark.parametrize("verifier", ["choice", "math"])
def test_a_gold_that_is_none_of_the_options_is_refused(verifier):
    problem = Problem("What is it?\n(A) 3\n(B) 5\n(C) 8\n(D) 9", "E")
    with pytest.raises(GoldError, match="none of the options A, B, C, D"):
        resolve(verifier)(problem, Completion("<answer>E</answer>"))


@pytest.mark.parametrize(
    "question",
    [
        r"Find it. $\textbf{(A) }4\qquad \textbf{(B) }5\qquad\textbf{(C) }6\qquad\textbf{(D) }7$",
        "Which? A) 4, B) 5,C) 6",
        "Which? (A) 4 (B) 5(C) 6",
        "Which? **A)** 4 **B)** 5 **C)** 6",
        "Which? A．4 B．5 C．6",
    ],
)
def test_options_are_read_whatever_is_between_them(question):
    verify = resolve("math")
    assert verify(Problem(question, "C"), Completion(r"\boxed{6}")).detail == "by the option's text"
    assert verify(Problem(question, "C"), Completion(r"\boxed{5}")).score == 0.0


def test_a_letter_beside_the_options_that_are_read_may_be_one():
    problem = Problem("Teams: A. Red and B. Blue. Which one wins against C or D?", "C")
    assert resolve("math")(problem, Completion("<answer>C</answer>")).score == 1.0
