"""Makes verifiers/language/trigrams.txt: the evidence of letter trigrams for each language in Latin script.

    pip download --no-deps django==5.2.19 wagtail==8.0.1 -d wheels
    python benchmarks/language_profiles.py wheels/*.whl

The texts are the translations of two web frameworks (both BSD-3-Clause); the output contains only weights of trigrams.
"""

from __future__ import annotations

import collections
import math
import re
import sys
import zipfile
from pathlib import Path

LANGUAGES = ("en", "es", "fr", "de", "it", "pt", "vi", "tr")
LOCALES = {"en": ["en"], "pt": ["pt", "pt_BR"], **{name: [name] for name in ("es", "fr", "de", "it", "vi", "tr")}}
OTHERS = ["nl", "pl", "sv", "id", "cs", "ro", "fi", "hu", "da", "nb"]  # together the class of all other languages
KEPT = 3000
OUT = Path(__file__).resolve().parent.parent / "verifiers" / "language" / "trigrams.txt"
_WORD = re.compile(r"[^\W\d_]+")
_ENTRY = re.compile(r'^(msgid|msgid_plural|msgstr(?:\[\d\])?) ((?:".*"\n?)+)', re.MULTILINE)
_NOISE = re.compile(r"%\(\w+\)\w|%[a-z]|\{[^}]*\}|<[^>]*>|&\w+;|\\n|https?:\S+")


def words_of(wheels: list[Path], locale: str) -> collections.Counter[str]:
    """The words of all messages in one locale."""
    found: collections.Counter[str] = collections.Counter()
    wanted = "msgid" if locale == "en" else "msgstr"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(f"/locale/{locale}/LC_MESSAGES/django.po"):
                    text = archive.read(name).decode("utf-8")
                    for key, strings in _ENTRY.findall(text):
                        if key.startswith(wanted):
                            line = "".join(part[1:-1] for part in strings.strip().split("\n"))
                            found.update(word.lower() for word in _WORD.findall(_NOISE.sub(" ", line)))
    return found


def trigrams(words: collections.Counter[str]) -> collections.Counter[str]:
    """Trigrams with word edges; a word's weight is the square root of its frequency, so jargon doesn't dominate."""
    counts: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        padded = f"_{word}_"
        for i in range(len(padded) - 2):
            counts[padded[i : i + 3]] += math.sqrt(count)  # type: ignore[assignment]
    return counts


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]]
    profiles = [
        sum((trigrams(words_of(wheels, loc)) for loc in LOCALES[name]), collections.Counter()) for name in LANGUAGES
    ]
    others = [trigrams(words_of(wheels, name)) for name in OTHERS]
    shares = []
    for profile in profiles:
        total = sum(profile.values())
        shares.append({t: (c + 0.3) / (total + 3000) for t, c in profile.items()} | {"": 0.3 / (total + 3000)})
    mixed: dict[str, float] = collections.defaultdict(float)
    for profile in others:
        for t, c in profile.items():
            mixed[t] += c / sum(profile.values()) / len(others)
    floor = sorted(share[""] for share in shares)[len(shares) // 2]
    shares.append({t: max(c, floor) for t, c in mixed.items()} | {"": floor})
    weights = {}
    for t in {t for share in shares for t in share if t}:
        logs = [math.log(max(share.get(t, share[""]), floor)) for share in shares]
        mean = sum(logs) / len(logs)
        best = max(share.get(t, 0.0) for share in shares)
        spread = max(logs) - mean
        weights[t] = (best * spread, [max(-2.25, min(2.25, log - mean)) for log in logs])
    kept = sorted(weights, key=lambda t: -weights[t][0])[:KEPT]
    lines = [f"{t} {''.join(str(round(w * 2 + 4.5)) for w in weights[t][1])}\n" for t in sorted(kept)]
    OUT.write_text("".join(lines), encoding="utf-8")
    print(f"{OUT}: {len(lines)} triples, columns {' '.join(LANGUAGES)} other, weight = (digit - 4.5) / 2 nats")


if __name__ == "__main__":
    main()
