"""Error of the language verifier on mixed text from translated manuals, sentence by sentence.

    apt-get download gnome-user-docs installation-guide-amd64 && for f in *.deb; do dpkg-deb -x "$f" manuals; done
    pip download --no-deps django && unzip -q django-*.whl -d manuals/django
    python benchmarks/language_mixed.py manuals/usr/share/help manuals/usr/share/doc manuals/django

A folder contains texts in folders named after their language (de, pt_BR, zh_CN, ...): Mallard pages, HTML, manual pages
(.1.gz), gettext catalogues (.po) or plain text. None of it is stored. A test text is a sequence of sentences, of which
a random share is in the target language and the rest in one or two other languages, with formulas, code and numbers in
between; or it changes language within sentences. The true share is computed without the verifier, from the number of
words (runs of at least two letters) and of Chinese and Japanese characters / 1.7.

Sentences with wrong labels are left out: those that also occur in another language's files (untranslated), and those
with letters of another script than their language's.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import html
import random
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verifiers import Completion, Problem, resolve
from verifiers.language.identify import LANGUAGES

_WRITINGS = {
    "ru": "\u0400-\u04ff", "ar": "\u0600-\u06ff", "hi": "\u0900-\u097f", "ko": "\uac00-\ud7a3",
    "zh": "\u4e00-\u9fff", "ja": "\u4e00-\u9fff\u3040-\u30ff",
}  # fmt: skip
_LATIN = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_DROPPED = re.compile(
    r"<(script|style|head|info|pre|code|screen|cmd|input|output|title)\b.*?</\1>|<!--.*?-->", re.DOTALL
)
_BLOCK = re.compile(r"</?(?:p|div|li|td|th|tr|h\d|section|dt|dd|item|title|desc|br|note|table|ul|ol)\b[^>]*>")
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+|(?<=[。！？।])|\n\s*\n")
_PO = re.compile(r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', re.MULTILINE)
_PLACEHOLDER = re.compile(r"%\(\w+\)\w|%[a-z]|\{[^}]*\}|<[^>]*>|&\w+;|\\n|https?:\S+")
_NEUTRAL = [
    "$x^2 + 3x = 10$", r"\(\frac{a}{b} = \sqrt{2}\)", "`total += n`", "= 42.5", "3 * 7 = 21", "sin(x)",
    "\n```python\nfor i in range(10):\n    total = total + i\n```\n", r"\boxed{17}", "12,400", "https://example.org/a",
]  # fmt: skip


def sentences_of(path: Path) -> Iterator[str]:
    """The sentences of a file."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    text = data.decode("utf-8", "replace")
    if path.suffix == ".po":
        entries = ("".join(part[1:-1] for part in found.strip().split("\n")) for found in _PO.findall(text))
        text = "\n\n".join(_PLACEHOLDER.sub(" ", entry) for entry in entries)
    elif path.suffix == ".gz":  # a manual page: lines of prose only
        text = "\n".join("\n" if line[:1] in ".'" else re.sub(r"\\f.|\\-|\\", "", line) for line in text.split("\n"))
    elif path.suffix != ".txt":
        text = html.unescape(re.sub(r"<[^>]+>", "", _BLOCK.sub("\n\n", _DROPPED.sub("\n\n", text))))
    for sentence in _SENTENCE.split(text):
        yield " ".join(sentence.split())


def words_in(text: str, language: str) -> float:
    """Number of words, counted without the verifier."""
    if language in ("zh", "ja"):
        return len(re.findall(f"[{_WRITINGS['ja']}]", text)) / 1.7
    return sum(len(word) > 1 for word in re.findall(r"(?:[^\W\d_]|[\u0900-\u0963])+", text))


def is_plain(sentence: str, language: str) -> bool:
    """True if the sentence is long enough, only in its language's script, and without neutral parts."""
    own = _WRITINGS.get(language, _LATIN)
    letters = [char for char in sentence if char.isalpha()]
    return (
        5 <= words_in(sentence, language) <= 40
        and all(re.match(f"[{own}]", char) for char in letters)
        and not re.search(r"[<>{}$`\\_/=@#|]|\w\.\w|\(\)|[a-z][A-Z]", sentence)
        and sum(char.isupper() for char in letters) < 0.25 * len(letters) + 3
    )


