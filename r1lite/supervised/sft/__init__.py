"""Fine-tuning sets: reading their formats and encoding their rows as tokens."""
