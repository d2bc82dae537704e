"""The bundled models: their paths, and the text, tokenizers and settings for training them."""

from pathlib import Path

# Names for --model -> folders in this package.
MODELS = {"nano": "model", "nano-countdown": "countdown_model"}


def nano_path(name: str = "nano") -> Path:
    """The `save_pretrained` folder of a bundled model, for `AutoModelForCausalLM.from_pretrained`."""
    return Path(__file__).parent / MODELS[name]


def model_place(name: str) -> str:
    """The folder of the bundled model with this name; any other name or path is returned unchanged."""
    return str(nano_path(name)) if name in MODELS else name
