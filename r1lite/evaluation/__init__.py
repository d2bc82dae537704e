"""Evaluation of models: sampling, votes, intervals, comparisons."""
