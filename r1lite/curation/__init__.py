"""Makes training sets from completions: verifies, filters, deduplicates, decontaminates and selects. Without torch.

A set is a folder; README.md beside this file describes it and every step. `sources` finds the rows, `scan` decides on
each row alone (in `workers`), `index` decides on all rows together, and `emit` writes the set.
"""
