"""Settings of `r1lite pretrain`."""

from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from r1lite.config import Section
from r1lite.config.names import HubRepository, named
from r1lite.nano.habits import HABITS

TEXTS = ("word_problems", "add_carry", "countdown_small")


class PretrainConfig(Section):
    """Make a nano model: train a tokenizer and a small Qwen2 from scratch on generated text of mixed habits."""

    stage: ClassVar[str] = "pretrain"

    out: str = "runs/nano"
    """New folder for the model, in save_pretrained's form. Until it is whole, the training's state lies beside it, in
    .NAME.begun: the same command goes on from there."""
    start: str | None = None
    """Go on from the model and tokenizer in this folder, made by an earlier pretrain; its shape is kept."""
    tokenizer: str | None = None
    """Use the tokenizer of this model (a folder, or nano) rather than train one: a student that is to be distilled
    on-policy shares its teacher's."""
    seed: int = Field(0, ge=0)
    """Decides the initial weights and the text."""
    threads: int = Field(1, ge=1)
    """CPU threads; more than one pays only on idle cores."""
    autocast: bool = True
    """Multiply matrices in bfloat16; weights stay float32. Quicker only where the processor has bfloat16 arithmetic."""

    text: str = "word_problems"
    """What it is about: word_problems (nano), countdown_small (nano-countdown), add_carry (sums of three digits in two
    languages), or module:attr of a task of your own that r1lite.tasks.worked.worked_task made."""
    other_language: float = Field(0.4, ge=0, le=1)
    """add_carry: share of a chain's columns that are worked out in Chinese."""

    give_up: float = Field(0.55, ge=0, le=1)
    """countdown_small: probability that a wrong attempt is the last one, in the last steps."""
    give_up_first: list[float] = Field(default_factory=lambda: [0.0, 0.0, 0.1], min_length=1)
    """countdown_small: the same in the first steps; each text has one of these."""

    vocab_size: int = Field(1024, ge=300)
    """Most tokens of the tokenizer; countdown_small has its own."""
    tokenizer_problems: int = Field(20_000, ge=1)
    """Problems whose text the tokenizer is trained on."""
    hidden_size: int = Field(128, ge=8)
    """Width of the model."""
    intermediate_size: int = Field(512, ge=8)
    """Width of its feed-forward layers."""
    layers: int = Field(4, ge=1)
    """Number of layers."""
    heads: int = Field(4, ge=1)
    """Attention heads."""
    kv_heads: int = Field(2, ge=1)
    """Heads of keys and values; must divide --heads."""
    rope_theta: float = Field(10_000.0, gt=0)
    """Base of the rotary position embedding."""
    context: int = Field(1024, ge=64)
    """Longest prompt and completion together, in tokens."""

    chain_steps: int = Field(3000, ge=0)
    """First steps, on right chains of thought only: what RL can bring out is learned here."""
    habit_steps: int = Field(500, ge=1)
    """Last steps, on the mixed habits."""
    batch_size: int = Field(128, ge=1)
    """Texts a step."""
    lr: float = Field(3e-3, gt=0)
    """Peak learning rate of AdamW, for embeddings and norms."""
    muon_lr: float = Field(0.02, gt=0)
    """Peak learning rate of Muon, for matrices."""
    weight_decay: float = Field(0.01, ge=0)
    """Decoupled weight decay of the matrices."""
    warmup_steps: int = Field(100, ge=0)
    """Steps of linear warm-up; the rate then falls linearly to zero."""
    habits: dict[str, float] = Field(default_factory=lambda: {"guess": 0.6, "chain": 0.4})
    """Habits of r1lite.nano.habits and their shares of the text in the last steps."""
    short_habits: dict[str, float] = Field(default_factory=lambda: {"guess": 0.4, "chain": 0.6})
    """The same for problems of two steps: thinking is begun on what is easy."""
    log_every: int = Field(100, ge=1)
    """Steps between two lines of progress."""
    save_every: int = Field(25, ge=1)
    """Steps between two states that the same command goes on from after it was stopped."""
    push_to_hub: HubRepository | None = None
    """Upload the finished model and its card to this repository on the Hugging Face Hub (made private if new)."""

    @model_validator(mode="after")
    def _one_tokenizer(self) -> "PretrainConfig":
        if self.start is not None and self.tokenizer is not None:
            raise ValueError("--start brings its own tokenizer: omit --tokenizer")
        return self

    @model_validator(mode="after")
    def _whole_heads(self) -> "PretrainConfig":
        if self.hidden_size % (2 * self.heads):
            raise ValueError(
                f"--hidden-size must be a multiple of twice --heads = {self.heads}, got {self.hidden_size}: a head's "
                "positions are encoded in pairs"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"--kv-heads must divide --heads = {self.heads}, got {self.kv_heads}")
        return self

    @property
    def num_parameters(self) -> int:
        """Of a model of this shape."""
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
