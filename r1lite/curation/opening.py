"""Opens a source of completions: a run's rollouts, samples made for a set, or files of any origin."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.curation.rows import Provenance
from r1lite.curation.sources import QUESTION, Source, candidate, read_block
from r1lite.errors import UserError
from r1lite.run.environment import read_environment
from r1lite.run.files import read_bytes
from r1lite.run.model_digests import weights_digest
from verifiers import rows
from verifiers.commands import storage
from verifiers.yaml_text import read_yaml

SAMPLES = "samples"  # folder of a run directory, with the samples for the set
_ABOUT = "about.json"  # file in it with the Provenance of all samples
_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


def open_source(named: str | Path) -> Source:
    """The source at this path or URL. Raises UserError, with the names of missing parts."""
    if storage.is_remote(str(named)):
        source = _behind_url(str(named))
        _check_first_row(source)
        return source
    path = storage.as_path(str(named))
    if not path.exists():
        raise UserError(f"--rollouts {path}: no such file or folder")
    if path.is_dir() and ((path / "rollouts").is_dir() or (path / SAMPLES).is_dir()):
        source = _run(path)
    elif (path / "config.yaml").exists() and ((path / "metrics.jsonl").exists() or not any(_data_files(path))):
        raise UserError(
            f"--rollouts {path}: a run directory without rollouts: no step was done, they were removed, or it kept "
            "none (--keep-rollouts 0)"
        )
    else:
        files = [path] if path.is_file() else list(_data_files(path))
        if not files or (path.is_file() and not path.name.endswith(_SUFFIXES)):
            raise UserError(f"--rollouts {path}: no {', '.join(_SUFFIXES)} file")
        source = Source("stored", path, tuple(files), Provenance(run=path.name), {}, {})
    _check_first_row(source)
    return source


def _behind_url(url: str) -> Source:
    """The stored files at a URL. Raises UserError."""
    try:
        files = storage.remote_files(url, _SUFFIXES)
        whole = storage.read_json(storage.joined(url, "manifest.json")) is None
    except (OSError, ValueError) as error:
        raise UserError(f"--rollouts {error}") from error
    path = Path(url.partition("://")[2])
    chosen = [file for file in files if whole or file.name.startswith("train.")]
    return Source("stored", path, tuple(chosen), Provenance(run=path.name), {}, {}, url)


def _data_files(folder: Path) -> Iterator[Path]:
    """The data files of a folder: train.* of a set that r1lite made, otherwise all files."""
    found = sorted(path for path in folder.iterdir() if path.name.endswith(_SUFFIXES))
    ours = [path for path in found if path.name.startswith("train.")]
    yield from ours if (folder / "manifest.json").exists() and ours else found


def _run(path: Path) -> Source:
    kind = "run" if (path / "rollouts").is_dir() else "samples"
    if kind == "run":
        files = tuple(file for _, file in rows.step_files(path))
    else:
        files = tuple(sorted((path / SAMPLES).glob("part-*.jsonl")))
    if not files:
        raise UserError(f"--rollouts {path}: the run has no rollouts: no step was done, or they were removed")
    config = _read(path / "config.yaml", read_yaml)
    reward = _read(path / "reward.json", json.loads)
    options, versions = reward.get("options", {}), reward.get("versions", {})
    if not all(isinstance(one, dict) for one in (options, versions)) or not all(
        isinstance(given, dict) for given in options.values()
    ):
        raise UserError(f"{path / 'reward.json'} is invalid: options and versions must be maps")
    if kind == "samples":
        about = _read(path / SAMPLES / _ABOUT, json.loads)
        return Source(kind, path, files, Provenance(**about), config, reward)
    accuracies = [line.get("accuracy") for line in _lines(path / "metrics.jsonl")]
    if accuracies and not any(accuracies):
        raise UserError(
            f"--rollouts {path}: none of the run's completions is right (metrics.jsonl: accuracy 0 in every step); "
            "there are no rows to keep"
        )
    config = {key: value for key, value in config.items() if value is None or isinstance(value, str | int | float)}
    environment, summary = read_environment(path), _read(path / "summary.json", json.loads)
    engine = str(summary.get("engine") or config.get("engine") or "transformers")
    known = versions if isinstance(versions := environment.get("versions"), dict) else {}
    provenance = Provenance(
        source=config.get("source"),
        task=config.get("task"),
        run=path.resolve().name,
        model=config.get("model"),
        model_hash=weights_digest(str(config["model"])) if config.get("model") else None,
        engine=engine,
        engine_version=_text(summary.get("engine_version")) or _text(known.get(engine)),
        temperature=config.get("temperature"),
        max_tokens=config.get("max_completion_tokens"),
        stop_text=config.get("stop_text"),
        template=config.get("template"),
        seed=config.get("seed"),
    )
    return Source(kind, path, files, provenance, config, reward)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def write_about(folder: Path, provenance: Provenance) -> None:
    """Writes the provenance of the samples in a folder."""
    from r1lite.run.files import write_json

    write_json(folder / _ABOUT, dataclasses.asdict(provenance))


def _read(path: Path, parse: Any) -> dict[str, Any]:
    try:
        found = parse(read_bytes(path).decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: can't be read: {error}") from error
    return found if isinstance(found, dict) else {}


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [row for _, row in rows.rows(path) if isinstance(row, dict)]


def _check_first_row(source: Source) -> None:
    """Raises UserError unless the first row has the required columns."""
    first = next((row for block in source.blocks for _, row in read_block(block)), None)
    if first is None:
        raise UserError(f"--rollouts {source.location}: contains no rows")
    try:
        found = candidate(first, source)
    except rows.RowError as error:
        raise UserError(f"--rollouts {source.files[0]}: first row: {error}") from error
    lacking = []
    if not found.problem.prompt:
        lacking.append(f"the question ({', '.join((*QUESTION, 'prompt'))})")
    if found.problem.answer is None and found.problem.tests is None:
        lacking.append(f"the right answer ({', '.join(rows.NAMES['answer'])}; or tests)")
    if lacking:
        has = ", ".join(map(str, first))
        raise UserError(f"--rollouts {source.files[0]}: no column for {' and '.join(lacking)}; the rows have {has}")
