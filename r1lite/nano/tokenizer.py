"""nano's tokenizer: byte-level BPE, so any text survives it, with arithmetic cut the same way everywhere.

A digit is always a token by itself, and never shares one with a space. Between digits, ` * ` and its like and `, `
are tokens of their own, so `4 * 6 = 24` costs six tokens and a number looks the same wherever it stands.
"""

from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

EOS, PAD = "<|endoftext|>", "<|pad|>"
TAGS = ("<think>", "</think>", "<answer>", "</answer>")

_PIECES = r"\p{N}| [-+*/=] (?=\p{N})|, (?=\p{N})| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train_tokenizer(texts: Iterable[str], *, vocab_size: int, max_tokens: int) -> PreTrainedTokenizerFast:
    """Learn the merges from `texts`; the same texts give the same tokenizer.

    Args:
        vocab_size: all tokens, the 256 bytes and the added ones included; fewer if the texts don't hold as many merges.
        max_tokens: the model's context, recorded as `model_max_length`.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(TAGS),
        special_tokens=[EOS, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=10,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Not special: decode(skip_special_tokens=True) must keep the tags that the format is judged by.
    tokenizer.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=max_tokens,
        clean_up_tokenization_spaces=False,
    )
