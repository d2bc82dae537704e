"""The part of a reply that the prompt holds: recognised by the prompt's end, and read by every verifier."""

import pytest

from verifiers import Completion, Problem, Reward, Verdict, resolve
from verifiers.end_tokens import END_TOKENS, without_end
from verifiers.prefill import as_read, prefill_of
from verifiers.reward import score_one
from verifiers.scoring import score_many

pytestmark = pytest.mark.quick
RIGHT = "so 4</think> <answer>4</answer>"
SUM = Problem("2+2?", "4")


@pytest.mark.parametrize(
    ("prompt", "prefill"),
    [
        ("", ""),
        ("User: 2+2? Assistant:", ""),
        ("<｜Assistant｜><think>\n", "<think>"),
        ("Assistant: <think>", "<think>"),
        ("<thinking>\n\n", "<thinking>"),
        ("assistant\n<think>\n\n</think>\n\n", "<think></think>"),
        ("<｜Assistant｜></think>", "<think></think>"),
        ("Write <think> and </think>. Assistant:", ""),
        ("<unthink>", ""),
    ],
)
def test_a_prompts_end_tells(prompt, prefill):
    assert prefill_of(prompt) == prefill


@pytest.mark.parametrize(
    ("prefill", "text", "score", "reason"),
    [
        ("<think>", RIGHT, 1.0, "ok"),
        ("<think>", "<think>" + RIGHT, 0.0, "repeated_tag"),
        ("<think>", "<answer>4</answer>", 0.0, "missing_tag"),
        ("<think>", "</think> <answer>4</answer>", 0.0, "empty_think"),
        ("", RIGHT, 0.0, "missing_tag"),
        ("<think></think>", "<answer>4</answer>", 1.0, "ok"),
        ("<think></think>", "<think>so 4</think> <answer>4</answer>", 0.0, "repeated_tag"),
        ("<think></think>", "4 <answer>4</answer>", 0.0, "text_outside"),
        ("<think></think>", "<answer> </answer>", 0.0, "empty_answer"),
        ("<think></think>", "4", 0.0, "no_tags"),
    ],
)
def test_the_format_counts_it(prefill, text, score, reason):
    completion = Completion(text, prefill=prefill)
    for options in ({}, {"prefilled_think": True} if prefill == "<think>" else {}):  # once, who ever says it
        verdict = resolve("format", **options)(SUM, completion)
        assert (verdict.score, verdict.reason) == (score, reason)
        assert Reward("format", options={"format": options})(SUM, completion).reward == score


def test_partial_credit_pays_nothing_for_the_prompts_own_tags():
    verify = resolve("format", partial=True)
    assert verify(SUM, Completion("4", prefill="<think></think>")).score == 0.0
    assert verify(SUM, Completion("x <answer>4</answer>", prefill="<think></think>")).score == pytest.approx(5 / 6)


@pytest.mark.parametrize("name", ["math", "exact", "regex", "choice"])
def test_an_answer_within_the_open_reasoning_does_not_count(name):
    options = {"pattern": "4"} if name == "regex" else {}
    problem = Problem("?", "A" if name == "choice" else "4")
    said = f"the answer is {problem.answer}"
    reward = Reward(name, options={name: options})
    assert reward(problem, Completion(f"x</think>{problem.answer}", prefill="<think>")).reward == 1.0
    assert reward(problem, Completion(said, prefill="<think>")).reward == 0.0


class Many:
    """A verifier whose detail is the text and whose span is its last character; in batches too."""

    version = "1"

    def __call__(self, problem, completion):
        text = completion.text
        return Verdict(1.0, "ok", text, span=(len(text) - 1, len(text)))

    def verify_many(self, pairs):
        return [self(*pair) for pair in pairs]


@pytest.mark.parametrize("workers", [0, 1])
def test_spans_are_those_of_the_completions_own_text(workers):
    pairs = [(SUM, Completion(RIGHT, prefill=prefill)) for prefill in ("", "<think>", "<think></think>")]
    reward = Reward("math + many", verifiers={"many": Many()} if not workers else {"many": resolve("math")})
    found = score_many(reward, pairs, workers=workers)
    single = [score_one(reward, *pair) for pair in pairs]
    for scores in (found, single):
        spans = [{name: verdict.span for name, verdict in score.verdicts.items()} for score in scores]
        assert spans[0] == spans[1] == spans[2]
        assert RIGHT[slice(*spans[0]["math"])] == "4"
    if not workers:
        assert [score.verdicts["many"].detail for score in found] == [RIGHT, "<think>" + RIGHT, RIGHT]
    assert as_read(as_read(pairs[1][1])) == as_read(pairs[1][1])  # once


@pytest.mark.parametrize("end", END_TOKENS)
def test_what_stands_behind_a_turns_end_is_no_part_of_the_reply(end):
    assert without_end(f"<answer>4</answer>{end}") == "<answer>4</answer>"
    assert without_end(f"<answer>4</answer>{end}\nuser\n2+2?") == "<answer>4</answer>"
    assert without_end(f"no{end}<answer>4</answer>{end}") == "no"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4", "4"),
        ("4</s>", "4"),
        ("4</s></s>", "4"),
        ("<s>5</s> 4", "<s>5</s> 4"),  # HTML's
        ("4<|end|>", "4"),
        ("a<|end|><|start|>x<|message|>4<|return|>", "a<|end|><|start|>x<|message|>4"),
        ("4<pad><pad>", "4"),
        ("4 [EOS] [PAD]\n", "4"),
        ("the <pad> token is 4", "the <pad> token is 4"),
        ("4" + "<pad>" * 5000, None),
        ("<|im_start|>4", "<|im_start|>4"),
        ("4</s> <s>5</s>", "4"),
        ("<s>" + "</s>" * 300_000, "<s>" + "</s>" * 300_000),  # in linear time: it took 17 s
    ],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_ends_that_are_words_too(text, said):
    found = without_end(text)
    assert found == said if said is not None else found.startswith("4")