def load(folders: list[Path]) -> dict[str, list[str]]:
    """Sentences by language."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    names = {"C": "en", "en": "en", "pt_BR": "pt", "pt-BR": "pt", "zh_CN": "zh", "zh_Hans": "zh"}
    names |= {language: language for language in LANGUAGES}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            language = next((names[part] for part in path.parts[len(folder.parts) :] if part in names), None)
            if language and path.is_file() and path.suffix in (".page", ".html", ".txt", ".po", ".gz"):
                found[language].update(s for s in sentences_of(path) if is_plain(s, language))
    held = collections.Counter(sentence for kept in found.values() for sentence in kept)
    return {language: sorted(s for s in kept if held[s] == 1) for language, kept in sorted(found.items())}


def mixed(
    target: str, texts: dict[str, list[str]], rng: random.Random, inside: bool, neutral: bool
) -> tuple[str, float]:
    """A text, and the share of its words that are in the target language."""
    others = rng.sample([name for name in texts if name != target], rng.choice([1, 1, 2]))
    wanted = rng.choice([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
    parts: list[tuple[str, str]] = []
    total = own = 0.0
    while total < 80:
        language = target if own <= wanted * total and wanted else rng.choice(others)
        if wanted == 1.0:
            language = target
        text = rng.choice(texts[language])
        if inside:
            text = _piece(text, language, rng)
        parts.append((language, text))
        count = words_in(text, language)
        total += count
        own += count * (language == target)
    if not inside:
        rng.shuffle(parts)
    written = []
    for _, text in parts:
        written.append(text)
        if neutral and rng.random() < 0.4:
            written.append(rng.choice(_NEUTRAL))
    return " ".join(written), own / total


def _piece(sentence: str, language: str, rng: random.Random) -> str:
    """Four to ten consecutive words of the sentence."""
    if language in ("zh", "ja"):
        size = rng.randint(8, 16)
        start = rng.randrange(max(1, len(sentence) - size))
        return sentence[start : start + size]
    words = sentence.split()
    size = rng.randint(4, 10)
    start = rng.randrange(max(1, len(words) - size))
    return " ".join(words[start : start + size])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=200, help="texts per language and kind (default: 200)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="number of worst texts to print")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = load(options.folders)
    verify = resolve("language")
    rng = random.Random(options.seed)
    kinds = {"sentences": (False, False), "with neutral": (False, True), "inside sentences": (True, False)}
    print("language  sentences" + "".join(f"{kind:>18}" for kind in kinds) + "   pure")
    every: dict[str, list[float]] = {kind: [] for kind in kinds}
    worst = []
    for target in (name for name in LANGUAGES if len(texts.get(name, [])) >= 50):
        line = f"{target:<8} {len(texts[target]):>10,}"
        for kind, (inside, neutral) in kinds.items():
            errors = []
            for _ in range(options.texts):
                text, share = mixed(target, texts, rng, inside, neutral)
                verdict = verify(Problem(language=target), Completion(text))
                errors.append(abs((verdict.score or 0.0) - share))
                worst.append((errors[-1], kind, target, share, verdict.detail, text))
            every[kind].append(statistics.fmean(errors))
            line += f"{every[kind][-1]:>18.4f}"
        pure = [verify(Problem(language=target), Completion(text)).score or 0.0 for text in texts[target][:300]]
        print(f"{line}   {statistics.fmean(pure):.3f}")
    print("mean" + " " * 15 + "".join(f"{statistics.fmean(errors):>18.4f}" for errors in every.values()))
    for error, kind, target, share, detail, text in sorted(worst, reverse=True)[: options.show]:
        print(f"\n{error:.2f} {kind}, target {target}: true {share:.2f}, found {detail}\n{text}")
    text = " ".join(rng.choice(texts[rng.choice(list(texts))]) for _ in range(60))[:2000]
    spent = []
    for number in range(200):
        words = text.split(" ")
        rng.shuffle(words)
        began = time.process_time()
        verify(Problem(language="en"), Completion(" ".join(words) + f" {number}"))
        spent.append(time.process_time() - began)
    print(f"\n2,000 characters: {1e3 * statistics.median(spent):.2f} ms CPU (median of {len(spent)})")


if __name__ == "__main__":
    main()
