"""The bundled model `nano`: where it lies, and the text, tokenizer and settings it is made with."""

from pathlib import Path


def nano_path() -> Path:
    """The shipped `save_pretrained` folder; `AutoModelForCausalLM.from_pretrained` opens it."""
    return Path(__file__).parent / "model"
