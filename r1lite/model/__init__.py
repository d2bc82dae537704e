"""The trained model: micro-batches, shared prompts, log-probabilities, adapters, memory."""
