"""Checkpoints: a model that `from_pretrained` loads, together with the trainer's state."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from r1lite.distributed.together import from_main, together
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError, UserError, first_line
from r1lite.model.lora import adapter_of, has_adapter, merged_weights
from r1lite.model.parts_on_disk import put_back, taken_out, write_parts
from r1lite.model.quantized import described_as_whole
from r1lite.model.sharding import is_part, weights_on_main
from r1lite.run.files import digest, new_folder, read_json, remove_folder, write_json, write_text
from r1lite.run.model_card import CARD
from r1lite.run.places import numbered_checkpoints
from r1lite.run.records import ROLLOUTS

_MANIFEST, _STATE, _PARTS = "manifest.json", "trainer.pt", "state"
_ADAPTER = "adapter"  # folder with the adapter alone, as peft loads it
_MODEL_FILE = "5GB"  # a larger model is written as several files


def save(
    folder: Path,
    step: int,
    *,
    model: Any,
    tokenizer: Any,
    state: dict[str, Any],
    keep: int,
    records: Mapping[str, Any] | None = None,
    card: str = "",
    generation: Any = None,
    dtype: torch.dtype = torch.float32,
    base: str | None = None,
    world: World = ALONE,
) -> Path:
    """Writes `folder`/step-NNNNNN atomically and removes all but the `keep` newest checkpoints. Every rank calls this.

    Each rank writes its own part of sharded tensors into state/; the main rank writes everything else.

    Args:
        step: number of finished steps.
        state: values that torch.save accepts (optimizer, counters), and sharded tensors.
        records: sizes and digests of the run's records so far, see `run.records`; only the main rank's value is used.
        card: content of README.md, which may be changed afterwards; only the main rank's value is used.
        generation: a `transformers.GenerationConfig` that replaces the model's own.
        dtype: dtype of the weights in the model's files.
        base: id on the Hub of the model below an adapter, for the adapter's files.

    Raises:
        RunError: the checkpoint can't be written; the older checkpoints remain.
    """
    path, rounded = folder / f"step-{step:06d}", None if dtype == torch.float32 else dtype
    with contextlib.ExitStack() as stack:
        aside = from_main(world, lambda: stack.enter_context(_written_aside(path, step)))
        state, parts = taken_out(state)
        if parts:
            together(world, functools.partial(_check_shared, aside, world))
            write_parts(parts, aside / _PARTS)
        weights = None
        if any(map(is_part, model.parameters())):
            weights = weights_on_main(model, merged_weights(model), world, folder=aside, dtype=rounded)
        adapter = adapter_of(model)
        tensors = {} if adapter is None else adapter.in_files()
        if world.is_main:
            if adapter is not None:
                _write_adapter(aside / _ADAPTER, tensors, {**adapter.settings(), "base_model_name_or_path": base})
            _write(aside, model, tokenizer, state, weights, card, generation, dtype)
            about = {"step": step, "files": _hashes(aside)}
            write_json(aside / _MANIFEST, about if records is None else {**about, "records": records})
    if world.is_main:
        others = [(number, other) for number, other in numbered_checkpoints(folder) if number != step]
        # The later ones were written by an earlier attempt, before the run was rewound.
        later = [other for number, other in others if number > step]
        earlier = [other for number, other in others if number < step]
        for old in [*later, *earlier[: max(0, len(earlier) - keep + 1)]]:
            remove_folder(old)
    return path


def least_size(
    model: Any, others: Sequence[Any] = (), *, dtype: torch.dtype = torch.float32, rounded: bool = False
) -> int:
    """Bytes of a checkpoint at least: weights, and two moments of each weight that is trained.

    Args:
        others: models in the trainer's state.
        dtype: dtype of the weights in the model's files.
        rounded: the trainer's state holds the model's exact weights as well.
    """
    own = list(model.parameters())
    further = {id(p): p for other in others for p in other.parameters()}
    exact = [*further.values(), *(own if rounded else [])]
    trained = {id(p): p for p in (*own, *further.values()) if p.requires_grad}
    in_files, in_state = dtype.itemsize * sum(p.numel() for p in own), sum(p.nbytes for p in exact)
    return int(in_files + in_state + 2 * sum(p.nbytes for p in trained.values()))


def check_room(folder: Path, size: int) -> None:
    """Raises UserError if the disk of this folder of checkpoints has less than `size` bytes left."""
    free = shutil.disk_usage(folder.parent).free
    if size > free:
        raise UserError(
            f"--out {folder.parent}: a checkpoint needs at least {size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are "
            "free there. Make room, or choose another --out"
        )


@contextlib.contextmanager
def _written_aside(path: Path, step: int) -> Iterator[Path]:
    """Like `new_folder`, but raises RunError if the checkpoint can't be written."""
    try:
        path.parent.mkdir(exist_ok=True)
        with new_folder(path) as aside:
            yield aside
    except (OSError, RuntimeError, SafetensorError) as error:  # each library reports a full disk differently
        if isinstance(error, RunError):
            raise
        free = shutil.disk_usage(path.parent).free / 1e6
        # A library's message has the text of the system's error, but not its number.
        if os.strerror(errno.EFBIG) in str(error):
            do = "(the file system or ulimit -f allows only smaller files). Raise that limit"
        else:
            do = f"({free:,.1f} MB are free there without it). Make room there"
        raise RunError(
            f"the checkpoint of step {step} can't be written to {path}: {error} {do}, then continue with --resume"
        ) from error


