"""Knights and knaves: who tells the truth, and who lies."""

from __future__ import annotations

import re
from collections.abc import Mapping

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.segments import answering_span

REASONS = {
    "equal": "everybody is identified correctly",
    "different": "somebody is identified wrongly",
    "incomplete": "somebody is missing",
    "hedged": "somebody is called both, or only conditionally one of them",
    "no_answer": "no answer: none, several answer blocks, unclosed thinking",
    "too_long": "the answer exceeds the limit on characters",
}  # the closed set of reasons
_MAX_CHARS = 10_000
_DRESS = re.compile(r"[*_`$]|\\(?:text|textbf|boxed|mathbf)\b|[{}]")
_STATEMENT = re.compile(
    r"\b([^\W\d_][\w'’-]{0,40})\s*(?:\bis\b|\bmust be\b|:|=|->|→|–|-)\s*(definitely\s+|both\s+)?(not\s+)?"
    r"(?:an?\s+|the\s+)?"
    r"\b(knight|knave)\b",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"((?:[^\W\d_][\w'’-]{0,40}(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*)){1,12}[^\W\d_][\w'’-]{0,40})\s+are\s+(?:all\s+|both\s+)?"
    r"(not\s+)?\b(knight|knave)s\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\b(knight|knave)s?\s*(?::|=|are\b)\s*([^.;\n:]{1,400})", re.IGNORECASE)
_UNSURE = re.compile(r"\b(?:if|or|either|maybe|perhaps|might|could|possibly|unless|suppose)\b", re.IGNORECASE)
# What somebody says, or what is (im)possible, identifies nobody: "Oliver says that Zoey is a knight".
_REPORTED = re.compile(
    r"\b(?:says|said|claim(?:s|ed)|state[sd]|thinks|thought|believe[sd]|call(?:s|ed)|(?:im|un)?(?:possible|likely)"
    r"|doubt(?:s|ed|ful)?)(?:\s+that)?[\s,:\"“'‘]*\Z",
    re.IGNORECASE,
)
_LOOK = 60  # characters
# A "not" that denies the kind of more than one person, or a question: nobody is identified.
_DENIED = re.compile(
    r"\bnot\b(?!\s+(?:an?\s+|the\s+)?(?:knight|knave))|\b(?:false|wrong|incorrect|untrue|neither)\b|\?", re.IGNORECASE
)


class KnightsKnaves:
    """1 if the answer correctly says of everybody whether they are a knight or a knave; 0 otherwise.

    The gold is `Problem.answer` in the same words ("Zoey is a knight, and Oliver is a knave.") or
    `Problem.meta["solution"]`, a map of names to "knight"/"knave" or true/false. Answers are read from the answer
    block, or from the text after the thinking, as sentences ("A is a knave", "A and B are knights"), lists
    ("(1) A: knave") or groups ("Knights: A, B"). Reasons: see REASONS. It never abstains.

    Args:
        partial: pay the share of people who are identified correctly, if everybody is named exactly once.

    Raises (when called): GoldError if the gold names nobody.
    """

    version = "3"

    def __init__(self, *, partial: bool = False) -> None:
        self.partial = partial

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        gold = _gold(problem)
        span = answering_span(completion.text)
        text = completion.text[slice(*span)] if span else ""
        if not text:
            return Verdict(0.0, "no_answer")
        if len(text) > _MAX_CHARS:
            return Verdict(0.0, "too_long", f"{len(text)} characters", span=span)
        said, rest = statements(text, set(gold))
        answer = text[:500]
        beside = rf"(?:[/=|,:&+\0]|\b(?:{'|'.join(map(re.escape, gold))})\b)\s*(?:an?\s+)?\b(?:knight|knave)\b"
        if re.search(beside, rest, re.IGNORECASE):  # "knight/knave", or another solution in other words
            return Verdict(0.0, "hedged", answer=answer, span=span)
        if _UNSURE.search(text) or _DENIED.search(text) or any(len(kinds) > 1 for kinds in said.values()):
            return Verdict(0.0, "hedged", answer=answer, span=span)
        missing = sorted(name for name in gold if name not in said)
        if missing:
            return Verdict(0.0, "incomplete", f"nothing about {', '.join(missing)}", answer, span)
        wrong = sorted(name for name, kind in gold.items() if kind not in said[name])
        score = (len(gold) - len(wrong)) / len(gold) if self.partial else float(not wrong)
        return Verdict(score, "different" if wrong else "equal", ", ".join(wrong), answer, span)


def statements(text: str, people: set[str]) -> tuple[dict[str, set[bool]], str]:
    """Returns what the text says of each person, and the text with "\0" in place of these statements.

    The first maps a lower-case name to {True} for a knight, {False} for a knave, or both. It leaves out people of whom
    the text only reports what somebody says.
    """
    text = _DRESS.sub(" ", text)
    said: dict[str, set[bool]] = {}
    identified = set()

    def add(name: str, knight: bool, at: int) -> None:
        if name.lower() in people:
            said.setdefault(name.lower(), set()).add(knight)
            if not _REPORTED.search(text[max(0, at - _LOOK) : at]):
                identified.add(name.lower())

    for match in _STATEMENT.finditer(text):
        add(match[1], (match[4].lower() == "knight") != bool(match[3]), match.start())
    for match in _GROUP.finditer(text):
        for name in re.findall(r"[^\W\d_][\w'’-]*", match[1]):
            add(name, (match[3].lower() == "knight") != bool(match[2]), match.start())
    rest = _GROUP.sub("\0", _STATEMENT.sub("\0", text))
    for match in _LISTED.finditer(text):
        names = re.findall(r"[^\W\d_][\w'’-]*", match[2])
        if all(name.lower() in people or name.lower() == "and" for name in names):
            for name in names:
                add(name, match[1].lower() == "knight", match.start())
            rest = rest.replace(match[0], "\0")
    return {name: kinds for name, kinds in said.items() if name in identified}, rest


def _gold(problem: Problem) -> dict[str, bool]:
    solution = problem.meta.get("solution")
    if isinstance(solution, Mapping):
        kinds = {str(name).lower(): str(kind).lower() for name, kind in solution.items()}
        if kinds and set(kinds.values()) <= {"knight", "knave", "true", "false"}:
            return {name: kind in ("knight", "true") for name, kind in kinds.items()}
    text = _DRESS.sub(" ", problem.answer or "")
    found = {match[1].lower(): (match[4].lower() == "knight") != bool(match[3]) for match in _STATEMENT.finditer(text)}
    if not found:
        raise GoldError(
            f"problem {problem.name!r}: neither its answer nor meta['solution'] says who is a knight or a knave"
        )
    return found
