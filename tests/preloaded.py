"""What a run imports as it goes, some of it late: a process that has imported this spares its forks 3 s each."""

import importlib
import pkgutil

import peft  # noqa: F401
import tyro  # noqa: F401
from transformers.models.auto import modeling_auto, tokenization_auto  # noqa: F401
from transformers.models.qwen2 import modeling_qwen2, tokenization_qwen2  # noqa: F401

import r1lite.pipeline.run
import r1lite.stages
import verifiers.mathexpr.verify  # noqa: F401

for found in pkgutil.iter_modules(r1lite.stages.__path__):
    importlib.import_module(f"r1lite.stages.{found.name}")