def _check_shared(aside: Path, world: World) -> None:
    """Raises RunError if this rank does not see the folder that the main rank created."""
    if not aside.is_dir():
        raise RunError(
            f"rank {world.rank} does not see {aside}, which rank 0 created: with --shard each rank writes its part "
            "of a checkpoint, so --out must be on a file system that all ranks share"
        )


def _write(
    aside: Path,
    model: Any,
    tokenizer: Any,
    state: dict[str, Any],
    weights: dict[str, Tensor] | None,
    card: str,
    generation: Any,
    dtype: torch.dtype,
) -> None:
    """Writes all files except the manifest and sharded state."""
    # The model's files get merged weights; the adapter's own weights are part of the state.
    if weights is None and has_adapter(model):
        weights = dict(merged_weights(model))
    with described_as_whole(model):
        kept = weights if dtype == torch.float32 else _cast(model, weights, dtype)
        # save_pretrained copies the tensors of a file before it writes them.
        model.save_pretrained(aside, state_dict=kept, max_shard_size=_MODEL_FILE)
    if dtype != torch.float32:
        known = read_json(aside / "config.json")
        write_json(aside / "config.json", {**known, "dtype": str(dtype).removeprefix("torch.")})
    if generation is not None:
        generation.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    if card:
        write_text(aside / CARD, card)
    torch.save(state, aside / _STATE)
    for file in aside.rglob("*.safetensors"):  # the library makes them readable only for their owner
        file.chmod((aside / "config.json").stat().st_mode)


def _write_adapter(folder: Path, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]) -> None:
    """Writes an adapter's tensors and settings in peft's format."""
    folder.mkdir()
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(held, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    write_json(folder / "adapter_config.json", settings)


def latest(folder: Path) -> tuple[tuple[int, Path] | None, list[Path]]:
    """Returns the newest intact checkpoint as (finished steps, path) or None, and the damaged ones it skipped."""
    damaged: list[Path] = []
    for number, path in reversed(numbered_checkpoints(folder)):
        if _is_intact(path):
            return (number, path), damaged
        damaged.append(path)
    return None, damaged


def recorded(path: Path) -> dict[str, Any] | None:
    """Returns the records of the run at the time of an intact checkpoint; None if its manifest has none."""
    found: dict[str, Any] | None = read_json(path / _MANIFEST).get("records")
    return found


def load_state(path: Path) -> dict[str, Any]:
    """Returns the trainer's state of a checkpoint; sharded tensors are `TensorOnDisk`.

    Raises:
        UserError: the state can't be read.
    """
    try:
        state = torch.load(path / _STATE, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can make torch raise anything
        raise UserError(f"{path / _STATE}: can't be read: {type(error).__name__}: {first_line(error)}") from error
    if not isinstance(state, dict):
        raise UserError(f"{path / _STATE}: expected a dict, found a {type(state).__name__}")
    with restoring(path):
        return dict(put_back(state, path / _PARTS))


@contextlib.contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Turns errors while a checkpoint's content is restored into a UserError that names the checkpoint."""
    try:
        yield
    except UserError:
        raise
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        OSError,
        SafetensorError,
    ) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {first_line(error)}"
        raise UserError(
            f"--resume: this version of r1lite can't continue from the checkpoint {path}: {what}. Continue with the "
            f"version that wrote it, remove it to use an earlier checkpoint, or start a new run: --model {path}"
        ) from error


def _is_intact(path: Path) -> bool:
    """Returns True if every file in the manifest is unchanged and its records can be used; other files are ignored."""
    try:
        manifest = read_json(path / _MANIFEST)
        files: dict[str, str] = manifest["files"]
        if (kept := manifest.get("records")) is not None:
            digests = [*kept["files"].values(), *kept[ROLLOUTS].values()]
            if not isinstance(kept["settings"], dict) or any([*map(type, pair)] != [int, str] for pair in digests):
                return False
        inside = all(not Path(name).is_absolute() and ".." not in Path(name).parts for name in files)
        return bool(files) and inside and all(digest(path / name)[1] == known for name, known in files.items())
    except (OSError, UserError, KeyError, TypeError, ValueError, AttributeError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name not in (_MANIFEST, CARD))
    return {file.relative_to(folder).as_posix(): digest(file)[1] for file in files}


def _cast(model: Any, weights: Mapping[str, Tensor] | None, dtype: torch.dtype) -> dict[str, Tensor]:
    """Casts floating-point weights to another precision; tied weights stay tied."""
    made: dict[tuple[int, torch.Size], Tensor] = {}

    def cast(weight: Tensor) -> Tensor:
        storage = (weight.data_ptr(), weight.shape)
        if storage not in made:
            made[storage] = weight.detach().to(dtype) if weight.is_floating_point() else weight
        return made[storage]

    return {name: cast(weight) for name, weight in (model.state_dict() if weights is None else weights).items()}
