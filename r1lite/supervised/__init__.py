"""Fine-tuning on rows of tokens, and distillation from a teacher."""
