"""The bundled models: where they lie, and the text, tokenizers and settings they are made with."""

from pathlib import Path

# Their names for --model, and their folders here.
MODELS = {"nano": "model", "nano-countdown": "countdown_model"}


def nano_path(name: str = "nano") -> Path:
    """The shipped `save_pretrained` folder of a bundled model; `AutoModelForCausalLM.from_pretrained` opens it."""
    return Path(__file__).parent / MODELS[name]


def model_place(name: str) -> str:
    """The folder of the bundled model of this name; any other name, or path, as it is."""
    return str(nano_path(name)) if name in MODELS else name
