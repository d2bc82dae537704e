"""Settings of the task, the model and the prompt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from r1lite.config.engine import EngineConfig
from verifiers.on_ray import address_of


class ProblemsConfig(EngineConfig):
    """Task, model, prompt, scoring and evaluation."""

    task: str = "gsm8k"
    """Task to solve: a name from r1lite tasks, reasoning_gym:NAME (of reasoning-gym), or your own module:attr."""
    source: str | None = None
    """Source of the problems: hub (or hub@REVISION), bundled, or your own JSONL/Parquet file or folder. By default
    generated if the task generates its problems, bundled for nano, otherwise hub."""
    test_source: str | None = None
    """File with the test problems, if --source is one file; by default, for a file train.*, the test.* beside it;
    otherwise about 10 % are held out."""
    test_split: str = "test"
    """Split of the bundled problems to test on: test, or test_hard (families never seen in training)."""
    bad_problems: Literal["error", "drop"] = "error"
    """Treatment of rows that can't be read, golds that can't be checked, and prompts that are too long. error: the run
    does not start, and lists them; drop: they are left out, and dropped.json in the run directory lists them."""
    model: str | None = None
    """Hugging Face id (or ID@REVISION) or path of a causal language model. By default Qwen/Qwen2.5-0.5B with CUDA,
    otherwise the bundled nano; for countdown_small by default nano-countdown."""
    template: str = "r1_zero"
    """Prompt template: r1_zero, short, chat, or your own text that contains {question}."""
    max_prompt_tokens: int = Field(1024, ge=2)
    """Longest prompt, in tokens; a longer one is an error, or is dropped (--bad-problems)."""
    max_completion_tokens: int = Field(1024, ge=1)
    """Longest completion, in tokens."""
    stop_text: str | None = None
    """Also end a completion at this text, for base models that don't end by themselves."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the forward pass; weights and optimizer stay float32. auto: float32 on CPU, bfloat16 on CUDA."""
    attn_implementation: str = "auto"
    """Attention kernel, by its name in transformers. auto: sdpa, with r1lite's own decoding step on CPU."""
    score_workers: int | None = Field(None, ge=0)
    """Number of processes that score completions under a deadline and are replaced if they hang or crash; 0: score in
    this process. By default 0 for built-in verifiers and 1 for yours. Verifiers with a sandbox need none."""
    score_timeout_s: float = Field(30.0, gt=0)
    """Seconds that a scoring process may take per completion; after that the completion is unscored."""
    scoring: str = "local"
    """Where completions are scored: local, or a Ray cluster: ray (that of RAY_ADDRESS or of this machine, or one
    started here), ray:HOST:PORT or ray://HOST:PORT. On Ray, --score-workers is the number of actors with one CPU each;
    by default all of Ray's free CPUs but one."""
    eval_problems: int = Field(1000, ge=1)
    """Number of test problems, the first of the test set, answered greedily before and after training."""
    eval_samples: int = Field(8, ge=1)
    """Completions per problem for pass@k (k = this), sampled at temperature 1 (eval: --eval-temperature)."""
    eval_sample_problems: int | None = Field(None, ge=1)
    """Number of test problems, the first of the test set, that pass@k is measured on; by default 200, but at most
    --eval-problems."""

    @field_validator("scoring")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        return checked_place("scoring", value)

    @property
    def sampled_problems(self) -> int:
        """Number of test problems, if there are as many, that pass@k is measured on."""
        if self.eval_sample_problems is None or not self.eval_problems:  # 0: no evaluation
            return min(200, self.eval_problems)
        return self.eval_sample_problems

    @property
    def tested_problems(self) -> int:
        """Number of test problems, if there are as many, that an evaluation uses."""
        return max(self.eval_problems, self.sampled_problems)


def checked_place(option: str, value: str) -> str:
    """Returns the value if it is `local` or a Ray address. Raises ValueError."""
    if value != "local":
        try:
            address_of(value)
        except ValueError as error:
            raise ValueError(f"--{option} {error}, or local") from error
    return value
