"""Rewards in the signatures of other trainers: one module each, a thin wrapper around `Reward`."""
