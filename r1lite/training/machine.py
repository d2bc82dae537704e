"""Chooses defaults that suit the machine, with the reason of each."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1lite.bundled import bundled
from r1lite.config import GRPOConfig, OnRayConfig, PPOConfig, ProblemsConfig, SupervisedConfig, read_recipe
from r1lite.errors import UserError
from r1lite.hub.loading import empty_model, load_shape, why_not
from r1lite.hub.revisions import is_cached, is_path, split
from r1lite.nano import MODELS, model_place
from r1lite.rollout.vllm_sizes import of_trainer
from r1lite.rollout.vllm_support import installed
from r1lite.run.environment import read_environment
from r1lite.run.files import read_bytes
from r1lite.run.places import numbered_checkpoints
from r1lite.tasks import find, refuse_no_source
from r1lite.tasks.rows import hub_reachable
from verifiers.cores import available
from verifiers.yaml_text import read_yaml

NANO, QWEN = "nano", "Qwen/Qwen2.5-0.5B"
# Recipes of tested models; the user's settings override them.
RECIPES = {
    NANO: "recipes/gsm8k-nano.yaml",
    "nano-countdown": "recipes/countdown-nano.yaml",
    QWEN: "recipes/gsm8k-qwen2.5-0.5b.yaml",
}
_PICKS = {"model", "task"}  # of a recipe that is named; one that is picked for a model follows them
SUPERVISED_RECIPES = dict.fromkeys(MODELS, "recipes/sft-nano.yaml")
_MAX_THREADS = 8  # by default
_MOST_ASKED = 512  # as of --threads
_PROMPT_ROOM = 512  # tokens
_BYTES_PER_TOKEN = 48  # per completion token: Python objects of its id and log-probability
_PROMPTING = ("source", "template", "stop_text", "max_prompt_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Choice:
    """Default choices for settings that the user left open."""

    values: dict[str, Any]  # fields of the configuration
    notes: dict[str, str] = field(default_factory=dict)  # field -> reason


def choose(config: ProblemsConfig) -> Choice:
    """Chooses device, model and source if the configuration leaves them open. Raises UserError."""
    values: dict[str, Any] = {}
    elsewhere = isinstance(config, OnRayConfig) and config.engines_on_ray
    # The device of another machine can't be inspected.
    values["device"], notes = (
        (config.device, {}) if elsewhere and config.device != "auto" else choose_device(config.device)
    )
    reachable: bool | None = None
    if config.model is None:
        if not values["device"].startswith("cuda"):
            values["model"], notes["model"] = find(config.task).base, "the bundled model: no CUDA device in use"
        elif is_cached(QWEN) or (reachable := hub_reachable()):
            values["model"] = QWEN
        else:
            values["model"] = find(config.task).base
            notes["model"] = f"the bundled model: the Hub is unreachable, so {QWEN} can't be loaded"
    else:
        values["model"] = config.model
    values["engine"], why = _engine(config, values)
    if why:
        notes["engine"] = why
    if config.source is None:
        has = find(config.task).sources
        refuse_no_source(find(config.task))
        if "generated" in has:
            values["source"] = "generated"
        elif "bundled" not in has:
            values["source"] = "hub"
        elif values["model"] == NANO:
            values["source"], notes["source"] = (
                "bundled",
                "the problems that nano was made for; --source hub uses openai/gsm8k",
            )
        elif reachable if reachable is not None else hub_reachable():
            values["source"] = "hub"
        else:
            values["source"], notes["source"] = "bundled", "the Hugging Face Hub is unreachable"
    return Choice(values, notes)


def fitted_length(config: ProblemsConfig, model: str) -> tuple[int, str] | None:
    """Returns (maximum completion length, reason) if the default length exceeds the model's context; None if it fits.

    Half of the context, at most 512 tokens, is reserved for the prompt. Few prompts are longer; a longer one raises an
    error that names its problem.
    """
    try:
        found = load_shape(model_place(model)).get_text_config()
    except Exception:  # loading the model reports the error
        return None
    context = getattr(found, "max_position_embeddings", None)
    if context is None or config.max_completion_tokens <= (fits := context - min(context // 2, _PROMPT_ROOM)):
        return None
    return fits, f"its context is {context:,} tokens, so completions have at most {fits:,} (--max-completion-tokens)"


def check_room(what: str, needed: int, helps: str) -> None:
    """Raises UserError if `needed` bytes exceed this machine's memory."""
    import psutil

    there = psutil.virtual_memory().total
    if needed > there:
        raise UserError(
            f"{what} needs about {needed / (1 << 30):,.1f} GiB of memory, but this machine has "
            f"{there / (1 << 30):,.1f} GiB: lower {helps}"
        )


