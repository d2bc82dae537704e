"""Tokens that end a reply, as text: for texts that were decoded with them, by whoever has no tokenizer at hand."""

from __future__ import annotations

import re

# Each ends a turn or a text in the models that have it, and is nothing that a reply says.
# <|im_end|> Qwen, ChatML; <|eot_id|>, <|end_of_text|>, <|eom_id|> Llama 3; <|eot|> Llama 4; <|return|> gpt-oss;
# <|endoftext|> GPT-2, Phi, Qwen; <end_of_turn>, <turn|> Gemma; <|END_OF_TURN_TOKEN|> Cohere; <|end_of_turn|> OpenChat;
# <|endofturn|> EXAONE; <|role_end|> Ling.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|return|>", "<|endoftext|>"),
    *("<end_of_turn>", "<turn|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_turn|>", "<|endofturn|>", "<|role_end|>"),
    *("<｜end▁of▁sentence｜>", "<end_of_utterance>"),
)
# <|end|> ends Phi-3's turn, and only a message of gpt-oss, which goes on with <|start|>. </s> is HTML's too, where <s>
# stands before it.
_FIRST = re.compile("|".join([*map(re.escape, END_TOKENS), r"<\|end\|>(?!<\|start\|>)", r"</s>", r"<eos>"]))
# What else may fill the rest of a row; words of these names may stand in a text, so only its end is looked at.
_FILLING = re.compile(r"(?:\s*(?:<\|?(?:pad|end|eos)\|?>|\[(?:EOS|PAD)\]))+\s*\Z")
_MOST = 1_000


def without_end(text: str) -> str:
    """What the reply says: the text up to the first token that ends it, without filling.

    What stands behind that token is no part of the reply: an answer there does not count.
    """
    for found in _FIRST.finditer(text):
        if found[0] != "</s>" or "<s>" not in text[: found.start()]:
            return text[: found.start()]
    tail = _FILLING.search(text, max(0, len(text) - _MOST))
    return text if tail is None else text[: tail.start()]
