"""The data card: a set's README.md, whose head also describes the files to `datasets`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1lite.curation.emit import PAIRS, PROBLEMS, REJECTED
from r1lite.hub.cards import code, front, plain, table

_WHAT = {
    "reject": "Rejection-sampled chains of thought: completions that verifiers call right and that pass all filters.",
    "cold-start": "Cold-start chains of thought: right and readable completions for a first fine-tuning.",
}


def card(manifest: Mapping[str, Any], folder: Path) -> str:
    """The card's text. It depends only on the manifest, so that the same set has the same card."""
    data = manifest["data"]
    configs = [{"config_name": "default", "data_files": [{"split": "train", "path": data["file"]}]}]
    for name in (REJECTED, PAIRS, PROBLEMS):  # `datasets` reads only files of one type from a folder
        written = (folder / name).exists() and (folder / name).stat().st_size
        if written and Path(name).suffix == Path(data["file"]).suffix:
            configs.append({"config_name": Path(name).stem, "data_files": [{"split": "train", "path": name}]})
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
        f"{data['rows']:,} rows of {data['problems']:,} problems, {data['mean_length']:.1f} tokens per completion on "
        f"average and {data['longest']:,} at most (words, if the source has no token counts). Format: "
        f"{code(manifest['format'])}. Made by r1lite {manifest['r1lite']}.",
        "## Origin\n\n" + table(("property", "value"), [(a, code(b)) for a, b in made]),
        "## Filters and selection\n\n"
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
        "## Difficulty of the problems\n\n"
        + table(("pass rate", "problems"), [(plain(k), f"{v:,}") for k, v in manifest["pass_rates"].items()]),
        "## Decontamination\n\n"
        + (
            "\n".join(f"- {plain(name)}: {count:,} problems" for name, count in manifest["evaluation_sets"].items())
            or "No evaluation set was given, so nothing was decontaminated."
        ),
        "## Verification\n\nEvery row has its model, engine, sampling settings, seed, prompt hash and verdicts. "
        "`python -m verifiers replay .` in this folder verifies every row again. Verifiers: "
        + ", ".join(f"{code(name)} version {plain(about['version'])}" for name, about in manifest["verifiers"].items())
        + ".",
        "## Limits\n\nVerified means that the final answer agrees with the gold answer, not that every step of the "
        "reasoning is right. The licence depends on the problems and on the model that wrote the completions; "
        "this card doesn't state it.",
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
    """The Hub's category for the number of rows."""
    for limit, name in ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if data["rows"] < limit:
            return name
    return "n>1M"
