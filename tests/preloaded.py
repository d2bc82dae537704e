"""What a run imports as it goes, some of it late: a process that has imported this spares its forks 3 s each."""

import importlib
import os
import pkgutil

import peft  # noqa: F401
import torch.distributed.checkpoint
import torch.distributed.elastic.rendezvous.c10d_rendezvous_backend
import torch.distributed.fsdp
import torch.distributed.launcher.api  # noqa: F401
import tyro  # noqa: F401
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.models.auto import modeling_auto, tokenization_auto  # noqa: F401
from transformers.models.qwen2 import modeling_qwen2, tokenization_qwen2  # noqa: F401

import r1lite.pipeline.run
import r1lite.stages
from r1lite.config import GRPOConfig
from r1lite.config.loading import load
from r1lite.rollout.vllm_support import environment, installed
from verifiers import Completion, Problem, resolve
from verifiers.audit.bench import HACKS, read_cases

for found in pkgutil.iter_modules(r1lite.stages.__path__):
    importlib.import_module(f"r1lite.stages.{found.name}")
# What each fork would do once: import the parser's parts, compile the patterns of all models' weights and of verdicts.
load(GRPOConfig, ["--model", "nano"])
get_checkpoint_conversion_mapping("qwen2")
judge = resolve("math")
for case in read_cases(HACKS, expected=False):
    judge(Problem(case.prompt, case.gold), Completion(case.text))

if installed() is not None:  # then servers are forks too, and so are the processes that vLLM starts
    os.environ.update(environment(threads=1, cache_gib=1, cuda=False, batch_invariant=False, float32=True))
    for name in ("entrypoints.openai.api_server", "v1.engine.async_llm", "v1.engine.core", "v1.worker.cpu_worker"):
        importlib.import_module(f"vllm.{name}")
