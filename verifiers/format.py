"""R1's format: exactly one <think> block, then exactly one <answer> block."""

from __future__ import annotations

import re
from typing import NamedTuple

from verifiers.core import Completion, Problem, Verdict

REASONS = {
    "ok": "the format holds",
    "no_tags": "none of the four tags occurs",
    "missing_tag": "one of the four tags is missing",
    "repeated_tag": "a tag occurs more than once (also one that is only quoted inside think)",
    "wrong_order": "each of the four tags occurs once, but they are nested or out of order",
    "empty_think": "nothing visible between the think tags",
    "short_think": "fewer visible characters of thinking than `min_think_chars`",
    "empty_answer": "nothing visible between the answer tags",
    "text_outside": "text before, between or after the blocks (policy strict)",
}  # the closed set of reasons
_NAME = re.compile(r"[A-Za-z][\w-]{0,40}")
# Invisible characters: white space, controls, Unicode's default-ignorable characters, blanks such as Braille's,
# surrogates, private use, noncharacters and unassigned planes. Listed here, so that no Python's Unicode tables decide.
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00040000-\U0010ffff"
)
_BLANK, _SEEN = re.compile(f"[{_UNSEEN}]*"), re.compile(f"[^{_UNSEEN}]*")
_POLICIES = ("strict", "lenient")
_FEW = 64  # angle brackets
_TWICE = 2  # more occurrences of one tag make no difference
_RULES = 6  # of partial credit: each block once (2), their order, content in each (2), nothing outside


class _Tag(NamedTuple):
    start: int
    end: int
    text: str


class ThinkAnswer:
    """1 for `<think>...</think> <answer>...</answer>`, both with content and only white space around them.

    A block that the prompt opened counts as opened. A block that the prompt also closed counts as complete, and needs
    no thinking in it. Anything else scores 0, or with `partial` the share of six rules that hold: each block's two tags
    occur exactly once (2 rules), the order is right, each block has content (2 rules), there is no text outside. The
    reason is the first rule that is broken (see REASONS); `detail` lists all of them. It never abstains. Each tag is
    searched for by itself and at most twice, so 1 MB of any text takes milliseconds. Known limits: it checks the form
    only; tags in other letter case or with attributes are ordinary text.

    Args:
        policy: "strict": only white space outside the blocks; "lenient": text around and between them is allowed.
        prefilled_think: the prompt itself ends in `<think>`, so the completion begins inside the block; writing the
            tag again is `repeated_tag`. Not needed if the completion records this itself (`Completion.prefill`, which
            r1lite always sets).
        partial: pay for each rule that holds, instead of all or nothing.
        min_think_chars: visible characters of thinking that are required.
        think, answer: names of the two tags.
    """

    version = "3"
    kind = "style"
    reads_prefill = True

    def __init__(
        self,
        *,
        policy: str = "strict",
        prefilled_think: bool = False,
        partial: bool = False,
        min_think_chars: int = 1,
        think: str = "think",
        answer: str = "answer",
    ) -> None:
        if policy not in _POLICIES:
            raise ValueError(f"policy must be {' or '.join(_POLICIES)}, got {policy!r}")
        if min_think_chars < 1:
            raise ValueError(f"min_think_chars must be >= 1, got {min_think_chars}")
        for name in (think, answer):
            if not _NAME.fullmatch(name):
                raise ValueError(f"a tag's name is letters, digits, - and _ without brackets, got {name!r}")
        if think == answer:
            raise ValueError(f"think and answer need different tags, got {think!r} for both")
        self.policy, self.prefilled_think, self.partial = policy, prefilled_think, partial
        self.min_think_chars = min_think_chars
        self.think, self.answer = think, answer
        self._tag = re.compile(f"</?(?:{think}|{answer})>")
        self._layout = [f"<{think}>", f"</{think}>", f"<{answer}>", f"</{answer}>"]

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        before = completion.prefill or (f"<{self.think}>" if self.prefilled_think else "")
        text = before + completion.text
        tags = self._tags(text)
        broken = self._broken(text, tags)
        if "</" in before:  # the completion is neither paid nor penalised for a block that the prompt wrote
            if tags and tags[-1].start < len(before):
                return Verdict(0.0, "no_tags", "no_tags")
            broken = [reason for reason in broken if reason not in ("empty_think", "short_think")]
        if not broken:
            return Verdict(1.0, "ok")
        score = (_RULES - len(broken)) / _RULES if self.partial and tags else 0.0
        return Verdict(score, broken[0], ", ".join(broken))

    def _tags(self, text: str) -> list[_Tag]:
        """Returns the text's tags in order; of each tag at least the first two."""
        if text.count("<") <= _FEW:
            return [_Tag(match.start(), match.end(), match[0]) for match in self._tag.finditer(text)]
        found = []  # the pattern is faster, but on a text made of brackets it would start to match at each of them
        for tag in self._layout:
            end = 0
            for _ in range(_TWICE):
                start = text.find(tag, end)
                if start < 0:
                    break
                end = start + len(tag)
                found.append(_Tag(start, end, tag))
        return sorted(found)

    def _broken(self, text: str, tags: list[_Tag]) -> list[str]:
        """Returns the reasons of the rules that do not hold, the most serious first."""
        if not tags:
            return ["no_tags"]
        found = [tag.text for tag in tags]
        broken = []
        if found != self._layout:
            blocks = self._layout[:2], self._layout[2:]
            for block in blocks:
                counts = [found.count(tag) for tag in block]
                if counts != [1, 1]:
                    broken.append("repeated_tag" if max(counts) > 1 else "missing_tag")
            if not broken:
                return ["wrong_order", "text_outside"]
        if broken:
            # Without the layout, the contents of the blocks and the text outside them can't be determined. Only a
            # complete block counts, which is the part that a model learns first.
            whole = [_whole(text, [tag for tag in tags if tag.text in block], block) for block in blocks]
            contents = ["empty_think", "empty_answer"]
            return [*broken, "wrong_order", *(c for c, w in zip(contents, whole, strict=True) if not w), "text_outside"]
        think_open, think_close, answer_open, answer_close = tags
        thinking = _visible(text, think_open.end, think_close.start, self.min_think_chars)
        if thinking < self.min_think_chars:
            broken.append("short_think" if thinking else "empty_think")
        if not _visible(text, answer_open.end, answer_close.start, 1):
            broken.append("empty_answer")
        around = text[: think_open.start], text[think_close.end : answer_open.start], text[answer_close.end :]
        if self.policy == "strict" and any(part.strip() for part in around):
            broken.append("text_outside")
        return broken


def _whole(text: str, own: list[_Tag], block: list[str]) -> bool:
    """True if the block occurs once, in order, and has content."""
    return [tag.text for tag in own] == block and _visible(text, own[0].end, own[1].start, 1) > 0


def _visible(text: str, start: int, end: int, enough: int) -> int:
    """Returns the number of visible characters of text[start:end]; stops at `enough`."""
    count = 0
    while count < enough:
        first = _BLANK.match(text, start, end).end()  # type: ignore[union-attr]  # matches nothing at least
        if first >= end:
            break
        if enough - count == 1:
            return enough
        start = _SEEN.match(text, first, min(end, first + enough - count)).end()  # type: ignore[union-attr]
        count += start - first
    return count
