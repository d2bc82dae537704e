"""Starts the ranks and the engines of a run on one machine or several."""
