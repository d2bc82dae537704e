"""maj@k: several completions vote for an answer, and votes for equal answers are added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verifiers import Completion, Problem, Verifier, VerifierError

Same = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of one completion."""

    answer: str | None  # None: no answer, so no vote
    correct: bool


def majority(votes: Sequence[Vote], same: Same) -> float:
    """Returns the probability that the answer with the most votes is right.

    Each vote joins the first earlier answer that it equals. Ties are broken at random, so the result is a mean over
    the leading answers. It is 0 if there are no votes.

    Raises:
        ValueError: fewer than two votes.
    """
    if len(votes) < 2:
        raise ValueError(f"maj@{len(votes)} is no vote: it needs at least 2 samples (use pass@1 for one)")
    camps: list[list[Vote]] = []
    for vote in votes:
        if vote.answer is None:
            continue
        camp = next((camp for camp in camps if same(str(camp[0].answer), vote.answer)), None)
        if camp is None:
            camps.append([vote])
        else:
            camp.append(vote)
    if not camps:
        return 0.0
    most = max(map(len, camps))
    front = [camp for camp in camps if len(camp) == most]
    # Votes for one answer usually have the same verdict, unless the verdict includes the format.
    return sum(sum(vote.correct for vote in camp) / most for camp in front) / len(front)


def same_text(a: str, b: str) -> bool:
    """Compares two answers, ignoring white space and case."""
    return "".join(a.split()).casefold() == "".join(b.split()).casefold()


def same_by(verify: Verifier, problem: Problem) -> Same:
    """Returns an equality by the verifier: each answer, used as the gold, must accept the other.

    An answer that can't be used as a gold equals only the same text.
    """
    known: dict[tuple[str, str], bool] = {}

    def accepts(gold: str, answer: str) -> bool:
        if (gold, answer) not in known:
            asked = Problem(
                prompt=problem.prompt, answer=gold, language=problem.language, id=problem.id, meta=problem.meta
            )
            try:
                verdict = verify(asked, Completion(f"<answer>{answer}</answer>"))
                known[gold, answer] = verdict.score == 1.0
            except VerifierError:
                known[gold, answer] = False
        return known[gold, answer]

    return lambda a, b: same_text(a, b) or (accepts(a, b) and accepts(b, a))
