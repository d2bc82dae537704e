"""maj@k: several completions vote for an answer, and equal answers vote together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verifiers import Completion, Problem, Verifier, VerifierError

Same = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Vote:
    """One completion's."""

    answer: str | None  # None = it gives none, so it does not vote
    correct: bool


def majority(votes: Sequence[Vote], same: Same) -> float:
    """Probability that the answer with most votes is right.

    Votes for the same answer stand together: in the order they come, each joins the first answer it is the same as.
    Ties are broken by chance, so the result is a mean over the answers in front; 0 where nobody votes.

    Raises:
        ValueError: fewer than two votes.
    """
    if len(votes) < 2:
        raise ValueError(f"maj@{len(votes)} is no vote: it takes 2 samples or more (pass@1 says what one is worth)")
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
    # Members of a camp are judged alike as a rule; where the form counts too, they may not be.
    return sum(sum(vote.correct for vote in camp) / most for camp in front) / len(front)


def same_text(a: str, b: str) -> bool:
    """Equal but for white space and capitals."""
    return "".join(a.split()).casefold() == "".join(b.split()).casefold()


def same_by(verify: Verifier, problem: Problem) -> Same:
    """Equality as the verifier sees it: either answer, taken for the gold, must accept the other.

    An answer that can't be a gold equals only the same text.
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
