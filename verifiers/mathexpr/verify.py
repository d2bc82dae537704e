"""The `math` verifier: is the final answer the gold's number?"""

from __future__ import annotations

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.extract import final_answer
from verifiers.mathexpr.number import read_number


class MathVerifier:
    """1 if the completion's final answer equals `Problem.answer` as an exact number, else 0.

    The gold may be a number or a worked solution that ends in `#### N` (GSM8K). Integers, decimals, fractions and
    percentages are compared exactly. Reasons: `equal`, `different`, `no_answer`, `unparseable`.

    Raises (when called): GoldError if the gold is no number.
    """

    version = "1"

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        gold = read_number((problem.answer or "").rpartition("####")[2])
        if gold is None:
            raise GoldError(f"problem {problem.id or problem.prompt[:60]!r}: the gold {problem.answer!r} is no number")
        gold_type = "integer" if gold.denominator == 1 else "rational"
        span = final_answer(completion.text)
        if span is None:
            return Verdict(0.0, "no_answer", gold_type=gold_type)
        answer = completion.text[slice(*span)].strip()
        value = read_number(answer)
        if value is None:
            return Verdict(0.0, "unparseable", answer=answer, span=span, gold_type=gold_type)
        score, reason = (1.0, "equal") if value == gold else (0.0, "different")
        return Verdict(score, reason, f"gold {gold}", answer, span, gold_type, "number")
