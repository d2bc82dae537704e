"""Grade-school maths word problems: GSM8K (arXiv:2110.14168), or others in its format."""

from __future__ import annotations

import hashlib
from pathlib import Path

from r1lite.bundled import bundled
from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task
from r1lite.tasks.rows import hub_rows, read_rows
from verifiers import Problem

_HUB_ID = "openai/gsm8k"
_COLUMNS = ("question", "answer")
_SUFFIXES = (".jsonl", ".json", ".parquet")


def load(source: Source) -> Problems:
    """Train and test problems of `source`. Raises UserError for what can't be read, with file and line."""
    if source.test_split != "test" and source.name != "bundled":
        raise UserError(f"--test-split {source.test_split} is for --source bundled, not {source.name}")
    if source.test is not None and source.name in ("hub", "bundled"):
        raise UserError(f"--test-source is for a --source of your own, not {source.name}")
    match source.name:
        case "hub":
            train, test = (_problems(hub_rows(_HUB_ID, "main", split), split) for split in ("train", "test"))
            return Problems(train, test, f"{_HUB_ID} from the Hugging Face Hub")
        case "bundled":
            folder = bundled("datasets/gsm8k_style")
            train = _problems(read_rows(folder / "train.jsonl", _COLUMNS), "train")
            path = folder / f"{source.test_split}.jsonl"
            if not path.exists():
                splits = sorted(file.stem for file in folder.glob("test*.jsonl"))
                raise UserError(f"--test-split {source.test_split} is unknown; bundled: {', '.join(splits)}")
            test = _problems(read_rows(path, _COLUMNS), source.test_split)
            return Problems(train, test, "bundled GSM8K-style problems, written for r1lite")
        case path:
            return _from_path(_path(path), _path(source.test) if source.test else None)


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"--source {text}: {error}") from error


def _from_path(path: Path, test_path: Path | None) -> Problems:
    if not path.exists():
        raise UserError(f"--source {path}: no such file or folder (or say hub, or bundled)")
    if path.is_dir():
        train_path, test_path = _split_file(path, "train"), test_path or _split_file(path, "test")
        if train_path is None or test_path is None:
            raise UserError(f"--source {path}: the folder needs train.* and test.* ({', '.join(_SUFFIXES)})")
    else:
        train_path = path
        if test_path is None and path.stem == "train":
            test_path = _split_file(path.parent, "test")
    train = _problems(read_rows(train_path, _COLUMNS), "train")
    if test_path is not None:
        test = _problems(read_rows(test_path, _COLUMNS), "test")
        return Problems(train, test, f"{train_path}, tested on {test_path}")
    test = [problem for problem in train if _held_out(problem.prompt)]
    train = [problem for problem in train if not _held_out(problem.prompt)]
    if not test or not train:
        raise UserError(f"--source {path}: too few problems to hold 10 % out for the test; give --test-source")
    return Problems(train, test, f"{path}, {len(test)} of its problems held out for the test (chosen by a hash)")


def _split_file(folder: Path, split: str) -> Path | None:
    return next((path for suffix in _SUFFIXES if (path := folder / f"{split}{suffix}").exists()), None)


def _held_out(question: str) -> bool:
    return hashlib.blake2b(question.encode(), digest_size=2).digest()[0] % 10 == 0


def _id(value: object, default: str) -> str:
    return default if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def _problems(rows: list[dict[str, object]], split: str) -> list[Problem]:
    return [
        Problem(prompt=str(row["question"]), answer=str(row["answer"]), id=_id(row.get("id"), f"{split}-{number}"))
        for number, row in enumerate(rows)
    ]


TASK = Task(name="gsm8k", load=load, reward="math + 0.1*format")
