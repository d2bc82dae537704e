"""Finds the data and recipes that ship with r1lite: inside the installed wheel, or in the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def bundled(name: str) -> Path:
    """Returns the path of a bundled file or folder, such as "datasets/gsm8k_style" or "recipes/gsm8k-nano.yaml".

    Raises:
        FileNotFoundError: neither the wheel nor the checkout contains it, so the installation is damaged.
    """
    for root in (_PACKAGE / "_bundled", _PACKAGE.parent):
        if (root / name).exists():
            return root / name
    raise FileNotFoundError(f"'{name}' is not among r1lite's bundled files; reinstall r1lite")
