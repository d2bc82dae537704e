"""How good a model is: sampling, votes, intervals, comparisons."""
