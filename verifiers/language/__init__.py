"""Language consistency: how much of the chain of thought is in the language that was asked for."""
