"""Fine-tuning on given tokens, and distillation from a teacher."""
