"""Reinforcement learning: the loop of a run, its sampling and its updates."""
