"""The mathematics of the trainer: pure functions over tensors, no configuration, no I/O.

Shapes: P prompts, G group, B = P*G completions, T completion tokens, V vocabulary.
"""
