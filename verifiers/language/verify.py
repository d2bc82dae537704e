"""The `language` verifier: DeepSeek-R1's language consistency reward."""

from __future__ import annotations

import collections
import functools
import unicodedata

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.language.identify import LANGUAGES, Unit, units
from verifiers.language.words import LATIN
from verifiers.segments import thinking

REASONS = {
    "consistent": "nearly all words are in the target language",
    "mixed": "some words are in another language",
    "other_language": "hardly any word is in the target language",
    "short": "fewer than `min_words` words: paid partly",
    "no_evidence": "abstains: no words in the reasoning, only formulas, code or numbers",
    "no_target": "abstains: no target language, and the prompt does not show one",
    "too_long": "scores 0: the text exceeds the limit on characters",
}  # the closed set of reasons
MAX_CHARS = 1_000_000
_READ = 20_000  # characters of a prompt: the whole would stay in the cache
_SEEN_TWICE = 2  # repeats of the same five words that are still counted
_WINDOW = 5


class LanguageConsistency:
    """The share of the chain of thought's words that are in the target language (arXiv:2501.12948, section 2.3).

    The target is `Problem.language` (ISO 639-1), or else the language of the prompt. 1: every word is in it; 0: none
    is. Words are identified one by one, also in mixed text. The script decides if it can (ko, ru, ar, hi, zh, ja);
    otherwise common words and letter triples decide, with a cost for every change of language (en, es, fr, de, it, pt,
    vi, tr). Code, formulas, numbers, links, single letters and function names are neutral; whole sentences hidden in
    them are not. A word of mixed scripts, with hidden characters or in look-alike letters is in no language. Words that
    are repeated over and over stop counting for the target. It abstains without evidence (`no_evidence`, `no_target`).
    Known limits: languages that share a script with one of ours (Ukrainian, Persian, Marathi) are recognised by letters
    only; names of people count as the language around them.

    Args:
        target: used if the problem names no language; None = the language of the prompt.
        min_words: with fewer words of reasoning the share is paid partly, down to nothing for a single word.
    """

    version = "2"
    kind = "style"
    needs_gate = True  # by itself it rewards giving up thinking (see the README)

    def __init__(self, *, target: str | None = None, min_words: int = 4) -> None:
        if target is not None and target not in LANGUAGES:
            raise ValueError(f"target must be one of {', '.join(LANGUAGES)}; got {target!r}")
        if min_words < 2:
            raise ValueError(f"min_words must be >= 2, got {min_words}")
        self.target, self.min_words = target, min_words

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        target = problem.language or self.target
        if target is None:
            target = _language_of_prompt(problem.prompt[:_READ])
            if target is None:
                return Verdict(None, "no_target", "name one in Problem.language")
        target = target.lower().partition("-")[0]
        if target not in LANGUAGES:
            raise GoldError(f"problem {problem.name!r}: language {target!r} is none of {', '.join(LANGUAGES)}")
        if len(completion.text) > MAX_CHARS:
            return Verdict(0.0, "too_long", f"{len(completion.text)} characters")
        text = unicodedata.normalize("NFC", thinking(completion.text))
        counts = count_words(units(text, latin_target=target in LATIN, expected=target), target)
        total = sum(counts.values())
        if total < 1.0:
            return Verdict(None, "no_evidence")
        share = min(1.0, counts.get(target, 0.0) / total)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        others = ", ".join(f"{name} {count / total:.2f}" for name, count in ranked if name != target)
        detail = f"{target} {share:.2f} of {total:.0f} words{'; ' + others if others else ''}"
        if total < self.min_words:
            return Verdict(share * (total - 1) / (self.min_words - 1), "short", detail)
        reason = "consistent" if share >= 0.95 else "mixed" if share > 0.05 else "other_language"
        return Verdict(share, reason, detail)


def count_words(units: list[Unit], target: str) -> dict[str, float]:
    """Counts words by language; words of the target stop counting once their five-word surroundings repeat."""
    weights: dict[str, float] = {}
    seen: dict[tuple[str, ...], int] = {}
    texts = [unit.text for unit in units]
    for i, unit in enumerate(units):
        if unit.language == target:
            around = tuple(texts[max(0, i - _WINDOW + 1) : i + 1])
            if len(around) == _WINDOW:
                seen[around] = seen.get(around, 0) + 1
                if seen[around] > _SEEN_TWICE or len(set(around)) == 1:
                    continue
        weights[unit.language] = weights.get(unit.language, 0.0) + unit.weight
    return weights


@functools.lru_cache(maxsize=1 << 12)
def _language_of_prompt(prompt: str) -> str | None:
    """Returns the language of most of the prompt's words; None without a majority."""
    counts: collections.Counter[str] = collections.Counter()
    for unit in units(unicodedata.normalize("NFC", prompt)):
        counts[unit.language] += round(unit.weight * 100)
    counts.pop("other", None)
    best = counts.most_common(1)
    return best[0][0] if best and best[0][1] > 0.5 * counts.total() else None
