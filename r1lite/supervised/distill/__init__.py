"""Distillation: the models, their divergence per token, and the steps of on-policy training."""
