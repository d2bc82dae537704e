"""Picks what fits the machine, and says why."""

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
from r1lite.hub.revisions import pinned, split
from r1lite.nano import MODELS, model_place
from r1lite.rollout.vllm_support import installed
from r1lite.run.environment import read_environment
from r1lite.tasks import find
from r1lite.tasks.rows import hub_reachable
from verifiers.yaml_text import read_yaml

NANO, QWEN = "nano", "Qwen/Qwen2.5-0.5B"
# Settings that suit a model, under the user's own, for models we have tried.
RECIPES = {
    NANO: "recipes/gsm8k-nano.yaml",
    "nano-countdown": "recipes/countdown-nano.yaml",
    QWEN: "recipes/gsm8k-qwen2.5-0.5b.yaml",
}
SUPERVISED_RECIPES = dict.fromkeys(MODELS, "recipes/sft-nano.yaml")
_MAX_THREADS = 8
_PROMPT_ROOM = 512  # tokens
_BYTES_PER_TOKEN = 48  # of a completion, as Python holds its id and its log-probability
_PROMPTING = ("source", "template", "stop_text", "max_prompt_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for the user, where nothing was asked for."""

    values: dict[str, Any]  # fields of the configuration
    notes: dict[str, str] = field(default_factory=dict)  # by field: why


def choose(config: ProblemsConfig) -> Choice:
    """Device, model and source where the configuration leaves them open. Raises UserError."""
    values: dict[str, Any] = {}
    elsewhere = isinstance(config, OnRayConfig) and config.engines_on_ray
    # Another machine's device can't be looked at.
    values["device"], notes = (
        (config.device, {}) if elsewhere and config.device != "auto" else choose_device(config.device)
    )
    reachable: bool | None = None
    if config.model is None:
        if not values["device"].startswith("cuda"):
            values["model"], notes["model"] = find(config.task).base, "the bundled model: no CUDA device in use"
        elif _cached(QWEN) or (reachable := hub_reachable()):
            values["model"] = QWEN
        else:
            values["model"] = find(config.task).base
            notes["model"] = f"the bundled model: the Hub, where {QWEN} lies, can't be reached"
    else:
        values["model"] = config.model
    values["engine"], why = _engine(config, values)
    if why:
        notes["engine"] = why
    if config.source is None:
        has = find(config.task).sources
        if "generated" in has:
            values["source"] = "generated"
        elif "bundled" not in has:
            values["source"] = "hub"
        elif values["model"] == NANO:
            values["source"], notes["source"] = "bundled", "what nano was made for; --source hub takes openai/gsm8k"
        elif reachable if reachable is not None else hub_reachable():
            values["source"] = "hub"
        else:
            values["source"], notes["source"] = "bundled", "the Hugging Face Hub can't be reached"
    return Choice(values, notes)


def fitted_length(config: ProblemsConfig, model: str) -> tuple[int, str] | None:
    """(longest completion, why) where the configuration's default would fill the model's context; None where it fits.

    Prompts are left half of the context, and 512 tokens at most: few are longer, and one that is is refused by name.
    """
    from transformers import AutoConfig

    try:
        found = AutoConfig.from_pretrained(**pinned(model_place(model))).get_text_config()
    except Exception:  # loading the model says what is wrong with it
        return None
    context = getattr(found, "max_position_embeddings", None)
    if context is None or config.max_completion_tokens <= (fits := context - min(context // 2, _PROMPT_ROOM)):
        return None
    return fits, f"its context is {context:,} tokens: completions of at most {fits:,} (--max-completion-tokens)"


def check_room(what: str, needed: int, helps: str) -> None:
    """Refuses what can't fit into this machine's memory, before anything is loaded. Raises UserError."""
    import psutil

    there = psutil.virtual_memory().total
    if needed > there:
        raise UserError(
            f"{what} needs about {needed / (1 << 30):,.1f} GiB of memory, and this machine has "
            f"{there / (1 << 30):,.1f} GiB: lower {helps}"
        )


def check_step(config: ProblemsConfig) -> None:
    """The texts of one step fit into memory, whatever the model is. Raises UserError."""
    prompts, group = getattr(config, "prompts_per_step", None), getattr(config, "group_size", None)
    if prompts is not None and group is not None:
        tokens = prompts * group * config.max_completion_tokens
        check_room(
            f"a step of {prompts} problems and {group} completions of up to {config.max_completion_tokens} tokens",
            _BYTES_PER_TOKEN * tokens,
            "--prompts-per-step, --group-size or --max-completion-tokens",
        )


def choose_device(asked: str) -> tuple[str, dict[str, str]]:
    """(device, notes by field) for `--device`. Raises UserError."""
    import torch

    cuda = torch.cuda.is_available()
    device = ("cuda" if cuda else "cpu") if asked == "auto" else asked
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UserError(f"--device {asked}: unknown; auto, cpu, cuda or cuda:N")
    if device.startswith("cuda") and not cuda:
        raise UserError(f"--device {asked}: torch {torch.__version__} finds no CUDA device; try --device cpu")
    return device, {"device": torch.cuda.get_device_name(device)} if device.startswith("cuda") else {}


def _engine(config: ProblemsConfig, values: dict[str, Any]) -> tuple[str, str]:
    """(engine, why) where the configuration leaves it open."""
    further = re.fullmatch(r"cuda:0*[1-9]\d*", values["device"]) is not None
    if config.engine == "vllm" and further:
        raise UserError(
            f"--engine vllm: vLLM in this process takes the first GPU that is visible, not {values['device']}. Show it "
            f"that one alone: CUDA_VISIBLE_DEVICES={values['device'].removeprefix('cuda:')} r1lite ... --device cuda"
        )
    if config.engine != "auto":
        return config.engine, ""
    if config.engine_url:
        return "vllm-server", "auto: --engine-url is given"
    if isinstance(config, OnRayConfig) and config.engines_on_ray:
        return "transformers", "auto: on the nodes of a cluster; --engine vllm for vLLM on their GPUs"
    if not values["device"].startswith("cuda"):
        # nano on one core: 11 k tokens/s here, 10 k by vLLM, which takes 20 s to start and copies of the weights.
        return "transformers", "auto: on a CPU vLLM is no quicker, and takes 20 s to start"
    found = installed()
    if found is None:
        return "transformers", "auto: vLLM, several times quicker on a GPU, is not installed"
    if further:
        return "transformers", "auto: vLLM in this process takes the first visible GPU alone; see CUDA_VISIBLE_DEVICES"
    if not found.tested and not config.engine_untested:
        return "transformers", f"auto: vLLM {found.version} was not tested with this; --engine vllm --engine-untested"
    if not _fits(values["model"], values["device"]):
        return "transformers", "auto: trainer and vLLM don't fit this GPU together; see --engine vllm-server"
    return "vllm", "auto: it is installed, and the model fits"


def _fits(model: str, device: str) -> bool:
    """True if the trainer's 16 bytes a parameter leave room for vLLM's 2 and its cache; False if nobody can tell."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    place = model_place(model)
    try:
        with torch.device("meta"):
            empty = AutoModelForCausalLM.from_config(
                AutoConfig.from_pretrained(**pinned(place)), trust_remote_code=False
            )
    except Exception:  # loading the model says what is wrong with it
        return False
    size: int = sum(parameter.numel() for parameter in empty.parameters())
    return 18 * size + (4 << 30) < torch.cuda.get_device_properties(device).total_memory


def model_path(config: ProblemsConfig) -> str:
    """Folder or Hub id of the configured model."""
    assert config.model is not None
    return model_place(config.model)


def located(name: str) -> str:
    """The model a name stands for: a run directory's newest checkpoint; any other name as it is.

    Raises:
        UserError: a path of this machine where nothing is, or a run without a checkpoint.
    """
    if name in MODELS:
        return name
    path = Path(name).expanduser()
    if not path.exists():
        if name.startswith((".", "/", "~", "runs/")) or split(name)[0].count("/") > 1:
            raise UserError(f"{name}: no such folder here")
        return name
    if not (path / "checkpoints").is_dir():
        return str(path) if name.startswith("~") else name
    numbered = sorted(path.glob("checkpoints/step-*"), key=lambda found: (len(found.name), found.name))
    if not numbered:
        raise UserError(f"{name} is a run without a checkpoint")
    return str(numbered[-1])


def recipe_for(
    model: str, config_class: type[ProblemsConfig], preset: Collection[str] = ()
) -> tuple[str, dict[str, Any]] | None:
    """(where from, keys) of settings that suit this model, as far as this stage has such keys.

    Args:
        preset: fields that a preset sets, whose sizes the recipe's replace.

    A checkpoint of a run was trained with its prompt and lengths, and makes no sense with others.
    """
    if issubclass(config_class, SupervisedConfig):
        if model in SUPERVISED_RECIPES:
            path = SUPERVISED_RECIPES[model]
            return f"{path}, picked for this model", read_recipe(bundled(path), config_class)
    elif (name := split(model)[0]) in RECIPES:
        keys = read_recipe(bundled(RECIPES[name]), GRPOConfig)
        # PPO needs no siblings.
        own = {"group_size", "prompts_per_step"} - set(preset) if issubclass(config_class, PPOConfig) else set()
        fields = config_class.model_fields.keys() - own
        return f"{RECIPES[name]}, picked for this model", {k: keys[k] for k in keys if k in fields}
    folder = Path(model).resolve()
    run = folder.parent.parent / "config.yaml"
    if run.exists() and folder.parent.name == "checkpoints" and read_environment(run.parent)["stage"] is not None:
        try:
            keys = read_yaml(run.read_bytes()) or {}
        except (OSError, ValueError) as error:
            raise UserError(f"{run}, where this model was trained, can't be read: {error}") from error
        if not isinstance(keys, dict):
            raise UserError(f"{run}, where this model was trained, holds no settings")
        return f"as in {run}, where this model was trained", {k: keys[k] for k in _PROMPTING if k in keys}
    return None


def check_model(name: str) -> None:
    """Raises UserError unless a model of this name or path is available; nothing but its configuration is read."""
    from transformers import AutoConfig

    name = located(name)
    try:
        AutoConfig.from_pretrained(**pinned(model_place(name)))
    except Exception as error:  # the library raises whatever its transport does
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UserError(f"{name}: no model can be loaded from there: {type(error).__name__}: {first}") from error


def default_threads() -> int:
    """One per core that this process may use, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MAX_THREADS, cores)


def _cached(model: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model, "config.json"), str)
