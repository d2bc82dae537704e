"""One frozen configuration per stage; its field docstrings are the command line's help.

Layers, later ones win: defaults < the recipe's `base:` < the recipe < flags.
"""

from __future__ import annotations

import difflib
import functools
import operator
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypedDict, TypeVar, Union

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from r1lite.errors import UserError


class Section(BaseModel):
    """Base of every stage's configuration."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )


class RunConfig(Section):
    """What every stage that makes a run directory shares."""

    out: str | None = None
    """Run directory; by default a dated name under runs/."""
    resume: bool = False
    """Continue the run in --out (without --out: the newest under runs/) from its last checkpoint."""
    seed: int = Field(0, ge=0)
    """Decides the order of problems and every sampled token."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    threads: int | None = Field(None, ge=1, le=512)
    """CPU threads; by default one per available core, at most 8. Results are bit-identical for
    the same number."""
    quiet: bool = False
    """Print errors and the final summary only."""
    verbose: bool = False
    """Print one line for every step, and what is done in between."""

    @model_validator(mode="after")
    def _one_loudness(self) -> RunConfig:
        if self.quiet and self.verbose:
            raise ValueError("--quiet and --verbose contradict each other")
        return self


class ProblemsConfig(RunConfig):
    """What to solve, with which model and prompt."""

    stage: ClassVar[str]

    task: str = "gsm8k"
    """gsm8k, any of reasoning-gym's as reasoning_gym:NAME, or your own as module:attr."""
    source: str | None = None
    """Where the problems come from: hub, bundled, or a JSONL/Parquet file or folder of your own. By default what fits
    the model: bundled for nano, otherwise hub."""
    test_source: str | None = None
    """File with the test problems, when --source is one file; by default its sibling test.*, or 10 % held out."""
    test_split: str = "test"
    """Which split of the bundled problems is tested on: test, or test_hard (families never seen in training)."""
    model: str | None = None
    """Hugging Face id or path of a causal language model. By default Qwen/Qwen2.5-0.5B with CUDA, otherwise the bundled
    nano."""
    template: str = "r1_zero"
    """Prompt: r1_zero, short, chat, or your own text with {question} in it."""
    max_prompt_tokens: int = Field(1024, ge=2)
    """Longest prompt, in tokens; a longer one is an error."""
    max_completion_tokens: int = Field(1024, ge=1)
    """Longest completion, in tokens."""
    stop_text: str | None = None
    """End a completion at this text too, for base models that don't end by themselves."""
    rollout_rows: int = Field(128, ge=1)
    """Completions sampled at once by the transformers engine."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the forward pass; weights and optimizer stay float32. auto: float32 on CPU, bfloat16 on CUDA."""
    attn_implementation: str = "auto"
    """Attention kernel, as transformers names it. auto: sdpa, with a decoding step of our own on CPU."""
    eval_problems: int = Field(1000, ge=1)
    """Test problems answered greedily before and after training (at most; the first ones of the test set)."""
    eval_samples: int = Field(8, ge=1)
    """Completions a problem for pass@k (k = this), sampled at temperature 1."""
    eval_sample_problems: int = Field(200, ge=1)
    """Test problems that pass@k is measured on (the first ones of the test set)."""


class GRPOConfig(ProblemsConfig):
    """Group relative policy optimization (arXiv:2402.03300) from rewards that rules can check."""

    stage: ClassVar[str] = "grpo"

    reward: str | None = None
    """Formula over verifiers, such as "math + 0.1*format"; by default the task's. Your own: module:function."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the reward's verifiers by name; `use` among them makes the name an alias."""
    score_workers: int | None = Field(None, ge=0)
    """Processes that score completions under a deadline, and are replaced when they hang or crash; 0: score in the
    training process. By default 0 for the verifiers of ours and 1 for yours."""
    score_timeout_s: float = Field(30.0, gt=0)
    """Seconds after which a completion that is scored in another process is given up, and left unscored."""
    steps: int = Field(500, ge=1)
    """Steps; one step samples prompts_per_step * group_size completions."""
    prompts_per_step: int = Field(16, ge=1)
    """Problems a step (P)."""
    group_size: int = Field(8, ge=2)
    """Completions per problem (G)."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature; log-probabilities are those of the tempered distribution."""
    lr: float = Field(1e-6, gt=0)
    """Peak learning rate of AdamW."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up, over --steps."""
    min_lr_ratio: float = Field(0.1, ge=0, le=1)
    """Final learning rate of linear and cosine, as a share of the peak."""
    warmup_steps: int = Field(0, ge=0)
    """Steps of linear warm-up."""
    weight_decay: float = Field(0.0, ge=0)
    """AdamW's decoupled weight decay."""
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    """AdamW's decay of the first moment."""
    adam_beta2: float = Field(0.999, ge=0, lt=1)
    """AdamW's decay of the second moment."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients are scaled down to this global norm."""
    advantage_scale: Literal["std", "none"] = "std"
    """Divide group-centred rewards by the group's standard deviation (GRPO), or not (Dr. GRPO)."""
    clip_low: float = Field(0.2, ge=0, lt=1)
    """The ratio new/old policy is clipped below at 1 - this."""
    clip_high: float = Field(0.2, ge=0)
    """The ratio new/old policy is clipped above at 1 + this."""
    kl_coef: float = Field(0.0, ge=0)
    """Weight of KL(policy || reference), estimator k3; 0 keeps no reference model in memory."""
    updates_per_rollout: int = Field(1, ge=1)
    """Passes over each step's completions."""
    minibatches: int = Field(1, ge=1)
    """Optimizer steps a pass; whole groups are dealt out to them."""
    micro_batch_tokens: int = Field(16384, ge=1)
    """Tokens, padding included, of one forward and backward pass; gradients don't depend on it."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    max_unscored_rate: float = Field(0.1, ge=0, le=1)
    """The run stops when more than this share of a step's completions could not be scored."""
    eval_every: int = Field(0, ge=0)
    """Evaluate, greedily and for pass@k, every this many steps too; 0: only before and after."""
    save_every: int = Field(25, ge=1)
    """Steps between checkpoints; one is also written at the end and on SIGINT or SIGTERM."""
    keep_checkpoints: int = Field(2, ge=1)
    """How many of the newest checkpoints are kept."""

    @model_validator(mode="after")
    def _minibatches_hold_groups(self) -> GRPOConfig:
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"--minibatches must be <= --prompts-per-step = {self.prompts_per_step}, got {self.minibatches}: "
                "a group is never split"
            )
        return self