def check_step(config: ProblemsConfig) -> None:
    """Raises UserError if the completions of one step alone don't fit into memory."""
    prompts, group = getattr(config, "prompts_per_step", None), getattr(config, "group_size", None)
    if prompts is not None and group is not None:
        tokens = prompts * group * config.max_completion_tokens
        check_room(
            f"a step of {prompts} problems and {group} completions of up to {config.max_completion_tokens} tokens",
            _BYTES_PER_TOKEN * tokens,
            "--prompts-per-step, --group-size or --max-completion-tokens",
        )


def choose_device(asked: str) -> tuple[str, dict[str, str]]:
    """Returns (device, notes by field) for `--device`. Raises UserError."""
    import torch

    cuda = torch.cuda.is_available()
    device = ("cuda" if cuda else "cpu") if asked == "auto" else asked
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UserError(f"--device {asked}: unknown; use auto, cpu, cuda or cuda:N")
    if device.startswith("cuda") and not cuda:
        raise UserError(f"--device {asked}: torch {torch.__version__} finds no CUDA device; try --device cpu")
    number, count = device.removeprefix("cuda").removeprefix(":"), torch.cuda.device_count()
    if number.isdecimal() and int(number) >= count:
        raise UserError(f"--device {asked}: there {'is' if count == 1 else 'are'} {count} here, numbered from 0")
    return device, {"device": torch.cuda.get_device_name(device)} if device.startswith("cuda") else {}


def gpu_names(count: int, asked: str) -> list[str]:
    """Returns names for CUDA_VISIBLE_DEVICES: numbers from 0, or the first names that it lists already.

    Args:
        asked: the setting that needs this many GPUs, for the message.

    Raises: UserError if it lists fewer.
    """
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return [str(number) for number in range(count)]
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if len(names) < count:
        raise UserError(
            f"{asked} needs {count} GPUs, and CUDA_VISIBLE_DEVICES={listed} lists {len(names)}: list more, or unset it"
        )
    return names[:count]


def _engine(config: ProblemsConfig, values: dict[str, Any]) -> tuple[str, str]:
    """Returns (engine, reason)."""
    further = re.fullmatch(r"cuda:0*[1-9]\d*", values["device"]) is not None
    if config.engine == "vllm" and further:
        name = gpu_names(1 + int(values["device"].removeprefix("cuda:")), f"--device {values['device']}")[-1]
        raise UserError(
            f"--engine vllm: vLLM in this process uses the first visible GPU, not {values['device']}. Make only that "
            f"GPU visible: CUDA_VISIBLE_DEVICES={name} r1lite ... --device cuda"
        )
    if config.engine != "auto":
        return config.engine, ""
    if config.engine_url:
        return "vllm-server", "auto: --engine-url is given"
    if isinstance(config, OnRayConfig) and config.engines_on_ray:
        return "transformers", "auto: on cluster nodes; use --engine vllm for vLLM on their GPUs"
    if not values["device"].startswith("cuda"):
        # nano on one core: 11 k tokens/s here; 10 k with vLLM, which needs 20 s to start and copies the weights.
        return "transformers", "auto: on a CPU vLLM is not faster, and takes 20 s to start"
    found = installed()
    if found is None:
        return "transformers", "auto: vLLM, several times faster on a GPU, is not installed"
    if further:
        return "transformers", "auto: vLLM in this process only uses the first visible GPU; see CUDA_VISIBLE_DEVICES"
    if not found.tested and not config.engine_untested:
        return "transformers", f"auto: vLLM {found.version} is untested; use --engine vllm --engine-untested to try it"
    if not _fits(config, values["model"], values["device"]):
        return "transformers", "auto: trainer and vLLM together don't fit on this GPU; see --engine vllm-server"
    return "vllm", "auto: it is installed, and the model fits"


