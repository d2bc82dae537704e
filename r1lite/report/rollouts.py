"""Selects the steps and groups of completions for the page, and packs them.

A chunk holds the completions of a step, an evaluation or a set, as compressed JSON in base64. Whatever a completion
says, the page therefore only contains letters, digits, "+", "/" and "=". Positions in texts count UTF-16 units, as in
JavaScript.
"""

from __future__ import annotations

import base64
import bisect
import contextlib
import gzip
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1lite.report.tokens import Vocabulary
from r1lite.run.files import plausible
from verifiers import rows

_HEAD = re.compile(rb'\{"step": \d+, "problem_id": ("(?:[^"\\]|\\.)*")')
_MOST_STEPS = 250  # maximum number of steps per run
_FEW_STEPS = 12  # steps that are included even if each is large
_RECURRING = 12  # number of problems that are shown at all their steps
_LONGEST_LINE = 1 << 28  # bytes
_SCANNED = 400 << 20  # bytes of rollouts that are searched for recurring problems
_DETAIL, _ANSWER = 600, 400  # characters
_TEXT = 2_000_000  # maximum length of a completion; longer ones are cut, with a note
_QUESTION = 20_000  # of a question, gold or prompt, which are shown at once
_VERDICTS = 64
_ENTRY = 150  # bytes
Row = dict[str, Any]


@dataclass(slots=True)
class Chunk:
    """Packed groups of completions."""

    step: int
    label: str
    groups: int
    of: int  # total number of groups; some may be left out to save space
    data: str  # base64 of gzip of JSON
    problems: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Size in the page, including its entry in the page's head."""
        return len(self.data) + _ENTRY


