"""Multiple choice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.extract import final_answers
from verifiers.segments import answering_span, stripped

REASONS = {
    "equal": "the right option",
    "different": "another option",
    "hedged": "several options",
    "unparseable": "an answer that matches no option",
    "no_answer": "no answer: none, several answer blocks, unclosed thinking",
}  # the closed set of reasons
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DRESS = re.compile(r"\\(?:text|mathrm|textbf|mathbf|boxed|rm|bf)\b|[{}$*`~_]|\\[()\[\]]")
_LABEL = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+|right\s+|final\s+|best\s+)?(?:option|choice|answer)\s*+(?:is|:)?\s*+)*+",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[(\[【（]?\s*([A-Za-z])\s*(?:[)\]】）.:,;、。]+|$|\s+-\s+|\s*(?=\n))")
_ALONE = re.compile(r"(?<![\w'’])\(?([A-Z])\)?(?![\w'’])")
# At the beginning of a line, or after punctuation, two blanks, or a blank before a bracket. Each blank is read once.
_OPTION = re.compile(
    r"(?:^[^\S\n]*+|(?:[;,.?:]|(?<!\s)(?:\n|\s(?=[\s(])))\s*+)[(\[]?([A-Z])[)\].:]\s*+(?=\S)", re.MULTILINE
)
_NOT = re.compile(r"\b(?:not|isn't|neither|nor|except|wrong|incorrect)\b|n't\b", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"\b(?:answer|option|choice)\b[^\n.]{0,20}?(?:\bis\b|:)\s*[*$({\[\s]*(?:\\text\{)?\(?([A-Z])\b(?!['’])"
)
_WORDS = r"or|and|oder|und|ou|et|o|y|e|lub|или|и|veya"
_OR = re.compile(rf"(?:^|\s)(?:{_WORDS})\s+|[/|&或和]\s*")
# A small letter, or an I, that is offered as another option: "or c", ", c, d", "maybe c", "/c", " c) blue". A word
# behind it makes it an article or a pronoun: "and a car", ", I think".
_ALSO = re.compile(
    rf"(?:^\s*[/|&+]|[,;、，]|\b(?:{_WORDS}|maybe|perhaps|possibly|also)\s|[或和])\s*[(\[]?([a-zI])[)\]]?"
    rf"(?=\s*(?:$|[,;.、，/|&)]|(?:{_WORDS})\s))|(?:^|[\s,;])\(?([a-zI])\)(?!\w)"
)
# Another option right behind the answer, "or maybe C", "Wait, it is C", and right before it: "either C or".
_OFFERS = r"(?i:\b(?:or|oder|ou|o|lub|или|veya)\b)|或"
_BEHIND = re.compile(
    rf"(?:</answer>|[\s,;.*$)}}\]])*+(?:{_OFFERS}|(?i:maybe|perhaps|possibly|(?:no\W{{1,3}})?wait|actually)\b)"
    r"[^.\n]{0,40}?(?<![\w'’])([A-HJ-Z])(?![\w'’])"
)
_BEFORE = re.compile(rf"(?<![\w'’])([A-HJ-Z])[)*$}}\]]*\s*(?:{_OFFERS})[\s*$([{{]*(?:\\\w+\s*\{{\s*|<answer>\s*)?\Z")
_BESIDE = 80  # characters
_MAX_OFFER = 2000  # characters of an answer


class Choice:
    """1 if the one option chosen is `Problem.answer`, 0 otherwise.

    The gold is a letter ("B", "(b)") or the text of an option. Options are read from `Problem.meta["choices"]` (a list,
    or a map of letters to texts), or from the prompt's "A) ... B) ..." lines. The answer may be a letter in any of the
    usual notations, a letter with its option's text, or the text alone. It is looked for in the answer block, in a box,
    after `####`, and after "the answer is". Reasons: see REASONS. A letter beside another option's letter or
    text is `hedged`, and so is another option in a second box, a second `####`, or right after the answer. It never
    abstains. Known limits: single choice only; letters are Latin.

    Raises (when called): GoldError if the gold is none of the options.
    """

    version = "4"

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        options = read_options(problem)
        gold = self._gold(problem, options)
        offer, span, beside = self._offer(completion.text)
        if not offer:
            return Verdict(0.0, "no_answer")
        found, reason = chosen(offer, options)
        more = [chosen(other, options) for other in beside]
        if found and any(letter not in (None, found) or why == "hedged" for letter, why in more):
            found, reason = None, "hedged"
        if found is None:
            return Verdict(0.0, reason, answer=offer[:200], span=span)
        reason = "equal" if found == gold else "different"
        return Verdict(float(found == gold), reason, f"chose {found}", offer[:200], span)

    def _gold(self, problem: Problem, options: Mapping[str, str]) -> str:
        text = str(problem.answer or "").strip()
        letter = re.fullmatch(r"[(\[]?([A-Za-z])[)\].:]?", text)
        if letter and (not options or letter[1].upper() in options):
            return letter[1].upper()
        same = [key for key, option in options.items() if _plain(option) == _plain(text)] if text else []
        if len(same) == 1:
            return same[0]
        raise GoldError(
            f"problem {problem.name!r}: the gold {text!r} is none of the options {', '.join(options) or '(none given)'}"
        )

    def _offer(self, text: str) -> tuple[str, tuple[int, int] | None, list[str]]:
        """Returns the answer ("" if there is none), its span, and other final answers that must agree with it."""
        found = final_answers(text)
        span = found.span
        if span is not None and text[slice(*span)].strip():
            span = stripped(text, *span)
            beside = [text[slice(*other)][:_MAX_OFFER] for other in (*found.others, *found.joint)]
            behind, before = _BEHIND.match(text, span[1]), _BEFORE.search(text[max(0, span[0] - _BESIDE) : span[0]])
            beside += [match[1] for match in (behind, before) if match]
            return text[slice(*span)][:_MAX_OFFER], span, beside
        span = answering_span(text)
        rest = text[slice(*span)] if span else ""
        if span is None or not rest:
            return "", None, []
        if len(rest) <= 200 and "\n" not in rest:
            return rest, span, []
        announced = list(_ANNOUNCED.finditer(text, max(span[0], span[1] - _MAX_OFFER), span[1]))
        if not announced:
            return "", None, []
        letters = sorted({match[1] for match in announced})
        return " or ".join(letters), (announced[0].start(1), announced[-1].end(1)), []


def chosen(offer: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    """Returns (the letter that the answer chooses, ""), or (None, the reason why it chooses none)."""
    text = unicodedata.normalize("NFKC", _DRESS.sub("", offer)).strip()
    whole = [key for key, option in options.items() if _plain(option) == _plain(text)]
    if len(whole) == 1:
        return whole[0], ""
    text = text[_LABEL.match(text).end() :]  # type: ignore[union-attr]  # it matches the empty text
    if _NOT.search(text) or "?" in text:
        return None, "hedged" if _ALONE.search(text) else "unparseable"
    allowed = set(options) or set(_LETTERS)
    first = _LETTER.match(text)
    letters = {letter for letter in _ALONE.findall(text) if letter in allowed and letter != "I"}
    if first and first[1].upper() in allowed:
        letter, rest = first[1].upper(), text[first.end() - first[0].endswith((",", ";")) :]
    elif len(letters) == 1:
        (letter,) = letters
        rest = _ALONE.sub(lambda found: " " if found[1] == letter else found[0], text)
    elif letters:
        return None, "hedged"
    else:
        letter, rest = "", ""
    if letter:
        also = {(one or other).upper() for one, other in _ALSO.findall(rest)} & allowed
        others = {other for other in (letters | also) - {letter} if not _in_word(other, options.get(letter, ""))}
        return (None, "hedged") if others or _names_another(letter, _plain(rest), options) else (letter, "")
    named = {key for key, option in options.items() if len(_plain(option)) > 2 and _plain(option) in _plain(text)}
    longest = {k for k in named if not any(k != o and _plain(options[k]) in _plain(options[o]) for o in named)}
    if len(longest) == 1:
        return longest.pop(), ""
    return None, "hedged" if longest else "unparseable"


def _in_word(letter: str, option: str) -> bool:
    """Returns whether the text of an option contains this letter by itself."""
    return re.search(rf"\b{letter}\b", option, re.IGNORECASE) is not None


def _names_another(letter: str, rest: str, options: Mapping[str, str]) -> bool:
    """Returns whether the text beside a letter is that of another option, or offers another one: "C or 5"."""
    texts = {key: _plain(option) for key, option in options.items()}
    own = texts.pop(letter, "")
    if own and rest.startswith(own):
        rest = rest[len(own) :]
    offered = [
        rest,
        *(rest[found.end() :] for found in _OR.finditer(rest)),
        *map(str.strip, re.split("[,;]", rest)[1:]),
    ]
    others = [text for text in texts.values() if text and text != own]
    return any(
        part == other or (n and part.startswith(f"{other} ")) for n, part in enumerate(offered) for other in others
    )


def read_options(problem: Problem) -> dict[str, str]:
    """Returns letter -> text, from `meta["choices"]` or the prompt; empty if neither has options. Raises GoldError."""
    given = problem.meta.get("choices", problem.meta.get("options"))
    if isinstance(given, Mapping):
        return {str(key).strip().upper(): str(text) for key, text in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return dict(zip(_LETTERS, map(str, given), strict=False))
    if given is not None:
        raise GoldError(f"problem {problem.name!r}: choices must be a list or a map, got {type(given).__name__}")
    marks = list(_OPTION.finditer(problem.prompt[:50_000]))
    starts = [i for i, mark in enumerate(marks) if mark[1] == "A"]
    if not starts:
        return {}
    run: list[re.Match[str]] = []  # the last "A" starts the list of options; the letters after it must be consecutive
    for mark in marks[starts[-1] :]:
        if mark[1] == _LETTERS[len(run)]:
            run.append(mark)
    ends = [mark.start() for mark in run[1:]] + [len(problem.prompt)]
    found = {m[1]: problem.prompt[m.end() : end].strip(" \n;,") for m, end in zip(run, ends, strict=True)}
    return found if len(found) > 1 else {}


def _plain(text: str) -> str:
    return " ".join(_DRESS.sub("", unicodedata.normalize("NFKC", text)).casefold().strip(" .;,").split())
