"""Mathematics of the trainer: pure functions over tensors, without configuration or I/O.

Shapes: P prompts, G group, B = P*G completions, T completion tokens, V vocabulary.
"""
