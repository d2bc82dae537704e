"""Texts of tokens that end a reply: for texts that were decoded with these tokens, where no tokenizer is available."""

from __future__ import annotations

import re

# Each token ends a turn or a text in the models that have it, and is never part of a reply.
# <|im_end|> Qwen, ChatML; <|eot_id|>, <|end_of_text|>, <|eom_id|> Llama 3; <|eot|> Llama 4; <|return|> gpt-oss;
# <|endoftext|> GPT-2, Phi, Qwen; <end_of_turn>, <turn|> Gemma; <|END_OF_TURN_TOKEN|> Cohere; <|end_of_turn|> OpenChat;
# <|endofturn|> EXAONE; <|role_end|> Ling.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|return|>", "<|endoftext|>"),
    *("<end_of_turn>", "<turn|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_turn|>", "<|endofturn|>", "<|role_end|>"),
    *("<｜end▁of▁sentence｜>", "<end_of_utterance>"),
)
# <|end|> ends a turn of Phi-3, but only a message of gpt-oss, which continues with <|start|>. </s> is also HTML, if
# <s> stands before it.
_FIRST = re.compile("|".join([*map(re.escape, END_TOKENS), r"<\|end\|>(?!<\|start\|>)", r"</s>", r"<eos>"]))
# Other tokens that may pad the rest of a row. These words may also occur in a text, so only its end is checked.
_FILLING = re.compile(r"(?:\s*(?:<\|?(?:pad|end|eos)\|?>|\[(?:EOS|PAD)\]))+\s*\Z")
_MOST = 1_000


def without_end(text: str) -> str:
    """Returns the text up to the first token that ends the reply, without padding.

    Text after that token is no part of the reply: an answer there does not count.
    """
    opened = text.find("<s>")
    for found in _FIRST.finditer(text):
        if found[0] != "</s>" or not 0 <= opened < found.start():
            return text[: found.start()]
    tail = _FILLING.search(text, max(0, len(text) - _MOST))
    return text if tail is None else text[: tail.start()]