class EvalConfig(ProblemsConfig):
    """Measure a model on a task's test problems: greedy accuracy and pass@k."""

    stage: ClassVar[str] = "eval"


C = TypeVar("C", bound=Section)


def load(config_class: type[C], argv: Sequence[str], *, prog: str = "") -> C:
    """The configuration that a command line asks for; its `model_fields_set` are the keys that were given.

    Args:
        argv: an optional recipe (a .yaml file) first, then flags.

    Raises:
        UserError: a key, value or file that can't be used; all bad values at once.
        SystemExit: from `--help` (0) and flags that can't be read (2).
    """
    argv = list(argv)
    recipe = argv.pop(0) if argv and argv[0].lower().endswith((".yaml", ".yml")) else None
    flags = _read_flags(config_class, argv, prog)
    keys = read_recipe(Path(recipe), config_class) if recipe is not None else {}
    return validated(config_class, {**keys, **flags}, flags=flags, recipe=recipe)


def validated(
    config_class: type[C],
    values: Mapping[str, Any],
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    recipe: str | None = None,
) -> C:
    """The configuration with these values. Raises UserError, which calls flags and recipe keys by their names."""
    try:
        return config_class.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(_explain(error, flags, recipe)) from error


def read_recipe(path: Path, config_class: type[Section]) -> dict[str, Any]:
    """A recipe's keys, those of its `base:` (a path beside it) underneath. Raises UserError."""
    seen: list[Path] = []
    layers: list[dict[str, Any]] = []
    at: Path | None = path
    while at is not None:
        if at.resolve() in seen:
            raise UserError(f"{path}: 'base:' goes round in a circle at {at}")
        seen.append(at.resolve())
        keys = _read_yaml(at)
        base = keys.pop("base", None)
        for key in keys:
            if key not in config_class.model_fields:
                raise UserError(f"{at}: unknown key '{key}'{_nearest(key, config_class.model_fields)}")
        layers.append(keys)
        at = at.parent / str(base) if base is not None else None
    return {key: value for layer in reversed(layers) for key, value in layer.items()}


# About one command rather than the run: not kept with it.
OF_THE_COMMAND = frozenset({"out", "resume", "quiet", "verbose"})


def dump(config: Section) -> str:
    """YAML that `load` reads back to the same run."""
    values = config.model_dump(mode="json", exclude=set(OF_THE_COMMAND))
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        keys = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read as a recipe: {error}") from error
    if keys is None:
        return {}
    if not isinstance(keys, dict):
        raise UserError(f"{path}: a recipe is a map of keys to values, not a {type(keys).__name__}")
    return {str(key): value for key, value in keys.items()}


def _read_flags(config_class: type[Section], argv: list[str], prog: str) -> dict[str, Any]:
    import tyro

    # A TypedDict without required keys tells what was given from what was not, which layering needs.
    annotations = {
        name: Annotated[
            _without_none(field.annotation),
            tyro.conf.arg(
                help=" ".join((field.description or "").split()),
                help_behavior_hint="" if field.default is None else f"(default: {field.default})",
            ),
        ]
        for name, field in config_class.model_fields.items()
        if typing.get_origin(field.annotation) is not dict  # maps are for recipes
    }
    flags = TypedDict("Flags", annotations, total=False)  # type: ignore[operator]
    description = f"{config_class.__doc__}\n\nA recipe (FILE.yaml) may come first; flags win over it."
    return dict(tyro.cli(flags, args=argv, prog=prog or None, description=description))


def _without_none(annotation: Any) -> Any:
    """`X` of `X | None`: leaving a flag away is how None is said on the command line."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is Union:
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return functools.reduce(operator.or_, kinds)
    return annotation


_BOUNDS = {
    "greater_than_equal": ("ge", ">="),
    "greater_than": ("gt", ">"),
    "less_than_equal": ("le", "<="),
    "less_than": ("lt", "<"),
}
_WHY = {"group_size": ": GRPO compares siblings"}


def _explain(error: ValidationError, flags: Mapping[str, Any], recipe: str | None) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        name = f"--{key.replace('_', '-')}" if key in flags or recipe is None else f"{recipe}: {key}"
        if problem["type"] in _BOUNDS:
            bound, sign = _BOUNDS[problem["type"]]
            lines.append(f"{name} must be {sign} {problem['ctx'][bound]}, got {problem['input']}{_WHY.get(key, '')}")
        elif problem["type"] == "value_error":
            lines.append(str(problem["ctx"]["error"]))
        else:
            lines.append(f"{name}: {problem['msg']}, got {problem['input']!r}")
    return "\n".join(lines)


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(sorted(known))}"
