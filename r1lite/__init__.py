"""Train language models to reason with rule-based rewards, as DeepSeek-R1-Zero does."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version

import verifiers

if getattr(verifiers, "DISTRIBUTION", None) != "r1lite":
    raise ImportError(
        f"r1lite needs its own 'verifiers', but Python found {verifiers.__file__}. PyPI's 'verifiers' has the same "
        "import name: use a separate environment, or reinstall r1lite after uninstalling 'verifiers'."
    )

try:
    __version__ = _version("r1lite")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0+checkout"

__all__ = ["__version__"]
