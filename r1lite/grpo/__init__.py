"""Reinforcement learning: a run, its steps, what is sampled and what is learnt."""
