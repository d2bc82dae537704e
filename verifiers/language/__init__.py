"""Language consistency: the share of the chain of thought that is in the wanted language."""
