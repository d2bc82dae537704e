"""Completions -> data sets for training: verified, filtered, deduplicated, decontaminated, chosen. No torch.

A set is a folder; README.md beside this file describes it and every step. The flow: `sources` finds the rows, `scan`
decides on each one alone (in `workers`), `index` on all of them together, `emit` writes.
"""
