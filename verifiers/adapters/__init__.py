"""Rewards in the signatures of other trainers: one file each, nothing but renames around `Reward`."""
