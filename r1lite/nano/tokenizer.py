"""nano's tokenizer: byte-level BPE as in Qwen2, so any text can be encoded (in Unicode form NFC, as with Qwen2).

Transformers opens every Qwen2 model with `Qwen2Tokenizer`, regardless of its files, so nano uses that class too. A
digit is always a single token, without a space. ` * ` and the other operators, and `; ` between equations, are single
tokens: `4 * 6 = 24` has six tokens, and a number has the same tokens everywhere.
"""

import json
import re
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer

EOS, PAD = "<|endoftext|>", "<|pad|>"
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
SIGNS = (" + ", " - ", " * ", " / ", " = ", "; ")


def train_tokenizer(texts: Iterable[str], *, vocab_size: int, max_tokens: int) -> Qwen2Tokenizer:
    """Learns the merges from `texts`; the same texts give the same tokenizer.

    Args:
        vocab_size: number of tokens, including the 256 bytes and the added ones; fewer if the texts have fewer merges.
        max_tokens: the model's context, recorded as `model_max_length`.
    """
    learner = Qwen2Tokenizer().backend_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(TAGS) - len(SIGNS),
        special_tokens=[EOS, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=10,
        show_progress=False,
    )
    added = re.compile("|".join(map(re.escape, (*TAGS, *SIGNS))))
    learner.train_from_iterator((part for text in texts for part in added.split(text)), trainer)
    learned = json.loads(learner.to_str())["model"]
    merges = [tuple(merge) for merge in learned["merges"]]
    return _tokenizer(learned["vocab"], merges, (*TAGS, *SIGNS), max_tokens)


def word_tokenizer(words: Sequence[str], *, max_tokens: int) -> Qwen2Tokenizer:
    """A tokenizer with a token for each tag and each of `words` (longest match); other text is one token per byte.

    Args:
        max_tokens: the model's context, recorded as `model_max_length`.
    """
    letters = [EOS, PAD, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    return _tokenizer({letter: number for number, letter in enumerate(letters)}, [], (*TAGS, *words), max_tokens)


def _tokenizer(
    vocab: dict[str, int], merges: list[tuple[str, ...]], added: Sequence[str], max_tokens: int
) -> Qwen2Tokenizer:
    tokenizer = Qwen2Tokenizer(
        vocab=vocab,
        merges=merges,  # type: ignore[arg-type]  # typed as text, but pairs work
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=max_tokens,
    )
    # Not special tokens: decode(skip_special_tokens=True) must keep the tags, which the format verifier needs.
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in added])
    return tokenizer
