"""Settings of the stages that make data sets from completions: rejection sampling and the cold start."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.names import HubRepository
from r1lite.config.on_ray import OnRayConfig


class CurationConfig(OnRayConfig):
    """Source, filters and output of the completions of a data set."""

    rollouts: str | None = None
    """Existing completions: a run directory, or a JSONL/Parquet file, folder or URL that fsspec opens (s3://, gs://,
    hf://). By default completions are sampled from --model."""
    samples: int = Field(8, ge=1)
    """Completions sampled per problem."""
    max_problems: int | None = Field(None, ge=1)
    """Sample only for the first this many training problems."""
    temperature: float = Field(1.0, ge=0)
    """Sampling temperature; 0 is greedy."""
    correct: str | None = None
    """Verifier that decides which completions are right; by default the task's."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the verifiers by name; with the option `use`, the name is an alias."""
    filters: list[str] = [  # noqa: RUF012  # pydantic copies it
        "correct",
        "finished",
        "format",
        "language",
        "repetition",
        "paragraphs",
        "code_blocks",
    ]
    """Filters that a completion must pass, in this order, with options such as "length:max=2000,unit=words". Any
    verifier ("thinking:min=1") or your own module:function can be a filter."""
    dedup: Literal["none", "exact", "near"] = "near"
    """Remove repeated rows. exact: the same question and completion; near: nearly the same too."""
    near_threshold: float = Field(0.85, gt=0, le=1)
    """Two rows are near duplicates if both their questions and their completions share this much of their 3-word
    shingles (Jaccard)."""
    decontaminate: list[str] | None = None
    """Evaluation sets whose problems must not be in the data set: JSONL/Parquet files or folders, or "test" for the
    task's own test problems (the default if they are known)."""
    contamination_ngram: int = Field(8, ge=2)
    """Number of words in the n-grams of the contamination check."""
    contamination_share: float = Field(0.5, ge=0, le=1)
    """A question is contaminated if it holds this share of an evaluation problem's n-grams; 0: if it holds one."""
    difficulty_window: bool = True
    """Keep only problems that are solved sometimes: pass rates strictly between --pass-rate-above and
    --pass-rate-below."""
    pass_rate_above: float = Field(0.0, ge=0, lt=1)
    """Lower end of the difficulty window, exclusive."""
    pass_rate_below: float = Field(1.0, gt=0, le=1)
    """Upper end of the difficulty window, exclusive."""
    per_problem: int | None = Field(4, ge=1)
    """Largest number of rows per problem."""
    choose: Literal["shortest", "longest", "diverse", "random"] = "random"
    """Rows to keep if a problem has more: the shortest, the longest, the most different from one another, or random
    ones (seeded)."""
    max_rows: int | None = Field(None, ge=1)
    """Largest number of rows in the data set, taken from the problems in turn."""
    format: Literal["prompt_completion", "messages", "sharegpt", "alpaca"] = "prompt_completion"
    """Columns for the trainer. prompt_completion: the prompt as the model saw it, and the completion as it wrote it;
    the other formats, without these columns: the question without a template, and the whole reply."""
    file_type: Literal["jsonl", "parquet"] = "jsonl"
    """File type of train.*."""
    pairs: int = Field(0, ge=0)
    """Also write pairs.jsonl, with at most this many pairs of a kept and a wrong completion per problem."""
    keep_rejects: bool = True
    """Write rejected.jsonl: the rows that were not kept, with the reasons."""
    workers: int | None = Field(None, ge=1)
    """Number of processes that verify and filter; by default one per core. With --on ray: actors with one CPU each. The
    result doesn't depend on the number."""
    push_to_hub: HubRepository | None = None
    """Upload the finished set to this data set repository on the Hugging Face Hub (a new one is private)."""

    @model_validator(mode="after")
    def _is_scored_here(self) -> CurationConfig:
        if self.scoring != "local":
            raise ValueError(
                f"--scoring {self.scoring} is not for {self.stage}, which scores where it does all its work: use --on "
                f"{self.scoring}"
            )
        return self

    @model_validator(mode="after")
    def _window_is_open(self) -> CurationConfig:
        if self.pass_rate_above >= self.pass_rate_below:
            raise ValueError(
                f"--pass-rate-above must be below --pass-rate-below = {self.pass_rate_below}, got "
                f"{self.pass_rate_above}"
            )
        if self.rollouts is None and self.samples == 1 and self.difficulty_window:
            raise ValueError(
                "--samples 1 gives pass rates of 0 and 1 only, and the difficulty window keeps neither; use more "
                "samples or --no-difficulty-window"
            )
        return self


class RejectConfig(CurationConfig):
    """Rejection sampling: write a data set of the completions that are right and pass a chain of filters."""

    stage: ClassVar[str] = "reject"


class ColdStartConfig(CurationConfig):
    """Cold start: write a data set of readable, right chains of thought, from few-shot prompts or a run's rollouts."""

    stage: ClassVar[str] = "cold-start"

    examples: list[dict[str, str]] = Field([])
    """Recipes only: few-shot examples, each with `question` and `completion`, put before every sampled problem. The
    prompts of the kept rows don't contain them."""
    example_separator: str = "\n\n"
    """Text between few-shot examples; it also ends a completion, unless --stop-text is set."""
    rewrite: Literal["none", "rules", "model"] = "none"
    """Rewrite right completions to the format <think>...</think> <answer>...</answer>, by rules or by a model.
    Completions that are no longer right are dropped."""
    rewrite_model: str | None = None
    """Model for --rewrite model; by default --model."""
    rewrite_prompt: str = (
        "Rewrite this solution so that it is easy to read: short paragraphs, one language, no repetition. Keep every "
        "step and the final answer. Put the reasoning within <think> </think> and only the final answer within "
        "<answer> </answer>.\n\nProblem: {question}\n\nSolution: {completion}\n\nRewritten:\n"
    )
    """Prompt of the rewriting model; it must contain {question} and {completion}."""
    difficulty_window: bool = False
    """Keep only problems that are solved sometimes, by pass rate."""
    per_problem: int | None = Field(1, ge=1)
    """Largest number of rows per problem."""
    max_rows: int | None = Field(5000, ge=1)
    """Largest number of rows in the data set, taken from the problems in turn."""

    @model_validator(mode="after")
    def _examples_are_whole(self) -> ColdStartConfig:
        for number, example in enumerate(self.examples, 1):
            if set(example) != {"question", "completion"}:
                raise ValueError(
                    f"examples: number {number} needs question and completion, got {', '.join(sorted(example))}"
                )
        if self.examples and self.rollouts is not None:
            raise ValueError("examples are for sampling, and with --rollouts nothing is sampled")
        if self.examples and self.template == "chat":
            raise ValueError("examples are for base models and can't be used with --template chat")
        for field in ("{question}", "{completion}"):
            if field not in self.rewrite_prompt:
                raise ValueError(f"--rewrite-prompt must contain {field}")
        return self
