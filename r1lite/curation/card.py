"""The data card: README.md of a set, which also tells `datasets` which file is what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1lite.curation.emit import PAIRS, PROBLEMS, REJECTED
from r1lite.hub.cards import code, front, plain, table

_WHAT = {
    "reject": "Rejection-sampled chains of thought: completions that rules verified and filters let through.",
    "cold-start": "Cold-start chains of thought: completions that are right and readable, for a first fine-tuning.",
}


def card(manifest: Mapping[str, Any], folder: Path) -> str:
    """The text, out of the manifest and nothing else, so that the same set has the same card."""
    data = manifest["data"]
    configs = [{"config_name": "default", "data_files": [{"split": "train", "path": data["file"]}]}]
    for name in (REJECTED, PAIRS, PROBLEMS):  # `datasets` reads files of one kind only out of a folder
        written = (folder / name).exists() and (folder / name).stat().st_size
        if written and Path(name).suffix == Path(data["file"]).suffix:
            configs.append(
                {"config_name": Path(name).stem, "data_files": [{"split": "train", "path": name}]},
            )
    head = front(
        {
            "configs": configs,
            "task_categories": ["text-generation"],
            "tags": ["reasoning", "rejection-sampling", "r1lite"],
            "size_categories": [_size(data)],
        }
    )
    origin = manifest["origin"]
    made = [(label, origin[key]) for label, key in _ORIGIN if origin.get(key) is not None]
    parts = [
        f"{head}\n# {plain(manifest['name'])}\n\n{_WHAT[manifest['stage']]}",
        f"{data['rows']:,} rows of {data['problems']:,} problems, {data['mean_length']:.1f} tokens a completion on "
        f"average and {data['longest']:,} at most (words, where the source does not tell tokens). Format: "
        f"{code(manifest['format'])}. Made by r1lite {manifest['r1lite']}.",
        "## Where it comes from\n\n" + table(("what", "value"), [(a, code(b)) for a, b in made]),
        "## What was asked of a row\n\n"
        + table(
            ("step", "entered", "left", "rejected", "why"),
            [
                (
                    code(step["step"]),
                    f"{step['entered']:,}",
                    f"{step['left']:,}",
                    f"{step['entered'] - step['left']:,}",
                    ", ".join(f"{plain(reason)} {count:,}" for reason, count in step["reasons"].items()),
                )
                for step in manifest["steps"]
            ],
        ),
        "## How hard the problems are\n\n"
        + table(("pass rate", "problems"), [(plain(k), f"{v:,}") for k, v in manifest["pass_rates"].items()]),
        "## Kept away from\n\n"
        + (
            "\n".join(f"- {plain(name)}: {count:,} problems" for name, count in manifest["evaluation_sets"].items())
            or "No evaluation set was named: nothing was decontaminated."
        ),
        "## Proof\n\nEvery row carries its model, engine, sampling, seed, prompt hash and verdicts. "
        "`python -m verifiers replay .` in this folder verifies every row again. Verifiers: "
        + ", ".join(f"{code(name)} version {plain(about['version'])}" for name, about in manifest["verifiers"].items())
        + ".",
        "## Limits\n\nVerified means that the final answer agrees with the gold answer, not that every step of the "
        "reasoning is right. The licence is that of the problems and of the model that wrote the completions; "
        "this card does not know it.",
    ]
    return "\n\n".join(parts) + "\n"


_ORIGIN = (
    ("completions", "kind"),
    ("run or file", "run"),
    ("task", "task"),
    ("problems", "source"),
    ("model", "model"),
    ("model's hash", "model_hash"),
    ("engine", "engine"),
    ("engine's version", "engine_version"),
    ("temperature", "temperature"),
    ("longest completion, tokens", "max_tokens"),
    ("prompt template", "template"),
    ("seed", "seed"),
    ("rewritten by", "rewritten"),
)


def _size(data: Mapping[str, Any]) -> str:
    """The Hub's names of sizes."""
    for limit, name in ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if data["rows"] < limit:
            return name
    return "n>1M"
