"""R1's format: exactly one <think> block, then exactly one <answer> block."""

from __future__ import annotations

import re
from typing import NamedTuple

from verifiers.core import Completion, Problem, Verdict

REASONS = {
    "ok": "the format holds",
    "no_tags": "none of the four tags is there",
    "missing_tag": "one of the four tags is missing",
    "repeated_tag": "a tag stands more than once (also one that is only quoted inside think)",
    "wrong_order": "all four tags once, but nested or out of order",
    "empty_think": "nothing visible between the think tags",
    "short_think": "fewer visible characters of thinking than `min_think_chars`",
    "empty_answer": "nothing visible between the answer tags",
    "text_outside": "text before, between or after the blocks (policy strict)",
}  # the closed set of reasons
_NAME = re.compile(r"[A-Za-z][\w-]{0,40}")
# What nobody sees: white space, controls, Unicode's default-ignorable characters, blanks such as Braille's, surrogates,
# private use, noncharacters and the planes that hold nothing. Fixed here, so that no Python's tables decide.
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00040000-\U0010ffff"
)
_BLANK, _SEEN = re.compile(f"[{_UNSEEN}]*"), re.compile(f"[^{_UNSEEN}]*")
_POLICIES = ("strict", "lenient")
_FEW = 64  # angle brackets
_TWICE = 2  # more of one tag make no difference
_RULES = 6  # of partial credit: each block once (2), their order, content in each (2), nothing outside


class _Tag(NamedTuple):
    start: int
    end: int
    text: str


class ThinkAnswer:
    """1 for `<think>...</think> <answer>...</answer>`, both with content and nothing but white space around them.

    A block that the prompt opened counts as opened, and one that the prompt closed too as whole, without asking for
    thinking in it. Anything else scores 0, or with `partial` the share of six rules that hold: each block's two tags
    stand exactly once (2 rules), the order is right, each block has content (2 rules), nothing stands outside. The
    reason is the first rule that is broken (see REASONS); `detail` lists all of them. It never abstains. Each tag is
    looked for by itself and no more than twice, so 1 MB of anything takes milliseconds. Known limits: it looks at the
    form only; tags in other letter case or with attributes are text like any other.

    Args:
        policy: "strict": only white space outside the blocks; "lenient": text around and between them is allowed.
        prefilled_think: the prompt itself ends in `<think>`, so the completion begins inside the block; writing the
            tag once more is `repeated_tag`. Not needed where the completion says so itself (`Completion.prefill`, as
            everything in r1lite does).
        partial: pay for each rule that holds, instead of all or nothing.
        min_think_chars: visible characters of thinking that are asked for.
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
        if "</" in before:  # the prompt's own block is no merit of the completion, and no fault
            if tags and tags[-1].start < len(before):
                return Verdict(0.0, "no_tags", "no_tags")
            broken = [reason for reason in broken if reason not in ("empty_think", "short_think")]
        if not broken:
            return Verdict(1.0, "ok")
        score = (_RULES - len(broken)) / _RULES if self.partial and tags else 0.0
        return Verdict(score, broken[0], ", ".join(broken))

    def _tags(self, text: str) -> list[_Tag]:
        """The text's tags in order; of each the first two at least."""
        if text.count("<") <= _FEW:
            return [_Tag(match.start(), match.end(), match[0]) for match in self._tag.finditer(text)]
        found = []  # the pattern is quicker, but would begin to match at every bracket of a text made of them
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
        """The reasons of the rules that do not hold, the gravest first."""
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
            # What the blocks hold, and what is outside them, can't be told without the layout: only a block that is
            # whole counts, which is the part that a beginner gets right first.
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
    """True if the block is there once, in order, and holds something."""
    return [tag.text for tag in own] == block and _visible(text, own[0].end, own[1].start, 1) > 0


def _visible(text: str, start: int, end: int, enough: int) -> int:
    """How many characters of text[start:end] can be seen; stops at `enough`."""
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
