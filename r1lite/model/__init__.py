"""The model that is trained: micro-batches, shared prompts, log-probabilities, adapters, memory."""
