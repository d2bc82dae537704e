"""The math verifier on numbers: what counts as the final answer, and when it is equal."""

import json

import pytest

from verifiers import Completion, GoldError, Problem, VerifierError, resolve

pytestmark = pytest.mark.quick

EQUAL = [
    ("18", "<think>9*2</think><answer>18</answer>"),
    ("18", "<answer> $18.00 </answer>"),
    ("18", r"so \boxed{18}"),
    ("18", r"first \boxed{17}, no: \boxed{18}"),
    ("18", "because\n#### 18"),
    ("1000", "<answer>1,000</answer>"),
    ("1,000", "#### 1000"),
    ("1/2", "<answer>0.5</answer>"),
    ("0.5", r"\boxed{\frac{1}{2}}"),
    ("50%", "<answer>50%</answer>"),
    ("-3", "<answer>\u22123</answer>"),
    ("18", r"<answer>\boxed{18}</answer>"),
    ("how\n#### 1,234", "<answer>1234</answer>"),
]
WRONG = [
    ("18", "<think>18</think><answer>17</answer>", "different"),
    ("18", "<think>the answer is 18", "no_answer"),
    ("18", "<answer>18</answer><answer>19</answer>", "no_answer"),
    ("18", "<think><answer>18</answer></think>", "no_answer"),
    ("18", "<think>a</think> <think>#### 18", "no_answer"),
    ("18", r"<think>\boxed{18}</think> done", "no_answer"),
    ("18", "", "no_answer"),
    ("18", "<answer></answer>", None),
    ("18", "<answer>17 or 18</answer>", None),
    ("18", "<answer>180</answer>", "different"),
    ("18", "<answer>18/0</answer>", None),
    ("18", "<answer>1 8</answer>", None),
    ("18", "<answer>" + "9" * 100_000 + "</answer>", None),
]


@pytest.mark.parametrize(("gold", "text"), EQUAL)
def test_equal(gold, text):
    verdict = resolve("math")(Problem(answer=gold), Completion(text))
    assert (verdict.score, verdict.reason) == (1.0, "equal")
    assert text[slice(*verdict.span)].strip() == verdict.answer


@pytest.mark.parametrize(("gold", "text", "reason"), WRONG)
def test_wrong(gold, text, reason):
    verdict = resolve("math")(Problem(answer=gold), Completion(text))
    assert verdict.score == 0.0
    assert reason is None or verdict.reason == reason


@pytest.mark.parametrize("gold", [None, "", "####"])
def test_a_gold_that_cannot_be_used_is_an_error(gold):
    with pytest.raises(GoldError, match="p7"):
        resolve("math")(Problem(answer=gold, id="p7"), Completion("<answer>4</answer>"))
    assert issubclass(GoldError, VerifierError)


def test_every_gold_of_gsm8k_against_itself(shared_data):
    verify = resolve("math")
    for name, count in (("train", 7473), ("test", 1319)):
        lines = (shared_data / "gsm8k" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        assert len(rows) == count
        for row in rows:
            answer = row["answer"].rpartition("####")[2]
            wrapped = f"<think>so</think> <answer>{answer}</answer>"
            assert verify(Problem(answer=row["answer"]), Completion(wrapped)).score == 1.0, row["answer"]
            assert verify(Problem(answer=row["answer"]), Completion(row["answer"])).score == 1.0


@pytest.mark.parametrize("prompt", ["", "What is 700 + 800?", "See case B) of it."])
@pytest.mark.parametrize("letter", ["A", "B", "(C)"])
def test_a_letter_where_no_options_are(prompt, letter):
    verdict = resolve("math")(Problem(prompt, "1500"), Completion(f"<answer>{letter}</answer>"))
    assert (verdict.score, verdict.reason) == (0.0, "type_clash")