def _fits(config: ProblemsConfig, model: str, device: str) -> bool:
    """Returns True if the trainer leaves room for vLLM (2 bytes per parameter, plus cache); False if unknown."""
    import torch

    try:
        empty = empty_model(load_shape(model_place(model)))
    except Exception:  # loading the model reports the error
        return False
    size: int = sum(parameter.numel() for parameter in empty.parameters())
    needed = of_trainer(config, 4 * size, size) + 2 * size + (4 << 30)
    return needed < torch.cuda.get_device_properties(device).total_memory


def model_path(config: ProblemsConfig) -> str:
    """Returns the folder or Hub id of the configured model."""
    assert config.model is not None
    return model_place(config.model)


def located(name: str) -> str:
    """Resolves a model name: a run directory means its newest checkpoint; other names are returned as they are.

    Raises:
        UserError: a local path that does not exist, or a run without a checkpoint.
    """
    if name in MODELS:
        return name
    path = Path(name).expanduser()
    if not path.exists():
        if is_path(name):
            raise UserError(f"{name}: no such folder here")
        return name
    if not (path / "checkpoints").is_dir():
        _check_files(path)
        return str(path) if name.startswith("~") else name
    numbered = numbered_checkpoints(path / "checkpoints")
    if not numbered:
        raise UserError(f"{name} is a run without a checkpoint")
    _, newest = numbered[-1]
    _check_files(newest)
    return str(newest)


def _check_files(folder: Path) -> None:
    """Raises UserError if a model's folder holds pipes or devices, whose reading might not end."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UserError(f"{path} is a pipe, a socket or a device: no model can be loaded from this folder")


def recipe_for(
    model: str, config_class: type[ProblemsConfig], task: str, preset: Collection[str] = ()
) -> tuple[str, dict[str, Any]] | None:
    """Returns (origin, settings) of the recipe for this model, limited to keys of this stage.

    Args:
        preset: fields that a preset sets; the recipe overrides its sizes.

    A checkpoint of a run keeps the run's template and lengths, since it was trained with them, and for the same task
    the source of its problems.
    """
    if issubclass(config_class, SupervisedConfig):
        if model in SUPERVISED_RECIPES:
            path = SUPERVISED_RECIPES[model]
            keys = read_recipe(bundled(path), config_class)
            return f"{path}, picked for this model", {k: keys[k] for k in keys if k not in _PICKS}
    elif (name := split(model)[0]) in RECIPES:
        keys = read_recipe(bundled(RECIPES[name]), GRPOConfig)
        # PPO needs no groups.
        own = {"group_size", "prompts_per_step"} - set(preset) if issubclass(config_class, PPOConfig) else set()
        fields = config_class.model_fields.keys() - own - _PICKS
        return f"{RECIPES[name]}, picked for this model", {k: keys[k] for k in keys if k in fields}
    folder = Path(model).resolve()
    run = folder.parent.parent / "config.yaml"
    if run.exists() and folder.parent.name == "checkpoints" and read_environment(run.parent)["stage"] is not None:
        try:
            keys = read_yaml(read_bytes(run)) or {}
        except (OSError, ValueError) as error:
            raise UserError(f"{run}, the run that trained this model, can't be read: {error}") from error
        if not isinstance(keys, dict):
            raise UserError(f"{run}, the run that trained this model, holds no settings")
        kept = [key for key in _PROMPTING if key != "source" or keys.get("task") == task]
        return f"as in {run}, the run that trained this model", {k: keys[k] for k in kept if k in keys}
    return None


def check_model(name: str) -> None:
    """Raises UserError unless a model of this name or path is available; reads only its configuration."""
    name = located(name)
    try:
        load_shape(model_place(name))
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(f"{name}: no model can be loaded from it: {why_not(model_place(name), error)}") from error


def default_threads(processes: int = 1) -> int:
    """Returns OMP_NUM_THREADS if it is set, else the number of cores for each of so many processes, at most 8."""
    return environment_threads() or max(1, min(_MAX_THREADS, available() // processes))


def environment_threads() -> int | None:
    """Returns OMP_NUM_THREADS; None if it is not set to a number that --threads takes, or torchrun has set it.

    torchrun sets 1 for several ranks where the user has set nothing.
    """
    outermost = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # nested regions follow
    if outermost == "1" and "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("LOCAL_WORLD_SIZE", "1") != "1":
        return None
    if outermost.isascii() and outermost.isdecimal() and 1 <= int(outermost) <= _MOST_ASKED:
        return int(outermost)
    return None
