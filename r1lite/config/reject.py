"""Making data sets out of completions: rejection sampling, and the cold start."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.names import HubRepository
from r1lite.config.on_ray import OnRayConfig


class CurationConfig(OnRayConfig):
    """Where completions come from, which are kept, and in what form."""

    rollouts: str | None = None
    """Completions that exist already: a run directory, or a JSONL/Parquet file, folder, or URL that fsspec opens (s3://,
    gs://, hf://). Without it, completions are sampled from --model."""
    samples: int = Field(8, ge=1)
    """Completions sampled per problem."""
    max_problems: int | None = Field(None, ge=1)
    """Sample for the first so many training problems only."""
    temperature: float = Field(1.0, ge=0)
    """Sampling temperature; 0 is greedy."""
    correct: str | None = None
    """The verifier that says what is right; by default the task's."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the verifiers by name; `use` among them makes the name an alias."""
    filters: list[str] = [  # noqa: RUF012  # pydantic copies it
        "correct",
        "finished",
        "format",
        "language",
        "repetition",
        "paragraphs",
        "code_blocks",
    ]
    """What a completion must pass, in this order, each with options if you like: "length:max=2000,unit=words". Any
    verifier is a filter too ("thinking:min=1"), and so is your own module:function."""
    dedup: Literal["none", "exact", "near"] = "near"
    """Remove repeated rows: those with the same question and completion, or nearly the same ones too."""
    near_threshold: float = Field(0.85, gt=0, le=1)
    """Two rows are near duplicates when questions and completions alike share this much of their 3-word shingles
    (Jaccard)."""
    decontaminate: list[str] | None = None
    """Evaluation sets whose problems must not be in the set: JSONL/Parquet files or folders, or "test" for the task's
    own test problems (the default where they are known)."""
    contamination_ngram: int = Field(8, ge=2)
    """Words of an n-gram that is looked for."""
    contamination_share: float = Field(0.5, ge=0, le=1)
    """A question is contaminated when it holds this share of an evaluation problem's n-grams; 0: when it holds one."""
    difficulty_window: bool = True
    """Keep only problems that are solved sometimes: pass rates strictly between --pass-rate-above and
    --pass-rate-below."""
    pass_rate_above: float = Field(0.0, ge=0, lt=1)
    """Lower end of the difficulty window, exclusive."""
    pass_rate_below: float = Field(1.0, gt=0, le=1)
    """Upper end of the difficulty window, exclusive."""
    per_problem: int | None = Field(4, ge=1)
    """Rows kept per problem, at most."""
    choose: Literal["shortest", "longest", "diverse", "random"] = "random"
    """Which ones: the shortest, the longest, the most different from one another, or seeded at random."""
    max_rows: int | None = Field(None, ge=1)
    """Rows in the whole set, at most; problems take turns."""
    format: Literal["prompt_completion", "messages", "sharegpt", "alpaca"] = "prompt_completion"
    """Columns for the trainer; prompt and completion, as the model saw and wrote them, are always there."""
    file_type: Literal["jsonl", "parquet"] = "jsonl"
    """Kind of the file train.*."""
    pairs: int = Field(0, ge=0)
    """Write pairs.jsonl too: so many pairs of a kept and a wrong completion per problem, at most."""
    keep_rejects: bool = True
    """Write rejected.jsonl: what was not kept, and why."""
    workers: int | None = Field(None, ge=1)
    """Processes that verify and filter; by default one per core. With --on ray: actors of one CPU each. The result is
    the same for any number."""
    push_to_hub: HubRepository | None = None
    """Upload the finished set to this data set repository on the Hugging Face Hub (made private if new)."""

    @model_validator(mode="after")
    def _is_scored_here(self) -> CurationConfig:
        if self.scoring != "local":
            raise ValueError(
                f"--scoring {self.scoring}: {self.stage} scores where it does everything else: --on {self.scoring}"
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
                "--samples 1 gives pass rates of 0 and 1 only, and the difficulty window keeps neither; sample more, "
                "or say --no-difficulty-window"
            )
        return self


class RejectConfig(CurationConfig):
    """Rejection sampling: keep the completions that are right and pass a chain of filters, as a data set."""

    stage: ClassVar[str] = "reject"


class ColdStartConfig(CurationConfig):
    """The cold start: readable, right chains of thought, few-shot prompted or out of a run's rollouts."""

    stage: ClassVar[str] = "cold-start"

    examples: list[dict[str, str]] = Field(default_factory=list)
    """Recipes only: few-shot examples, each with `question` and `completion`, put before every sampled problem. The
    kept rows' prompts hold none of them."""
    example_separator: str = "\n\n"
    """Stands between few-shot examples; a completion ends there too, unless --stop-text says otherwise."""
    rewrite: Literal["none", "rules", "model"] = "none"
    """Bring right completions into the house format, <think>...</think> then <answer>...</answer>: by rules, or by a
    model. What is no longer right afterwards is dropped."""
    rewrite_model: str | None = None
    """Model that rewrites; by default --model."""
    rewrite_prompt: str = (
        "Rewrite this solution so that it is easy to read: short paragraphs, one language, no repetition. Keep every "
        "step and the final answer. Put the reasoning within <think> </think> and only the final answer within "
        "<answer> </answer>.\n\nProblem: {question}\n\nSolution: {completion}\n\nRewritten:\n"
    )
    """Prompt of the rewriting model, with {question} and {completion} in it."""
    difficulty_window: bool = False
    """Keep only problems that are solved sometimes, by pass rate."""
    per_problem: int | None = Field(1, ge=1)
    """Rows kept per problem, at most."""
    max_rows: int | None = Field(5000, ge=1)
    """Rows in the whole set, at most; problems take turns."""

    @model_validator(mode="after")
    def _examples_are_whole(self) -> ColdStartConfig:
        for number, example in enumerate(self.examples, 1):
            if set(example) != {"question", "completion"}:
                raise ValueError(
                    f"examples: number {number} needs question and completion, got {', '.join(sorted(example))}"
                )
        if self.examples and self.rollouts is not None:
            raise ValueError("examples are for sampling; with --rollouts nothing is sampled")
        if self.examples and self.template == "chat":
            raise ValueError("examples are for base models: --template chat has no place for them")
        for field in ("{question}", "{completion}"):
            if field not in self.rewrite_prompt:
                raise ValueError(f"--rewrite-prompt must hold {field}")
        return self
