"""Starts a run's processes, its ranks and its engines, on one machine or several."""
