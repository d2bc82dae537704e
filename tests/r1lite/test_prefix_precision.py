"""The cache of a decode under autocast: keys are rounded once, and what is sampled is the same."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from r1lite.model.prefix import prefill
from r1lite.nano import nano_path


@torch.inference_mode()
def test_keys_are_cached_in_the_precision_of_autocast_without_changing_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = AutoModelForCausalLM.from_pretrained(nano_path(), dtype=torch.float32).eval()

    def decoded() -> tuple[torch.Tensor, set[torch.dtype]]:
        """Logits of two tokens after two prompts, and the precisions of the cached keys."""
        prefix = prefill(model, [[5, 6, 7, 8], [9, 10, 11, 12]], 0, growing=True)
        made = []
        for step in range(2):
            made.append(
                model(
                    input_ids=torch.tensor([[20 + step], [30 + step]]),
                    attention_mask=torch.ones(2, 4 + step, dtype=torch.long),
                    position_ids=prefix.lengths[:, None] + step,
                    past_key_values=prefix.cache,
                    use_cache=True,
                ).logits
            )
        return torch.cat(made), {layer.keys.dtype for layer in prefix.cache.layers}

    assert decoded()[1] == {torch.float32}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low, precisions = decoded()
        assert precisions == {torch.bfloat16}
        # As the library keeps them: in float32, rounded by every product.
        monkeypatch.setattr("torch.is_autocast_enabled", lambda device: False)
        kept, precisions = decoded()
    assert precisions == {torch.float32}
    assert torch.equal(low, kept)
