"""Tokenizers with the chat templates that models have, and a tiny model for each."""

from conftest import make_tiny_model

R1_DISTILL = (  # opens the reasoning, and drops it from earlier turns
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}"
    "<|User|>{{ m.content }}{% else %}<|Assistant|>{{ m.content.split('</think>')[-1] }}<|end_of_text|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|Assistant|><think>\n{% endif %}"
)
QWEN3_CLOSED = (  # as Qwen3's with enable_thinking=False
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
)
CHATML = QWEN3_CLOSED.replace("<think>\n\n</think>\n\n", "")
GEMMA = (  # refuses a system message
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
SILENT = (  # leaves a system message out without a word
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% elif m.role == 'assistant' %}"
    " {{ m.content }}</s>{% endif %}{% endfor %}"
)
SPECIAL = (
    "<pad>",
    "<bos>",
    "<eos>",
    "<|User|>",
    "<|Assistant|>",
    "<|im_start|>",
    "<start_of_turn>",
    "[INST]",
    "[/INST]",
)
ENDS = ("<|im_end|>", "<end_of_turn>", "<|end_of_text|>", "</s>")
TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def make_tokenizer(chat_template=None, *, special_ends=True):
    """One token a byte, tags and turn marks as one token each; <eos> is what the tokenizer says ends a text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = [*SPECIAL[:3], *sorted(pre_tokenizers.ByteLevel.alphabet())]
    # As the loaders of these models expect it: they put a byte-level splitting in the place of any other.
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", model_max_length=4096
    )
    made.add_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL[3:]])
    made.add_tokens([AddedToken(text, special=special_ends, normalized=False) for text in ENDS])
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in TAGS])
    made.chat_template = chat_template
    return made


def save_model(path, tokenizer, **changes):
    """The model and the tokenizer in a folder that `from_pretrained` opens."""
    settings = {"vocab_size": len(tokenizer), "max_position_embeddings": 1024, "eos_token_id": 2, **changes}
    make_tiny_model(**settings).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
