"""The format verifier: one <think> block, then one <answer> block."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers import Completion, Problem, resolve

TABLE = [
    ("<think>a</think><answer>4</answer>", 1.0, "ok"),
    ("  <think>\na\n</think>\n\n<answer> 4 </answer>\r\n", 1.0, "ok"),
    ("4", 0.0, "no_tags"),
    ("", 0.0, "no_tags"),
    ("<think>a</think>4", 0.0, "missing_tag"),
    ("<answer>4</answer>", 0.0, "missing_tag"),
    ("<answer>4</answer><think>a</think>", 0.0, "wrong_order"),
    ("<think>a<answer>4</think></answer>", 0.0, "wrong_order"),
    ("<think>a<answer>4</answer></think>", 0.0, "wrong_order"),
    ("<think>a<think>b</think></think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>I write <answer> later</think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>a<answer>3</answer></think><answer>4</answer>", 0.0, "repeated_tag"),
    ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0, "repeated_tag"),
    ("<think>a</think><answer>4", 0.0, "missing_tag"),
    ("<think>\u2800\u200d</think><answer>4</answer>", 0.0, "empty_think"),
    ("<think></think><answer>4</answer>", 0.0, "empty_think"),
    ("<think> \u200b\n</think><answer>4</answer>", 0.0, "empty_think"),
    ("<think>a</think><answer>\ufeff</answer>", 0.0, "empty_answer"),
    ("so <think>a</think><answer>4</answer>", 0.0, "text_outside"),
    ("<think>a</think> so <answer>4</answer>", 0.0, "text_outside"),
    ("<think>a</think><answer>4</answer> done", 0.0, "text_outside"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("text", "score", "reason"), TABLE)
def test_table(text, score, reason):
    verdict = resolve("format")(Problem(), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


@pytest.mark.quick
def test_prefilled_think():
    verify = resolve("format", prefilled_think=True)
    assert verify(Problem(), Completion("a</think><answer>4</answer>")).score == 1.0
    assert verify(Problem(), Completion("<think>a</think><answer>4</answer>")).reason == "repeated_tag"


LENIENT = [
    ("so <think>a</think> hence <answer>4</answer> done", 1.0, "ok"),
    ("<think>a</think><answer> </answer>", 0.0, "empty_answer"),
    ("<answer>4</answer><think>a</think>", 0.0, "wrong_order"),
    ("so 4", 0.0, "no_tags"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("text", "score", "reason"), LENIENT)
def test_lenient_allows_text_around(text, score, reason):
    verdict = resolve("format", policy="lenient")(Problem(), Completion(text))
    assert (verdict.score, verdict.reason) == (score, reason)


PARTIAL = [  # each of six rules: think once, answer once, order, think filled, answer filled, nothing outside
    ("<think>a</think><answer>4</answer>", 6, "ok", ""),
    ("so <think>a</think><answer>4</answer>", 5, "text_outside", "text_outside"),
    ("so <think></think><answer></answer>", 3, "empty_think", "empty_think, empty_answer, text_outside"),
    ("<answer>4</answer><think>a</think>", 4, "wrong_order", "wrong_order, text_outside"),
    ("<think>a</think>4", 2, "missing_tag", "missing_tag, wrong_order, empty_answer, text_outside"),
    ("4", 0, "no_tags", "no_tags"),
    ("<think>", 0, "missing_tag", "missing_tag, missing_tag, wrong_order, empty_think, empty_answer, text_outside"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("text", "held", "reason", "detail"), PARTIAL)
def test_partial_credit(text, held, reason, detail):
    verdict = resolve("format", partial=True)(Problem(), Completion(text))
    assert (verdict.score, verdict.reason, verdict.detail) == (pytest.approx(held / 6), reason, detail)


@pytest.mark.quick
@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "a", " ", "\u200b"]), max_size=9))
def test_partial_credit_is_full_exactly_where_the_format_holds(pieces):
    completion = Completion("".join(pieces))
    whole, partial = resolve("format")(Problem(), completion), resolve("format", partial=True)(Problem(), completion)
    assert (whole.score == 1.0) == (partial.score == 1.0)
    assert whole.reason == partial.reason


@pytest.mark.quick
def test_other_tags():
    verify = resolve("format", think="reasoning", answer="final-answer")
    assert verify(Problem(), Completion("<reasoning>a</reasoning><final-answer>4</final-answer>")).score == 1.0
    assert verify(Problem(), Completion("<think>a</think><answer>4</answer>")).reason == "no_tags"


@pytest.mark.quick
def test_a_minimum_of_thinking():
    verify = resolve("format", min_think_chars=5)
    assert verify(Problem(), Completion("<think>a b c \u200b</think><answer>4</answer>")).reason == "short_think"
    assert verify(Problem(), Completion("<think>2+2=4</think><answer>4</answer>")).score == 1.0


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "lax"}, "policy must be strict or lenient"),
        ({"think": "<t>"}, "a tag's name"),
        ({"think": "answer"}, "different tags"),
        ({"min_think_chars": 0}, "min_think_chars"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        resolve("format", **options)


# (piece that fills 1 MB of thinking, reason): every one is at its end before a quadratic scan would be under way.
# Their times are measured by benchmarks/hostile_text.py.
HOSTILE = [
    ("<think>", "repeated_tag"),
    ("</think>", "repeated_tag"),
    ("</answer><think>", "repeated_tag"),
    ("<answer></answer>", "repeated_tag"),
    *(
        (piece, "ok")
        for piece in ("<", "</", "<think", "</answer", "think>", "<think<answer", "<Think>", "a ", "\u4e00<")
    ),
    *(
        (piece, "empty_think")
        for piece in (" ", "\u200b", "\xad", "\x01", "\ue000", "\ufeff \t", "\U000e0001", "\U0001d173")
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("piece", "reason"), HOSTILE)
def test_a_hostile_megabyte(piece, reason):
    text = f"<think>{piece * (1_000_000 // len(piece))}</think><answer>4</answer>"
    assert resolve("format")(Problem(), Completion(text)).reason == reason


def simply(text, policy="strict", least=1):
    """The same format, implemented as plainly as possible: returns (whether the score is 1, the reason)."""
    tags = list(re.finditer("</?(?:think|answer)>", text))
    names = [tag[0] for tag in tags]
    if not tags:
        return "no_tags"
    for name in ("think", "answer"):
        counts = names.count(f"<{name}>"), names.count(f"</{name}>")
        if counts != (1, 1):
            return "repeated_tag" if max(counts) > 1 else "missing_tag"
    if names != ["<think>", "</think>", "<answer>", "</answer>"]:
        return "wrong_order"
    seen = [
        sum(char.isprintable() and not char.isspace() and char not in "\u2800\u3164\u115f\u1160\uffa0" for char in part)
        for part in (text[tags[0].end() : tags[1].start()], text[tags[2].end() : tags[3].start()])
    ]
    if seen[0] < least:
        return "short_think" if seen[0] else "empty_think"
    if not seen[1]:
        return "empty_answer"
    outside = text[: tags[0].start()] + text[tags[1].end() : tags[2].start()] + text[tags[3].end() :]
    return "text_outside" if policy == "strict" and outside.strip() else "ok"


PIECES = [
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    "<",
    "think>",
    "a",
    "字",
    " ",
    "\n",
    "\u200b",
    "\u2800",
    "\xad",
]


@pytest.mark.quick
@given(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
        st.tuples(*[st.lists(st.sampled_from(PIECES[4:]), max_size=4).map("".join)] * 5).map(
            lambda p: f"{p[0]}<think>{p[1]}</think>{p[2]}<answer>{p[3]}</answer>{p[4]}"
        ),
    ),
    st.sampled_from(["strict", "lenient"]),
    st.integers(1, 4),
)
def test_it_agrees_with_the_plain_definition(text, policy, least):
    verdict = resolve("format", policy=policy, min_think_chars=least)(Problem(), Completion(text))
    assert verdict.reason == simply(text, policy, least)
    assert verdict.score == float(verdict.reason == "ok")


def test_what_can_be_seen():
    """For all characters, follows Unicode's own definition, except for invisible and unassigned ones."""
    verify = resolve("format")
    # Signs that embrace digits and the like are drawn; fillers, selectors and the joiner are letters or marks by name.
    drawn = {0x110BD, 0x110CD, *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
    hidden = {
        0x34F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        0x2800,
        0x3164,
        *range(0xFE00, 0xFE10),
        0xFFA0,
    }
    unseen = []
    for code in range(0x110000):
        char = chr(code)
        kind = unicodedata.category(char)
        if kind == "Cn" or 0x13430 <= code < 0x13460:  # later versions of Unicode give meanings
            continue
        if (kind[0] not in "CZ" or code in drawn) and code not in hidden and code < 0xE0000:
            found = verify(Problem(), Completion(f"<think>{char}</think><answer>4</answer>"))
            assert found.score == 1.0, hex(code)
        else:
            unseen.append(char)
    for start in range(0, len(unseen), 500):  # one that can be seen would be enough for the score
        part = "".join(unseen[start : start + 500])
        found = verify(Problem(), Completion(f"<think>{part}</think><answer>4</answer>"))
        assert found.score < 1.0, (hex(ord(part[0])), hex(ord(part[-1])))
