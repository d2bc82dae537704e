"""Distillation: which pairs of models can be compared token by token, and how it is done."""
