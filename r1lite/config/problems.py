"""What to solve, with which model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from r1lite.config.engine import EngineConfig
from verifiers.on_ray import address_of


class ProblemsConfig(EngineConfig):
    """What to solve, with which model and prompt."""

    task: str = "gsm8k"
    """What to solve: see r1lite tasks; any of reasoning-gym's as reasoning_gym:NAME, or your own as module:attr."""
    source: str | None = None
    """Where the problems come from: hub (or hub@REVISION), bundled, or a JSONL/Parquet file or folder of your own. By
    default what fits the task and the model: generated where the task makes them, bundled for nano, otherwise hub."""
    test_source: str | None = None
    """File with the test problems, when --source is one file; by default its sibling test.*, or 10 % held out."""
    test_split: str = "test"
    """Which split of the bundled problems is tested on: test, or test_hard (families never seen in training)."""
    model: str | None = None
    """Hugging Face id (or ID@REVISION) or path of a causal language model. By default Qwen/Qwen2.5-0.5B with CUDA,
    otherwise the bundled nano, or the task's own: nano-countdown for countdown_small."""
    template: str = "r1_zero"
    """Prompt: r1_zero, short, chat, or your own text with {question} in it."""
    max_prompt_tokens: int = Field(1024, ge=2)
    """Longest prompt, in tokens; a longer one is an error."""
    max_completion_tokens: int = Field(1024, ge=1)
    """Longest completion, in tokens."""
    stop_text: str | None = None
    """End a completion at this text too, for base models that don't end by themselves."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the forward pass; weights and optimizer stay float32. auto: float32 on CPU, bfloat16 on CUDA."""
    attn_implementation: str = "auto"
    """Attention kernel, as transformers names it. auto: sdpa, with a decoding step of our own on CPU."""
    score_workers: int | None = Field(None, ge=0)
    """Processes that score completions under a deadline, and are replaced when they hang or crash; 0: score in this
    process. By default 0 for built-in verifiers and 1 for yours. What is judged in a sandbox needs none."""
    score_timeout_s: float = Field(30.0, gt=0)
    """Seconds after which a completion that is scored in another process is given up, and left unscored."""
    scoring: str = "local"
    """Where completions are scored: local, or on a Ray cluster: ray (that of RAY_ADDRESS or of this machine, or one
    that is started here), ray:HOST:PORT or ray://HOST:PORT. --score-workers then counts actors of one CPU each; by
    default one for each CPU that Ray has free, but one."""
    eval_problems: int = Field(1000, ge=1)
    """Test problems answered greedily before and after training (at most; the first ones of the test set)."""
    eval_samples: int = Field(8, ge=1)
    """Completions a problem for pass@k (k = this), sampled at temperature 1."""
    eval_sample_problems: int = Field(200, ge=1)
    """Test problems that pass@k is measured on (the first ones of the test set)."""

    @field_validator("scoring")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        return checked_place("scoring", value)


def checked_place(option: str, value: str) -> str:
    """`local`, or a Ray cluster. Raises ValueError."""
    if value != "local":
        try:
            address_of(value)
        except ValueError as error:
            raise ValueError(f"--{option} {error}, or local") from error
    return value