def step_chunks(run: Path, vocabulary: Vocabulary | None, budget: int, *, whole: bool = False) -> list[Chunk]:
    """Packs as many steps of a training run as fit: the first, the last, and evenly spaced others.

    Args:
        budget: maximum bytes in the page.
        whole: include all steps and groups, independent of their size.
    """
    files = rows.step_files(run)
    if not files:
        return []
    followed = _recurring(files)
    share = max(1, budget // max(1, min(_FEW_STEPS, len(files))))
    found: list[Chunk] = []
    left = budget
    for place in range(len(files)) if whole else _spread(len(files)):
        step, path = files[place]
        groups = list(_groups(_read(path)))
        pack = _Packer(f"step {step}", step, vocabulary, followed)
        chunk = pack(groups) if whole else pack.within(groups, min(share, left))
        if chunk is None or (not whole and chunk.size > left):
            continue
        found.append(chunk)
        left -= chunk.size
        if not whole and (len(found) == _MOST_STEPS or left < share // 8):
            break
    return sorted(found, key=lambda chunk: chunk.step)


def evaluation_chunk(
    path: Path, step: int, label: str, budget: int, against: Path | None = None
) -> tuple[Chunk | None, list[list[Any]]]:
    """Returns the chunk of an evaluation, and for each problem [id, greedy, mean of the samples, and the same two of
    `against`]. Of several tasks, whose ids may be the same, each id begins with its task."""
    others = {_problem(row): row for row in _read(against)} if against is not None else {}
    read, groups, table = list(_read(path)), [], []
    several = len({str(row.get("task")) for row in read}) > 1
    for row in read:
        other = others.get(_problem(row))
        name = str(row.get("problem_id"))
        if several:
            name = f"{row.get('task')} {name}"
            row["problem_id"] = name
        found = [_answer(row, one, where) for one, where in _answers(row, "this" if other else "")]
        if other:
            found += [_answer(row, one, where) for one, where in _answers(other, "against")]
        groups.append(found)
        table.append([name, *_rates(row), *(_rates(other) if other else (None, None))])
    return _Packer(label, step, None, frozenset()).within([group for group in groups if group], budget), table


def _problem(row: Row) -> tuple[str, ...]:
    """What identifies a problem among those of an evaluation."""
    return tuple(str(row.get(key)) for key in ("task", "problem_id", "problem"))


def set_chunk(
    path: Path, label: str, vocabulary: Vocabulary | None, budget: int, most: int | None = None
) -> Chunk | None:
    """Packs the groups of the first rows of a data set, `most` of them; the others are counted as left out."""
    read = _read(path)
    groups = list(_groups(itertools.islice(read, most)))
    chunk = _Packer(label, 0, vocabulary, frozenset()).within(groups, budget)
    if chunk is not None:
        chunk.of += sum(1 for _ in itertools.groupby(read, key=lambda row: row.get("problem_id")))
    return chunk


def packed(value: Any) -> str:
    """Returns compressed JSON in base64; equal values give equal text. Numbers that JSON has not become null."""
    text = json.dumps(plausible(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=str)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


class _Packer:
    """Packs the chunk of one step."""

    def __init__(self, label: str, step: int, vocabulary: Vocabulary | None, first: frozenset[str]) -> None:
        self.label, self.step, self.vocabulary, self.first = label, step, vocabulary, first

    def __call__(self, groups: Sequence[Sequence[Row]], of: int | None = None) -> Chunk:
        made = [_group(group, self.vocabulary) for group in groups]
        return Chunk(
            self.step,
            self.label,
            len(groups),
            len(groups) if of is None else of,
            packed({"step": self.step, "groups": made}),
            [one["id"] for one in made],
        )

    def within(self, groups: Sequence[Sequence[Row]], budget: int) -> Chunk | None:
        """Packs as many groups as fit: recurring problems first, then a pseudo-random but fixed selection."""
        chosen = sorted(groups, key=lambda group: (_name(group) not in self.first, _draw(self.step, _name(group))))
        while chosen:
            kept = {id(group) for group in chosen}
            chunk = self([group for group in groups if id(group) in kept], len(groups))
            if chunk.size <= budget:
                return chunk
            chosen = chosen[: min(len(chosen) - 1, int(len(chosen) * budget / chunk.size))]
        return None


def _name(group: Sequence[Row]) -> str:
    return str(group[0].get("problem_id"))


def _draw(step: int, name: str) -> bytes:
    return hashlib.blake2b(f"{step}\x1f{name}".encode("utf-8", "replace"), digest_size=8).digest()


def _spread(count: int) -> Iterator[int]:
    """Yields all indices: the last, the first, and then repeatedly the middles of the gaps."""
    yield count - 1
    if count > 1:
        yield 0
    gaps = [(0, count - 1)]
    while gaps:
        further = []
        for low, high in gaps:
            if high - low > 1:
                middle = (low + high) // 2
                yield middle
                further += [(low, middle), (middle, high)]
        gaps = further


def _read(path: Path) -> Iterator[Row]:
    """Yields the readable rows; a truncated file ends there, and what is no file (a pipe might never end) has none."""
    if not path.is_file():
        return
    try:
        for _, row in rows.rows(path):
            if isinstance(row, dict):
                yield row
    except (OSError, ValueError):
        return


def _groups(read: Iterable[Row]) -> Iterator[list[Row]]:
    """Yields groups of consecutive rows with the same problem."""
    numbered = ({**row, "place": place} for place, row in enumerate(read, 1))
    for _, group in itertools.groupby(numbered, key=lambda row: row.get("problem_id")):
        yield list(group)


def _recurring(files: Sequence[tuple[int, Path]]) -> frozenset[str]:
    """Returns the problems that occur in the most steps."""
    counts: dict[str, int] = {}
    looked = 0
    for _, path in files:
        with contextlib.suppress(FileNotFoundError):  # a run that goes on removes old steps (--keep-rollouts)
            looked += path.stat().st_size * (8 if path.suffix == ".gz" else 1)
        if looked > _SCANNED:
            break
        for name in _names(path):
            counts[name] = counts.get(name, 0) + 1
    often = sorted((-count, name) for name, count in counts.items() if count > 1)
    return frozenset(name for _, name in often[:_RECURRING])


def _names(path: Path) -> set[str]:
    """Returns the problems of a file; reads only the start of each line."""
    found = set()
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                if match := _HEAD.match(line):
                    with contextlib.suppress(ValueError):
                        found.add(str(json.loads(match[1].decode("utf-8", "replace"))))
    except (OSError, EOFError, zlib.error):
        pass
    return found


def _group(group: Sequence[Row], vocabulary: Vocabulary | None) -> dict[str, Any]:
    first = group[0]
    meta = first.get("meta")
    ranked = sorted(group, key=lambda row: (_number(row.get("order")) or 0.0, -(_number(row.get("reward")) or 0.0)))
    return {
        "id": str(first.get("problem_id")),
        "q": _cut(first.get("question")),
        "gold": _cut(first.get("gold")),
        "meta": {str(key)[:60]: _text(value)[:200] for key, value in list(meta.items())[:12]}
        if isinstance(meta, dict)
        else {},
        "prompt": _cut(first.get("prompt")),
        "rows": [_row(row, vocabulary) for row in ranked],
    }


def _row(row: Row, vocabulary: Vocabulary | None) -> dict[str, Any]:
    text = _completion(row)
    cut = len(text) - _TEXT
    text = text[:_TEXT]
    at = _utf16(text)
    ids = row.get("token_ids")
    ids = ids if isinstance(ids, list) else []
    lengths = vocabulary.lengths(ids, text) if vocabulary is not None and ids else None
    found = {
        "at": row.get("place"),
        "s": row.get("sample"),
        "who": _text(row.get("who"))[:60],
        "text": text,
        "cut": max(0, cut) or None,
        "r": _number(row.get("reward")),
        "adv": _number(row.get("advantage")),
        "ok": _truth(row.get("correct")),
        "form": _truth(row.get("well_formed")),
        "end": _text(row.get("finish_reason")),
        "n": len(ids) or _number(row.get("num_tokens")),
        "v": row.get("policy_version") if isinstance(row.get("policy_version"), int) else None,
        "err": _text(row.get("error"))[:_DETAIL],
        "by": _text(row.get("rejected_by")),
        "why": _text(row.get("reason"))[:_DETAIL],
        "verdicts": [_verdict(one, at) for one in _list(row.get("verdicts"))[:_VERDICTS] if isinstance(one, dict)],
    }
    if lengths is not None:
        ends, place = [0], 0
        for length in lengths:
            place += length
            ends.append(at(place))
        found["len"] = [b - a for a, b in itertools.pairwise(ends)]
        for key, column in _TOKEN_COLUMNS.items():
            values = row.get(column)
            if isinstance(values, list) and len(values) == len(ids):
                found[key] = [_hundredth(value) for value in values]
    return {key: value for key, value in found.items() if value not in (None, "", [])} | {"text": text}


def _completion(row: Row) -> str:
    """Returns the text of a rollout, or of a set's row in any format."""
    if "completion" not in row:
        with contextlib.suppress(rows.RowError):
            return rows.completion_of(row)
    return _text(row.get("completion"))


# Of a token, in hundredths: its log-probability as sampled, as the trainer sees it, and its advantage.
_TOKEN_COLUMNS = {"lp": "logprobs", "tlp": "trainer_logprobs", "ta": "token_advantages", "te": "token_entropy"}


def _verdict(verdict: Row, at: Callable[[int], int]) -> dict[str, Any]:
    span = verdict.get("span")
    placed = None
    if isinstance(span, list | tuple) and len(span) == 2 and all(isinstance(place, int) for place in span):
        placed = [at(place) for place in span]
    found = {
        "name": _text(verdict.get("verifier"))[:80],
        "score": _number(verdict.get("score")),
        "reason": _text(verdict.get("reason"))[:80],
        "detail": _text(verdict.get("detail"))[:_DETAIL],
        "answer": _text(verdict.get("answer"))[:_ANSWER],
        "rung": _text(verdict.get("rung"))[:60],
        "span": placed,
        "flags": [_text(flag)[:60] for flag in _list(verdict.get("flags"))][:8],
        "version": _text(verdict.get("version"))[:40],
    }
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _answers(row: Row, who: str) -> Iterator[tuple[Row, str]]:
    if isinstance(row.get("greedy"), dict):
        yield row["greedy"], f"{who} greedy".strip()
    for one in _list(row.get("samples")):
        if isinstance(one, dict):
            yield one, f"{who} sample".strip()


def _answer(row: Row, answer: Row, who: str) -> Row:
    """Converts an answer of an evaluation to the form of a rollout."""
    right = _truth(answer.get("correct"))
    return {
        **{key: row.get(key) for key in ("problem_id", "question", "gold")},
        "meta": {key: row[key] for key in ("difficulty", "source") if row.get(key) is not None},
        "who": who,
        "order": (who.startswith("against"), "greedy" not in who),
        "completion": answer.get("text"),
        "correct": right,
        "well_formed": answer.get("well_formed"),
        "num_tokens": answer.get("tokens"),
        "verdicts": [
            {
                "verifier": "answer",
                "score": None if right is None else float(right),
                **{key: answer.get(key) for key in ("reason", "detail", "answer", "span")},
            }
        ],
    }


def _rates(row: Row) -> tuple[int | None, float | None]:
    greedy = row["greedy"].get("correct") if isinstance(row.get("greedy"), dict) else None
    samples = [one.get("correct") for one in _list(row.get("samples")) if isinstance(one, dict)]
    judged = [bool(one) for one in samples if one is not None]
    return None if greedy is None else int(bool(greedy)), round(sum(judged) / len(judged), 4) if judged else None


def _utf16(text: str) -> Callable[[int], int]:
    """Returns a function from a position in characters to the position in UTF-16 units."""
    if not text or max(text) <= "\uffff":
        return lambda place: min(max(place, 0), len(text))
    wide = [place for place, char in enumerate(text) if char > "\uffff"]
    return lambda place: (place := min(max(place, 0), len(text))) + bisect.bisect_left(wide, place)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _cut(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _QUESTION else f"{text[:_QUESTION]} ... ({len(text) - _QUESTION:,} more characters)"


def _number(value: Any) -> float | None:
    kept = plausible(value)
    return None if isinstance(kept, bool) or not isinstance(kept, int | float) else float(f"{kept:.5g}")


def _hundredth(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else round(max(-1e4, min(1e4, number)) * 100)


def _truth(value: Any) -> int | None:
    return None if value is None else int(bool(value))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
