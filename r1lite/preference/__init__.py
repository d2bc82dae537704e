"""Reward models from pairs of completions."""
