"""Settings of `r1lite pretrain`."""

from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from r1lite.config import Section
from r1lite.config.names import HubRepository, named
from r1lite.nano.habits import HABITS

TEXTS = ("word_problems", "add_carry", "countdown_small")
SEARCH_HABITS = ("chain", "guess", "broken_chain")  # of countdown_small
_OF_TEXT = {
    "other_language": "add_carry",
    "give_up": "countdown_small",
    "give_up_first": "countdown_small",
    "short_habits": "word_problems",
}


class PretrainConfig(Section):
    """Train a small model like nano: a tokenizer and a small Qwen2 from scratch, on generated text of mixed habits."""

    stage: ClassVar[str] = "pretrain"

    out: str = "runs/nano"
    """New folder for the model, in the format of save_pretrained. During training the state is kept beside it in
    .NAME.begun; the same command resumes from there."""
    start: str | None = None
    """Continue from the model and tokenizer in this folder, made by an earlier pretrain; its shape is kept."""
    tokenizer: str | None = None
    """Use the tokenizer of this model (a folder, or nano) instead of training one. A student for on-policy distillation
    needs its teacher's tokenizer."""
    seed: int = Field(0, ge=0)
    """Random seed of the initial weights and the text."""
    threads: int = Field(1, ge=1)
    """Number of CPU threads; more than one is faster only on idle cores."""
    autocast: bool = True
    """Multiply matrices in bfloat16; weights stay float32. Faster only on processors with bfloat16 arithmetic."""

    text: str = "word_problems"
    """Training text: word_problems (nano), countdown_small (nano-countdown), add_carry (three-digit sums in two
    languages), or module:attr of your own task that r1lite.tasks.worked.worked_task returned."""
    other_language: float = Field(0.4, ge=0, le=1)
    """add_carry: share of a chain's columns that are worked out in Chinese."""

    give_up: float = Field(0.55, ge=0, le=1)
    """countdown_small: probability that a wrong attempt is the last one, in the last steps."""
    give_up_first: list[float] = Field([0.0, 0.0, 0.1], min_length=1)
    """countdown_small: the same probability in the first steps; each text uses one of these values."""

    vocab_size: int = Field(1024, ge=300)
    """Largest vocabulary of the tokenizer; countdown_small has its own vocabulary."""
    tokenizer_problems: int = Field(20_000, ge=1)
    """Number of problems whose text the tokenizer is trained on."""
    hidden_size: int = Field(128, ge=8)
    """Width of the model."""
    intermediate_size: int = Field(512, ge=8)
    """Width of the feed-forward layers."""
    layers: int = Field(4, ge=1)
    """Number of layers."""
    heads: int = Field(4, ge=1)
    """Number of attention heads."""
    kv_heads: int = Field(2, ge=1)
    """Number of heads of keys and values; must divide --heads."""
    rope_theta: float = Field(10_000.0, gt=0)
    """Base of the rotary position embedding."""
    context: int = Field(1024, ge=64)
    """Largest number of tokens of prompt plus completion."""

    chain_steps: int = Field(3000, ge=0)
    """Number of first steps, on right chains of thought only. Here the model learns the ability that RL can use."""
    habit_steps: int = Field(500, ge=1)
    """Number of last steps, on the mixed habits."""
    batch_size: int = Field(128, ge=1)
    """Texts per step."""
    lr: float = Field(3e-3, gt=0)
    """Peak learning rate of AdamW, for embeddings and norms."""
    muon_lr: float = Field(0.02, gt=0)
    """Peak learning rate of Muon, for matrices."""
    weight_decay: float = Field(0.01, ge=0)
    """Decoupled weight decay of the matrices."""
    warmup_steps: int = Field(100, ge=0)
    """Steps of linear warm-up; after it the rate falls linearly to zero."""
    habits: dict[str, float] = Field(default_factory=lambda: {"guess": 0.6, "chain": 0.4})
    """Habits of r1lite.nano.habits and their shares of the text in the last steps."""
    short_habits: dict[str, float] = Field(default_factory=lambda: {"guess": 0.4, "chain": 0.6})
    """The same shares for problems of two steps, so that the model starts to think on easy problems."""
    log_every: int = Field(100, ge=1)
    """Steps between two lines of progress."""
    save_every: int = Field(25, ge=1)
    """Steps between two saved states, from which the same command resumes."""
    push_to_hub: HubRepository | None = None
    """Upload the finished model and its card to this repository on the Hugging Face Hub (a new one is private)."""

    @model_validator(mode="after")
    def _one_tokenizer(self) -> "PretrainConfig":
        if self.start is not None and self.tokenizer is not None:
            raise ValueError("--start has its own tokenizer: omit --tokenizer")
        return self

    @model_validator(mode="after")
    def _settings_of_the_text(self) -> "PretrainConfig":
        for name, text in _OF_TEXT.items():
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            if text != self.text and getattr(self, name) != default:
                raise ValueError(f"--{name.replace('_', '-')} has no effect without --text {text}")
        if self.text == "countdown_small" and (unknown := sorted(self.habits.keys() - SEARCH_HABITS)):
            known = ", ".join(SEARCH_HABITS)
            raise ValueError(f"--habits: countdown_small has no {', '.join(unknown)}; known: {known}")
        return self

    @model_validator(mode="after")
    def _whole_heads(self) -> "PretrainConfig":
        if self.hidden_size % (2 * self.heads):
            raise ValueError(
                f"--hidden-size must be a multiple of twice --heads = {self.heads}, got {self.hidden_size}: the rotary "
                "position embedding needs an even head size"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"--kv-heads must divide --heads = {self.heads}, got {self.kv_heads}")
        return self

    @property
    def num_parameters(self) -> int:
        """Number of parameters of a model with this shape."""
        head = self.hidden_size // self.heads
        attention = 2 * self.hidden_size * (self.hidden_size + head * self.kv_heads)
        layer = attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size
        return self.vocab_size * self.hidden_size + self.layers * layer

    @field_validator("text")
    @classmethod
    def _known_text(cls, text: str) -> str:
        return named("text", text, TEXTS)

    @field_validator("habits", "short_habits")
    @classmethod
    def _known_shares(cls, habits: dict[str, float]) -> dict[str, float]:
        if unknown := sorted(habits.keys() - HABITS.keys()):
            raise ValueError(f"unknown habits: {', '.join(unknown)}; known: {', '.join(HABITS)}")
        if not habits or min(habits.values()) < 0 or abs(sum(habits.values()) - 1) > 1e-6:
            raise ValueError(f"the shares of habits must be >= 0 and add up to 1, got {habits}")
        return habits
