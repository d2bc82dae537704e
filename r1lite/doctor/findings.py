"""What a diagnosis is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    name: str  # short fixed word: "no_signal", "truncated", ...
    what: str  # one sentence
    evidence: str  # numbers, and the steps they are from
    change: str  # what to do about it

    def __str__(self) -> str:
        return f"{self.name}: {self.what}\n  evidence  {self.evidence}\n  change    {self.change}"
