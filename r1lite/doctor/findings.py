"""The findings of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that was found."""

    name: str  # short fixed word: "no_signal", "truncated", ...
    what: str  # one sentence
    evidence: str  # numbers, with their steps
    change: str  # suggested change

    def __str__(self) -> str:
        return f"{self.name}: {self.what}\n  evidence  {self.evidence}\n  change    {self.change}"
