"""Loads tokenizers and configurations of models, and says why a model can't be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1lite.errors import UserError, first_line
from r1lite.hub.revisions import is_path, pinned

_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken", "tekken.json")


def load_tokenizer(name: object) -> Any:
    """The tokenizer of "ID", "ID@REVISION" or a folder. Raises UserError for a folder without one, and the library's
    exceptions."""
    from transformers import AutoTokenizer

    folder = Path(str(name)).expanduser()
    # The library would make an empty tokenizer.
    if (folder / "config.json").exists() and not any(any(folder.glob(files)) for files in _TOKENIZER_FILES):
        raise UserError(f"no tokenizer files in {folder}: copy those of the model, such as tokenizer.json, into it")
    return AutoTokenizer.from_pretrained(**pinned(name))


def load_shape(name: object) -> Any:
    """The configuration of the model "ID", "ID@REVISION" or a folder.

    Raises UserError if there is an adapter of peft, and the library's exceptions.

    Implementations of attention and experts that it names are dropped: for the name of a repository with a kernel, the
    library would fetch and run it, whatever implementation the caller asks for.
    """
    from transformers import AutoConfig
    from transformers.utils.peft_utils import find_adapter_config_file

    place = pinned(name)
    # With peft installed, the library would add the adapter by itself; its file can hold patterns that take for ever.
    if find_adapter_config_file(place["pretrained_model_name_or_path"], revision=place.get("revision")) is not None:
        raise UserError(
            f"{name} has an adapter of peft (adapter_config.json): merge it into the weights first (merge_and_unload)"
        )
    found = AutoConfig.from_pretrained(**pinned(name))
    found._attn_implementation = found._experts_implementation = None
    return found


def empty_model(shape: Any) -> Any:
    """The causal language model of a configuration, on torch's device `meta`: without memory for its weights."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(shape, trust_remote_code=False)


def why_not(name: object, error: Exception) -> str:
    """One line about an exception in loading a model, with the cause where the library's message hides it."""
    from safetensors import safe_open

    if isinstance(error, UserError):
        return str(error)
    for path in sorted(Path(str(name)).expanduser().glob("*.safetensors")):
        try:
            with safe_open(path, "pt"):
                pass
        except Exception as damage:  # the library's own, which depend on the damage
            return f"{path} is incomplete or damaged: {damage}"
    if is_path(str(name)) and not Path(str(name)).expanduser().exists():
        return "no such folder here"
    if "ignore_mismatched_sizes" in str(error):
        return "its weights have other shapes than its config.json says"
    return f"{type(error).__name__}: {first_line(error)}"
